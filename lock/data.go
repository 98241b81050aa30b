package lock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/table"
)

// Data is the payload of a lock, as it stands in the row's attribute data. The zero Data is
// none. It does not show what it holds, which is the application's: Decode does.
type Data struct{ av types.AttributeValue }

// IsZero says that there is no payload.
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
		return wrap("decode data", &entity.DecodeError{Type: recordType, Attribute: attrData, Err: err})
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

// payload is what an acquisition does with the row's: it keeps it unless one is given. The
// zero Data removes it.
type payload struct {
	given bool
	data  Data
}

// WithData gives the lock a payload that others can read: in the *HeldError, by Inspect and
// by List. It is encoded like the field of an entity (see package table, Encoding), and has
// at most MaxData bytes as DynamoDB counts them. nil, or a null, removes the payload that is there;
// without this option it stays as the last holder left it. It stays on release.
//
// Cost: none, while the row stays within 1 KB; else a write unit more for each write, per KB.
func WithData(v any) Option {
	d, err := newData(v)
	return func(a *acquisition) error {
		if err != nil {
			return fmt.Errorf("WithData: %w", err)
		}
		a.data = payload{given: true, data: d}
		return nil
	}
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
	size, err := measure(av, 1)
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

// leftData is what the row of a lease has as its payload. It is guarded by the lease's mu.
type leftData struct {
	data    Data
	edit    int64 // of the last SetData
	unclear bool  // its answer was lost for good
}

// with tells a lease what its row has.
func (l *Lease) with(d Data) *Lease {
	l.data, l.left.data = d, d
	return l
}

// Data is the payload that the row had when this lease began: its own (WithData), or what
// the last holder left. SetData does not change what it returns.
func (l *Lease) Data() Data { return l.data }

// leaves is the payload of a lease that follows without the row being read; false where
// that is not known.
func (l *Lease) leaves(to payload) (Data, bool) {
	if to.given {
		return to.data, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left.data, !l.left.unclear
}

// lastData is what the row has, as far as is known.
func (l *Lease) lastData() Data {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left.data
}

// SetData replaces the lock's payload by v, encoded as WithData does, only if the lock is
// still held; nil removes it. Otherwise the error matches ErrLost, or ErrReleased. It takes
// turns with the lease's guarded writes. Whether a call whose answer was lost for good
// (table.ErrUnreachable, or ctx ended) was applied is not known; it may be repeated.
//
// Cost: one conditional write.
func (l *Lease) SetData(ctx context.Context, v any) error {
	d, err := newData(v)
	if err != nil {
		return wrap("set data", err)
	}
	if err := l.takeTurn(ctx); err != nil {
		return wrap("set data", err)
	}
	defer l.endTurn()
	if l.released.Load() {
		return l.gone("set data")
	}
	edit := l.nextEdit()
	unclear := false
	err = l.client.attempts(ctx, attemptTimeout(l.length), func(ctx context.Context, _ instant) error {
		err := l.client.table.Write(ctx, l.client.rows.set(l.key, l.nonce, l.fence, edit, d))
		unclear = unclear || table.MayHaveApplied(err)
		return err
	})
	var failed *table.ConditionError
	switch {
	case err == nil:
		l.edited(d, false)
	case !errors.As(err, &failed):
		if unclear {
			l.edited(d, true)
		}
		return wrap("set data", err)
	case isString(l.client.of(failed.Item, attrNonce), l.nonce) && isNumber(l.client.of(failed.Item, attrEdits), edit):
		l.edited(d, false) // by an earlier attempt, whose answer was lost
	default:
		return wrap("set data", l.refusedBy(failed))
	}
	return nil
}

func (l *Lease) nextEdit() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left.edit++
	return l.left.edit
}

func (l *Lease) edited(d Data, unclear bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left.data, l.left.unclear = d, unclear
}

func isNumber(av types.AttributeValue, want int64) bool {
	n, ok := numberOf(av)
	return ok && n == want
}

// numberOf is a number that is an integer.
func numberOf(av types.AttributeValue) (n int64, ok bool) {
	if av, is := av.(*types.AttributeValueMemberN); is {
		var err error
		n, err = strconv.ParseInt(av.Value, 10, 64)
		ok = err == nil
	}
	return n, ok
}

// Limits of values. Source: Developer Guide, "Quotas in Amazon DynamoDB".
const (
	maxDepth  = 32   // of documents in one another
	maxDigits = 38   // significant ones of a number
	leastExp  = -130 // of a number's first digit
	mostExp   = 125
)

// measure is the size of a value as DynamoDB counts it. It refuses what DynamoDB would,
// as far as table.Encode has not. Errors do not quote the value.
func measure(av types.AttributeValue, depth int) (size int, err error) {
	if depth > maxDepth {
		return 0, fmt.Errorf("documents in one another more than %d deep", maxDepth)
	}
	switch av := av.(type) {
	case *types.AttributeValueMemberS:
		return len(av.Value), nil
	case *types.AttributeValueMemberB:
		return len(av.Value), nil
	case *types.AttributeValueMemberN:
		_, size, err := measureNumber(av.Value)
		return size, err
	case *types.AttributeValueMemberBOOL:
		return 1, nil
	case *types.AttributeValueMemberNULL:
		if !av.Value {
			return 0, errors.New("a null that is false")
		}
		return 1, nil
	case *types.AttributeValueMemberSS:
		return measureSet(av.Value, func(s string) (string, int, error) { return s, len(s), nil })
	case *types.AttributeValueMemberBS:
		return measureSet(av.Value, func(b []byte) (string, int, error) { return string(b), len(b), nil })
	case *types.AttributeValueMemberNS:
		return measureSet(av.Value, measureNumber)
	case *types.AttributeValueMemberL:
		size = 3
		for _, e := range av.Value {
			n, err := measure(e, depth+1)
			if err != nil {
				return 0, err
			}
			size += n + 1
		}
		return size, nil
	case *types.AttributeValueMemberM:
		size = 3
		for name, e := range av.Value {
			n, err := measure(e, depth+1)
			if err != nil {
				return 0, err
			}
			if !utf8.ValidString(name) {
				return 0, errors.New("a name that is not valid UTF-8")
			}
			size += len(name) + n + 1
		}
		return size, nil
	}
	return 0, fmt.Errorf("a value of the unknown type %T", av)
}

// measureSet refuses empty sets and elements that are there twice. same makes equal of
// elements what DynamoDB takes for equal.
func measureSet[E any](list []E, measured func(E) (same string, size int, err error)) (size int, err error) {
	if len(list) == 0 {
		return 0, errors.New("an empty set")
	}
	seen := make(map[string]bool, len(list))
	for _, e := range list {
		same, n, err := measured(e)
		if err != nil {
			return 0, err
		}
		if seen[same] {
			return 0, errors.New("a set with an element that is there twice")
		}
		seen[same] = true
		size += n
	}
	return size, nil
}

// measureNumber takes half a byte per significant decimal digit, counted in pairs around the
// decimal point, and up to two more.
func measureNumber(text string) (same string, size int, err error) {
	errNumber := errors.New("a number that DynamoDB cannot hold")
	rest, negative := strings.CutPrefix(text, "-")
	if !negative {
		rest = strings.TrimPrefix(rest, "+")
	}
	exp := 0
	if at := strings.IndexAny(rest, "eE"); at >= 0 {
		if exp, err = strconv.Atoi(rest[at+1:]); err != nil || max(exp, -exp) > 1000 {
			return "", 0, errNumber
		}
		rest = rest[:at]
	}
	whole, fraction, _ := strings.Cut(rest, ".")
	digits := whole + fraction
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return "", 0, errNumber
	}
	significant := strings.TrimLeft(digits, "0")
	point := len(whole) - (len(digits) - len(significant)) + exp // before which digit it stands
	significant = strings.TrimRight(significant, "0")
	if significant == "" {
		return "0", 1, nil
	}
	if len(significant) > maxDigits || point-1 < leastExp || point-1 > mostExp {
		return "", 0, errNumber
	}
	length := len(significant)
	if point&1 != 0 { // the first pair is half empty
		length++
	}
	size = (length+1)/2 + 1
	if negative {
		size++
	}
	return fmt.Sprintf("%t %s %d", negative, significant, point), size, nil
}
