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
	"github.com/mortise-go/mortise/internal/itemsize"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/table"
)

// Data is the payload of a lock, as it stands in the row's attribute data. The zero Data is
// none. It does not show what it holds, which is the application's: Decode does.
type Data struct{ av types.AttributeValue }

// IsZero reports whether there is no payload.
func (d Data) IsZero() bool { return d.av == nil }

// Decode stores the payload in what out points to, by the rules by which WithData encodes.
// Without a payload it returns table.ErrNotFound and leaves *out as it is.
func (d Data) Decode(out any) error {
	if v := reflect.ValueOf(out); v.Kind() != reflect.Pointer || v.IsNil() {
		return wrap("decode data", fmt.Errorf("%w: want a pointer, not a %T", ErrInvalid, out))
	}
	if d.IsZero() {
		return wrap("decode data", table.ErrNotFound)
	}
	// A copy: what decoding hands out may share memory with what it was given.
	if err := dynamo.Unmarshal(table.CloneValue(d.av), out); err != nil {
		return wrap("decode data", &entity.DecodeError{Type: lockrow.Type, Attribute: "data", Err: err})
	}
	return nil
}

// String says whether there is a payload, and not what it is.
func (d Data) String() string {
	if d.IsZero() {
		return "no data"
	}
	return "data"
}

// GoString is String.
func (d Data) GoString() string { return "lock.Data(" + d.String() + ")" }

// LogValue is String.
func (d Data) LogValue() slog.Value { return slog.StringValue(d.String()) }

// MarshalDynamo makes Data a field of other rows, and the payload of other locks.
func (d Data) MarshalDynamo() (types.AttributeValue, error) { return d.av, nil }

// UnmarshalDynamo is MarshalDynamo's counterpart.
func (d *Data) UnmarshalDynamo(av types.AttributeValue) error {
	d.av = av
	return nil
}

// newData encodes v, which may be nil. All that DynamoDB would refuse is refused here, since
// others may write it: a release that hands over.
func newData(v any) (Data, error) {
	if d, ok := v.(Data); v == nil || ok && d.IsZero() {
		return Data{}, nil
	}
	av, err := table.Encode(v)
	if err != nil {
		return Data{}, &table.EncodeError{What: fmt.Sprintf("a payload of type %T", v), Err: err} // which does not show names in it
	}
	size, err := itemsize.Value(av)
	if err != nil {
		return Data{}, fmt.Errorf("%w: a payload with %w", ErrInvalid, err)
	}
	if size > MaxData {
		return Data{}, fmt.Errorf("%w: a payload of %d bytes, want at most %d", ErrInvalid, size, MaxData)
	}
	return payloadOf(table.CloneValue(av)), nil
}

// payloadOf is the payload that an attribute holds. A null is none: the decoder leaves it out.
func payloadOf(av types.AttributeValue) Data {
	if _, null := av.(*types.AttributeValueMemberNULL); null {
		return Data{}
	}
	return Data{av}
}

// SetData replaces the lock's payload by v, encoded as [WithData] does, only if the lock is still held; nil
// removes it. Otherwise the error matches [ErrLost], or [ErrReleased]. It takes turns with the lease's
// guarded writes. Whether a call was applied is not known after an error that matches table.ErrUnreachable,
// and after the end of ctx; it may be repeated.
//
// Cost: one conditional write.
func (l *Lease) SetData(ctx context.Context, v any) error {
	d, err := newData(v)
	if err != nil {
		return wrap("set data", err)
	}
	if err := l.turn.take(ctx); err != nil {
		return wrap("set data", err)
	}
	defer l.turn.end()
	switch {
	case l.holding.Kind != lockrow.Exclusive:
		return wrap("set data", invalid("a payload is that of one holder, and this lease holds with others"))
	case l.is().Over():
		return wrap("set data", l.over())
	}
	return wrap("set data", l.setData(ctx, lockrow.Data{Given: true, Value: d.av}))
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
		if inDoubt {
			t.data = lockrow.Data{} // not known
		}
		return err
	}
	switch row.Edited(l.holding, t.edits) {
	case lockrow.Written: // by an attempt whose answer was lost
		t.data = d
		return nil
	case lockrow.Gone:
		err = l.gone(ctx, &row)
		if inDoubt {
			return fmt.Errorf("%w: the lock is not held any more, and the payload may have been written before", table.ErrUnreachable)
		}
	}
	return err
}
