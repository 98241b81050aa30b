package tabletest

import (
	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
	"github.com/mortise-go/mortise/table/tabletest/internal/expr"
)

// Values of ReturnValues.
const (
	returnNone       = "NONE"
	returnAllOld     = "ALL_OLD"
	returnAllNew     = "ALL_NEW"
	returnUpdatedOld = "UPDATED_OLD"
	returnUpdatedNew = "UPDATED_NEW"
)

func putItem(c *call) ([]byte, error)    { return c.writeItem((*call).readPut) }
func deleteItem(c *call) ([]byte, error) { return c.writeItem((*call).readDelete) }
func updateItem(c *call) ([]byte, error) { return c.writeItem((*call).readUpdate) }

// writeItem implements the common part of PutItem, UpdateItem and DeleteItem.
func (c *call) writeItem(read func(*call, *fields) (*write, error)) ([]byte, error) {
	w, err := read(c, &c.in)
	if err != nil {
		return nil, err
	}
	returnValues := c.in.text("ReturnValues")
	if c.op != "UpdateItem" && returnValues != "" && returnValues != returnNone && returnValues != returnAllOld {
		return nil, invalid("ReturnValues can only be ALL_OLD or NONE")
	}
	if w.t, err = c.table(&c.in); err != nil {
		return nil, err
	}
	if err := w.locate(c); err != nil {
		return nil, err
	}
	if err := w.checkCondition(); err != nil {
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
	return o.end(), nil
}

// returned returns the attributes that ReturnValues selects, or nil.
func (w *write) returned(what string) attr.Item {
	switch what {
	case returnAllOld:
		return w.beforeItem()
	case returnAllNew:
		return w.after
	case returnUpdatedOld:
		return updated(w.beforeItem(), w.change.targets())
	case returnUpdatedNew:
		return updated(w.after, w.change.targets())
	}
	return nil
}

// updated returns only the parts of an item at the paths.
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
	g, err := c.readGet(&c.in)
	if err != nil {
		return nil, err
	}
	t, err := c.table(&c.in)
	if err != nil {
		return nil, err
	}
	if err := g.locate(c, t); err != nil {
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
	c.consumed(o, t, &usage{table: readUnits(size, consistent)})
	return o.end(), nil
}

// get is a read of one item. Like a write, its request is read in two steps: readGet needs no table, locate does.
type get struct {
	key   attr.Item
	place rowKey
	proj  *expr.Projection
}

func (c *call) readGet(in *fields) (*get, error) {
	if err := refuseMixed(in, []string{"AttributesToGet"}, []string{"ProjectionExpression"}); err != nil {
		return nil, err
	}
	if err := checkUsers(in, []string{"ProjectionExpression"}); err != nil {
		return nil, err
	}
	g := &get{}
	var err error
	if g.key, err = attr.DecodeItem(in.n.Get("Key")); err != nil {
		return nil, err
	}
	g.proj, err = readProjecting(in)
	return g, err
}

// readProjecting reads a projection that is the only expression of a request.
func readProjecting(in *fields) (*expr.Projection, error) {
	env, err := expressions(in, "ProjectionExpression")
	if err != nil {
		return nil, err
	}
	proj, err := readProjection(in, env)
	if err != nil {
		return nil, err
	}
	return proj, env.Unused()
}

// locate checks the key and the projection against the schema of the table.
func (g *get) locate(c *call, t *table) error {
	if err := t.keys.checkKey(g.key); err != nil {
		return err
	}
	if g.proj != nil {
		if err := t.checkScalars(g.proj); err != nil {
			return err
		}
	}
	g.place = t.keys.place(g.key)
	c.touch(t, touchedKey{t.name, g.key})
	return nil
}

func (g *get) pick(item attr.Item) attr.Item {
	if g.proj == nil {
		return item
	}
	return g.proj.Apply(item)
}
