package peers

import (
	"bytes"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Counts counts requests over the network. Each attempt of the SDK counts.
type Counts struct {
	Requests int
	ByOp     map[string]int // by operation, such as UpdateItem
	Largest  int64          // bytes of the largest body of a request
}

// plus returns the sum of two counts.
func (c Counts) plus(more Counts) Counts {
	sum := Counts{Requests: c.Requests + more.Requests, ByOp: map[string]int{}, Largest: max(c.Largest, more.Largest)}
	for _, counts := range []Counts{c, more} {
		for op, n := range counts.ByOp {
			sum.ByOp[op] += n
		}
	}
	return sum
}

// Meter is the transport of one SDK client. It counts requests, and can delay them or lose their answers. It is safe
// for concurrent use.
type Meter struct {
	next http.RoundTripper

	mu      sync.Mutex
	counts  Counts
	latency time.Duration
	loss    *Loss
}

// Loss makes a Meter lose answers, and records when it has.
type Loss struct {
	matches func(op string, body []byte) bool
	left    int           // answers still to be lost
	lost    chan struct{} // closed when none is left
	at      time.Time     // when the last one was lost; readable after lost was closed
}

// newClient returns a client that sends through a meter to next.
func newClient(config aws.Config, next http.RoundTripper) (*dynamodb.Client, *Meter) {
	meter := &Meter{next: next}
	return dynamodb.NewFromConfig(config, func(o *dynamodb.Options) {
		o.HTTPClient = &http.Client{
			Transport:     meter,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}), meter
}

// Take returns what was counted since the last call.
func (m *Meter) Take() Counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := m.counts
	counts.ByOp = maps.Clone(counts.ByOp)
	m.counts.Requests, m.counts.Largest = 0, 0
	clear(m.counts.ByOp)
	return counts
}

// SetLatency delays each later request by d before it is sent.
func (m *Meter) SetLatency(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.latency = d
}

// Lose loses the answers of the next n requests that match and that the server has applied: they end with a reset
// connection.
func (m *Meter) Lose(n int, matches func(op string, body []byte) bool) *Loss {
	loss := &Loss{matches: matches, left: n, lost: make(chan struct{})}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.loss = loss
	return loss
}

// RoundTrip sends the request.
func (m *Meter) RoundTrip(req *http.Request) (*http.Response, error) {
	_, op, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	latency, loss := m.count(op, req.ContentLength)
	if latency > 0 {
		timer := time.NewTimer(latency)
		select {
		case <-timer.C:
		case <-req.Context().Done():
			timer.Stop()
			return nil, req.Context().Err()
		}
	}
	if loss == nil {
		return m.next.RoundTrip(req)
	}

	body, err := io.ReadAll(req.Body)
	_ = req.Body.Close() // it was read to its end
	if err != nil {
		return nil, err
	}
	again := req.Clone(req.Context())
	again.Body = io.NopCloser(bytes.NewReader(body))
	resp, err := m.next.RoundTrip(again)
	if err != nil || resp.StatusCode != http.StatusOK || !m.take(loss, op, body) {
		return resp, err
	}
	_, _ = io.Copy(io.Discard, resp.Body) // the answer is lost, so an error does not matter
	_ = resp.Body.Close()
	return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
}

// count counts a request. It returns the present latency and loss.
func (m *Meter) count(op string, size int64) (time.Duration, *Loss) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts.ByOp == nil {
		m.counts.ByOp = map[string]int{}
	}
	m.counts.Requests++
	m.counts.ByOp[op]++
	m.counts.Largest = max(m.counts.Largest, size)
	return m.latency, m.loss
}

// take reports whether the answer to this request must be lost, and counts it.
func (m *Meter) take(loss *Loss, op string, body []byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.loss != loss || !loss.matches(op, body) {
		return false
	}
	if loss.left--; loss.left == 0 {
		m.loss = nil
		loss.at = time.Now()
		close(loss.lost)
	}
	return true
}

// writes reports whether an operation changes items.
func writes(op string) bool {
	switch op {
	case "PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem":
		return true
	}
	return false
}
