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

// faultKind is something that goes wrong at one call, or at several in a row.
type faultKind struct {
	name string

	// fault is what happens to the request, or strike what happens to the process that
	// sends it: before it is sent, or after it was applied.
	fault  tabletest.Fault
	strike func(p *process)
	after  bool

	// anyway says that a request is sent although it was ended before it was: its process had
	// seen to that already.
	anyway bool

	others bool // somebody else comes in meanwhile

	times int // how many calls in a row are hit; 0 for one

	// severe says that the operation may fail of it. Anything else is for the client to
	// get over.
	severe bool

	late time.Duration // when what comes in late has come in
	left bool          // locks are left alone until then: what comes in late finds them free
}

// How many calls in a row are hit where it is several: few enough for the policy, which gives
// up after 10 s, and more than that.
const (
	row  = 3
	many = 40
)

// faultKinds is every kind of thing that goes wrong.
func faultKinds() []faultKind {
	const soon, long, beyond = 5 * time.Second, 45 * time.Second, time.Hour // within a lease, beyond it, beyond every timeout
	list := []faultKind{
		{name: "dropped request", fault: tabletest.Fault{Kind: tabletest.DropRequest}},
		{name: "dropped request that comes in a call later", fault: tabletest.Fault{Kind: tabletest.DropRequest, AfterCalls: 1}},
		{name: "dropped reply", fault: tabletest.Fault{Kind: tabletest.DropReply}, after: true},
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

// concerns says whether the faultKind can happen to a call of that operation.
func (m *faultKind) concerns(operation string) bool {
	switch m.fault.Kind {
	case tabletest.TransactionConflict:
		return operation != "GetItem" && operation != "BatchGetItem"
	case tabletest.TransactionInProgress:
		return operation == "TransactWriteItems"
	case tabletest.StaleRead, tabletest.Unprocessed:
		return operation == "BatchGetItem" // the only one that reads several rows, or consistently not
	}
	return !m.fault.Hold || operation == "TransactWriteItems"
}

// process is a client as in a process of its own, with a clock and a way to the engine, and
// the one context of all that its caller asks of it.
type process struct {
	*lock.Client
	c       *faultCase
	to      aws.HTTPClient // the engine
	line    *line
	clock   *wallClock
	ctx     context.Context
	cancel  context.CancelFunc
	crashed atomic.Bool // and is never heard of again
	paused  bool        // goes on once others have had its locks
	machine halting
	apart   bool // from the scenario: nothing happens to its calls
}

// giveUp has the caller lose patience.
func (p *process) giveUp() { p.cancel() }

// crash cuts the process off for good. What it would do yet reaches nobody.
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

// Do sends a request of the process's to the engine, unless the process stands still: then
// requests wait, and answers do.
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

// send is the place where calls are counted, and what is due to one of them strikes.
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
