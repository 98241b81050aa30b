package table

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/keys"
)

// actionJSON is the content of one action of a transaction.
type actionJSON struct {
	table             string
	item, key, values json.RawMessage
	condition, update *string
	names             map[string]string
}

// read reads the members of an action. encoding/json alone would accept repeated members, and their names in any case.
func (a *actionJSON) read(data []byte) error {
	members, err := membersOf(data)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	var names json.RawMessage
	var ignored string // the item is always requested
	targets := map[string]any{
		"TableName": &a.table, "Item": &a.item, "Key": &a.key, "ConditionExpression": &a.condition, "UpdateExpression": &a.update,
		"ExpressionAttributeNames": &names, "ExpressionAttributeValues": &a.values, "ReturnValuesOnConditionCheckFailure": &ignored,
	}
	for name, raw := range members {
		target, ok := targets[name]
		switch {
		case !ok:
			return fmt.Errorf("%w: unknown member %q", ErrInvalid, name)
		case string(raw) == "null": // the same as no member
		case json.Unmarshal(raw, target) != nil:
			return fmt.Errorf("%w: %s has a value of a wrong type", ErrInvalid, name)
		}
	}
	if names == nil {
		return nil
	}
	if members, err = membersOf(names); err != nil {
		return fmt.Errorf("%w: ExpressionAttributeNames: %w", ErrInvalid, err)
	}
	a.names = make(map[string]string, len(members))
	for holder, raw := range members {
		var name string
		if json.Unmarshal(raw, &name) != nil {
			return fmt.Errorf("%w: ExpressionAttributeNames has a value of a wrong type", ErrInvalid)
		}
		a.names[holder] = name
	}
	return nil
}

