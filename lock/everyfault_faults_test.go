package lock_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table/tabletest"
)

// faultKind is a fault that hits one call, or several in a row.
type faultKind struct {
	name string

	// fault is what happens to the request, or strike what happens to the process that
	// sends it: before it is sent, or after it was applied.
	fault  tabletest.Fault
	strike func(p *process)
	after  bool

	// anyway: the request is sent although its context ended before. The process had decided to send it.
	anyway bool

	others bool // another process acquires meanwhile

	times int // how many calls in a row it hits; 0 for one

	// severe: the operation may fail. The client has to get over all other faults.
	severe bool

	late time.Duration // when the late request has arrived
	left bool          // nobody acquires until then: the late request finds the locks free
}

// How many calls in a row are hit by faults that hit several: fewer than the retry policy repeats, which gives up after
// 10 s, and more than that.
const (
	row  = 3
	many = 40
)

// faultKinds are all kinds of faults.
func faultKinds() []faultKind {
	const soon, long, beyond = 5 * time.Second, 45 * time.Second, time.Hour // within a lease, beyond it, beyond every timeout
	list := []faultKind{
		{name: "dropped request", fault: tabletest.Fault{Kind: tabletest.DropRequest}},
		{name: "dropped request that comes in a call later", fault: tabletest.Fault{Kind: tabletest.DropRequest, AfterCalls: 1}},
		{name: "dropped reply", fault: tabletest.Fault{Kind: tabletest.DropReply}, after: true},
		{name: "reply that breaks off", fault: tabletest.Fault{Kind: tabletest.CutReply}, after: true},
		{name: "hung request", fault: tabletest.Fault{Kind: tabletest.Delay, For: beyond}},
		{name: "hung reply", fault: tabletest.Fault{Kind: tabletest.Delay, For: beyond, After: true}, after: true},
		{name: "transaction held up in flight", fault: tabletest.Fault{Kind: tabletest.Delay, For: 2 * time.Second, Hold: true}},
		{name: "duplicate a call later", fault: tabletest.Fault{Kind: tabletest.DuplicateLate, AfterCalls: 1}, after: true},
		{name: "throttled", fault: tabletest.Fault{Kind: tabletest.Throttle}},
		{name: "internal error", fault: tabletest.Fault{Kind: tabletest.InternalError}},
		{name: "internal error after applying", fault: tabletest.Fault{Kind: tabletest.InternalErrorAfter}, after: true},
		{name: "transaction conflict", fault: tabletest.Fault{Kind: tabletest.TransactionConflict}},
		{name: "transaction in progress", fault: tabletest.Fault{Kind: tabletest.TransactionInProgress}},
		{name: "stale read", fault: tabletest.Fault{Kind: tabletest.StaleRead, Writes: 3}},
		{name: "unprocessed", fault: tabletest.Fault{Kind: tabletest.Unprocessed}},
		{name: "date an hour ahead", fault: tabletest.Fault{Kind: tabletest.SkewDate, For: time.Hour}, after: true},
		{name: "date an hour behind", fault: tabletest.Fault{Kind: tabletest.SkewDate, For: -time.Hour}, after: true},
		{name: "dropped requests", fault: tabletest.Fault{Kind: tabletest.DropRequest}, times: row},
		{name: "dropped replies", fault: tabletest.Fault{Kind: tabletest.DropReply}, times: row, after: true},
		{name: "throttled for longer than the policy goes on", fault: tabletest.Fault{Kind: tabletest.Throttle}, times: many, severe: true},
		{name: "no reply for longer than the policy goes on", fault: tabletest.Fault{Kind: tabletest.DropReply}, times: many, after: true, severe: true},
		{name: "expired credentials", fault: tabletest.Fault{Kind: tabletest.ExpiredCredentials}, severe: true},
		{name: "cancelled", strike: (*process).giveUp, severe: true},
		{name: "cancelled after applying", strike: (*process).giveUp, after: true, severe: true},
		{name: "crash", strike: (*process).crash, severe: true},
		{name: "crash after applying", strike: (*process).crash, after: true, severe: true},
	}
	for _, left := range []bool{false, true} {
		text := ""
		if left {
			text = ", and finds locks free"
		}
		for _, late := range []time.Duration{soon, long} {
			list = append(list,
				faultKind{
					name: "dropped request that comes in " + late.String() + " later" + text, left: left, late: late,
					fault: tabletest.Fault{Kind: tabletest.DropRequest, For: late},
				},
				faultKind{
					name: "duplicate " + late.String() + " later" + text, left: left, late: late, after: true,
					fault: tabletest.Fault{Kind: tabletest.DuplicateLate, For: late},
				})
		}
	}
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		jump, text := func(p *process) { p.clock.jump(by) }, "clock set by "+by.String()
		list = append(list,
			faultKind{name: text, strike: jump, severe: true},
			faultKind{name: text + " after applying", strike: jump, after: true, severe: true})
	}
	for _, others := range []bool{false, true} {
		text, stall := "", func(p *process) { p.stall(others) }
		if others {
			text = " while somebody else comes in"
		}
		list = append(list,
			faultKind{name: "paused before sending" + text, strike: stall, anyway: true, others: others, severe: true},
			faultKind{name: "paused after applying" + text, strike: stall, after: true, others: others, severe: true})
	}
	return list
}

