package entity

import (
	"context"
	"reflect"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// defaultPage is the number of rows of a page without Limit.
const defaultPage = 100

// Page is a number of consecutive rows of a query.
type Page[T any] struct {
	Items []T

	// Next is the cursor of the next page, for [After]; "" at the end. It can be set although no row follows, if a
	// further request would have been needed to find out. Then the next page is empty.
	Next Cursor
}

// Page returns the next rows of a query: as many as [Limit] asks for, or 100. A page is shorter only at the end of the
// query. If filters drop many rows Page reads on, until ctx ends. match and the options are as for [Entity.Query].
//
// All pages together contain the rows that Query yields, each once, in the same order. A row that is written between
// two pages is in the later one if it belongs there. After an error, the cursor that the page was requested with
// remains valid.
//
// Cost: as Query, for one row more than the page has.
func (e *Entity[T]) Page(ctx context.Context, match keys.Values, opts ...ReadOption) (Page[T], error) {
	var page Page[T]
	var err error
	page.Next, err = e.core.page(ctx, match, opts, valueOf(&page.Items))
	return page, err
}

// page sets items, a slice of T, to the rows of the page, and returns the cursor of the next page.
func (e *core) page(ctx context.Context, match keys.Values, opts []ReadOption, items reflect.Value) (next Cursor, err error) {
	defer func() { err = e.fail("page", err) }()
	s, err := e.search(match, append([]ReadOption{Limit(defaultPage)}, opts...), 1)
	if err != nil {
		return "", err
	}
	var rows []reflect.Value
	var last table.Item
	for len(rows) < s.limit {
		item, err := s.next(ctx)
		if err != nil {
			return "", err
		}
		if item == nil {
			break
		}
		o, err := e.decode(item)
		if err != nil {
			return "", err
		}
		rows, last = append(rows, o), item
	}
	// A row that next would refuse counts too, or the last page would pass over it in silence.
	follows := func(item table.Item) bool { return s.visible(item) || s.foreign(item) != nil }
	if len(rows) == s.limit && s.rows.pending(follows) {
		next = s.binding.seal(s.rows.last, last)
	}
	items.Set(reflect.Append(items, rows...))
	return next, nil
}
