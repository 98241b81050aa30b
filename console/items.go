package console

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/toolkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

const (
	itemsPerRead = 50
	maxShown     = 2000 // bytes of a value that are shown
)

// itemsView is what the page of items shows: a collection, or a part of the whole table.
type itemsView struct {
	PK       string // of the collection; empty for the whole table
	Type     string // only rows of this entity are shown; empty for all
	Rows     []itemView
	Read     int // number of rows, including those of other types
	Next     string
	Whole    bool   // no items come before or after: what was read is all
	At       string // when it was read
	Entities []entityView
	ShowData bool
	KeyName  string // name of the partition key's attribute
}

// itemView is one item.
type itemView struct {
	PK, SK     string
	Collection string // link
	Lock       string // link, if it is a lock's row
	Kind       string
	Own        bool // a row of this module
	Attributes []attributeView
}

// attributeView is an attribute that is not a key of the table.
type attributeView struct {
	Name, Kind string
	Value      string // empty if it is hidden
}

func itemsURL(pk string) string   { return "items?" + url.Values{"pk": {pk}}.Encode() }
func entityURL(typ string) string { return "items?" + url.Values{"type": {typ}}.Encode() }

// itemsPage reads one page of items, with one request, when it is loaded.
func (c *Console) itemsPage(r *http.Request) (*part, error) {
	q := r.URL.Query()
	v := itemsView{PK: q.Get("pk"), Type: q.Get("type"), ShowData: c.config.ShowData, KeyName: c.config.Table.Scheme().PK, Entities: c.viewEntities()}
	var only Entity
	if v.Type != "" {
		i := slices.IndexFunc(c.config.Entities, func(e Entity) bool { return e.Type() == v.Type })
		if i < 0 {
			return nil, badRequest("type: there is no such entity.")
		}
		only = c.config.Entities[i]
	}
	start, err := c.startOf(q, v.PK)
	if err != nil {
		return nil, err
	}
	title := "Items"
	if v.PK != "" {
		title = v.PK
	}
	return &part{name: "items", title: title, next: func(context.Context, int) (template.HTML, int, error) {
		ctx, cancel := c.once(r)
		defer cancel()
		page, err := c.readItems(ctx, v.PK, start)
		if errors.Is(err, table.ErrInvalid) {
			return "", 0, badRequest("The table refuses these keys.")
		}
		if err != nil {
			return "", 0, err
		}
		v.Whole = start == nil && page.Next == nil
		c.fill(&v, page, only)
		body, err := fragment("items", v)
		return body, 1, err
	}}, nil
}

// readItems reads one page of a collection or, if pk is empty, of the whole table.
func (c *Console) readItems(ctx context.Context, pk string, start table.Item) (table.Page, error) {
	if pk == "" {
		return c.config.Table.ScanPage(ctx, table.Scan{PageSize: itemsPerRead, Start: start})
	}
	return c.config.Table.QueryPage(ctx, table.Query{PK: pk, PageSize: itemsPerRead, Start: start})
}

// startOf returns the key after which a request asks for items, or nil for the beginning.
func (c *Console) startOf(q url.Values, pk string) (table.Item, error) {
	after, sort := q.Get("after"), q.Get("after_sort")
	if sort == "" {
		return nil, nil //nolint:nilnil // the beginning is no key
	}
	key := keys.NewKey(after, sort)
	if pk != "" {
		key = keys.NewKey(pk, sort)
	}
	if err := key.Validate(); err != nil {
		return nil, badRequest("after, after_sort: want the key of an item.")
	}
	return c.config.Table.KeyItem(key), nil
}

func (c *Console) fill(v *itemsView, page table.Page, only Entity) {
	v.Read, v.At = len(page.Items), clock(c.now())
	for _, item := range page.Items {
		if only == nil || only.Owns(item) {
			v.Rows = append(v.Rows, c.viewItem(item))
		}
	}
	if page.Next == nil {
		return
	}
	if next, err := c.config.Table.KeyOf(page.Next); err == nil {
		q := url.Values{"after_sort": {next.SK}}
		if v.PK == "" {
			q.Set("after", next.PK)
		} else {
			q.Set("pk", v.PK)
		}
		if v.Type != "" {
			q.Set("type", v.Type)
		}
		v.Next = "items?" + q.Encode()
	}
}

