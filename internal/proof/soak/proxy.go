package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxBody       = 16 << 20         // in bytes; DynamoDB's largest request is smaller
	engineTimeout = 30 * time.Second // for a request to the engine, which may be slow and must not hang for ever
	awsJSON       = "application/x-amz-json-1.0"
)

// network is whether a proxy's process can be reached.
type network int32

const (
	connected network = iota
	cutOff            // nothing arrives
	mute              // requests arrive, answers do not
)

// proxy is between one process and the engine. It applies a request that has arrived, also if its sender has given up
// or died meanwhile.
type proxy struct {
	URL string

	engine string // its URL
	next   func() decision
	server *http.Server
	to     *http.Client
	served chan error
	later  sync.WaitGroup // duplicates under way

	network atomic.Int32
	clean   atomic.Bool // without faults from now on
	passed  atomic.Int64
	met     [faults]atomic.Int64

	// ended ends when the proxy is given up.
	ended context.Context
	end   context.CancelFunc
}

// newProxy serves on a free port of 127.0.0.1 until close. next decides what happens to each request, in their order.
func newProxy(ctx context.Context, engine string, next func() decision) (*proxy, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("soak: proxy: %w", err)
	}
	x := &proxy{
		URL: "http://" + listener.Addr().String(), engine: strings.TrimSuffix(engine, "/"), next: next, served: make(chan error, 1),
		to: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}},
	}
	x.ended, x.end = context.WithCancel(context.WithoutCancel(ctx))
	x.server = &http.Server{Handler: x, ReadHeaderTimeout: engineTimeout}
	go func() { x.served <- x.server.Serve(listener) }()
	return x, nil
}

// close returns when everything that was sent has been delivered. When ctx ends, it gives up the rest.
func (x *proxy) close(ctx context.Context) error {
	stop := context.AfterFunc(ctx, x.end)
	defer stop()
	err := x.server.Shutdown(ctx)
	x.later.Wait()
	if err == nil {
		err = ctx.Err() // late requests were given up
	}
	x.end()
	x.to.CloseIdleConnections()
	if err != nil {
		_ = x.server.Close()
	}
	if served := <-x.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if err != nil {
		return fmt.Errorf("soak: proxy: %w", err)
	}
	return nil
}

// sent is a request as it arrived.
type sent struct {
	path   string
	header http.Header
	body   []byte
}

// reply is an answer of the engine, or a made-up one.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// ServeHTTP implements http.Handler.
func (x *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		panic(http.ErrAbortHandler) // the sender is gone
	}
	q := &sent{path: r.URL.RequestURI(), header: r.Header, body: body}
	d := x.fate(q)
	if d.fault != pass {
		x.met[d.fault].Add(1)
	}
	switch d.fault {
	case partition:
		x.partitioned(r, q, d)
	case dropRequest:
		x.hang(r)
	case dropAnswer:
		_ = x.deliver(r.Context(), q)
		x.hang(r)
	case cutBefore:
		panic(http.ErrAbortHandler)
	case cutAfter:
		x.cut(w, x.deliver(r.Context(), q), d)
	case lateRequest:
		x.wait(d.after)
		x.answer(w, x.deliver(r.Context(), q), d)
	case lateAnswer:
		answer := x.deliver(r.Context(), q)
		x.wait(d.after)
		x.answer(w, answer, d)
	case duplicate:
		answer := x.deliver(r.Context(), q)
		x.later.Go(func() { //nolint:contextcheck // the sender does not wait for it
			x.wait(d.after)
			_ = x.deliver(r.Context(), q)
		})
		x.answer(w, answer, d)
	case errorBefore:
		x.answer(w, refusal(http.StatusInternalServerError, "InternalServerError"), d)
	case errorAfter:
		_ = x.deliver(r.Context(), q)
		x.answer(w, refusal(http.StatusInternalServerError, "InternalServerError"), d)
	case throttle:
		x.answer(w, refusal(http.StatusBadRequest, "ProvisionedThroughputExceededException"), d)
	case conflict:
		x.answer(w, conflictOf(q, d.pick), d)
	default:
		x.answer(w, x.deliver(r.Context(), q), d)
	}
}

// fate decides what happens to a request.
func (x *proxy) fate(q *sent) decision {
	d := x.next()
	if network(x.network.Load()) != connected {
		d.fault = partition
		return d
	}
	if x.clean.Load() {
		d = decision{}
	}
	if d.fault == conflict && conflictOf(q, 0) == nil {
		d.fault = pass // only writes conflict with transactions
	}
	if d.fault == pass {
		x.passed.Add(1)
	}
	return d
}

