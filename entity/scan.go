package entity

import (
	"context"
	"iter"
	"sync"

	"github.com/mortise-go/mortise/internal/nilctx"
	"github.com/mortise-go/mortise/table"
)

// MaxSegments is how many segments a scan reads in parallel at most. table.Scan has no such
// limit: it takes one segment at a time, for programs that spread a scan over machines
// or keep the position of each.
const MaxSegments = 256

// Scan yields all rows of the entity in the table, in no order, until the end, the limit, or the
// first error, which is the last pair. Rows of other types and expired ones are left out.
// With On it reads an index: those rows that are in it.
//
// With Segments, n requests at a time are on their way, and each segment holds one page at
// most. All have ended when the loop does, however that ends.
//
// Options: Consistent, WithExpired, On, Limit, PageSize, Filter, Segments.
//
// Cost: what is examined, rows of all types: half a read unit per 4 KB of the whole table or
// index, one when consistent. No DescribeTable is sent.
func (e *Entity[T]) Scan(ctx context.Context, opts ...ReadOption) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		r, err := newReading(opts, scanOptions)
		if err == nil && r.index != "" {
			_, _, err = e.keysOf(r.index)
		}
		if err != nil {
			yield(zero, e.fail("scan", err))
			return
		}
		typ := table.Attr(e.plan.scheme.Type)
		s := table.Scan{
			Index: r.index, Consistent: r.consistent, PageSize: r.pageSize,
			Filter: table.And(table.Or(typ.Equal(e.typ), typ.NotExists()), r.filter),
		}
		n := 0
		for items, err := range segments(ctx, e.table, s, max(r.segments, 1)) {
			if err != nil {
				yield(zero, e.fail("scan", err))
				return
			}
			for _, item := range items {
				if !e.visible(item, &r) {
					continue
				}
				o, err := e.Decode(item)
				if !yield(o, err) || err != nil {
					return
				}
				if n++; n == r.limit {
					return
				}
			}
		}
	}
}

// segments yields the pages of a scan in n parallel segments, as they come. An error is
// the last pair.
func segments(ctx context.Context, t *table.Table, s table.Scan, n int) iter.Seq2[[]table.Item, error] {
	type result struct {
		items []table.Item
		done  bool
		err   error
	}
	return func(yield func([]table.Item, error) bool) {
		ctx, cancel := context.WithCancel(nilctx.Checked(ctx, ErrInvalid))
		results, quit := make(chan result), make(chan struct{})
		var group sync.WaitGroup
		defer func() { // whatever is on its way ends, and is waited for
			close(quit)
			cancel()
			group.Wait()
		}()
		for i := range n {
			group.Go(func() {
				s := s
				s.Segment, s.Segments = i, n
				for done := false; !done; {
					page, err := t.ScanPage(ctx, s)
					s.Start, done = page.Next, page.Next == nil || err != nil
					select {
					case results <- result{page.Items, done, err}:
					case <-quit:
						return
					}
				}
			})
		}
		for running := n; running > 0; {
			r := <-results
			if r.err != nil {
				yield(nil, r.err)
				return
			}
			if r.done {
				running--
			}
			if !yield(r.items, nil) {
				return
			}
		}
	}
}
