package entity

import (
	"context"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// defaultPage is the number of rows of a page without Limit.
const defaultPage = 100

// Page is some consecutive rows of a query.
type Page[T any] struct {
	Items []T

	// Next is where the next page begins, for After; "" at the end. It may be set although
	// nothing follows, where telling would have taken another request: then the next
	// page is empty.
	Next Cursor
}

// Page returns the next rows of a query, as many as Limit says, or 100. It is shorter only at
// the end of the query: with filters that let little pass it reads on, for as long as ctx
// lets it. All pages together have the rows that Query yields, each once, in the same
// order; rows that are written between two pages are in the later one if they belong
// there. match and the options are as for Query.
//
// On an error there is no page; the cursor that it was asked for remains good.
//
// Cost: like Query, of a row more than the page has.
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
