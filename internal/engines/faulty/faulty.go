// Package faulty is an HTTP client that loses requests and answers by a script, for tests that run on every engine.
// It is between the SDK and the SDK's own HTTP client.
package faulty

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Outcome is what happens to one request.
type Outcome struct {
	kind   kind
	status int
	code   string
	body   string
}

type kind uint8

const (
	pass kind = iota
	dropRequest
	dropReply
	refuse
)

// The outcomes that are always the same.
var (
	Pass        = Outcome{}                  // reaches the engine and is answered
	DropRequest = Outcome{kind: dropRequest} // never arrives
	DropReply   = Outcome{kind: dropReply}   // is applied, and its answer is lost
)

// Refuse answers with an error of DynamoDB, without asking the engine.
func Refuse(status int, code string) Outcome {
	return Outcome{kind: refuse, status: status, code: code, body: fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"scripted"}`, code)}
}

// Reply answers with status 200 and a body without asking the engine.
func Reply(body string) Outcome { return Outcome{kind: refuse, status: http.StatusOK, body: body} }

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
	sent   []string
	done   []string
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

// Do implements the SDK's HTTP client.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	next, outcome, before := c.take(operation)
	if before != nil {
		before(operation)
	}
	switch outcome.kind {
	case dropRequest:
		return nil, syscall.ECONNRESET
	case refuse:
		return &http.Response{
			StatusCode: outcome.status, Request: r, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
			Body: io.NopCloser(bytes.NewReader([]byte(outcome.body))), ContentLength: int64(len(outcome.body)),
		}, nil
	}
	response, err := next.Do(r)
	if err == nil && response.StatusCode == http.StatusOK {
		c.mu.Lock()
		c.done = append(c.done, operation)
		c.mu.Unlock()
	}
	if outcome.kind != dropReply || err != nil {
		return response, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return nil, errors.Join(syscall.ECONNRESET, err, response.Body.Close())
}

func (c *Client) take(operation string) (aws.HTTPClient, Outcome, func(string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = append(c.sent, operation)
	outcome := Pass
	if len(c.script) > 0 {
		outcome, c.script = c.script[0], c.script[1:]
	}
	return c.next, outcome, c.before
}
