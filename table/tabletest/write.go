package tabletest

import (
	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
	"github.com/mortise-go/mortise/table/tabletest/internal/expr"
)

// maxItem is the maximum size of an item in bytes, including names.
const maxItem = 400 * 1024

// condition is a condition of a write.
type condition interface{ Holds(item attr.Item) bool }

// mutation computes an item's next state. before is nil if the item does not exist.
type mutation interface {
	next(t *table, before, key attr.Item) (attr.Item, error)
	// targets returns the paths that an update writes, for UPDATED_OLD and UPDATED_NEW. It returns nil for an update without
	// expression, and for all other mutations.
	targets() []expr.Path
}

// write is a write of one item. It is read in two steps: first the parts that need no table, then those that depend on
// its schema.
type write struct {
	in        *fields
	t         *table
	given     attr.Item // item or key in the request
	key       attr.Item
	place     rowKey
	env       *expr.Env
	cond      condition
	change    mutation  // nil for a ConditionCheck
	returnOld bool      // return the item if the condition fails
	refused   *apiError // error of a transaction's action that does not fit the table's schema

	before *row
	after  attr.Item
	size   int // for which the write is paid: that of before or of after, whichever is larger
}

// run evaluates the write against the table and sets before and after. It stores nothing.
func (w *write) run() error {
	w.before = w.t.rows.get(w.place)
	item := w.beforeItem()
	if w.cond != nil && !w.cond.Holds(item) {
		e := fail(codeCondition, "The conditional request failed")
		if w.returnOld {
			e.item = item
		}
		return e
	}
	if w.change == nil {
		w.after = item
		return nil
	}
	if err := w.t.checkTargets(w.change); err != nil {
		return err
	}
	after, err := w.change.next(w.t, item, w.key)
	w.after = after
	return err
}

func (w *write) beforeItem() attr.Item {
	if w.before == nil {
		return nil
	}
	return w.before.item
}

// commit stores the result of run, sets the size, and returns the cost.
func (w *write) commit() *usage {
	u := &usage{}
	before := w.beforeItem()
	if w.before != nil {
		w.size = w.before.size
	}
	if w.change == nil {
		u.table = writeUnits(w.size)
		return u
	}
	switch {
	case w.after == nil && w.before == nil: // there was no item and there is none
	case w.after == nil:
		w.t.remove(w.before)
	default:
		now := &row{rowKey: w.place, item: w.after, size: w.after.Size()}
		w.size = max(w.size, now.size)
		w.t.store(now)
	}
	u.table = writeUnits(w.size)
	for _, x := range w.t.indexes {
		if units := x.update(w.t.keys, w.place, before, w.after); units > 0 {
			u.addIndex(x, units)
		}
	}
	return u
}

// refusedUnits returns the cost of a refused write: as much as writing the existing item again.
func (w *write) refusedUnits() float64 {
	if w.before == nil {
		return writeUnits(0)
	}
	return writeUnits(w.before.size)
}

// putting replaces the whole item.
type putting struct{ item attr.Item }

func (p putting) next(_ *table, _, _ attr.Item) (attr.Item, error) { return p.item, nil }
func (putting) targets() []expr.Path                               { return nil }

// deleting removes the item.
type deleting struct{}

func (deleting) next(_ *table, _, _ attr.Item) (attr.Item, error) { return nil, nil }
func (deleting) targets() []expr.Path                             { return nil }

// updating applies an update expression. Without one, it only creates the item.
type updating struct{ u *expr.Update }

func (p updating) next(t *table, before, key attr.Item) (attr.Item, error) {
	var after attr.Item
	var err error
	switch {
	case p.u == nil && before == nil:
		after = key
	case p.u == nil:
		return before, nil
	case before == nil:
		after, err = p.u.Create(key)
	default:
		after, err = p.u.Apply(before)
	}
	if err != nil || after == nil {
		return nil, err
	}
	return after, t.checkUpdated(after, p.kindOf)
}

