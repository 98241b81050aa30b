package entity

import (
	"fmt"
	"math/bits"

	"github.com/mortise-go/mortise/table"
)

// ReadOption changes how [Entity.Get], [Entity.BatchGet], [Entity.Query], [Entity.Page] and [Entity.Scan] read. An
// option that does not apply to a call is refused with [ErrInvalid].
type ReadOption func(*reading) error

type reading struct {
	given      option
	consistent bool
	expired    bool
	index      string
	descending bool
	limit      int
	pageSize   int
	segments   int
	filter     table.Cond
	lo, hi     *bound
	prefix     *prefix
	after      Cursor
}

type bound struct {
	field string
	value any
}

type prefix struct{ field, text string }

// option is a set of options.
type option uint16

const (
	optConsistent option = 1 << iota
	optExpired
	optOn
	optDescending
	optLimit
	optPageSize
	optFilter
	optFrom
	optUntil
	optPrefix
	optAfter
	optSegments
)

// The options that each kind of call accepts.
const (
	getOptions   = optConsistent | optExpired
	queryOptions = getOptions | optOn | optDescending | optLimit | optPageSize | optFilter | optFrom | optUntil | optPrefix | optAfter
	scanOptions  = getOptions | optOn | optLimit | optPageSize | optFilter | optSegments
)

// String returns the name of the first option in the set.
func (o option) String() string {
	names := [...]string{
		"Consistent", "WithExpired", "On", "Descending", "Limit", "PageSize", "Filter", "From", "Until", "Prefix", "After", "Segments",
	}
	return names[bits.TrailingZeros16(uint16(o))]
}

// Consistent makes a read see every write that was acknowledged before it. It doubles the cost. Global indexes do not
// support it.
func Consistent() ReadOption {
	return func(r *reading) error {
		r.given |= optConsistent
		r.consistent = true
		return nil
	}
}

// WithExpired also returns rows that have expired and are not yet deleted.
func WithExpired() ReadOption {
	return func(r *reading) error {
		r.given |= optExpired
		r.expired = true
		return nil
	}
}

// On reads an index of the table instead of the table. If the index does not project all attributes, fields of the rows
// are empty: do not write these rows back. An index that does not project the attributes that Match names, the number of
// the schema, or, without [WithExpired], the time to live is refused with [ErrInvalid].
func On(index string) ReadOption {
	return func(r *reading) error {
		r.given |= optOn
		r.index = index
		return nil
	}
}

// Descending returns rows from the greatest sort key to the smallest.
func Descending() ReadOption {
	return func(r *reading) error {
		r.given |= optDescending
		r.descending = true
		return nil
	}
}

// Limit ends a query or scan after n rows, at least 1. For [Entity.Page] it is the number of rows of a page. Rows that
// are left out (filtered, expired, of other types) do not count.
func Limit(n int) ReadOption {
	return func(r *reading) error {
		r.given |= optLimit
		if n < 1 {
			return fmt.Errorf("%w: Limit(%d): want at least 1", ErrInvalid, n)
		}
		r.limit = n
		return nil
	}
}

// PageSize sets the number of rows that one request examines, at least 1. It is not the number of rows of an
// [Entity.Page]: that is [Limit]. Defaults to as many as 1 MB holds. In a query with [Limit] and without a filter, the first
// request examines no more than Limit needs, and each further one twice as many as the one before, since some were left out.
func PageSize(n int) ReadOption {
	return func(r *reading) error {
		r.given |= optPageSize
		if n < 1 {
			return fmt.Errorf("%w: PageSize(%d): want at least 1", ErrInvalid, n)
		}
		r.pageSize = n
		return nil
	}
}

// Filter drops rows for which cond does not hold, after they were read and paid for. If several filters are given, all
// of them have to hold. An attribute that the index does not project is refused with [ErrInvalid]. DynamoDB compares a row
// as it is stored, before [Spec.Upgrades].
func Filter(cond table.Cond) ReadOption {
	return func(r *reading) error {
		r.given |= optFilter
		r.filter = table.And(r.filter, cond)
		return nil
	}
}

// From starts a query at the given value of a field of the sort key, inclusive. The field has to follow those that the
// query's match names.
func From(field string, value any) ReadOption {
	return func(r *reading) error {
		r.given |= optFrom
		r.lo = &bound{field, value}
		return nil
	}
}

// Until ends a query before the given value of a field of the sort key, exclusive. The field is as for [From].
func Until(field string, value any) ReadOption {
	return func(r *reading) error {
		r.given |= optUntil
		r.hi = &bound{field, value}
		return nil
	}
}

// Prefix restricts a query to rows in which a field of the sort key begins with text: "Jo" finds "Joan". The field has
// to follow those that match names, and text must not be empty. Prefix cannot be combined with [From] and [Until].
//
// In a key made by a template, the field's codec has to be string, raw, rest, key or idN. If the field's type has
// MarshalText, text is compared with what that returned. If the sort key of an index is a field's own attribute, text is
// compared with the text in the row, also for a time: Prefix("placed", "2026-03"). Numbers have no prefix.
func Prefix(field, text string) ReadOption {
	return func(r *reading) error {
		r.given |= optPrefix
		if text == "" {
			return fmt.Errorf("%w: Prefix of %q: empty", ErrInvalid, field)
		}
		r.prefix = &prefix{field, text}
		return nil
	}
}

// Segments reads a scan in n parallel segments, 1 to [MaxSegments], with up to n concurrent requests. Rows of different
// segments come in no order.
func Segments(n int) ReadOption {
	return func(r *reading) error {
		r.given |= optSegments
		if n < 1 || n > MaxSegments {
			return fmt.Errorf("%w: Segments(%d): want 1 to %d", ErrInvalid, n, MaxSegments)
		}
		r.segments = n
		return nil
	}
}

// newReading applies the options of a call and refuses those that are not in allowed.
func newReading(opts []ReadOption, allowed option) (r reading, err error) {
	for _, opt := range opts {
		if opt == nil {
			return r, fmt.Errorf("%w: nil option", ErrInvalid)
		}
		if err := opt(&r); err != nil {
			return r, err
		}
	}
	if odd := r.given &^ allowed; odd != 0 {
		return r, fmt.Errorf("%w: options that do not apply to this call: %s", ErrInvalid, odd)
	}
	if r.prefix != nil && (r.lo != nil || r.hi != nil) {
		return r, fmt.Errorf("%w: Prefix goes with neither From nor Until", ErrInvalid)
	}
	return r, nil
}
