package table

import (
	"fmt"

	"github.com/mortise-go/mortise/internal/inside"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/keys"
)

// prepared is an update or a check whose expressions are built once, for operations that differ only in values.
type prepared struct {
	op        Op // copied for each row; if the copy is changed, its expressions are built anew
	condition *string
	update    *string
	names     map[string]string // shared by all requests and never modified
	values    []preparedValue   // each parameter, and each AttributeValue, once
	params    int               // number of parameters
}

// preparedValue is the value of a placeholder: a constant, or the value of a parameter.
type preparedValue struct {
	holder string
	value  types.AttributeValue // nil for a parameter
	param  int                  // index of the parameter; -1 for a constant
}

// DynamoDB's limits of an expression. A prepared operation checks them for its condition before anything is sent, so that its author
// can choose another one.
const (
	maxExpression = 4096 // bytes
	maxOperators  = 300
)

// prepare implements [inside.Table.Prepare].
func prepare(op Op) (inside.Prepared[Op], error) {
	if op.err != nil {
		return nil, fmt.Errorf("table: prepare: %w", op.err)
	}
	if op.kind != updateOp && op.kind != checkOp || len(op.with) > 0 {
		return nil, fmt.Errorf("table: prepare: %w: want an update or a check alone, not a %s", ErrInvalid, op.kind)
	}
	p := &prepared{op: op}
	b := builder{prepared: p}
	e := op.write(&b)
	if b.err != nil {
		return nil, fmt.Errorf("table: prepare: %w", b.err)
	}
	if e.condition != nil && len(*e.condition) > maxExpression || e.operators > maxOperators {
		return nil, fmt.Errorf("table: prepare: %w: a condition of more than %d bytes or %d operators", ErrInvalid, maxExpression, maxOperators)
	}
	p.condition, p.update, p.names = e.condition, e.update, e.names
	return p.on, nil
}

// on returns the operation on one row, with values for its parameters.
func (p *prepared) on(key keys.Key, params ...any) Op {
	op := p.op
	op.key, op.prepared, op.params = key, p, params
	if len(params) < p.params && op.err == nil {
		op.err = fmt.Errorf("%w: %d parameters for a prepared operation, want %d", ErrInvalid, len(params), p.params)
	}
	return op
}

// expressions are the expressions of one operation, with their names and values, as a request contains them.
type expressions struct {
	condition *string
	update    *string // nil unless the operation is an update
	names     map[string]string
	values    Item
	operators int // in the condition
}

// expressions builds the expressions or, if they are prepared, adds the values of the parameters.
func (o *Op) expressions() (expressions, error) {
	p := o.prepared
	if p == nil {
		b := builder{params: o.params}
		e := o.write(&b)
		return e, b.err
	}
	e := expressions{condition: p.condition, update: p.update, names: p.names}
	if len(p.values) > 0 {
		e.values = make(Item, len(p.values))
	}
	for i := range p.values {
		v := &p.values[i]
		av := v.value
		if av == nil {
			var err error
			if av, err = Encode(o.params[v.param]); err != nil {
				return e, err
			}
		}
		e.values[v.holder] = av
	}
	return e, nil
}

// write writes the condition, then the changes. The order is fixed, since placeholders are numbered in the order of writing.
func (o *Op) write(b *builder) expressions {
	o.cond.write(b)
	e := expressions{condition: b.take(), operators: b.operators}
	if o.kind == updateOp {
		writeChanges(b, o.changes)
		e.update = b.take()
	}
	e.names, e.values = b.names, b.values
	return e
}
