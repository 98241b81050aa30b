package entity

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/mortise-go/mortise/internal/attrvalue"

	"golang.org/x/sync/errgroup"

	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// BatchError lists the values of a batch that failed, with their causes. It matches every error that one of the causes
// matches. Its text contains none of the values.
type BatchError[T any] struct {
	Failed []Failure[T] // in the order of the batch
	Of     int          // number of values in the batch
}

// Failure is a value of a batch that failed.
type Failure[T any] struct {
	Index int // index in the batch
	Value T   // the value as it was passed
	Err   error
}

func (e *BatchError[T]) Error() string {
	if len(e.Failed) == 0 {
		return "entity: batch: nothing failed"
	}
	return fmt.Sprintf("%d of %d values failed, the first at index %d: %s",
		len(e.Failed), e.Of, e.Failed[0].Index, errs.Within("entity", bare(e.Failed[0].Err)))
}

// Unwrap returns the causes.
func (e *BatchError[T]) Unwrap() []error {
	list := make([]error, len(e.Failed))
	for i := range e.Failed {
		list[i] = e.Failed[i].Err
	}
	return list
}

// failures returns err, which concerns a whole batch, or else a *BatchError of the values with an error in errs.
func failures[T any](list []T, errs []error, err error) error {
	batch := &BatchError[T]{Of: len(list)}
	for i, cause := range errs {
		if cause != nil {
			batch.Failed = append(batch.Failed, Failure[T]{Index: i, Value: list[i], Err: cause})
		}
	}
	if err != nil || len(batch.Failed) == 0 {
		return err
	}
	return batch
}

// BatchGet reads the rows of many values with as few requests as possible. Only the key fields of the values count. The
// result has the order of list. A row that is missing or expired is nil. Values with the same key each get a copy of
// the row, which is read once.
//
// If some rows cannot be read, BatchGet returns the others and a *[BatchError]; the failed ones are nil. They are rows
// that DynamoDB left unprocessed until the retry policy ended (*[table.UnprocessedError]), rows of other types, and
// rows that do not decode. A value without a valid key refuses the whole batch with [ErrInvalid] before any request.
//
// Options: [Consistent], [WithExpired].
//
// Cost: one request per 100 rows; units as for [Entity.Get].
func (e *Entity[T]) BatchGet(ctx context.Context, list []T, opts ...ReadOption) ([]*T, error) {
	var rows []*T
	errs, err := e.core.batchGet(ctx, valueOf(&list), valueOf(&rows), opts)
	return rows, e.core.fail("batch get", failures(list, errs, err))
}

// batchGet sets rows, a slice of *T, to the rows of the values of list, and returns the error of each value.
func (e *core) batchGet(ctx context.Context, list, rows reflect.Value, opts []ReadOption) (errs []error, err error) {
	r, err := newReading(opts, getOptions)
	if err != nil {
		return nil, err
	}
	at, err := e.batchKeys(list)
	if err != nil {
		return nil, err
	}
	items, err := e.table.BatchGet(ctx, at, r.consistent)
	var undone *table.UnprocessedError
	if err != nil && !errors.As(err, &undone) {
		return nil, err
	}
	rows.Set(reflect.MakeSlice(rows.Type(), len(at), len(at)))
	errs = make([]error, len(at))
	met := make(map[keys.Key]bool, len(at))
	for i, item := range items {
		if item == nil || e.owns(item) && e.hidden(item, r.expired) {
			continue
		}
		if met[at[i]] {
			item = attrvalue.CloneItem(item) // decoding does not copy bytes and documents, and values must not share them
		}
		met[at[i]] = true
		row, err := e.decode(item)
		if errs[i] = err; err == nil {
			rows.Index(i).Set(row.Addr())
		}
	}
	if undone != nil {
		unread := make(map[keys.Key]bool, len(undone.Keys))
		for _, key := range undone.Keys {
			unread[key] = true
		}
		for i, key := range at {
			if unread[key] {
				errs[i] = err
			}
		}
	}
	return errs, nil
}

// PutAll puts many values as [Entity.Put] does, in no order, and returns them as written, in the order of list. Values
// that fail are in a *[BatchError]; the others are written all the same. Two values with the same key, or a value
// without a valid key, are refused with [ErrInvalid] before any request.
//
// It sends single puts, up to 8 at a time. DynamoDB's BatchWriteItem costs as many units and has no conditions, so it
// would overwrite newer versions and rows of other types. To import into an empty table use [table.Table.BatchWrite] with
// table.Put(e.PutOp(o).Item()), unless T has unique values.
//
// Cost: that of Put for each value.
func (e *Entity[T]) PutAll(ctx context.Context, list []T) ([]T, error) {
	var written []T
	causes, err := e.core.putAll(ctx, valueOf(&list), valueOf(&written))
	if err = failures(list, causes, err); slices.Contains(causes, nil) {
		err = errs.WithOutcome(err, true) // a part was written
	}
	return written, e.core.fail("put all", err)
}

// putAll sets written to the values of list as they were written, or as they are if that failed, and returns the error of each
// value.
func (e *core) putAll(ctx context.Context, list, written reflect.Value) (errs []error, err error) {
	at, err := e.batchKeys(list)
	if err != nil {
		return nil, err
	}
	first := make(map[keys.Key]int, len(at))
	for i, key := range at {
		if j, ok := first[key]; ok {
			return nil, fmt.Errorf("%w: values %d and %d have the same key", ErrInvalid, j, i)
		}
		first[key] = i
	}
	written.Set(reflect.MakeSlice(written.Type(), len(at), len(at)))
	errs = make([]error, len(at))
	var group errgroup.Group
	group.SetLimit(parallel)
	for i := range at {
		group.Go(func() error {
			o := list.Index(i)
			put, err := e.put(ctx, o)
			if err != nil {
				put, errs[i] = o, e.fail("put", err)
			}
			written.Index(i).Set(put)
			return nil // a failure does not stop the others
		})
	}
	_ = group.Wait() // errs has the failures
	return errs, nil
}

func (e *core) batchKeys(list reflect.Value) ([]keys.Key, error) {
	at := make([]keys.Key, list.Len())
	for i := range at {
		at[i] = e.keyOf(list.Index(i))
		if err := at[i].Validate(); err != nil {
			return nil, fmt.Errorf("value %d: %w", i, errs.Kind(ErrInvalid, bare(err)))
		}
	}
	return at, nil
}