// partitioned lets no request through, or no answer back.
func (x *proxy) partitioned(r *http.Request, q *sent, d decision) {
	if network(x.network.Load()) == mute {
		_ = x.deliver(r.Context(), q)
	}
	if d.pick < 0.5 {
		panic(http.ErrAbortHandler)
	}
	x.hang(r)
}

// hang lets the sender wait without an answer.
func (x *proxy) hang(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-x.ended.Done():
	}
	panic(http.ErrAbortHandler)
}

func (x *proxy) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.ended.Done():
	}
}

// deliver sends a request to the engine, whether its sender still waits or not. It returns nil if there is no answer.
func (x *proxy) deliver(ctx context.Context, q *sent) *reply {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), engineTimeout)
	defer cancel()
	defer context.AfterFunc(x.ended, cancel)() //nolint:contextcheck // it ends with the proxy instead
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, x.engine+q.path, bytes.NewReader(q.body))
	if err != nil {
		return nil
	}
	r.Header = q.header.Clone()
	r.Header.Del("Connection")
	response, err := x.to.Do(r)
	if err != nil {
		return nil
	}
	body, err := io.ReadAll(response.Body)
	if errors.Join(err, response.Body.Close()) != nil {
		return nil
	}
	return &reply{status: response.StatusCode, header: response.Header, body: body}
}

// answer passes a reply on.
func (x *proxy) answer(w http.ResponseWriter, a *reply, d decision) {
	if a == nil {
		panic(http.ErrAbortHandler) // the engine did not answer either
	}
	for name, values := range a.header {
		if name != "Connection" && name != "Transfer-Encoding" {
			w.Header()[name] = values
		}
	}
	if at, err := http.ParseTime(a.header.Get("Date")); err == nil && d.skew != 0 {
		w.Header().Set("Date", at.Add(d.skew).UTC().Format(http.TimeFormat))
		x.met[skew].Add(1)
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the sender may be gone
}

// cut sends a part of a reply, and closes the connection.
func (*proxy) cut(w http.ResponseWriter, a *reply, d decision) {
	hijacker, ok := w.(http.Hijacker)
	if a == nil || !ok {
		panic(http.ErrAbortHandler)
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "HTTP/1.1 %d %s\r\n", a.status, http.StatusText(a.status))
	_ = a.header.Write(&text) // a buffer never fails
	if a.header.Get("Content-Length") == "" {
		fmt.Fprintf(&text, "Content-Length: %d\r\n", len(a.body))
	}
	text.WriteString("\r\n")
	text.Write(a.body)
	// Any part but the whole; half of the time nothing, which is a reset.
	_, _ = conn.Write(text.Bytes()[:int(d.pick*float64(text.Len()-1))])
	if tcp, ok := conn.(*net.TCPConn); ok && d.pick < 0.5 {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// refusal returns an error of DynamoDB.
func refusal(status int, code string) *reply { return refusalWith(status, code, "") }

func refusalWith(status int, code, more string) *reply {
	return &reply{
		status: status, header: http.Header{"Content-Type": {awsJSON}, "X-Amzn-Requestid": {"SOAK"}},
		body: fmt.Appendf(nil, `{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"injected"%s}`, code, more),
	}
}

// conflictOf returns the refusal of a write that conflicts with a transaction. It returns nil if the request is not a
// write. pick, from 0 to 1, selects the item of a transaction.
func conflictOf(q *sent, pick float64) *reply {
	_, operation, _ := strings.Cut(q.header.Get("X-Amz-Target"), ".")
	switch operation {
	case "PutItem", "UpdateItem", "DeleteItem":
		return refusal(http.StatusBadRequest, "TransactionConflictException")
	case "TransactWriteItems":
	default:
		return nil
	}
	var transaction struct {
		TransactItems []json.RawMessage `json:"TransactItems"`
	}
	if err := json.Unmarshal(q.body, &transaction); err != nil || len(transaction.TransactItems) == 0 {
		return nil
	}
	reasons := make([]string, len(transaction.TransactItems))
	for i := range reasons {
		reasons[i] = `{"Code":"None"}`
	}
	reasons[min(int(pick*float64(len(reasons))), len(reasons)-1)] = `{"Code":"TransactionConflict","Message":"injected"}`
	return refusalWith(http.StatusBadRequest, "TransactionCanceledException", `,"CancellationReasons":[`+strings.Join(reasons, ",")+`]`)
}
