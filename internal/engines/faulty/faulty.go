// Package faulty is an HTTP client that loses, delays and repeats requests and answers by a script, for tests that run on every engine.
// It is between the SDK and the SDK's own HTTP client.
package faulty

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Outcome is what happens to one request.
type Outcome struct {
	kind    kind
	status  int
	body    string
	applied bool          // the engine gets the request although it does not answer
	copy    time.Duration // when the engine gets the request once more; 0 for never
	before  func()
	after   func()
}

type kind uint8

const (
	pass kind = iota
	dropRequest
	dropReply
	cutReply
	refuse
)

// The outcomes that are always the same.
var (
	Pass        = Outcome{}                  // reaches the engine and is answered
	DropRequest = Outcome{kind: dropRequest} // never arrives
	DropReply   = Outcome{kind: dropReply}   // is applied, and its answer is lost
	CutReply    = Outcome{kind: cutReply}    // is applied, and the connection breaks in the middle of its answer
)

// Refuse answers with an error of DynamoDB, without asking the engine.
func Refuse(status int, code string) Outcome {
	return Answer(status, fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"scripted"}`, code))
}

// Reply answers with status 200 and a body without asking the engine.
func Reply(body string) Outcome { return Answer(http.StatusOK, body) }

// Answer answers with a status and a body without asking the engine.
func Answer(status int, body string) Outcome {
	return Outcome{kind: refuse, status: status, body: body}
}

// Applied is o for a request that the engine has carried out before. It is for a request that o refuses.
func (o Outcome) Applied() Outcome {
	o.applied = true
	return o
}

// Copied is o, and a copy of the request arrives after d: DropRequest.Copied is a request that is late. See Client.Settle.
func (o Outcome) Copied(d time.Duration) Outcome {
	o.copy = d
	return o
}

// After is o, and calls f before the request is sent.
func (o Outcome) After(f func()) Outcome {
	o.before = f
	return o
}

// Then is o, and calls f when the engine has answered.
func (o Outcome) Then(f func()) Outcome {
	o.after = f
	return o
}

// Throttle refuses a request for lack of capacity.
func Throttle() Outcome {
	return Refuse(http.StatusBadRequest, "ProvisionedThroughputExceededException")
}

// Cancel refuses a transaction, with the given codes as reasons, one for each of its actions.
func Cancel(codes ...string) Outcome {
	const code = "TransactionCanceledException"
	reasons := make([]string, len(codes))
	for i, c := range codes {
		reasons[i] = fmt.Sprintf(`{"Code":%q}`, c)
	}
	o := Refuse(http.StatusBadRequest, code)
	o.body = fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"scripted","CancellationReasons":[%s]}`, code, strings.Join(reasons, ","))
	return o
}

// Client is a scripted HTTP client. The zero value passes everything on.
type Client struct {
	mu     sync.Mutex
	next   aws.HTTPClient
	script []Outcome
	before func(operation string)
	spared []string
	sent   []string
	done   []string
	late   []<-chan struct{} // one for each copy, closed when it has arrived
}

// Options is an option of dynamodb.New. It puts the client in front of the configured one.
func (c *Client) Options(o *dynamodb.Options) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = o.HTTPClient
	if c.next == nil {
		c.next = awshttp.NewBuildableClient()
	}
	o.HTTPClient = c
}

// Script sets what happens to the next requests, one outcome each. Later requests pass. It forgets the requests so
// far.
func (c *Client) Script(outcomes ...Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.script, c.sent, c.done = outcomes, nil, nil
}

// Before sets a function that is called before each request, except for requests that it makes itself through other
// clients. It may be nil.
func (c *Client) Before(f func(operation string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before = f
}

// Spare lets requests of these operations pass. They use up nothing of the script.
func (c *Client) Spare(operations ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spared = operations
}

// Sent lists the operations of the requests since Script.
func (c *Client) Sent() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.sent...)
}

// Accepted lists the operations of those requests that the engine has carried out. DynamoDB Local can refuse a change of a table
// right after it has said that the table is active.
func (c *Client) Accepted() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.done...)
}

// Settle waits until all copies that are under way have arrived. Others can send requests meanwhile.
func (c *Client) Settle() {
	for {
		c.mu.Lock()
		late := c.late
		c.late = nil
		c.mu.Unlock()
		if len(late) == 0 {
			return
		}
		for _, arrived := range late {
			<-arrived
		}
	}
}

// Do implements the SDK's HTTP client.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	next, outcome, before := c.take(operation)
	if before != nil {
		before(operation)
	}
	if outcome.before != nil {
		outcome.before()
	}
	if outcome.copy > 0 {
		if err := c.deliverLate(next, r, outcome.copy); err != nil {
			return nil, err
		}
	}
	switch {
	case outcome.kind == dropRequest:
		return nil, syscall.ECONNRESET
	case outcome.kind == refuse && !outcome.applied:
		return outcome.answer(r), nil
	}
	response, err := next.Do(r)
	if outcome.after != nil {
		outcome.after()
	}
	if err == nil && response.StatusCode == http.StatusOK {
		c.mu.Lock()
		c.done = append(c.done, operation)
		c.mu.Unlock()
	}
	if outcome.kind == pass || err != nil {
		return response, err
	}
	body, err := io.ReadAll(response.Body)
	err = errors.Join(err, response.Body.Close())
	switch {
	case err == nil && outcome.kind == refuse:
		return outcome.answer(r), nil
	case err == nil && outcome.kind == cutReply:
		response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body[:len(body)/2]), broken{}))
		return response, nil
	}
	return nil, errors.Join(syscall.ECONNRESET, err)
}

func (o Outcome) answer(r *http.Request) *http.Response {
	return &http.Response{
		StatusCode: o.status, Request: r, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(o.body)), ContentLength: int64(len(o.body)),
	}
}

// broken is the rest of an answer after the connection has broken.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// deliverLate sends a copy of r after d.
func (c *Client) deliverLate(next aws.HTTPClient, r *http.Request, d time.Duration) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	late := r.Clone(context.WithoutCancel(r.Context()))
	late.Body = io.NopCloser(bytes.NewReader(body))
	arrived := make(chan struct{})
	c.mu.Lock()
	c.late = append(c.late, arrived)
	c.mu.Unlock()
	go func() {
		defer close(arrived)
		time.Sleep(d)
		if response, err := next.Do(late); err == nil {
			_ = response.Body.Close()
		}
	}()
	return nil
}

func (c *Client) take(operation string) (aws.HTTPClient, Outcome, func(string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = append(c.sent, operation)
	outcome := Pass
	if len(c.script) > 0 && !slices.Contains(c.spared, operation) {
		outcome, c.script = c.script[0], c.script[1:]
	}
	return c.next, outcome, c.before
}
