package table

import (
	"fmt"
	"io"
	"slices"

	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/keys"
)

// Op is one write operation: a put, update, delete or check. An Op is immutable; methods return new ones. An Op that
// could not be built carries its error, which [Table.Write] returns before anything is sent.
//
// Maps and slices passed to an Op are not copied. Do not change them until it has been written.
type Op struct {
	kind    opKind
	key     keys.Key
	item    Item
	changes []Change
	cond    Cond
	explain func(Item) error
	with    []Op
	err     error
	table   string // name of the table that In binds the operation to; empty for any table

	prepared *prepared // its prepared expressions; nil if there are none, or If or Changing has changed the operation
	params   []any     // parameters of a prepared operation; kept after a change
}

type opKind uint8

const (
	noOp opKind = iota
	putOp
	updateOp
	deleteOp
	checkOp
)

func (k opKind) String() string {
	return [...]string{"nothing", "put", "update", "delete", "check"}[k]
}

// Put writes a whole item, which contains its key, and replaces an existing one.
func Put(item Item) Op { return Op{kind: putOp, item: item} }

// Update changes the item at key, and creates it if it does not exist. Add a condition to prevent that. It needs at
// least one change, passed here or to [Op.Changing].
func Update(key keys.Key, changes ...Change) Op {
	return Op{kind: updateOp, key: key, changes: changes}
}

// Delete deletes the item at key. A missing item is not an error.
func Delete(key keys.Key) Op { return Op{kind: deleteOp, key: key} }

// Check writes nothing. It makes the other operations of its transaction depend on a condition on the item at key.
func Check(key keys.Key, cond Cond) Op { return Op{kind: checkOp, key: key, cond: cond} }

// Invalid returns an operation with an error, which [Table.Write] returns.
func Invalid(err error) Op { return Op{err: err} }

// If adds conditions. All conditions of an operation have to hold.
func (o Op) If(conds ...Cond) Op {
	o.cond = And(o.cond, And(conds...))
	o.prepared = nil
	return o
}

// Changing adds changes to an update.
func (o Op) Changing(changes ...Change) Op {
	if o.kind != updateOp && o.err == nil {
		o.err = fmt.Errorf("%w: changes on a %s", ErrInvalid, o.kind)
	}
	o.changes = append(slices.Clip(o.changes), changes...)
	o.prepared = nil
	return o
}

// With adds operations that are written in the same transaction as o and count as parts of it: their errors carry the
// index of o.
func (o Op) With(ops ...Op) Op {
	o.with = append(slices.Clip(o.with), ops...)
	return o
}

// Explain sets the meaning of a failed condition. f gets the item that was found, or nil. Its result becomes Err of the
// [ConditionError]. If f returns nil, an earlier explanation applies.
func (o Op) Explain(f func(Item) error) Op {
	if f == nil {
		return o
	}
	earlier := o.explain
	if earlier == nil {
		o.explain = f
		return o
	}
	o.explain = func(item Item) error {
		if err := f(item); err != nil {
			return err
		}
		return earlier(item)
	}
	return o
}

// Item returns the item of a put, and nil for other operations.
func (o Op) Item() Item { return o.item }

// In binds the operation to a table. A table of another name refuses it.
func (o Op) In(t *Table) Op {
	if t == nil {
		if o.err == nil {
			o.err = fmt.Errorf("%w: In of a table that is nil", ErrInvalid)
		}
		return o
	}
	o.table = t.Name()
	return o
}

// String returns the kind of the operation, and the table if [Op.In] has set one. It returns no keys and no values, which
// should not appear in logs.
func (o Op) String() string {
	if o.table == "" {
		return o.kind.String()
	}
	return fmt.Sprintf("%s on table %s", o.kind, o.table)
}

// Format implements [fmt.Formatter]. It writes [Op.String] for every verb.
func (o Op) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, o.String()) }

// Err returns the error of an operation that could not be built.
func (o Op) Err() error { return o.err }

// action is an operation that is ready to be sent: checked, with its key, and with the index of the caller's operation.
type action struct {
	op    *Op
	index int
	key   keys.Key
	at    Item // key as attributes; nil for a put
}

// actions flattens ops into the actions of a request. It checks all that can be checked before sending, except for expressions.
func (t *Table) actions(ops []Op) ([]action, error) {
	list := make([]action, 0, len(ops))
	for i := range ops {
		var err error
		if list, err = t.appendActions(list, &ops[i], i); err != nil {
			return nil, fmt.Errorf("operation %d: %w", i, err)
		}
	}
	if len(list) > 1 {
		seen := make(map[keys.Key]int, len(list))
		for i, a := range list {
			if j, ok := seen[a.key]; ok {
				first, how := list[j], ""
				if first.op != &ops[first.index] || a.op != &ops[a.index] {
					how = ", which one of them changes beside its own, such as the row of a unique value"
				}
				return nil, fmt.Errorf("%w: operations %d and %d are on one item%s", ErrInvalid, first.index, a.index, how)
			}
			seen[a.key] = i
		}
	}
	return list, nil
}

func (t *Table) appendActions(list []action, op *Op, index int) ([]action, error) {
	a, err := t.action(op, index)
	if err != nil {
		return nil, err
	}
	list = append(list, a)
	for i := range op.with {
		if list, err = t.appendActions(list, &op.with[i], index); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (t *Table) action(op *Op, index int) (action, error) {
	a := action{op: op, index: index, key: op.key}
	if op.err != nil {
		return a, op.err
	}
	if op.table != "" && op.table != t.schema.Name {
		return a, fmt.Errorf("%w: an operation on table %s", ErrInvalid, op.table)
	}
	switch op.kind {
	case noOp:
		return a, fmt.Errorf("%w: empty operation", ErrInvalid)
	case putOp:
		key, err := t.KeyOf(op.item)
		if err != nil {
			return a, err
		}
		a.key = key
		return a, checkItem(op.item)
	case checkOp:
		if op.cond.IsZero() {
			return a, fmt.Errorf("%w: check without a condition", ErrInvalid)
		}
	case updateOp:
		if len(op.changes) == 0 {
			return a, fmt.Errorf("%w: update without changes", ErrInvalid)
		}
		if err := t.checkTargets(op.changes); err != nil {
			return a, err
		}
	}
	if err := op.key.Validate(); err != nil {
		return a, errs.Kind(ErrInvalid, err)
	}
	a.at = t.KeyItem(op.key)
	return a, nil
}

// checkTargets refuses changes of a key attribute. DynamoDB would refuse them too, but charge for the request.
func (t *Table) checkTargets(changes []Change) error {
	for i := range changes {
		if name := changes[i].Target(); name == t.scheme.PK || name == t.scheme.SK {
			return fmt.Errorf("%w: update of the key attribute %q", ErrInvalid, name)
		}
	}
	return nil
}
