package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// longAgo is longer than the time for which locks keep an unused row.
const longAgo = 8 * 24 * time.Hour

// relics lets a world begin with old rows, if time to live deletes anything in it. Some of the locks were released
// long ago. Of others the holder has died, under a Fixed lease or under a session. The time to live of all these rows
// has passed. DynamoDB deletes each of them at a time of its own: most within a second from the start, while the
// locks are acquired again, and some only with a sweep. Nothing else in a world of minutes lives long enough.
//
// A workload calls it before any process boots. The history begins afterwards.
func (w *World) relics(targets ...lock.Target) {
	if w.Profile.Sweeps == 0 {
		return
	}
	chance := rand.New(rand.NewPCG(mix(w.Seed, "relics"), 0))
	w.now(func() { w.calm = true })
	p := &Process{Name: "ancestor", world: w, id: -1}
	w.ancestor = p
	w.start(p, Clock{})
	locks := p.Locks(lock.Config{HomeRegion: tabletest.Region})
	p.Go("w", func(ctx context.Context, _ *Worker) {
		for _, target := range targets {
			w.use(ctx, locks, target, chance.IntN(4))
		}
	})
	w.Wait(time.Hour)
	w.now(p.Crash)
	time.Sleep(longAgo)
	w.now(func() {
		w.calm = false
		for _, item := range w.outlived() {
			if chance.IntN(4) > 0 {
				w.At(time.Now().Add(Range{Most: time.Second}.draw(chance)), func() { w.perish(item) })
			}
		}
	})
	w.begin = time.Now()
	w.history.restart()
}

// use leaves the row of a lock behind in one of several ways, one of which leaves none.
func (w *World) use(ctx context.Context, locks *lock.Client, target lock.Target, how int) {
	var options []lock.Option
	switch how {
	case 0:
		return
	case 1:
		options = append(options, lock.Fixed(10*time.Second))
	}
	l, err := locks.Acquire(ctx, target, options...)
	w.must(err)
	if how == 2 {
		w.must(l.Release(ctx))
	}
}

// outlived lists the items whose time to live has passed.
func (w *World) outlived() []table.Item {
	var list []table.Item
	for item, err := range w.table.Scan(context.WithoutCancel(w.ctx), table.Scan{Consistent: true}) {
		w.must(err)
		if until := number(item, w.scheme.TTL); until > 0 && until < time.Now().Unix() {
			list = append(list, item)
		}
	}
	return list
}

// perish deletes an item, unless its time to live has been put off meanwhile.
func (w *World) perish(item table.Item) {
	key, err := w.table.KeyOf(item)
	w.must(err)
	err = w.table.Write(context.WithoutCancel(w.ctx), table.Delete(key).If(table.Attr(w.scheme.TTL).Less(time.Now().Unix())))
	if errors.Is(err, table.ErrCondition) {
		return
	}
	w.must(err)
	w.swept(1)
}

// swept reports a deletion by time to live.
func (w *World) swept(items int) {
	if items > 0 {
		w.faults["deleted by time to live"] += items
		w.tell(Event{Kind: Swept}, "%d items deleted by time to live", items)
	}
}
