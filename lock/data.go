package lock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/table"
)

// Data is the payload of a lock, as the lock's row has it. The zero Data is none. Its text does not show the content,
// which belongs to the application; use [Data.Decode].
type Data struct{ av types.AttributeValue }

// IsZero reports whether there is no payload.
func (d Data) IsZero() bool { return d.av == nil }

// Decode stores the payload in the value that out points to. If there is no payload, it returns [table.ErrNotFound] and
// does not change *out.
func (d Data) Decode(out any) error {
	if v := reflect.ValueOf(out); v.Kind() != reflect.Pointer || v.IsNil() {
		return wrap("decode data", fmt.Errorf("%w: want a pointer, not a %T", ErrInvalid, out))
	}
	if d.IsZero() {
		return wrap("decode data", table.ErrNotFound)
	}
	// A copy, since the decoded value may share memory with what it was decoded from.
	if err := dynamo.Unmarshal(attrvalue.Clone(d.av), out); err != nil {
		return wrap("decode data", &entity.DecodeError{Type: lockrow.Type, Attribute: "data", Err: err})
	}
	return nil
}

// String returns "data" or "no data", not the content.
func (d Data) String() string {
	if d.IsZero() {
		return "no data"
	}
	return "data"
}

// GoString does not show the content either.
func (d Data) GoString() string { return "lock.Data(" + d.String() + ")" }

// LogValue does not show the content either.
func (d Data) LogValue() slog.Value { return slog.StringValue(d.String()) }

// MarshalDynamo lets Data be a field of other rows, and the payload of other locks.
func (d Data) MarshalDynamo() (types.AttributeValue, error) { return d.av, nil }

// UnmarshalDynamo is the counterpart of MarshalDynamo.
func (d *Data) UnmarshalDynamo(av types.AttributeValue) error {
	d.av = av
	return nil
}

// newData encodes a payload; v may be nil. It refuses all that DynamoDB would refuse, since another goroutine may write the payload:
// the holder that passes the lock on.
func newData(v any) (Data, error) {
	if d, ok := v.(Data); v == nil || ok && d.IsZero() {
		return Data{}, nil
	}
	av, err := table.Encode(v)
	if err != nil {
		return Data{}, &table.EncodeError{What: fmt.Sprintf("a payload of type %T", v), Err: err} // its text omits err, which may name fields
	}
	size, err := attrvalue.Size(av)
	if err != nil {
		return Data{}, fmt.Errorf("%w: a payload with %w", ErrInvalid, err)
	}
	if size > MaxData {
		return Data{}, fmt.Errorf("%w: a payload of %d bytes, want at most %d", ErrInvalid, size, MaxData)
	}
	if _, null := av.(*types.AttributeValueMemberNULL); null { // a NULL in a row counts as no payload
		return Data{}, nil
	}
	return Data{attrvalue.Clone(av)}, nil
}

// SetData replaces the lock's payload, only if the lock is still held. The value is encoded as with [WithData]; nil
// removes the payload. If the lock is not held any more, the error matches [ErrLost] or [ErrReleased]. It takes turns
// with the guarded writes of the lease. For any other error, [table.MayBeApplied] reports whether the payload may have
// been written. The call can be repeated.
//
// Cost: one conditional write.
func (l *Lease) SetData(ctx context.Context, v any) error {
	return l.call("set data", func() error {
		d, err := newData(v)
		if err == nil {
			err = errs.WithOutcome(l.turn.take(ctx), false) // nothing was sent
		}
		if err != nil {
			return err
		}
		defer l.turn.end()
		switch {
		case l.holding.Kind != lockrow.Exclusive:
			return invalid("a payload is that of one holder, and this lease holds with others")
		case l.is().Over():
			return l.over()
		}
		return l.setData(ctx, lockrow.Data{Given: true, Value: d.av})
	})
}

// setData writes a payload. The turn is taken, or nobody else has the lease yet.
func (l *Lease) setData(ctx context.Context, d lockrow.Data) error {
	t := &l.turn
	t.edits++
	row, inDoubt, err := l.update(ctx, l.client.layout.rows.SetData(l.key, l.holding, t.edits, d))
	switch {
	case err == nil:
		t.data = d
		return nil
	case !errors.Is(err, table.ErrCondition):
		if inDoubt || saysOver(err) { // as in send
			t.data = lockrow.Data{} // not known
			return unknown(err)
		}
		return err
	}
	switch {
	case !row.Holds(l.holding):
		err = l.gone(ctx, &row)
		if inDoubt {
			return fmt.Errorf("%w: the lock is not held any more, and the payload may have been written before", table.ErrUnreachable)
		}
	case row.Edits == t.edits: // an attempt without an answer was applied
		t.data = d
		return nil
	}
	return err
}
