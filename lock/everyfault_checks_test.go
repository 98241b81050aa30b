package lock_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// settle has everybody who is left give up what they hold, and somebody else take it. Then
// what is over must be over, whoever comes in late.
func (o *ordeal) settle() {
	ctx := context.WithoutCancel(o.Context())
	o.releaseAll(ctx)
	late, left := o.late()
	if left { // whoever acquires then may have to wait for what has come in late
		time.Sleep(late + time.Second)
	}
	next := o.probe()
	for _, p := range o.processes {
		if p.paused {
			p.resume()
		}
	}
	time.Sleep(late + time.Second)
	o.haunt(ctx, next)
	for _, h := range next {
		if err := o.effect([]*holding{h}, func(op table.Op) error { return h.Write(ctx, op) }); err != nil || h.Context().Err() != nil {
			o.violated("exclusion: somebody else's lock was lost: %v, %v", err, context.Cause(h.Context()))
		}
		if err := h.Release(ctx); err != nil {
			o.violated("exclusion: somebody else's lock was lost: %v", err)
		}
	}
	o.closeAll(ctx)
	o.account()
	o.last(ctx)
}

// last has another process acquire each lock after everybody is gone, whatever tickets they have left.
func (o *ordeal) last(ctx context.Context) {
	if !o.haunted() {
		return // account has found the lines empty
	}
	p := o.process()
	p.to = o.engine.HTTPClient()
	for _, target := range o.targets {
		begin := time.Now()
		bounded, cancel := context.WithTimeout(ctx, 5*time.Minute)
		l, err := p.takes(bounded, target, lock.Fixed(ordealLease))
		cancel()
		if took := time.Since(begin); err != nil || took > ordealBound*time.Duration(len(o.strikes)) {
			o.violated("liveness: acquired after %v when everybody was gone: %v", took, err)
		}
		if err == nil {
			p.granted(l, o.before(target)).parts()
			if err := l.Release(ctx); err != nil {
				o.violated("answer: the last release: %v", err)
			}
		}
	}
	if err := p.Close(ctx); err != nil {
		o.violated("answer: close: %v", err)
	}
}

// releaseAll gives up what its holders have not been told to be over.
func (o *ordeal) releaseAll(ctx context.Context) {
	for _, h := range o.all() {
		o.mu.Lock()
		released := h.released
		o.mu.Unlock()
		if h.of.crashed.Load() || h.of.paused || released {
			continue
		}
		h.parts()
		if err := h.Release(ctx); err != nil && !errors.Is(err, lock.ErrLost) {
			o.violated("answer: release failed although nothing goes wrong: %v", err)
		}
	}
}

func (o *ordeal) all() []*holding {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.holdings)
}

// probe has another process acquire each lock that anybody has held or may hold, in time.
func (o *ordeal) probe() (list []*holding) {
	p := o.process()
	p.to = o.engine.HTTPClient() // whatever breaks the others
	end := time.Now()
	var wanted []lock.Target
	for _, target := range o.targets {
		wanted = append(wanted, slices.Repeat([]lock.Target{target}, permitsOf(target))...)
	}
	for _, target := range wanted {
		before := o.before(target)
		bounded, cancel := context.WithTimeout(p.ctx, 5*time.Minute)
		l, err := p.takes(bounded, target, lock.Fixed(probeLease))
		cancel()
		if took := time.Since(end); err != nil || took > ordealBound*time.Duration(max(len(o.strikes), o.dead(), 1)) {
			o.violated("liveness: acquired after %v: %v", took, err)
		}
		if err == nil {
			list = append(list, p.granted(l, before))
		}
	}
	return list
}

// dead is how many processes are: each delays those behind it once, also where it only waited.
func (o *ordeal) dead() (n int) {
	for _, p := range o.processes {
		if p.crashed.Load() || p.paused {
			n++
		}
	}
	return n
}

// haunt has everybody who held a lock before go on as if they still did.
func (o *ordeal) haunt(ctx context.Context, next []*holding) {
	for _, h := range o.all() {
		if slices.Contains(next, h) {
			continue
		}
		// By hand, since a lease may know without a request that it is over.
		err := o.effect([]*holding{h}, func(op table.Op) error { return o.table.Write(ctx, op, h.Guard()) })
		if !errors.Is(err, lock.ErrLost) && !errors.Is(err, lock.ErrReleased) {
			o.violated("exclusion: a write under a lease that is over ended with %v", err)
		}
		if !h.of.crashed.Load() {
			if err := h.Release(ctx); err != nil && !errors.Is(err, lock.ErrLost) {
				o.violated("answer: the release of a lease that is over ended with %v", err)
			}
		}
		select { // one that has crashed as it gave up hears of it when its lease ends
		case <-h.Context().Done():
		case <-time.After(ordealLease):
			o.violated("exclusion: a holder was never told")
		}
	}
}

// closeAll closes all clients.
func (o *ordeal) closeAll(ctx context.Context) {
	for _, p := range o.processes {
		p.cancel()
		if err := p.Close(ctx); err != nil && !p.crashed.Load() {
			o.violated("answer: close: %v", err)
		}
	}
	// A client that could not release says so at once, and ends the rest of its work in its
	// own time. Goroutines that are left after that are a panic: time ends with this one.
	time.Sleep(time.Minute)
}

// account looks at what is left: nothing is held, every effect is there as often as was said,
// and none under a lease was applied after one of the next holder's.
func (o *ordeal) account() {
	list := []keys.Key{o.row("effects")}
	for _, h := range o.all() {
		if !slices.Contains(list, h.Key()) {
			list = append(list, h.Key())
		}
	}
	items, err := o.table.BatchGet(context.WithoutCancel(o.Context()), list, true)
	require.NoError(o, err)
	for _, item := range items[1:] {
		if line, ok := item["line"].(*types.AttributeValueMemberL); ok && len(line.Value) > 0 && !o.haunted() {
			o.violated("liveness: a lock is held although everybody is gone: %v", line.Value)
		}
	}
	o.mu.Lock()
	effects := slices.Clone(o.effects)
	o.mu.Unlock()
	for _, e := range effects {
		n := int64(0)
		if av := items[0][e.name]; av != nil {
			n = number(o.T, av)
		}
		if n > 1 || e.applied && n == 0 || !e.applied && !e.uncertain && n > 0 {
			o.violated("effect: applied %d times; acknowledged %v, uncertain %v", n, e.applied, e.uncertain)
		}
	}
	for _, target := range o.asked() {
		list, _ := items[0][o.orderOf(target)].(*types.AttributeValueMemberL)
		if list == nil || permitsOf(target) > 1 { // holders that hold at once are in no order
			continue
		}
		last := int64(0)
		for _, av := range list.Value {
			fence := number(o.T, av)
			if fence < last {
				o.violated("exclusion: a write under fence %d was applied after one under %d", fence, last)
			}
			last = fence
		}
	}
}

// haunted says that a request may have come in after its ticket had left the line: then a ticket
// stands there that nobody uses.
func (o *ordeal) haunted() bool {
	return slices.ContainsFunc(o.strikes, func(k strike) bool {
		f := k.fault
		return f.Kind == tabletest.DuplicateLate || f.Kind == tabletest.DropRequest && (f.For > 0 || f.AfterCalls > 0)
	})
}
