package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/table"
)

// Versions runs clients that add to the same rows of an entity, in all ways that the entity offers. An acknowledged
// addition counts once, and a refused one does not count.
type Versions struct {
	Clients int
	Rounds  int  // of each client
	Rows    int  // defaults to 3
	Blind   bool // the negative twin: the entity has no versions, so what was read is not compared
}

// Counted is a row that clients add to. It also lists what was added.
type Counted struct {
	ID      string  `dynamo:"id"`
	Count   int64   `dynamo:"count"`
	Marks   []int64 `dynamo:"marks,omitempty"`
	Version int64   `dynamo:"version"`
}

func (c *Counted) add(mark int64) {
	c.Count++
	c.Marks = append(c.Marks, mark)
}

// EntityProfile is for the workloads on entities, which take seconds. It is Swarm, hastened. Storms are more frequent
// still, since they happen to the world and not to each process.
func EntityProfile(seed uint64) Profile {
	p := Swarm(seed).Hastened(10)
	p.Storms /= 5
	return p
}

// Run runs the workload and checks it.
func (s Versions) Run(w *World) Tally {
	if s.Rows == 0 {
		s.Rows = 3
	}
	r := &versions{Versions: s, world: w, marks: newMarks(s.Clients, s.Rounds)}
	r.marks.each(w, func(p *Process) func(context.Context, *Worker, int64) {
		counters := r.define(p.Table())
		return func(ctx context.Context, x *Worker, mark int64) { r.round(ctx, x, counters, mark) }
	})
	w.Settle()
	return r.check()
}

type versions struct {
	Versions

	world *World
	marks *marks
}

func (r *versions) define(t *table.Table) *entity.Entity[Counted] {
	spec := entity.Spec[Counted]{Type: "Counted", PK: "COUNTER#{id}", SK: "COUNTER", Version: "version"}
	if r.Blind {
		spec.Version = ""
	}
	counters, err := entity.Define(t, spec)
	r.world.must(err)
	return counters
}

// round adds once.
func (r *versions) round(ctx context.Context, x *Worker, counters *entity.Entity[Counted], mark int64) {
	x.Sleep(x.Between(0, 100*time.Millisecond))
	ctx, cancel := x.Within(ctx, x.Between(time.Second, 30*time.Second))
	defer cancel()
	id := fmt.Sprint("C", x.IntN(r.Rows))
	way := ways[x.IntN(len(ways))]
	if r.Blind {
		way = ways[0]
	}
	err := way.add(ctx, x, counters, Counted{ID: id}, mark)
	x.wrote(r.marks.end(mark, err), err, "%s %s %d", way.name, id, mark)
}

// isRefused reports whether an error means that a write of an entity has changed nothing.
func isRefused(err error) bool {
	for _, refusal := range []error{entity.ErrStale, entity.ErrExists, entity.ErrNotFound, entity.ErrUnique, table.ErrCondition} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

// way is a way to add to a row.
type way struct {
	name string
	add  func(ctx context.Context, x *Worker, counters *entity.Entity[Counted], c Counted, mark int64) error
}

var ways = []way{
	{"put", func(ctx context.Context, x *Worker, counters *entity.Entity[Counted], c Counted, mark int64) error {
		c, err := readCounter(ctx, x, counters, c)
		if err == nil {
			c.add(mark)
			_, err = counters.Put(ctx, c)
		}
		return err
	}},
	{"update", func(ctx context.Context, x *Worker, counters *entity.Entity[Counted], c Counted, mark int64) error {
		c, err := readCounter(ctx, x, counters, c)
		switch {
		case err != nil:
		case c.Version == 0:
			c.add(mark)
			_, err = counters.Create(ctx, c)
		default:
			_, err = counters.Update(ctx, c, entity.Add("count", 1), entity.Append("marks", []int64{mark}))
		}
		return err
	}},
	{"update in a transaction", func(ctx context.Context, x *Worker, counters *entity.Entity[Counted], c Counted, mark int64) error {
		c, err := readCounter(ctx, x, counters, c)
		if err == nil {
			beside := c
			beside.ID += "/beside"
			op := counters.UpdateOp(c, entity.Add("count", 1), entity.Append("marks", []int64{mark}))
			if c.Version == 0 {
				c.add(mark)
				op = counters.CreateOp(c)
			}
			err = counters.Table().Write(ctx, op, table.Check(counters.Key(beside), table.Attr("count").NotExists()))
		}
		return err
	}},
	{"modify", func(ctx context.Context, _ *Worker, counters *entity.Entity[Counted], c Counted, mark int64) error {
		_, err := counters.Modify(ctx, c, func(c *Counted) error {
			c.add(mark)
			return nil
		})
		return err
	}},
	{"upsert", func(ctx context.Context, _ *Worker, counters *entity.Entity[Counted], c Counted, mark int64) error {
		_, err := counters.Upsert(ctx, c, func(c *Counted) error {
			c.add(mark)
			return nil
		})
		return err
	}},
}

// readCounter reads a row, in most cases, and lets time pass. Version 0 means that there is no row.
func readCounter(ctx context.Context, x *Worker, counters *entity.Entity[Counted], c Counted) (Counted, error) {
	var options []entity.ReadOption
	if x.IntN(2) == 0 {
		options = append(options, entity.Consistent())
	}
	read, err := counters.Get(ctx, c, options...)
	if errors.Is(err, entity.ErrNotFound) {
		read, err = c, nil
	}
	x.Sleep(x.Between(0, 20*time.Millisecond))
	return read, err
}

func (r *versions) check() Tally {
	counters := r.define(r.world.Table())
	times := map[int64]int{}
	for c, err := range counters.Scan(r.world.Context(), entity.Consistent()) {
		r.world.must(err)
		// A request that was refused when it first arrived, and that its client therefore repeated or gave up, can
		// be applied when it arrives once more. No client can prevent that.
		excused := r.world.revived["COUNTER#"+c.ID+"|COUNTER"]
		for _, mark := range c.Marks {
			if (times[mark] > 0 || r.marks.refused(mark)) && excused > 0 {
				excused--
				continue
			}
			times[mark]++
		}
		if c.Count != int64(len(c.Marks)) {
			r.world.Violation("row %s counts %d and lists %d", c.ID, c.Count, len(c.Marks))
		}
	}
	return r.marks.check(r.world, func(mark int64) int { return times[mark] })
}