func (p updating) kindOf(name string) attr.Kind {
	if p.u == nil {
		return 0
	}
	return p.u.KindOf(name)
}

func (p updating) targets() []expr.Path {
	if p.u == nil {
		return nil
	}
	return p.u.Targets()
}

// checkUpdated validates an item after an update. kindOf returns the type that the request gives an attribute, or 0 if it depends on the item.
// In that case the error is about the update as a whole, even if it does not touch the attribute: the item can be older than the index.
func (t *table) checkUpdated(item attr.Item, kindOf func(name string) attr.Kind) error {
	err := t.checkIndexes(func(x *index) error {
		for _, a := range x.keys.attrs() {
			v, ok := item[a.name]
			if !ok {
				continue
			}
			if emptyNoun(v) != "" {
				e := invalid("One or more parameter values are not valid. The update expression attempted to update a secondary index key to a value that is not supported. The AttributeValue for a key attribute cannot contain an empty %s value.", emptyNoun(v))
				e.whole = true
				return e
			}
			if kindOf(a.name) != 0 || t.keys.has(a.name) {
				continue
			}
			if v.Kind != a.kind {
				return mismatch("The update expression attempted to update the secondary index key to unsupported type")
			}
			if v.Size() > x.maxKey(a) {
				return mismatch("The update expression attempted to update the secondary index key beyond allowed size limits")
			}
		}
		return x.checkItem(item)
	})
	if err != nil {
		return err
	}
	if t.storedSize(item) > maxItem {
		return invalid("Item size to update has exceeded the maximum allowed size")
	}
	return item.CheckDepth()
}

// checkIndexes checks an item for each index. Of several that it does not fit, the service names the first by name.
func (t *table) checkIndexes(check func(x *index) error) (refused error) {
	first := ""
	for _, x := range t.indexes {
		if refused != nil && first < x.name {
			continue
		}
		if err := check(x); err != nil {
			first, refused = x.name, err
		}
	}
	return refused
}

// storedSize returns the size to which the limit applies: the item and its entries in local indexes.
func (t *table) storedSize(item attr.Item) int {
	size := item.Size()
	for _, x := range t.indexes {
		if x.global {
			continue
		}
		if entry := x.entry(t.keys, t.keys.place(item), item); entry != nil {
			size += entry.size
		}
	}
	return size
}

func checkItemSize(item attr.Item) error {
	if item.Size() > maxItem {
		return invalid("Item size has exceeded the maximum allowed size")
	}
	return nil
}

