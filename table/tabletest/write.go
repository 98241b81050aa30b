package tabletest

import (
	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
	"github.com/mortise-go/mortise/table/tabletest/internal/expr"
)

// maxItem is the size limit of an item in bytes, names included.
const maxItem = 400 * 1024

// condition is what a write may depend on.
type condition interface{ Holds(item attr.Item) bool }

// mutation computes an item's next state; before is nil if the item does not exist.
type mutation interface {
	next(before, key attr.Item) (attr.Item, error)
	// targets returns the paths that the mutation writes, for the UPDATED_… return values; nil if it writes all.
	targets() []expr.Path
	// written returns those of the targets that get a value instead of losing one.
	written() []expr.Path
}

// write is a validated write of one item.
type write struct {
	t         *table
	key       attr.Item
	place     rowKey
	cond      condition
	change    mutation  // nil for a check
	returnOld bool      // hand out the item if the condition fails
	refused   *apiError // of a transaction's action that does not fit the table's schema
	// readKey validates the item or key and sets key and place. In a transaction it comes after all expressions.
	readKey func() error

	before *row
	after  attr.Item
}

// run evaluates the write against the table and leaves it in before and after; nothing is stored yet.
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
	after, err := w.change.next(item, w.key)
	w.after = after
	return err
}

func (w *write) beforeItem() attr.Item {
	if w.before == nil {
		return nil
	}
	return w.before.item
}

// commit stores what run computed and returns what that costs.
func (w *write) commit() *usage {
	u := &usage{}
	size := 0
	before := w.beforeItem()
	if w.before != nil {
		size = w.before.size
	}
	if w.change == nil {
		u.table = writeUnits(size)
		return u
	}
	if w.after == nil {
		w.t.remove(w.place)
	} else {
		now := &row{rowKey: w.place, item: w.after, size: w.after.Size()}
		size = max(size, now.size)
		w.t.store(now)
	}
	u.table = writeUnits(size)
	for _, x := range w.t.indexes {
		if units := x.update(w.t.keys, w.place, before, w.after); units > 0 {
			u.addIndex(x, units)
		}
	}
	return u
}

// refusedUnits is what a refused write costs: as much as rewriting the item that stood in its way.
func (w *write) refusedUnits() float64 {
	if w.before == nil {
		return writeUnits(0)
	}
	return writeUnits(w.before.size)
}

// putting replaces the whole item.
type putting struct{ item attr.Item }

func (p putting) next(_, _ attr.Item) (attr.Item, error) { return p.item, nil }
func (putting) targets() []expr.Path                     { return nil }
func (putting) written() []expr.Path                     { return nil }

// deleting removes the item.
type deleting struct{}

func (deleting) next(_, _ attr.Item) (attr.Item, error) { return nil, nil }
func (deleting) targets() []expr.Path                   { return nil }
func (deleting) written() []expr.Path                   { return nil }

// updating applies an update expression, or nothing but the key if there is none.
type updating struct {
	t *table
	u *expr.Update
}

func (p updating) next(before, key attr.Item) (attr.Item, error) {
	if before == nil {
		before = key
	}
	if p.u == nil {
		return before, nil
	}
	after, err := p.u.Apply(before)
	if err != nil {
		return nil, err
	}
	return after, p.t.checkUpdated(after)
}

func (p updating) targets() []expr.Path {
	if p.u == nil {
		return nil
	}
	return p.u.Targets()
}

func (p updating) written() []expr.Path {
	if p.u == nil {
		return nil
	}
	return p.u.Written()
}

// checkUpdated validates an item that an update has made.
func (t *table) checkUpdated(item attr.Item) error {
	for _, x := range t.indexes {
		for _, a := range x.keys.attrs() {
			v, ok := item[a.name]
			if ok && emptyNoun(v) != "" {
				return invalid("One or more parameter values are not valid. The update expression attempted to update a secondary index key to a value that is not supported. The AttributeValue for a key attribute cannot contain an empty %s value.", emptyNoun(v))
			}
		}
		if err := x.checkItem(item); err != nil {
			return err
		}
	}
	if t.storedSize(item) > maxItem {
		return invalid("Item size to update has exceeded the maximum allowed size")
	}
	return item.CheckDepth()
}

// storedSize is what the limit on an item's size applies to: the item and its entries in local indexes.
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

// checkTargets refuses an update of key attributes, and paths into those of indexes.
func (t *table) checkTargets(m mutation) error {
	for _, p := range m.targets() {
		if name := p[0].Name; t.keys.has(name) {
			return parameter("Cannot update attribute %s. This attribute is part of the key", name)
		}
	}
	if u, ok := m.(updating); ok && u.u != nil {
		return t.checkScalars(u.u)
	}
	return nil
}

// checkPut validates an item that is to be stored as it is.
func (t *table) checkPut(item attr.Item) error {
	if err := t.keys.checkItem(item); err != nil {
		return err
	}
	for _, x := range t.indexes {
		if err := x.checkItem(item); err != nil {
			return err
		}
	}
	if t.storedSize(item) > maxItem {
		return invalid("Item size has exceeded the maximum allowed size")
	}
	return nil
}

