package entity

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/mortise-go/mortise/internal/nilctx"
	"github.com/mortise-go/mortise/table"
)

// parallel is the number of requests that one call sends at the same time.
const parallel = 8

// merge reads several partition keys as one sequence, ordered by sort key and then by the order of parts. No goroutine runs
// between calls of next.
type merge struct {
	table      *table.Table
	parts      []part
	sk         string // attribute that orders the rows; "" if there is none
	descending bool
	last       int // index of the part from which the last row came
}

// part is the rest of the rows of one partition key.
type part struct {
	query table.Query  // for the next request
	rows  []table.Item // read but not returned yet
	done  bool         // no rows follow
	grows bool         // each page is twice as large as the one before
}

// maxPage bounds the rows that one request examines, which also end after 1 MB.
const maxPage = 1 << 30

// read sends requests until there are rows or the end is reached. A page can be empty because of a filter.
func (p *part) read(ctx context.Context, t *table.Table) error {
	for len(p.rows) == 0 && !p.done {
		page, err := t.QueryPage(ctx, p.query)
		if err != nil {
			return err
		}
		p.rows, p.query.Start, p.done = page.Items, page.Next, page.Next == nil
		if p.grows {
			p.query.PageSize = min(2*p.query.PageSize, maxPage)
		}
	}
	return nil
}

// next returns the next row, or nil at the end.
func (m *merge) next(ctx context.Context) (table.Item, error) {
	if err := m.fill(ctx); err != nil {
		return nil, err
	}
	first, least := -1, ""
	for i := range m.parts {
		if len(m.parts[i].rows) == 0 {
			continue
		}
		if key := text(m.parts[i].rows[0], m.sk); first < 0 || m.before(key, least) {
			first, least = i, key
		}
	}
	if first < 0 {
		return nil, nil
	}
	p := &m.parts[first]
	item := p.rows[0]
	p.rows, m.last = p.rows[1:], first
	return item, nil
}

func (m *merge) before(a, b string) bool {
	if m.descending {
		return a > b
	}
	return a < b
}

// fill reads until each part has a row or has ended, so that the next row is known.
func (m *merge) fill(ctx context.Context) error {
	var empty []*part
	for i := range m.parts {
		if p := &m.parts[i]; len(p.rows) == 0 && !p.done {
			empty = append(empty, p)
		}
	}
	switch len(empty) {
	case 0:
		return nil
	case 1:
		return empty[0].read(ctx, m.table)
	}
	return readAll(ctx, m.table, empty)
}

// readAll is separate from fill to save allocations: fill runs for every row, but seldom reads several parts.
func readAll(ctx context.Context, t *table.Table, parts []*part) error {
	group, ctx := errgroup.WithContext(nilctx.Checked(ctx, ErrInvalid))
	group.SetLimit(parallel)
	for _, p := range parts {
		group.Go(func() error { return p.read(ctx, t) })
	}
	return group.Wait()
}

// resume continues after the row with the keys start in part at. In the other parts it skips the rows that come before that
// row in the merged order.
func (m *merge) resume(at int, start table.Item) {
	key := text(start, m.sk)
	for i := range m.parts {
		p := &m.parts[i]
		switch {
		case i == at:
			p.query.Start = start
		case m.sk == "":
			p.done = i < at
		case m.descending && i < at:
			p.query.SK.Hi = key
		case m.descending:
			p.query.SK.Hi = key + "\x00"
		case i < at:
			p.query.SK.Lo = key + "\x00"
		default:
			p.query.SK.Lo = key
		}
	}
}

// pending reports whether a row that seen accepts may follow. False is certain; true is not.
func (m *merge) pending(seen func(table.Item) bool) bool {
	for i := range m.parts {
		if !m.parts[i].done || slices.ContainsFunc(m.parts[i].rows, seen) {
			return true
		}
	}
	return false
}

// text returns a string attribute, or "" if there is none.
func text(item table.Item, attr string) string {
	if s, ok := item[attr].(*types.AttributeValueMemberS); ok && s != nil {
		return s.Value
	}
	return ""
}
