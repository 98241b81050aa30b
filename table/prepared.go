package table

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/keys"
)

// Prepared is an update or a check whose expressions are built once, for operations that differ only in values. It is
// safe for concurrent use.
type Prepared struct {
	op        Op // for additions to the operation
	condition *string
	update    *string
	names     map[string]string // shared by all requests and never modified
	values    []preparedValue
	params    int
}

// preparedValue is the value of a placeholder: a constant, or that of a parameter.
type preparedValue struct {
	holder string
	value  types.AttributeValue // nil for a parameter
	param  int
}

// param is an operand whose value [Prepared.Op] supplies.
type param int

// Param stands for the i-th value, counted from 0, of the values passed to [Prepared.Op]. It is refused in operations
// that are not prepared.
func Param(i int) Operand { return Value(param(i)) }

// Prepare builds the expressions of an update or a check. It ignores the key of op. It returns errors in expressions;
// all other errors are returned when the operation is sent.
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

// Op returns the operation on one row, with a value for each [Param].
func (p *Prepared) Op(key keys.Key, params ...any) Op {
	op := p.op
	op.key, op.prepared, op.params = key, p, params
	if len(params) < p.params && op.err == nil {
		op.err = fmt.Errorf("%w: %d parameters for a prepared operation, want %d", ErrInvalid, len(params), p.params)
	}
	return op
}

// expressions is the part of a request that an operation determines, without its key.
type expressions struct {
	condition *string
	update    *string // for updates
	names     map[string]string
	values    Item
}

// expressions builds the expressions, or inserts values into those that are prepared.
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

// write writes the condition before the changes, since placeholders are numbered in that order.
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