// readCondition reads ConditionExpression or Expected.
func readCondition(in *fields, env *expr.Env) (condition, error) {
	if in.has("ConditionExpression") {
		c, err := expr.ParseCondition(in.text("ConditionExpression"), env)
		if in.err != nil {
			return nil, in.err
		}
		if err != nil {
			return nil, within("ConditionExpression", err)
		}
		return c, nil
	}
	return readExpected(in)
}

// readReturnOnFailure reads ReturnValuesOnConditionCheckFailure.
func readReturnOnFailure(in *fields) (bool, error) {
	value := in.text("ReturnValuesOnConditionCheckFailure")
	got, ok := oneOf(value, "NONE", "ALL_OLD")
	if !ok {
		return false, invalid("1 validation error detected: Value '%s' at 'returnValuesOnConditionCheckFailure' failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, NONE]", value)
	}
	return got == "ALL_OLD", in.err
}

// legacyWrites are the older parameters of writes, and modernWrites the expressions that replaced them.
func refuseMixedWrite(in *fields) error {
	return refuseMixed(in, []string{"AttributeUpdates", "Expected", "ConditionalOperator"}, []string{"UpdateExpression", "ConditionExpression"})
}

// readPut, readDelete, readUpdate and readCheck validate one write, of a request of its own or within a transaction.

func (c *call) readPut(in *fields) (*write, error) {
	t, err := c.table(in)
	if err != nil {
		return nil, err
	}
	if !in.has("Item") {
		return nil, invalid("Item to put in PutItem cannot be null")
	}
	item, err := attr.DecodeItem(in.n.Get("Item"))
	if err != nil {
		return nil, err
	}
	w := &write{t: t, change: putting{item}}
	w.readKey = func() error {
		if err := t.checkPut(item); err != nil {
			return err
		}
		w.key = t.keys.extract(item)
		w.place = t.keys.place(item)
		c.touch(t, touchedKey{t.name, w.key})
		return nil
	}
	return w, c.inOrder(w, in, "ConditionExpression")
}

// inOrder reads the key and then the expressions of a write on its own. In a transaction keys come after all
// expressions.
func (c *call) inOrder(w *write, in *fields, expressions ...string) error {
	if c.op != "TransactWriteItems" {
		if err := checkUsers(in, expressions); err != nil {
			return err
		}
		if err := w.readKey(); err != nil {
			return err
		}
	}
	if err := w.readOptions(in, expressions...); err != nil || c.op == "TransactWriteItems" {
		return err
	}
	return w.checkCondition()
}

// checkCondition refuses paths into key attributes, except in a transaction's check, which is not looked at so closely.
func (w *write) checkCondition() error {
	if w.change == nil {
		return nil
	}
	return w.t.checkCondition(w.cond)
}

func (c *call) readDelete(in *fields) (*write, error) {
	t, err := c.table(in)
	if err != nil {
		return nil, err
	}
	w := &write{t: t, change: deleting{}}
	w.readKey = func() error { return w.readPlace(c, in) }
	return w, c.inOrder(w, in, "ConditionExpression")
}

func (c *call) readCheck(in *fields) (*write, error) {
	t, err := c.table(in)
	if err != nil {
		return nil, err
	}
	w := &write{t: t}
	w.readKey = func() error { return w.readPlace(c, in) }
	return w, c.inOrder(w, in, "ConditionExpression")
}

func (c *call) readUpdate(in *fields) (*write, error) {
	t, err := c.table(in)
	if err != nil {
		return nil, err
	}
	w := &write{t: t}
	w.readKey = func() error { return w.readPlace(c, in) }
	return w, c.inOrder(w, in, "UpdateExpression", "ConditionExpression")
}

func (w *write) readPlace(c *call, in *fields) error {
	key, err := readKey(in, w.t)
	if err != nil {
		return err
	}
	w.key, w.place = key, w.t.keys.place(key)
	c.touch(w.t, touchedKey{w.t.name, key})
	return nil
}

// readOptions reads everything about a write but its item or key.
func (w *write) readOptions(in *fields, params ...string) error {
	if err := refuseMixedWrite(in); err != nil {
		return err
	}
	env, err := expressions(in, params...)
	if err != nil {
		return err
	}
	if params[0] == "UpdateExpression" {
		if w.change, err = readUpdating(in, w.t, env); err != nil {
			return err
		}
	}
	if w.cond, err = readCondition(in, env); err != nil {
		return err
	}
	if w.returnOld, err = readReturnOnFailure(in); err != nil {
		return err
	}
	if err := env.Unused(); err != nil {
		return err
	}
	return in.err
}

func readUpdating(in *fields, t *table, env *expr.Env) (mutation, error) {
	if in.has("AttributeUpdates") {
		return readAttributeUpdates(in, t)
	}
	if !in.has("UpdateExpression") {
		return updating{t: t}, nil
	}
	u, err := expr.ParseUpdate(in.text("UpdateExpression"), env)
	if in.err != nil {
		return nil, in.err
	}
	if err != nil {
		return nil, within("UpdateExpression", err)
	}
	return updating{t: t, u: u}, nil
}
