package migrations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mortise-go/mortise/internal/attrvalue"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// segment is one part of the table in a backfill, with its progress.
type segment struct {
	*filling
	at checkpoint
}

// run processes the pages in order. It records the position after each page or, with Exact, in each transaction.
func (s *segment) run(ctx context.Context) error {
	for !s.at.Done {
		page, err := s.read(ctx)
		if err != nil {
			return err
		}
		items := s.filling.run.own(page.Items, s.spec.Toolkit)
		if s.spec.Exact {
			err = s.writeExactly(ctx, items, page.Next)
		} else {
			err = s.writeAll(ctx, items, page.Next)
		}
		var earlier *reachedError
		switch {
		case errors.As(err, &earlier): // go on after what that request has written, which may be more than the last one
			s.reached(earlier.at)
		case err != nil:
			return err
		}
	}
	return nil
}

func (s *segment) read(ctx context.Context) (page table.Page, err error) {
	if err := s.reads.wait(ctx); err != nil {
		return page, err
	}
	err = s.paid(ctx, func(ctx context.Context) error {
		page, err = s.filling.run.Table().ScanPage(ctx, table.Scan{
			Filter: s.spec.Filter, Consistent: true, PageSize: s.spec.PageSize, Start: s.at.position(s.filling.run.Table().Scheme()),
			Segment: int(s.at.Part) - 1, Segments: s.spec.Segments,
		})
		return err
	})
	return page, err
}

// advance returns the next checkpoint: seen more items were read, changed of them were written, and next is the new position.
func (s *segment) advance(next table.Item, seen, changed int) checkpoint {
	c := s.at
	c.move(next, s.filling.run.Table().Scheme())
	c.Seq++
	c.Seen += int64(seen)
	c.Changed += int64(changed)
	return c
}

// reached makes c, which was written, the current checkpoint, and adds its counts to those of the backfill.
func (s *segment) reached(c checkpoint) {
	s.seen.Add(c.Seen - s.at.Seen)
	s.changed.Add(c.Changed - s.at.Changed)
	s.at = c
}

// writeAll transforms and writes each item on its own, several at the same time. Then it records the position after them.
func (s *segment) writeAll(ctx context.Context, items []table.Item, next table.Item) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan table.Item)
	var group sync.WaitGroup
	var changed atomic.Int64
	for range min(s.spec.Writers, len(items)) {
		worker(&group, cancel, func() error {
			for item := range work {
				wrote, err := s.transform(inner, item)
				if err != nil {
					return err
				}
				if wrote {
					changed.Add(1)
				}
			}
			return nil
		})
	}
	for _, item := range items {
		select {
		case work <- item:
			continue
		case <-inner.Done():
		}
		break
	}
	close(work)
	group.Wait()
	if inner.Err() != nil {
		return endOf(ctx, inner)
	}
	c := s.advance(next, len(items), int(changed.Load()))
	err := s.record(ctx, c)
	if err == nil {
		s.reached(c)
	}
	return err
}

// transform writes the new state of an item, if the item is unchanged. A changed item is transformed again.
func (s *segment) transform(ctx context.Context, item table.Item) (wrote bool, err error) {
	for {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		next, err := s.become(ctx, item)
		if err != nil || next == nil {
			return false, err
		}
		if err := s.writes.wait(ctx); err != nil {
			return false, err
		}
		op := s.change(item, next)
		err = s.paid(ctx, func(ctx context.Context) error { return s.filling.run.Table().Write(ctx, op) })
		var failed *table.ConditionError
		switch {
		case err == nil:
			return true, nil
		case !errors.As(err, &failed):
			return false, s.itemError(ctx, item, err)
		case table.MayBeApplied(err) && attrvalue.SameItem(failed.Item, next):
			return true, nil // written by an attempt whose answer was lost
		}
		if item, err = s.after(ctx, item, failed.Item); err != nil || item == nil {
			return false, err
		}
	}
}

// after handles a write whose condition has failed: now is what the table has in place of item. It returns the item to
// transform again, or nil if there is nothing left to transform.
func (s *segment) after(ctx context.Context, item, now table.Item) (table.Item, error) {
	switch {
	case len(now) == 0:
		return nil, nil // deleted meanwhile
	case attrvalue.SameItem(item, now):
		err := fmt.Errorf("the item has not changed since it was read, but the write was refused: %w", table.ErrCondition)
		return nil, s.itemError(ctx, item, err)
	}
	s.conflicts.Add(1)
	if s.spec.Filter.IsZero() {
		return now, nil
	}
	return s.selected(ctx, now)
}

