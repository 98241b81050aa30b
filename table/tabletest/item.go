package tabletest

import (
	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
	"github.com/mortise-go/mortise/table/tabletest/internal/expr"
)

// The values of ReturnValues.
const (
	returnNone       = "NONE"
	returnAllOld     = "ALL_OLD"
	returnAllNew     = "ALL_NEW"
	returnUpdatedOld = "UPDATED_OLD"
	returnUpdatedNew = "UPDATED_NEW"
)

func putItem(c *call) ([]byte, error) {
	return c.writeItem((*call).readPut, returnNone, returnAllOld)
}

func deleteItem(c *call) ([]byte, error) {
	return c.writeItem((*call).readDelete, returnNone, returnAllOld)
}

func updateItem(c *call) ([]byte, error) {
	return c.writeItem((*call).readUpdate, returnNone, returnAllOld, returnAllNew, returnUpdatedOld, returnUpdatedNew)
}

// writeItem is what the three single writes have in common.
func (c *call) writeItem(read func(*call, *fields) (*write, error), returns ...string) ([]byte, error) {
	returnValues, ok := oneOf(c.in.text("ReturnValues"), returns...)
	if !ok {
		return nil, invalid("Return values set to invalid value")
	}
	w, err := read(c, &c.in)
	if err != nil {
		return nil, err
	}
	if err := c.refuseConflict(w); err != nil {
		return nil, err
	}
	if err := w.run(); err != nil {
		c.spent(w.t, &usage{table: w.refusedUnits()})
		return nil, err
	}
	used := w.commit()
	o := newObject()
	if attrs := w.returned(returnValues); attrs != nil {
		o.item("Attributes", attrs)
	}
	c.consumed(o, w.t, used)
	c.collectionMetrics(o, w)
	return o.end(), c.in.err
}

// returned picks what ReturnValues asks for; nil if there is nothing to return.
func (w *write) returned(what string) attr.Item {
	switch what {
	case returnAllOld:
		return w.beforeItem()
	case returnAllNew:
		return w.after
	case returnUpdatedOld:
		return updated(w.beforeItem(), w.change.targets())
	case returnUpdatedNew:
		return updated(w.after, w.change.written())
	}
	return nil
}

// updated returns the parts of an item at the paths, and nothing beside them.
func updated(item attr.Item, paths []expr.Path) attr.Item {
	if item == nil || len(paths) == 0 {
		return nil
	}
	if out := expr.ProjectPaths(paths).Apply(item); len(out) > 0 {
		return out
	}
	return nil
}

func getItem(c *call) ([]byte, error) {
	t, err := c.table(&c.in)
	if err != nil {
		return nil, err
	}
	g, err := c.readGet(&c.in, t)
	if err != nil {
		return nil, err
	}
	consistent := c.in.flag("ConsistentRead")
	r := c.read(t, g.place, consistent)
	o := newObject()
	size := 0
	if r != nil {
		size = r.size
		o.item("Item", g.pick(r.item))
	}
	c.consumed(o, t, &usage{table: readUnits(size, consistent), read: true})
	return o.end(), c.in.err
}

// get is a validated read of one item.
type get struct {
	key   attr.Item
	place rowKey
	proj  *expr.Projection
}

func (c *call) readGet(in *fields, t *table) (*get, error) {
	if err := refuseMixed(in, []string{"AttributesToGet"}, []string{"ProjectionExpression"}); err != nil {
		return nil, err
	}
	env, err := expressions(in, "ProjectionExpression")
	if err != nil {
		return nil, err
	}
	g := &get{}
	if g.proj, err = readProjection(in, env); err != nil {
		return nil, err
	}
	if err := env.Unused(); err != nil {
		return nil, err
	}
	if g.proj != nil {
		if err := t.checkScalars(g.proj); err != nil {
			return nil, err
		}
	}
	if g.key, err = readKey(in, t); err != nil {
		return nil, err
	}
	g.place = t.keys.place(g.key)
	c.touch(t, touchedKey{t.name, g.key})
	return g, nil
}

func (g *get) pick(item attr.Item) attr.Item {
	if g.proj == nil {
		return item
	}
	return g.proj.Apply(item)
}
