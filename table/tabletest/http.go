package tabletest

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

const (
	targetPrefix      = "DynamoDB_20120810."
	contentType       = "application/x-amz-json-1.0"
	readHeaderTimeout = 10 * time.Second
	// maxBody is the largest request that the service accepts, before and after decompression.
	maxBody = 16 << 20

	// Region is the region of [Engine.Config] and of the ARNs that the engine returns.
	Region = "us-east-1"
)

var errClosed = errors.New("tabletest: engine is closed")

func listenError(addr string, err error) error {
	return fmt.Errorf("tabletest: listen on %q: %w", addr, err)
}

func operation(h http.Header) string {
	op, ok := strings.CutPrefix(h.Get("X-Amz-Target"), targetPrefix)
	if !ok {
		return ""
	}
	return op
}

// ServeHTTP implements DynamoDB's JSON protocol (DynamoDB_20120810, JSON 1.0). It closes the connection for a request
// or answer that a fault drops.
func (e *Engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, err := e.answer(r)
	if err != nil {
		abort(w)
		return
	}
	maps.Copy(w.Header(), a.header())
	w.WriteHeader(a.status)
	// A client that is gone needs no answer. After fewer bytes than Content-Length, the server closes the connection.
	_, _ = io.Copy(w, a.sent())
}

// abort closes the connection without an answer. If the server does not support that, as over HTTP/2, the client gets
// an empty 502, which it retries as well.
func abort(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	_ = conn.Close() // nobody could be told about an error
}

// answer reads a request and executes it. It fails if the body cannot be read, or if a fault drops the request or the answer.
func (e *Engine) answer(r *http.Request) (*answer, error) {
	sent, err := readBody(r.Body, r.ContentLength)
	if err != nil {
		return nil, err
	}
	body, ok := decompressed(sent, r.Header.Get("Content-Encoding"))
	switch {
	case len(sent) > maxBody:
		return &answer{status: http.StatusRequestEntityTooLarge, date: e.now()}, nil
	case !ok:
		api := errInternal()
		return &answer{status: api.status, body: api.body(), date: e.now()}, nil
	}
	return e.serve(r.Context(), operation(r.Header), body)
}

// readBody reads a body of about that size, and at most one byte more than is allowed.
func readBody(r io.Reader, size int64) ([]byte, error) {
	var b bytes.Buffer
	if size > 0 {
		b.Grow(int(min(size, maxBody)) + bytes.MinRead)
	}
	_, err := b.ReadFrom(io.LimitReader(r, maxBody+1))
	return b.Bytes(), err
}

// decompressed returns a body as it was before the SDK compressed it, and reports whether that can be read and is not too large.
func decompressed(sent []byte, encoding string) ([]byte, bool) {
	var r io.Reader
	var err error
	switch encoding {
	case "":
		return sent, true
	case "gzip":
		r, err = gzip.NewReader(bytes.NewReader(sent))
	case "deflate":
		r, err = zlib.NewReader(bytes.NewReader(sent))
	default:
		return nil, false
	}
	if err != nil {
		return nil, false
	}
	body, err := readBody(r, 0)
	return body, err == nil && len(body) <= maxBody
}

func (a *answer) header() http.Header {
	return http.Header{
		"Content-Type":     {contentType},
		"Content-Length":   {strconv.Itoa(len(a.body))},
		"Date":             {a.date.UTC().Format(http.TimeFormat)},
		"X-Amzn-Requestid": {fmt.Sprintf("%032X", a.id)},
		// The SDK checks it, and logs a warning if it is missing.
		"X-Amz-Crc32": {strconv.FormatUint(uint64(crc32.ChecksumIEEE(a.body)), 10)},
	}
}

// sent is the body as the client receives it: whole, or half of it and then the error of a connection that broke.
func (a *answer) sent() io.Reader {
	if !a.cut {
		return bytes.NewReader(a.body)
	}
	return io.MultiReader(bytes.NewReader(a.body[:len(a.body)/2]), brokenOff{})
}

type brokenOff struct{}

func (brokenOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// client calls the engine without sockets or goroutines.
type client struct{ e *Engine }

// Do implements aws.HTTPClient.
func (c client) Do(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	a, err := c.e.answer(r)
	if err = errors.Join(err, r.Body.Close()); err != nil {
		return nil, err
	}
	return response(r, a), nil
}

func response(r *http.Request, a *answer) *http.Response {
	return &http.Response{
		Status:        strconv.Itoa(a.status) + " " + http.StatusText(a.status),
		StatusCode:    a.status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        a.header(),
		Body:          io.NopCloser(a.sent()),
		ContentLength: int64(len(a.body)),
		Request:       r,
	}
}

// HTTPClient returns a client that calls the engine directly. It opens no socket, starts no goroutine, and honours the
// request's context. So it works inside a testing/synctest bubble.
func (e *Engine) HTTPClient() aws.HTTPClient { return client{e} }

// Config returns an SDK configuration for this engine: region, no credentials and the in-process client.
func (e *Engine) Config() aws.Config {
	return aws.Config{
		Region:       Region,
		Credentials:  aws.AnonymousCredentials{}, // the engine checks no signature, and signing takes a seventh of a request's allocations
		HTTPClient:   e.HTTPClient(),
		BaseEndpoint: aws.String("http://dynamodb.invalid"),
	}
}

// Client returns an SDK client with [Engine.Config].
func (e *Engine) Client(optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.NewFromConfig(e.Config(), optFns...)
}
