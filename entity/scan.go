package entity

import (
	"context"
	"iter"
	"reflect"
	"sync"

	"github.com/mortise-go/mortise/internal/nilctx"
	"github.com/mortise-go/mortise/table"
)

// MaxSegments is the greatest number of segments that a scan reads in parallel. [table.Scan] has no such limit: it
// takes one segment at a time, for programs that spread a scan over several machines or record the position of each
// segment.
const MaxSegments = 256

// Scan yields all rows of the entity in the table, in no order, until the end, the limit, or the first error, which is
// the last pair. With [On] it yields the rows in an index.
//
// Rows of other types and expired rows are left out. A row that has the entity's key but an unknown type is a
// *[ForeignTypeError].
//
// With [Segments], up to n requests run concurrently, and each segment holds at most one page in memory. All requests
// have ended when the loop ends, however it ends.
//
// Options: [Consistent], [WithExpired], [On], [Limit], [PageSize], [Filter], [Segments].
//
// Cost: rows of all types count: half a read unit per 4 KB of the whole table or index, one if consistent. No
// DescribeTable is sent.
func (e *Entity[T]) Scan(ctx context.Context, opts ...ReadOption) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) { e.core.scan(ctx, opts, yielding(yield)) }
}

func (e *core) scan(ctx context.Context, opts []ReadOption, yield func(reflect.Value, error) bool) {
	r, err := newReading(opts, scanOptions)
	if err == nil && r.index != "" {
		_, _, err = e.keysOf(&r)
	}
	if err != nil {
		yield(reflect.Value{}, e.fail("scan", err))
		return
	}
	s := table.Scan{
		Index: r.index, Consistent: r.consistent, PageSize: r.pageSize, Filter: table.And(e.scanned(r.index), r.filter),
	}
	n := 0
	for items, err := range segments(ctx, e.table, s, max(r.segments, 1)) {
		if err != nil {
			yield(reflect.Value{}, e.fail("scan", err))
			return
		}
		for _, item := range items {
			if !e.visible(item, &r) {
				if err := e.foreign(item); err != nil {
					yield(reflect.Value{}, e.fail("scan", err))
					return
				}
				continue
			}
			o, err := e.decode(item)
			if !yield(o, err) || err != nil {
				return
			}
			if n++; n == r.limit {
				return
			}
		}
	}
}

// segments yields the pages of a scan in n parallel segments as they arrive. An error is the last pair.
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
		defer func() { // cancel the outstanding requests and wait for them
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