// checkTargets refuses updates of the table's key attributes, types that the expression itself gives to key attributes of indexes, and
// paths into key attributes of indexes, in the service's order. It needs no item.
func (t *table) checkTargets(m mutation) error {
	for _, p := range m.targets() {
		if name := p[0].Name; t.keys.has(name) {
			return parameter("Cannot update attribute %s. This attribute is part of the key", name)
		}
	}
	u, ok := m.(updating)
	if !ok || u.u == nil {
		return nil
	}
	err := t.checkIndexes(func(x *index) error {
		for _, a := range x.keys.attrs() {
			if kind := u.u.KindOf(a.name); kind != 0 && kind != a.kind {
				return x.typeMismatch(a, kind)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return t.checkScalars(u.u)
}

// checkPut validates an item of a put.
func (t *table) checkPut(item attr.Item) error {
	if err := t.keys.checkItem(item); err != nil {
		return err
	}
	if err := t.checkIndexes(func(x *index) error { return x.checkItem(item) }); err != nil {
		return err
	}
	if t.storedSize(item) > maxItem {
		return invalid("Item size has exceeded the maximum allowed size")
	}
	return nil
}

// refuseMixedWrite refuses a write with both expressions and their older forms.
func refuseMixedWrite(in *fields) error {
	return refuseMixed(in, []string{"AttributeUpdates", "Expected", "ConditionalOperator"}, []string{"UpdateExpression", "ConditionExpression"})
}

// readPut, readDelete, readCheck and readUpdate read the parts of a write that do not depend on the table. in is the whole request,
// or one action of a transaction.

func (c *call) readPut(in *fields) (*write, error) {
	w := &write{in: in}
	if err := checkWriteParams(in, "ConditionExpression"); err != nil {
		return nil, err
	}
	item, err := attr.DecodeItem(in.n.Get("Item"))
	if err != nil {
		return nil, err
	}
	if err := checkItemSize(item); err != nil {
		return nil, err
	}
	w.given, w.change = item, putting{item}
	return w, w.readOptions(in, "ConditionExpression")
}

func (c *call) readDelete(in *fields) (*write, error) {
	return readKeyed(in, deleting{}, "ConditionExpression")
}

func (c *call) readCheck(in *fields) (*write, error) {
	return readKeyed(in, nil, "ConditionExpression")
}

func (c *call) readUpdate(in *fields) (*write, error) {
	return readKeyed(in, nil, "UpdateExpression", "ConditionExpression")
}

func readKeyed(in *fields, change mutation, expressions ...string) (*write, error) {
	w := &write{in: in, change: change}
	if err := checkWriteParams(in, expressions...); err != nil {
		return nil, err
	}
	var err error
	if w.given, err = attr.DecodeItem(in.n.Get("Key")); err != nil {
		return nil, err
	}
	return w, w.readOptions(in, expressions...)
}

// checkWriteParams refuses parameters that cannot be combined.
func checkWriteParams(in *fields, expressions ...string) error {
	if err := refuseMixedWrite(in); err != nil {
		return err
	}
	return checkUsers(in, expressions)
}

// readOptions reads all parts of a write except its item or key. params are its expressions; UpdateExpression comes first.
func (w *write) readOptions(in *fields, params ...string) error {
	update := params[0] == "UpdateExpression"
	var err error
	if update && in.has("AttributeUpdates") {
		if w.change, err = readAttributeUpdates(in); err != nil {
			return err
		}
	}
	if !in.has("ConditionExpression") {
		if w.cond, err = readExpected(in); err != nil {
			return err
		}
	}
	env, err := expressions(in, params...)
	if err != nil {
		return err
	}
	w.env = env
	if update && w.change == nil {
		if w.change, err = readUpdating(in, env); err != nil {
			return err
		}
	}
	if in.has("ConditionExpression") {
		if w.cond, err = readCondition(in, env); err != nil {
			return err
		}
	}
	w.returnOld = in.text("ReturnValuesOnConditionCheckFailure") == returnAllOld
	if err := env.Unused(); err != nil {
		return err
	}
	return nil
}

func readUpdating(in *fields, env *expr.Env) (mutation, error) {
	if !in.has("UpdateExpression") {
		return updating{}, nil
	}
	u, err := expr.ParseUpdate(in.text("UpdateExpression"), env)
	if err != nil {
		return nil, within("UpdateExpression", err)
	}
	return updating{u}, nil
}

func readCondition(in *fields, env *expr.Env) (condition, error) {
	c, err := expr.ParseCondition(in.text("ConditionExpression"), env)
	if err != nil {
		return nil, within("ConditionExpression", err)
	}
	return c, nil
}

// locate checks the write's item or key against the schema of its table and finds its position.
func (w *write) locate(c *call) error {
	if p, ok := w.change.(putting); ok {
		if err := w.t.checkPut(p.item); err != nil {
			return err
		}
		w.key = w.t.keys.extract(p.item)
	} else {
		if err := w.t.keys.checkKey(w.given); err != nil {
			return err
		}
		w.key = w.given
	}
	w.place = w.t.keys.place(w.key)
	c.touch(w.t, touchedKey{w.t.name, w.key})
	return nil
}

// checkCondition refuses paths into key attributes. It does not apply to a transaction's check, which the service
// validates less strictly.
func (w *write) checkCondition() error {
	if w.change == nil {
		return nil
	}
	return w.t.checkCondition(w.cond)
}