func (c *Console) viewItem(item table.Item) itemView {
	key, _ := c.config.Table.KeyOf(item)
	v := itemView{PK: key.PK, SK: key.SK, Collection: itemsURL(key.PK)}
	v.Kind, v.Own = c.kindOf(item)
	if c.config.Locks.Records().Owns(item) {
		if r, err := c.config.Locks.Records().Decode(item); err == nil {
			v.Lock = lockURL(r.Partition, r.Of)
		}
	}
	s := c.config.Table.Scheme()
	for _, name := range slices.Sorted(maps.Keys(item)) {
		if name == s.PK || name == s.SK || name == s.Type && v.Kind != "" {
			continue
		}
		a := attributeView{Name: name, Kind: kind(item[name])}
		if c.config.ShowData {
			a.Value = cut(value(item[name]))
		}
		v.Attributes = append(v.Attributes, a)
	}
	return v
}

// kindOf returns the type of an item that belongs to an entity or to this module (own). Any other text in the
// type attribute is a value of the application: it is hidden like all values.
func (c *Console) kindOf(item table.Item) (kind string, own bool) {
	if typ, ok := item[c.config.Table.Scheme().Type].(*types.AttributeValueMemberS); ok && toolkit.Has(typ.Value) {
		return typ.Value, true
	}
	for _, e := range c.config.Entities {
		if e.Owns(item) {
			return e.Type(), false
		}
	}
	return "", false
}

// kind returns the type of a value, in words.
func kind(av types.AttributeValue) string {
	switch av.(type) {
	case *types.AttributeValueMemberS:
		return "text"
	case *types.AttributeValueMemberN:
		return "number"
	case *types.AttributeValueMemberB:
		return "bytes"
	case *types.AttributeValueMemberBOOL:
		return "boolean"
	case *types.AttributeValueMemberNULL:
		return "null"
	case *types.AttributeValueMemberM:
		return "map"
	case *types.AttributeValueMemberL:
		return "list"
	case *types.AttributeValueMemberSS, *types.AttributeValueMemberNS, *types.AttributeValueMemberBS:
		return "set"
	}
	return "?"
}

// value formats a value. It quotes strings only within lists, maps and sets.
func value(av types.AttributeValue) string {
	if s, ok := av.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return nested(av)
}

func nested(av types.AttributeValue) string {
	each := func(n int, element func(i int) string) string {
		texts := make([]string, n)
		for i := range texts {
			texts[i] = element(i)
		}
		return strings.Join(texts, ", ")
	}
	switch v := av.(type) {
	case *types.AttributeValueMemberS:
		return fmt.Sprintf("%q", v.Value)
	case *types.AttributeValueMemberN:
		return v.Value
	case *types.AttributeValueMemberB:
		return base64.StdEncoding.EncodeToString(v.Value)
	case *types.AttributeValueMemberBOOL:
		return strconv.FormatBool(v.Value)
	case *types.AttributeValueMemberNULL:
		return "null"
	case *types.AttributeValueMemberM:
		names := slices.Sorted(maps.Keys(v.Value))
		return "{" + each(len(names), func(i int) string { return names[i] + ": " + nested(v.Value[names[i]]) }) + "}"
	case *types.AttributeValueMemberL:
		return "[" + each(len(v.Value), func(i int) string { return nested(v.Value[i]) }) + "]"
	case *types.AttributeValueMemberSS:
		return "{" + each(len(v.Value), func(i int) string { return fmt.Sprintf("%q", v.Value[i]) }) + "}"
	case *types.AttributeValueMemberNS:
		return "{" + strings.Join(v.Value, ", ") + "}"
	case *types.AttributeValueMemberBS:
		return "{" + each(len(v.Value), func(i int) string { return base64.StdEncoding.EncodeToString(v.Value[i]) }) + "}"
	}
	return "?"
}

// cut shortens a text to maxShown bytes, without splitting a character.
func cut(text string) string {
	if len(text) <= maxShown {
		return text
	}
	end := maxShown
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

var _ Entity = (*entity.Entity[struct{}])(nil)
