package sim

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Guard is the condition that a write depends on.
type Guard uint8

// The guards. All but Guarded are negative twins.
const (
	Guarded   Guard = iota // on the lease under which it is made
	Unfenced               // on the lock being held by any client
	Unguarded              // on nothing
)

// Register runs clients that read, write and change registers, each under a lock of its own, with two clients in each
// process. Their history has to be linearizable in three models: the lock, the register, and both as one object.
type Register struct {
	Clients    int
	Operations int           // of each client, approximately
	Registers  int           // defaults to 4
	Lease      time.Duration // defaults to 5 s
	Overslept  float64       // share of the writes before which the process is paused, in most cases beyond the lease
	Guard      Guard
	Swept      bool // negative twin: now and then the row of a held lock is deleted
}

// Linearity is the result of judging histories.
type Linearity struct {
	Histories  int     // one for each register; all models judge each of them
	Operations int     // of all histories
	Undecided  int     // histories of which a model could not decide whether they are linearizable
	Illegal    int     // histories that at least one model finds not linearizable
	By         Verdict // how many of those each model has found
}

// Verdict is how many histories each model has found not to be linearizable.
type Verdict struct{ Lock, Register, Object int }

// Add adds another result.
func (l *Linearity) Add(o Linearity) {
	l.Histories += o.Histories
	l.Operations += o.Operations
	l.Undecided += o.Undecided
	l.Illegal += o.Illegal
	l.By.Lock += o.By.Lock
	l.By.Register += o.By.Register
	l.By.Object += o.By.Object
}

// Run runs the workload and checks it.
func (s Register) Run(w *World) Tally {
	if s.Lease == 0 {
		s.Lease = 5 * time.Second
	}
	if s.Registers == 0 {
		s.Registers = 4
	}
	r := &registers{Register: s, world: w, begin: time.Now(), patience: patience, left: make([]int, s.Clients+1), history: make([][]*operation, s.Registers)}
	for first := 1; first <= s.Clients; first += 2 {
		of := []int{first, first + 1}[:min(2, s.Clients-first+1)]
		for _, client := range of {
			r.left[client] = s.Operations
		}
		w.Supervise(fmt.Sprint("process", first/2+1), func(p *Process) {
			locks := p.Locks(lock.Config{Lease: s.Lease, HomeRegion: tabletest.Region})
			for _, client := range of {
				p.Go("c"+strconv.Itoa(client), func(ctx context.Context, x *Worker) {
					c := &registrant{registers: r, Worker: x, client: client, locks: locks}
					for ctx.Err() == nil && !p.Crashed() && r.more(client) {
						c.round(ctx)
					}
				})
			}
		})
	}
	w.Settle()
	return r.check()
}

type registers struct {
	Register

	world    *World
	begin    time.Time
	patience int64 // the most steps that a model takes to judge a history

	mu      sync.Mutex
	left    []int          // operations, by client
	history [][]*operation // by register
}

// registrant is a client of the registers.
type registrant struct {
	*registers
	*Worker

	client int
	locks  *lock.Client
	values int64
}

func (r *registers) more(client int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left[client] > 0
}

func (*registers) key(of int) keys.Key { return keys.NewKey("REGISTER", "R"+strconv.Itoa(of)) }

// name returns the name of a register's lock in the history.
func (*registers) name(of int) string { return "R" + strconv.Itoa(of) }

func (r *registers) now() int64 { return int64(time.Since(r.begin)) }

// called begins an operation.
func (c *registrant) called(of int, o operation) *operation {
	r := c.registers
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left[c.client]--
	o.client, o.number, o.call, o.ret = c.client, r.Operations-r.left[c.client], r.now(), open
	r.history[of] = append(r.history[of], &o)
	return &o
}

// returned ends an operation.
func (c *registrant) returned(of int, o *operation, end func(o *operation)) {
	c.mu.Lock()
	end(o)
	if o.outcome == unclear {
		o.left = c.now()
	} else {
		o.ret = c.now()
	}
	text := o.String()
	c.mu.Unlock()
	c.Note("register %d: %s", of, text)
}

