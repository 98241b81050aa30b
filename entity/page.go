package entity

import (
	"context"

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
	page, err := e.page(ctx, match, opts)
	if err != nil {
		return Page[T]{}, e.fail("page", err)
	}
	return page, nil
}

func (e *Entity[T]) page(ctx context.Context, match keys.Values, opts []ReadOption) (page Page[T], err error) {
	s, err := e.search(match, append([]ReadOption{Limit(defaultPage)}, opts...), 1)
	if err != nil {
		return page, err
	}
	var last table.Item
	for len(page.Items) < s.limit {
		if last, err = s.next(ctx); last == nil || err != nil {
			return page, err
		}
		o, err := e.Decode(last)
		if err != nil {
			return page, err
		}
		page.Items = append(page.Items, o)
	}
	if s.rows.pending(s.visible) {
		page.Next = s.binding.seal(s.rows.last, last)
	}
	return page, nil
}