// concerns reports whether the fault can hit a call of that operation.
func (m *faultKind) concerns(operation string) bool {
	switch m.fault.Kind {
	case tabletest.TransactionConflict:
		return operation != "GetItem" && operation != "BatchGetItem"
	case tabletest.TransactionInProgress:
		return operation == "TransactWriteItems"
	case tabletest.StaleRead, tabletest.Unprocessed:
		return operation == "BatchGetItem" // the only one that reads several rows, or eventually consistently
	}
	return !m.fault.Hold || operation == "TransactWriteItems"
}

// process is a client in its own process, with a clock, a connection to the engine, and one context for all its calls.
type process struct {
	*lock.Client
	c       *faultCase
	to      aws.HTTPClient // the engine
	line    *line
	clock   *wallClock
	ctx     context.Context
	cancel  context.CancelFunc
	crashed atomic.Bool // for good
	paused  bool        // until others have held its locks
	machine halting
	apart   bool // not part of the scenario: no fault hits its calls
}

// giveUp cancels the call.
func (p *process) giveUp() { p.cancel() }

// crash cuts the process off for good.
func (p *process) crash() {
	p.crashed.Store(true)
	p.line.cut(refused)
	p.cancel()
}

// pause cuts the process off until resume.
func (p *process) pause() {
	p.paused = true
	p.line.cut(refused)
}

func (p *process) resume() {
	p.paused = false
	p.line.cut(open)
}

// Do sends a request of the process to the engine. While the process is halted, requests and answers wait.
func (p *process) Do(r *http.Request) (*http.Response, error) {
	if p.apart {
		return p.to.Do(r)
	}
	p.machine.stand()
	resp, err := p.send(r)
	p.machine.stand()
	if err == nil && (r.Context().Err() != nil || p.crashed.Load()) {
		return nil, errors.Join(errCrashed, r.Context().Err(), resp.Body.Close())
	}
	return resp, err
}

// send counts the calls, and applies the fault that is due.
func (p *process) send(r *http.Request) (*http.Response, error) {
	c := p.c
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	m, hit := c.due(operation)
	if !hit {
		return p.to.Do(r)
	}
	if m.strike == nil {
		fault := m.fault
		fault.Times, fault.Operation = 1, operation
		c.engine.Inject(fault)
		return p.to.Do(r)
	}
	if !m.after {
		m.strike(p)
	}
	if p.crashed.Load() {
		return nil, errCrashed
	}
	if m.anyway {
		r = r.Clone(context.WithoutCancel(r.Context()))
	}
	resp, err := p.to.Do(r)
	if m.after {
		m.strike(p)
	}
	return resp, err
}

var errCrashed = errors.New("connection lost")
