package table

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/keys"
)

// Greatest number of items in one batch request of DynamoDB.
const (
	batchGetSize   = 100
	batchWriteSize = 25
)

// UnprocessedError reports that part of a batch was left undone for lack of capacity, when the retry policy or the
// context ended. It matches [ErrThrottled], or Err.
type UnprocessedError struct {
	Keys []keys.Key // keys that were not read
	Ops  []Op       // operations that were not applied
	Err  error      // why it was not tried again: ErrThrottled, the last request's error, or the context's
}

func (e *UnprocessedError) Error() string {
	return fmt.Sprintf("table: batch: %d of its items were not processed: %s", len(e.Keys)+len(e.Ops), errs.Within("table", e.Err))
}

// Unwrap returns the cause.
func (e *UnprocessedError) Unwrap() error { return e.Err }

// drain sends work in chunks until nothing is left. send returns the rest of its chunk, which DynamoDB left undone. drain waits by the
// retry policy before it sends a rest again, and gives up when the policy ends. The policy starts anew each time the rest shrinks. Under
// WithoutRetry, drain never waits, and gives up as soon as a rest does not shrink. It returns unfinished work with the error. It
// overwrites work.
func drain[T any](ctx context.Context, t *Table, size int, work []T, send func([]T) ([]T, error)) ([]T, error) {
	var wait backoff.BackOff
	for len(work) > 0 {
		n := min(size, len(work))
		rest, err := send(work[:n])
		if err != nil {
			return work, err
		}
		if len(rest) == 0 {
			work, wait = work[n:], nil
			continue
		}
		if len(rest) > n {
			return work, errors.New("more unprocessed items than were sent")
		}
		work = work[n-len(rest):] // in place: a copy for each rest would take time quadratic in the length of work
		copy(work, rest)
		if len(rest) < n {
			wait = nil // progress, so the policy starts anew
		}
		switch once := ctx.Value(onceKey{}) != nil; {
		case once && len(rest) == n:
			return work, ErrThrottled
		case !once:
			if wait == nil {
				wait = t.retry.backoff()
			}
			if err := t.retry.pause(ctx, wait); err != nil {
				return work, err
			}
		}
		t.count(ctx, Totals{Retries: 1})
	}
	return nil, nil
}

// pause waits as long as b demands. It returns ErrThrottled if b has ended, and the reason why ctx ended if that happens first.
func (r Retry) pause(ctx context.Context, b backoff.BackOff) error {
	d := b.NextBackOff()
	if d == backoff.Stop {
		return ErrThrottled
	}
	timer := r.machine.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
	if ctx.Err() != nil { // both can happen at one moment
		return ended(ctx)
	}
	return nil
}

// BatchGet reads many items with as few requests as possible, and returns them in the order of their keys. A missing
// item is nil. A key may occur several times; its item is read once. If some items could not be read, BatchGet returns
// the others and an *[UnprocessedError].
//
// Cost: as [Table.Get] for each item.
func (t *Table) BatchGet(ctx context.Context, list []keys.Key, consistent bool) ([]Item, error) {
	unique, at, err := distinct(list)
	if err != nil {
		return nil, fmt.Errorf("table: batch get: %w", err)
	}
	items := make([]Item, len(list))
	left, err := drain(ctx, t, batchGetSize, unique, func(chunk []keys.Key) ([]keys.Key, error) {
		got, rest, err := t.batchGet(ctx, chunk, consistent)
		for _, item := range got {
			key, err := t.KeyOf(item)
			if err != nil {
				return nil, err
			}
			spread(items, at[key], item)
		}
		return rest, err
	})
	if len(left) > 0 {
		return items, &UnprocessedError{Keys: left, Err: err}
	}
	return items, err
}

// distinct returns the keys of a list without repetitions, and the indexes in the list at which each key occurs.
func distinct(list []keys.Key) (unique []keys.Key, at map[keys.Key][]int, err error) {
	unique = make([]keys.Key, 0, len(list))
	at = make(map[keys.Key][]int, len(list))
	for i, key := range list {
		if err := key.Validate(); err != nil {
			return nil, nil, fmt.Errorf("key %d: %w", i, errs.Kind(ErrInvalid, err))
		}
		if _, ok := at[key]; !ok {
			unique = append(unique, key)
		}
		at[key] = append(at[key], i)
	}
	return unique, at, nil
}