// OpsFromJSON reads operations from the JSON of a transaction, as the AWS command line takes it with --transact-items:
//
//	[{"Put": {"TableName": "app", "Item": {"pk": {"S": "a"}, "sk": {"S": "b"}}}},
//	 {"Update": {"TableName": "app", "Key": {…}, "UpdateExpression": "SET #n = :n", …}}]
//
// An action is one of Put, Update, Delete and ConditionCheck. It has to be on this table; TableName can be left out. Pass
// the operations to [Table.Write] together, with others if there are any.
//
// Invalid JSON is refused with [ErrInvalid], which names the action. DynamoDB checks the syntax of expressions.
func (t *Table) OpsFromJSON(data []byte) ([]Op, error) {
	fail := func(err error) ([]Op, error) { return nil, fmt.Errorf("table: operations from JSON: %w", err) }
	if !faithful(data) {
		return fail(errNotText)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil || list == nil {
		return fail(fmt.Errorf("%w: want a JSON array of objects, one for each action", ErrInvalid))
	}
	ops := make([]Op, len(list))
	for i, raw := range list {
		members, err := membersOf(raw)
		if err != nil || len(members) != 1 {
			return fail(fmt.Errorf("%w: action %d: want one member", ErrInvalid, i))
		}
		for kind, raw := range members {
			op, err := t.opFromJSON(kind, raw)
			if err != nil {
				return fail(fmt.Errorf("action %d: %w", i, err))
			}
			ops[i] = op.In(t)
		}
	}
	return ops, nil
}

func (t *Table) opFromJSON(kind string, raw json.RawMessage) (op Op, err error) {
	var a actionJSON
	if err := a.read(raw); err != nil {
		return op, err
	}
	switch kind {
	case "Put":
		op.kind = putOp
	case "Update":
		op.kind = updateOp
	case "Delete":
		op.kind = deleteOp
	case "ConditionCheck":
		op.kind = checkOp
	default:
		return op, fmt.Errorf("%w: want Put, Update, Delete or ConditionCheck", ErrInvalid)
	}
	if a.table != "" && a.table != t.schema.Name {
		return op, fmt.Errorf("%w: it is on table %s, not on %s", ErrInvalid, a.table, t.schema.Name)
	}
	put, update, check := op.kind == putOp, op.kind == updateOp, op.kind == checkOp
	err = errs.Join(
		member("Item", a.item != nil, put, put),
		member("Key", a.key != nil, !put, !put),
		member("UpdateExpression", a.update != nil, update, update),
		member("ConditionExpression", a.condition != nil, check, true),
		notEmpty("UpdateExpression", a.update),
		notEmpty("ConditionExpression", a.condition),
		balanced("ConditionExpression", a.condition),
	)
	if err != nil {
		return op, err
	}
	if put {
		op.item, op.key, err = t.itemFromJSON(a.item)
	} else {
		var at Item
		if at, op.key, err = t.itemFromJSON(a.key); err == nil && len(at) > 2 {
			err = fmt.Errorf("%w: Key has attributes that are no keys", ErrInvalid)
		}
	}
	if err != nil {
		return op, err
	}
	values := Item{}
	if a.values != nil {
		if values, _, err = valuesFromJSON(a.values); err != nil {
			return op, fmt.Errorf("ExpressionAttributeValues: %w", err)
		}
	}
	if a.condition != nil {
		op.cond = Cond{kind: textCond, text: newVerbatim(*a.condition, a.names, values)}
	}
	if update {
		op.changes = []Change{{text: newVerbatim(*a.update, a.names, values)}}
	}
	return op, nil
}

// member returns an error if the member is needed but absent, or present but not allowed. has reports whether it is present.
func member(name string, has, needed, allowed bool) error {
	switch {
	case needed && !has:
		return fmt.Errorf("%w: %s is missing", ErrInvalid, name)
	case has && !allowed:
		return fmt.Errorf("%w: %s does not belong there", ErrInvalid, name)
	}
	return nil
}

// notEmpty refuses an expression without text. An empty condition would be left out, and its operation would be unconditional.
func notEmpty(name string, text *string) error {
	if text != nil && strings.TrimSpace(*text) == "" {
		return fmt.Errorf("%w: %s is empty", ErrInvalid, name)
	}
	return nil
}

// balanced refuses an expression with a parenthesis that has no partner. Conditions that are added put the expression into parentheses,
// which such a text could close: "a) OR (b" would make them part of one alternative only.
func balanced(name string, text *string) error {
	if text == nil {
		return nil
	}
	depth := 0
	for _, c := range *text {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth < 0 {
			break
		}
	}
	if depth != 0 {
		return fmt.Errorf("%w: %s has a parenthesis without a partner", ErrInvalid, name)
	}
	return nil
}

func (t *Table) itemFromJSON(raw json.RawMessage) (item Item, key keys.Key, err error) {
	if item, err = ItemFromJSON(raw); err == nil {
		key, err = t.KeyOf(item)
	}
	return item, key, err
}

// verbatim is an expression as its author wrote it. When it is sent, builder replaces its placeholders by numbered ones.
type verbatim struct {
	text []string  // the text before, between and after the operands
	args []Operand // the operands in place of placeholders: one fewer than text
}

// placeholder matches a placeholder in an expression. An attribute name that is written there directly contains neither # nor a colon.
var placeholder = regexp.MustCompile(`[#:][A-Za-z0-9_]+`)

func newVerbatim(text string, names map[string]string, values Item) *verbatim {
	v := &verbatim{text: placeholder.Split(text, -1)}
	for _, holder := range placeholder.FindAllString(text, -1) {
		arg := Operand{kind: invalidOperand, value: fmt.Errorf("%w: no name or value for a placeholder in an expression", ErrInvalid)}
		if name, ok := names[holder]; ok {
			arg = Attr(name)
		} else if value, ok := values[holder]; ok {
			arg = Value(value)
		}
		v.args = append(v.args, arg)
	}
	return v
}

func (v *verbatim) write(b *builder) {
	for i, text := range v.text {
		b.text(text)
		if i < len(v.args) {
			v.args[i].write(b)
		}
	}
}

// grouped reports whether one pair of parentheses encloses the whole expression. Names and values have placeholders, so that each
// parenthesis in the text is one of the expression.
func (v *verbatim) grouped() bool {
	text := strings.TrimSpace(strings.Join(v.text, "#"))
	depth := 0
	for i, c := range text {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			return i > 0 && i == len(text)-1
		}
	}
	return false
}