// round reads a register, or does something under its lock.
func (c *registrant) round(ctx context.Context) {
	c.Sleep(c.Between(0, 300*time.Millisecond))
	of := c.IntN(c.Registers)
	if c.IntN(4) == 0 {
		c.read(ctx, of)
		return
	}
	l := c.acquire(ctx, of)
	if l == nil {
		return
	}
	if c.Swept && c.IntN(20) == 0 {
		c.sweep(l)
	}
	certain := true // all writes under the lease have been answered
	held := true
	for range c.IntN(4) {
		if !held {
			break
		}
		switch c.IntN(3) {
		case 0:
			c.read(ctx, of)
			continue
		case 1:
			held = c.write(ctx, of, l, operation{kind: writes}, &certain)
		default:
			held = c.change(ctx, of, l, &certain)
		}
	}
	again := false
	if held && c.Guard == Guarded && c.IntN(2) == 0 {
		if held = c.write(ctx, of, l, operation{kind: commits}, &certain); !held || certain {
			return
		}
		again = true
	}
	c.release(ctx, of, l, again)
}

func (c *registrant) acquire(ctx context.Context, of int) *lock.Lease {
	ctx, cancel := c.Within(ctx, c.Between(5*time.Second, time.Minute))
	defer cancel()
	var opts []lock.Option
	if c.IntN(4) == 0 {
		opts = append(opts, lock.Fixed(c.Lease))
	}
	how := c.locks.Acquire
	try := c.IntN(3) == 0
	if try {
		how = c.locks.TryAcquire
	}
	o := c.called(of, operation{kind: acquires})
	c.Waits(c.name(of))
	l, err := how(ctx, lock.Beside(c.key(of)), opts...)
	if err != nil {
		c.GivesUp(c.name(of), err)
	} else {
		c.Holds(c.name(of), l)
	}
	c.returned(of, o, func(o *operation) {
		var taken *lock.HeldError
		switch {
		case err == nil:
			o.outcome, o.fence = succeeded, l.Fence()
		case try && ctx.Err() == nil && errors.As(err, &taken):
			o.kind, o.outcome, o.fence = isHeld, succeeded, taken.Fence
		}
	})
	return l
}

// sweep deletes the row of a held lock, which nobody is allowed to do.
func (c *registrant) sweep(l *lock.Lease) {
	w := c.world
	w.At(time.Now().Add(time.Millisecond), func() { w.must(w.table.Write(w.ctx, table.Delete(l.Key()))) })
	c.Sleep(2 * time.Millisecond)
}

func (c *registrant) read(ctx context.Context, of int) *operation {
	o := c.called(of, operation{kind: reads})
	value, err := c.get(ctx, of)
	c.returned(of, o, func(o *operation) {
		if err == nil {
			o.outcome, o.read = succeeded, value
		}
	})
	return o
}

func (c *registrant) get(ctx context.Context, of int) (int64, error) {
	return valueAt(ctx, c.Process.Table(), c.key(of))
}

