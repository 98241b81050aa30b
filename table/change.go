package table

import "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

// Change is one change of an item by an update. The zero Change is refused.
type Change struct {
	verb   changeVerb
	target Operand
	value  Operand
	text   *verbatim // a whole update expression, which stands alone; nil for a change of one attribute
}

type changeVerb uint8

const (
	setVerb changeVerb = iota
	removeVerb
	addVerb
	deleteVerb
	changeVerbs // number of verbs
)

var verbText = [changeVerbs]string{"SET ", "REMOVE ", "ADD ", "DELETE "}

// Set sets the attribute to v, which can be computed: Attr("n").Set(Attr("n").OrElse(0).Plus(1)).
func (o Operand) Set(v any) Change { return Change{verb: setVerb, target: o, value: operand(v)} }

// Remove removes the attribute or the list element.
func (o Operand) Remove() Change { return Change{verb: removeVerb, target: o} }

// Add adds to a number, or adds elements to a set. A missing number counts as 0. A repeated request adds twice; see
// [Table.Write].
func (o Operand) Add(v any) Change { return Change{verb: addVerb, target: o, value: operand(v)} }

// RemoveFrom removes the elements of a set from a set attribute (DELETE in an update expression). Elements that are not in
// it are ignored; a set that becomes empty is removed.
func (o Operand) RemoveFrom(set any) Change {
	return Change{verb: deleteVerb, target: o, value: operand(set)}
}

// Target returns the top-level attribute that the change affects.
func (c Change) Target() string { return c.target.name }

// writeChanges writes an update expression. Clauses have a fixed order, and the changes of one clause keep their order. So the same
// update gives the same expression, which idempotency tokens require.
func writeChanges(b *builder, changes []Change) {
	b.changing = true
	defer func() { b.changing = false }()
	for i := range changes {
		if text := changes[i].text; text != nil {
			if len(changes) > 1 {
				b.fail("an update expression from JSON allows no other changes")
			}
			text.write(b)
			return
		}
	}
	for verb := range changeVerbs {
		first := true
		for i := range changes {
			c := &changes[i]
			if c.verb != verb {
				continue
			}
			switch {
			case !first:
				b.text(", ")
			case b.length() > 0:
				b.text(" ")
				fallthrough
			default:
				b.text(verbText[verb])
			}
			first = false
			b.path(&c.target)
			switch verb {
			case setVerb:
				b.text(" = ")
				c.value.write(b)
			case addVerb, deleteVerb:
				b.text(" ")
				if c.value.kind != valueOperand {
					b.fail("Add and RemoveFrom take values only")
				}
				c.value.write(b)
				b.operandOf(verb)
			}
		}
	}
}

// operandOf refuses the value that was written last if Add or RemoveFrom does not take its type.
func (b *builder) operandOf(verb changeVerb) {
	if b.err != nil {
		return
	}
	switch b.last.(type) {
	case nil: // a parameter of a prepared operation, whose value is not known yet
	case *types.AttributeValueMemberSS, *types.AttributeValueMemberNS, *types.AttributeValueMemberBS:
	case *types.AttributeValueMemberN:
		if verb == deleteVerb {
			b.fail("RemoveFrom takes a set")
		}
	default:
		b.fail("Add takes a number or a set, and RemoveFrom a set")
	}
}
