package soak

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Times for which a keeper waits.
const (
	aimTime      = time.Second      // for a long operation, before it stops or kills the process
	overtakeTime = 15 * time.Second // for another holder to write
	overtakeLook = 20 * time.Millisecond
	dumpTime     = 2 * time.Second // for a hanging process to print its goroutines
	crashRest    = time.Second     // before a process that has ended by itself is started again
)

// keeper owns one worker process and its network, and disturbs it.
type keeper struct {
	number   int
	config   Config
	table    string
	ledger   *ledger
	proxy    *proxy
	schedule *schedule
	made     [troubles]atomic.Int64
	begins   chan string // the last long operation that has begun, if it was not taken yet
}

// keep starts the process, and starts it again whenever it has ended, until ctx ends. Then it ends the process, over
// a network without faults.
func (k *keeper) keep(ctx context.Context) error {
	for life := 1; ctx.Err() == nil; life++ {
		p, err := k.start(ctx, life)
		if err != nil {
			return err
		}
		if err := k.live(ctx, p); err != nil {
			p.kill()
			return err
		}
	}
	return nil
}

func (k *keeper) start(ctx context.Context, life int) (*process, error) {
	return startProcess(ctx, k.config.Program, workerConfig{
		Endpoint: k.proxy.URL, Table: k.table, Name: fmt.Sprintf("p%d.%d", k.number, life), Seed: k.config.Seed,
		Unguarded: k.config.Unguarded, Observed: k.number%2 == 1,
	}, k.read)
}

// read reads a line of the process.
func (k *keeper) read(line []byte) {
	long, err := k.ledger.take(line)
	if err != nil {
		k.ledger.violate("workers", "%v", err)
	}
	if long != "" {
		select {
		case k.begins <- long:
		default:
		}
	}
}

// live disturbs the process until it has ended.
func (k *keeper) live(ctx context.Context, p *process) error {
	for {
		s := k.schedule.next()
		switch {
		case !k.sleep(ctx, p, s.calm):
			return k.end(ctx, p)
		case s.trouble == restarted:
			k.made[restarted].Add(1)
			return k.finish(p)
		}
		over, err := k.trouble(ctx, p, s)
		if over || err != nil {
			return err
		}
	}
}

// trouble makes one trouble. over reports that the process has ended by it.
func (k *keeper) trouble(ctx context.Context, p *process, s step) (over bool, err error) {
	switch s.trouble {
	case killed:
		k.aim(ctx, p)
		k.made[killed].Add(1)
		p.kill()
		k.wait(ctx, s.length)
		return true, nil
	case paused:
		op := k.aim(ctx, p)
		if err := p.stop(); err != nil {
			return false, k.unlessEnded(p, err)
		}
		k.made[paused].Add(1)
		k.wait(ctx, s.length)
		if k.config.untilOvertaken && op != "" {
			k.awaitOvertaken(ctx, op)
		}
		return false, k.unlessEnded(p, p.resume())
	case partitioned:
		n := cutOff
		if s.mute {
			n = mute
		}
		k.made[partitioned].Add(1)
		k.proxy.network.Store(int32(n))
		k.wait(ctx, s.length)
		k.proxy.network.Store(int32(connected))
	}
	return false, nil
}

// unlessEnded returns err, or nil if the process has ended: live finds out why.
func (*keeper) unlessEnded(p *process, err error) error {
	if err == nil {
		return nil
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(dumpTime): // it may be about to end
		return err
	}
}

// aim waits for a long operation to begin, but not for ever. A fault between reading and writing is the hardest.
func (k *keeper) aim(ctx context.Context, p *process) (op string) {
	select {
	case <-k.begins: // it may have begun long ago
	default:
	}
	timer := time.NewTimer(aimTime)
	defer timer.Stop()
	select {
	case op = <-k.begins:
	case <-timer.C:
	case <-p.ended:
	case <-ctx.Done():
	}
	return op
}

// awaitOvertaken waits until another holder has written under the lock of a stopped process's operation, but not for
// ever.
func (k *keeper) awaitOvertaken(ctx context.Context, op string) {
	ctx, cancel := context.WithTimeout(ctx, overtakeTime)
	defer cancel()
	for ctx.Err() == nil && !k.ledger.overtaken(op) {
		k.wait(ctx, overtakeLook)
	}
}

// wait waits for d, or until ctx ends.
func (*keeper) wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// sleep waits for d. It returns false if ctx or the process ended before.
func (*keeper) sleep(ctx context.Context, p *process, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.ended:
	case <-ctx.Done():
	}
	return false
}

// end ends the process because ctx has ended, or records that it has ended by itself.
func (k *keeper) end(ctx context.Context, p *process) error {
	if ctx.Err() == nil {
		k.ledger.violate("workers", "process %d has ended by itself: %v: %s", k.number, p.err, p.problems.String())
		p.finish()
		k.wait(ctx, crashRest)
		return nil
	}
	k.proxy.clean.Store(true)
	return k.finish(p)
}

// finish makes the process close its client and end.
func (k *keeper) finish(p *process) error {
	p.finish()
	timer := time.NewTimer(endTime)
	defer timer.Stop()
	select {
	case <-p.ended:
		if p.err != nil {
			k.ledger.violate("workers", "process %d has failed: %v: %s", k.number, p.err, p.problems.String())
		}
		return nil
	case <-timer.C:
	}
	err := p.dump()
	select {
	case <-p.ended:
	case <-time.After(dumpTime):
		p.kill()
	}
	k.ledger.violate("workers", "process %d has not ended within %v: %v: %s", k.number, endTime, errors.Join(err, p.err), p.problems.String())
	return nil
}
