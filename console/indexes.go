package console

import (
	"context"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/mortise-go/mortise/table"
)

// indexesView is what the page of indexes shows.
type indexesView struct {
	PK, SK, Type, TTL, Version string
	Indexes                    []indexView
	Entities                   []entityView
	Agrees                     bool
	Plan                       string
	Items                      string
	Read                       string
}

type indexView struct {
	Name, PK, SK, Kind, Projection string
	Entities                       []string // entities whose rows can be in the index
}

type entityView struct{ Type, PK, SK, URL string }

// indexesPage has no events: what it shows changes only with deployments.
func (c *Console) indexesPage(r *http.Request) (*part, error) {
	return &part{name: "indexes", title: "Indexes", next: func(context.Context, int) (template.HTML, int, error) {
		ctx, cancel := c.once(r)
		defer cancel()
		plan, err := c.config.Table.Plan(ctx)
		if err != nil {
			return "", 0, err
		}
		size, err := c.config.Table.Estimate(ctx)
		if err != nil {
			return "", 0, err
		}
		body, err := fragment("indexes", c.viewIndexes(plan, size.Items))
		return body, 1, err
	}}, nil
}

// once returns the context of the reads for one answer. It ends with the request and with Close. Its budget is the one that
// all pages without live updates share.
func (c *Console) once(r *http.Request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(c.static)
	stop := context.AfterFunc(r.Context(), cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

func (c *Console) viewIndexes(plan table.Plan, items int64) indexesView {
	schema := c.config.Table.Schema()
	s := schema.Keys
	v := indexesView{
		PK: s.PK, SK: s.SK, Type: s.Type, TTL: s.TTL, Version: s.Version,
		Agrees: plan.IsEmpty(), Plan: plan.String(), Items: number(items), Read: clock(c.now()),
	}
	for _, x := range schema.Indexes {
		view := indexView{Name: x.Name, PK: x.PK, SK: x.SK, Kind: "global", Projection: "all attributes"}
		if x.Local {
			view.Kind = "local"
		}
		switch {
		case x.Include != nil && len(x.Include) == 0:
			view.Projection = "keys only"
		case x.Include != nil:
			view.Projection = "keys and " + strings.Join(x.Include, ", ")
		}
		for _, e := range c.config.Entities {
			if key := x.PK; slices.ContainsFunc(e.Facet().Attributes, func(a table.FacetAttribute) bool { return a.Name == key }) {
				view.Entities = append(view.Entities, e.Type())
			}
		}
		v.Indexes = append(v.Indexes, view)
	}
	v.Entities = c.viewEntities()
	return v
}

func (c *Console) viewEntities() (list []entityView) {
	for _, e := range c.config.Entities {
		f := e.Facet()
		list = append(list, entityView{e.Type(), f.PK, f.SK, entityURL(e.Type())})
	}
	return list
}