// spread stores an item at all indexes of its key. Each index gets a map of its own, since callers may change the maps.
func spread(items []Item, at []int, item Item) {
	for n, i := range at {
		if n > 0 {
			item = maps.Clone(item)
		}
		items[i] = item
	}
}

func (t *Table) batchGet(ctx context.Context, chunk []keys.Key, consistent bool) (got []Item, rest []keys.Key, err error) {
	request := types.KeysAndAttributes{ConsistentRead: &consistent, Keys: make([]Item, len(chunk))}
	for i, key := range chunk {
		request.Keys[i] = t.KeyItem(key)
	}
	in := &dynamodb.BatchGetItemInput{
		RequestItems:           map[string]types.KeysAndAttributes{t.schema.Name: request},
		ReturnConsumedCapacity: t.capacity(ctx),
	}
	err = call(ctx, t, "BatchGetItem", false, Client.BatchGetItem, in, func(out *dynamodb.BatchGetItemOutput) (answer, error) {
		got = out.Responses[t.schema.Name]
		rest = rest[:0]
		for _, at := range out.UnprocessedKeys[t.schema.Name].Keys {
			key, err := t.KeyOf(at)
			if err != nil {
				return answer{}, err
			}
			rest = append(rest, key)
		}
		return answer{out.ResultMetadata, out.ConsumedCapacity}, nil
	})
	return got, rest, err
}

// BatchWrite applies puts and deletes with as few requests as possible, in no order and not as a transaction. It
// refuses conditions, updates, checks, and two operations on one item. Operations that could not be applied are in an
// *[UnprocessedError].
//
// Cost: as [Table.Write] for each item.
func (t *Table) BatchWrite(ctx context.Context, ops []Op) error {
	list, err := t.actions(ops)
	if err != nil {
		return fmt.Errorf("table: batch write: %w", err)
	}
	for i := range list {
		if op := list[i].op; !op.cond.IsZero() || (op.kind != putOp && op.kind != deleteOp) {
			return fmt.Errorf("table: batch write: operation %d: %w: only puts and deletes without conditions", list[i].index, ErrInvalid)
		}
	}
	written := false // whether an operation was applied, or may have been
	left, err := drain(ctx, t, batchWriteSize, list, func(chunk []action) ([]action, error) {
		rest, err := t.batchWrite(ctx, chunk)
		written = written || MayBeApplied(err) || err == nil && len(rest) < len(chunk)
		return rest, err
	})
	if len(left) == 0 {
		return err
	}
	undone := &UnprocessedError{Err: err}
	for _, a := range left {
		op := *a.op
		op.with = nil // left contains each undone operation of With as an action of its own
		undone.Ops = append(undone.Ops, op)
	}
	return errs.WithOutcome(undone, written)
}

func (t *Table) batchWrite(ctx context.Context, chunk []action) (rest []action, err error) {
	requests := make([]types.WriteRequest, len(chunk))
	for i, a := range chunk {
		if a.op.kind == putOp {
			requests[i].PutRequest = &types.PutRequest{Item: a.op.item}
		} else {
			requests[i].DeleteRequest = &types.DeleteRequest{Key: a.at}
		}
	}
	in := &dynamodb.BatchWriteItemInput{
		RequestItems:           map[string][]types.WriteRequest{t.schema.Name: requests},
		ReturnConsumedCapacity: t.capacity(ctx),
	}
	err = call(ctx, t, "BatchWriteItem", true, Client.BatchWriteItem, in, func(out *dynamodb.BatchWriteItemOutput) (answer, error) {
		rest = rest[:0]
		for _, r := range out.UnprocessedItems[t.schema.Name] {
			at := Item(nil)
			if r.PutRequest != nil {
				at = r.PutRequest.Item
			} else if r.DeleteRequest != nil {
				at = r.DeleteRequest.Key
			}
			key, err := t.KeyOf(at)
			if err != nil {
				return answer{}, err
			}
			i := slices.IndexFunc(chunk, func(a action) bool { return a.key == key })
			if i < 0 {
				return answer{}, errors.New("an unprocessed item that was not sent")
			}
			rest = append(rest, chunk[i])
		}
		return answer{out.ResultMetadata, out.ConsumedCapacity}, nil
	})
	return rest, err
}
