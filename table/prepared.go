package table

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/keys"
)

// Prepared is an update or a check whose expressions are written once, for operations that
// are made often with nothing but other values. It is safe for concurrent use.
type Prepared struct {
	op        Op // for what is added to it later
	condition *string
	update    *string
	names     map[string]string // shared by all requests: nobody writes to it
	values    []preparedValue
	params    int
}

// preparedValue is the value of a placeholder: a constant, or a parameter's.
type preparedValue struct {
	holder string
	value  types.AttributeValue // nil for a parameter
	param  int
}

// param is the value of an operand that Prepared.Op fills in.
type param int

// Param stands for the i-th of the values, counted from 0, that Prepared.Op is given. It is
// refused in operations that were not prepared.
func Param(i int) Operand { return Value(param(i)) }

// Prepare writes the expressions of an update or a check; the key of op has no meaning.
// Expressions that cannot be written are reported here, all else when the operation is sent.
func Prepare(op Op) (*Prepared, error) {
	if op.err != nil {
		return nil, fmt.Errorf("table: prepare: %w", op.err)
	}
	if op.kind != updateOp && op.kind != checkOp || len(op.with) > 0 {
		return nil, fmt.Errorf("table: prepare: %w: want an update or a check alone, not a %s", ErrInvalid, op.kind)
	}
	p := &Prepared{op: op}
	b := builder{prepared: p}
	e := op.write(&b)
	if b.err != nil {
		return nil, fmt.Errorf("table: prepare: %w", b.err)
	}
	p.condition, p.update, p.names = e.condition, e.update, e.names
	return p, nil
}

// Op returns the operation on one row, with a value for each Param.
func (p *Prepared) Op(key keys.Key, params ...any) Op {
	op := p.op
	op.key, op.prepared, op.params = key, p, params
	if len(params) < p.params && op.err == nil {
		op.err = fmt.Errorf("%w: %d parameters for a prepared operation, want %d", ErrInvalid, len(params), p.params)
	}
	return op
}

// expressions are what a request says about an operation, besides its key.
type expressions struct {
	condition *string
	update    *string // of updates
	names     map[string]string
	values    Item
}

// expressions writes them, or fills in those that were written before.
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

// write writes the condition before the changes: placeholders are numbered in that order.
func (o *Op) write(b *builder) expressions {
	o.cond.write(b)
	e := expressions{condition: b.take()}
	if o.kind == updateOp {
		writeChanges(b, o.changes)
		e.update = b.take()
	}
	e.names, e.values = b.names, b.values
	return e
}