// selected reads an item again, and returns nil if the Filter does not select it any more. Only DynamoDB can evaluate the
// Filter. A query would refuse one on key attributes, so the read is an update that changes nothing.
func (s *segment) selected(ctx context.Context, item table.Item) (now table.Item, err error) {
	t := s.filling.run.Table()
	key, err := t.KeyOf(item)
	if err != nil {
		return nil, s.itemError(ctx, item, err)
	}
	if err := s.writes.wait(ctx); err != nil {
		return nil, err
	}
	nothing := table.Attr("mortise.none").Remove() // an update needs a change, and no item has this attribute
	op := table.Update(key, nothing).If(table.Attr(t.Scheme().PK).Exists(), s.spec.Filter)
	err = s.paid(ctx, func(ctx context.Context) error {
		now, err = t.Apply(ctx, op, table.ReturnNew)
		return err
	})
	switch {
	case errors.Is(err, table.ErrCondition):
		return nil, nil
	case err != nil:
		return nil, s.itemError(ctx, item, err)
	}
	return now, nil
}

// maxTransaction is the maximum size of the items in one transaction, in bytes. DynamoDB allows 4 MB including
// expressions, and old and new values are both sent.
const maxTransaction = 1 << 20

// target is an item to be written in a transaction.
type target struct {
	key  table.Item
	item table.Item // nil if there is nothing left to transform
}

// writeExactly transforms items in transactions, each together with the resulting position. A transaction that
// conflicts with other writes, or that DynamoDB refuses, is repeated with fewer items. So an item that changes all the
// time, or cannot be written, does not stop the others.
func (s *segment) writeExactly(ctx context.Context, items []table.Item, next table.Item) error {
	const most = table.MaxOps - 2 // the checkpoint and the guard are two operations
	list := make([]target, len(items))
	for i, item := range items {
		list[i] = target{key: s.filling.run.keyOf(item), item: item}
	}
	for limit := most; ; {
		n, size := 0, 0
		for n < len(list) && n < limit {
			more, _ := attrvalue.ItemSize(list[n].item) // no error is possible: the item comes from DynamoDB
			if size += more; size > maxTransaction && n > 0 {
				break
			}
			n++
		}
		to := next
		if n < len(list) {
			to = list[n-1].key
		}
		done, err := s.writeChunk(ctx, list[:n], to)
		switch {
		case err != nil:
			return err
		case !done:
			limit = max(1, n/2)
		case n == len(list):
			return nil
		default:
			list, limit = list[n:], min(2*limit, most)
		}
	}
}

// writeChunk writes the new state of some items, and the position after them. If it returns false without an error, it
// has replaced changed items in list by their present state, and the caller repeats it with fewer items.
func (s *segment) writeChunk(ctx context.Context, list []target, to table.Item) (done bool, err error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	var ops []table.Op
	var of []*target // of[i] is the target of ops[i]
	for i := range list {
		t := &list[i]
		if t.item == nil {
			continue
		}
		next, err := s.become(ctx, t.item)
		if err != nil {
			return false, err
		}
		if next != nil {
			ops, of = append(ops, s.change(t.item, next)), append(of, t)
		}
	}
	if err := s.writes.wait(ctx); err != nil {
		return false, err
	}
	c := s.advance(to, len(list), len(ops))
	err = s.paid(ctx, func(ctx context.Context) error {
		return s.filling.run.lease.Write(ctx, append(ops, s.filling.run.checkpointOp(c))...)
	})
	failed := table.Conditions(err)
	switch {
	case err == nil:
		s.reached(c)
		return true, nil
	case errors.Is(err, lock.ErrLost) || len(of) == 0:
		return false, err
	case slices.ContainsFunc(failed, func(f *table.ConditionError) bool { return f.Index >= len(of) }):
		return false, err // the checkpoint has changed: an earlier transaction without an answer was applied
	case len(failed) > 0:
	case !errors.Is(err, ErrInvalid) && !errors.Is(err, table.ErrConflict):
		return false, err
	case len(list) == 1:
		return false, s.itemError(ctx, of[0].item, err)
	}
	for _, f := range failed {
		t := of[f.Index]
		if t.item, err = s.after(ctx, t.item, f.Item); err != nil {
			return false, err
		}
	}
	return false, nil
}

// endOf returns why inner ended. If it ended with ctx, the error matches both ctx.Err() and the cause of ctx.
func endOf(ctx, inner context.Context) error {
	cause := context.Cause(inner)
	if err := ctx.Err(); err != nil && errors.Is(cause, context.Cause(ctx)) && !errors.Is(cause, err) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return cause
}

// worker runs f in a goroutine, and cancels with its error. If an author's function ends the goroutine (runtime.Goexit),
// that is an error, too.
func worker(group *sync.WaitGroup, cancel context.CancelCauseFunc, f func() error) {
	group.Go(func() {
		err := errExited
		defer func() {
			if err != nil {
				cancel(err)
			}
		}()
		err = safely(f)
	})
}