func valueAt(ctx context.Context, t *table.Table, key keys.Key) (int64, error) {
	item, err := t.Get(ctx, key, true)
	if errors.Is(err, table.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, ok := item["value"].(*types.AttributeValueMemberN)
	if !ok {
		return 0, errors.New("sim: a register without a value")
	}
	return strconv.ParseInt(n.Value, 10, 64)
}

// change reads and writes. If an earlier write under the lease has no answer, it only writes: the earlier write may
// be applied in between, which the lease allows.
func (c *registrant) change(ctx context.Context, of int, l *lock.Lease, certain *bool) bool {
	if !*certain {
		return c.write(ctx, of, l, operation{kind: writes}, certain)
	}
	before := c.read(ctx, of)
	if before.outcome != succeeded {
		return true
	}
	if c.Float64() < c.Overslept {
		c.Pause(c.Between(0, 3*c.Lease), c.IntN(2) == 0)
	} else {
		c.Sleep(c.Between(0, 50*time.Millisecond))
	}
	return c.write(ctx, of, l, operation{kind: changes, read: before.read, call: before.call}, certain)
}

// write writes a new value. It returns false if the lock is known to be lost. A change that succeeds began when it
// read. One that does not succeed counts as a read and a write.
func (c *registrant) write(ctx context.Context, of int, l *lock.Lease, o operation, certain *bool) bool {
	ctx, cancel := c.Within(ctx, c.Between(time.Second, 20*time.Second))
	defer cancel()
	c.values++
	began, read := o.call, o.read
	o.fence, o.read = l.Fence(), 0
	o.wrote = int64(c.Process.id)*1_000_000 + int64(c.client)*10_000 + c.values
	change := o.kind == changes
	if change {
		o.kind = writes
	}
	at := c.called(of, o)
	op := table.Update(c.key(of), table.Attr("value").Set(at.wrote))
	var err error
	switch {
	case c.Guard == Guarded && at.kind == commits:
		err = l.Commit(ctx, op)
	case c.Guard == Guarded:
		err = l.Write(ctx, op)
	case c.Guard == Unfenced:
		err = c.Process.Table().Write(ctx, op, table.Check(l.Key(), table.Attr("line").At(0).Exists()))
	default:
		err = c.Process.Table().Write(ctx, op)
	}
	c.returned(of, at, func(o *operation) {
		switch {
		case err == nil && change:
			o.kind, o.outcome, o.read, o.call = changes, succeeded, read, began
		case err == nil:
			o.outcome = succeeded
		case errors.Is(err, lock.ErrLost), errors.Is(err, lock.ErrReleased), len(table.Conditions(err)) > 0:
			o.outcome = lost
		}
	})
	c.Writes(err, "register %d: %d", of, at.wrote)
	if err == nil && at.kind == commits {
		c.Releases(c.name(of), nil)
	}
	*certain = *certain && at.outcome != unclear
	return at.outcome != lost
}

// release releases the lock, and tries again if it is not clear whether it was released. In the end the session
// releases it.
func (c *registrant) release(ctx context.Context, of int, l *lock.Lease, again bool) {
	for range 3 {
		o := c.called(of, operation{kind: releases, fence: l.Fence(), again: again})
		bounded, cancel := c.Within(ctx, c.Between(time.Second, 20*time.Second))
		err := l.Release(bounded)
		cancel()
		c.Releases(c.name(of), err)
		c.returned(of, o, func(o *operation) {
			switch {
			case err == nil:
				o.outcome = succeeded
			case errors.Is(err, lock.ErrStolen), errors.Is(err, lock.ErrExpired):
				o.outcome = lost
			}
		})
		if o.outcome != unclear || errors.Is(err, lock.ErrLost) { // after an unclear attempt, a lost lock may be one that was released
			return
		}
		again = true
	}
}

// check reads the registers for the last time, and judges their histories.
func (r *registers) check() (tally Tally) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := &tally.Linearity
	for of, history := range r.history {
		value, err := valueAt(r.world.Context(), r.world.Table(), r.key(of))
		r.world.must(err)
		history = append(history, &operation{kind: reads, outcome: succeeded, read: value, call: r.now(), ret: r.now()})
		l.Operations += len(history)
		for _, o := range history {
			tally.wrote(o)
		}
		history = closed(history)
		l.Histories++
		bad, open := false, false
		for _, m := range models() {
			switch m.check(history, r.patience) {
			case illegal:
				bad = true
				*m.count(&l.By)++
				r.world.Violation("register %d: %d operations are not linearizable as a %s", of, len(history), m.name)
			case undecided:
				open = true
				r.world.Violation("register %d: whether %d operations are linearizable as a %s could not be decided", of, len(history), m.name)
			}
		}
		if bad {
			l.Illegal++
		}
		if open {
			l.Undecided++
		}
	}
	return tally
}

// wrote counts the result of a write.
func (t *Tally) wrote(o *operation) {
	switch {
	case o.wrote == 0:
	case o.outcome == succeeded:
		t.Acknowledged++
	case o.outcome == lost:
		t.Refused++
	default:
		t.Unknown++
	}
}
