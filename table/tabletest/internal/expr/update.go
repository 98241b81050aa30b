package expr

import (
	"slices"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
)

// Update is a bound UpdateExpression.
type Update struct {
	sets, removes, adds, deletes []action
	paths                        []Path
}

// action is one change at a path. operand is nil for REMOVE.
type action struct {
	section int
	target  *node
	operand *node
}

// Sections of an update expression, in the order in which Apply evaluates them.
const (
	sectionSet = iota
	sectionRemove
	sectionAdd
	sectionDelete
	sectionCount
)

func sectionName(s int) string {
	switch s {
	case sectionSet:
		return "SET"
	case sectionRemove:
		return "REMOVE"
	case sectionAdd:
		return "ADD"
	}
	return "DELETE"
}

// ParseUpdate parses and binds an UpdateExpression.
func ParseUpdate(src string, env *Env) (*Update, error) {
	p, err := newParser(src)
	if err != nil {
		return nil, err
	}
	clauses, err := p.clauses()
	if err != nil {
		return nil, err
	}
	b := binder{env: env, update: true}
	if err := b.clauses(clauses); err != nil {
		return nil, err
	}
	var u Update
	var all []action
	var targets []*node
	for _, c := range clauses {
		*u.section(c.section) = c.actions
		all = append(all, c.actions...)
		for _, a := range c.actions {
			targets = append(targets, a.target)
		}
	}
	if u.paths, err = b.resolvePaths(targets); err != nil {
		return nil, err
	}
	for _, a := range slices.Backward(all) { // as the service does
		if err := b.operand(a); err != nil {
			return nil, err
		}
	}
	if err := b.count(); err != nil {
		return nil, err
	}
	return &u, nil
}

// clause is a section as written: SET, REMOVE, ADD or DELETE with its actions.
type clause struct {
	section int
	actions []action
}

func (c clause) nodes() []*node {
	var out []*node
	for _, a := range c.actions {
		out = append(out, a.target)
		if a.operand != nil {
			out = append(out, a.operand)
		}
	}
	return out
}

func (p *parser) clauses() ([]clause, error) {
	var out []clause
	for {
		section, ok := sectionOf(p.cur.kind)
		if !ok {
			return nil, p.syntaxError()
		}
		p.next()
		actions, err := p.actions(section)
		if err != nil {
			return nil, err
		}
		out = append(out, clause{section, actions})
		if p.cur.kind == tokEOF {
			return out, nil
		}
	}
}

// clauses checks the words of one clause after the other, and after each one that it is the first of its kind.
func (b *binder) clauses(list []clause) error {
	seen := [sectionCount]bool{}
	for _, c := range list {
		if err := b.words(c.nodes()...); err != nil {
			return err
		}
		if seen[c.section] {
			return attr.Invalidf("The \"%s\" section can only be used once in an update expression;", sectionName(c.section))
		}
		seen[c.section] = true
	}
	return nil
}

// operand resolves what follows the target of an action. ADD and DELETE take only constants, so their types are known.
func (b *binder) operand(a action) error {
	if a.operand == nil {
		return nil
	}
	if err := b.resolve(a.operand); err != nil {
		return err
	}
	switch a.section {
	case sectionAdd:
		if k := a.operand.value.Kind; k != attr.N && !k.IsSet() {
			return wrongUpdateType("ADD", k)
		}
	case sectionDelete:
		if k := a.operand.value.Kind; !k.IsSet() {
			return wrongUpdateType("DELETE", k)
		}
	}
	return nil
}

func (u *Update) section(s int) *[]action {
	switch s {
	case sectionSet:
		return &u.sets
	case sectionRemove:
		return &u.removes
	case sectionAdd:
		return &u.adds
	}
	return &u.deletes
}

func sectionOf(k tokenKind) (int, bool) {
	switch k {
	case tokSet:
		return sectionSet, true
	case tokRemove:
		return sectionRemove, true
	case tokAdd:
		return sectionAdd, true
	case tokDelete:
		return sectionDelete, true
	}
	return 0, false
}

func (p *parser) actions(section int) ([]action, error) {
	var out []action
	for {
		target, err := p.path()
		if err != nil {
			return nil, err
		}
		a := action{section: section, target: target}
		switch section {
		case sectionSet:
			if _, err := p.expect(tokEq); err != nil {
				return nil, err
			}
			if a.operand, err = p.setValue(); err != nil {
				return nil, err
			}
			if err := a.operand.parentheses(); err != nil {
				return nil, err
			}
		case sectionAdd, sectionDelete:
			t, err := p.expect(tokValueRef)
			if err != nil {
				return nil, err
			}
			a.operand = &node{op: opValue, name: p.text(t)}
		}
		out = append(out, a)
		if p.cur.kind != tokComma {
			return out, nil
		}
		p.next()
	}
}

// setValue parses an operand, or the sum or difference of two operands. All of it can be in parentheses.
func (p *parser) setValue() (*node, error) {
	var left *node
	var err error
	if p.cur.kind == tokOpen {
		p.next()
		inner, err := p.setValue()
		if err != nil {
			return nil, err
		}
		if _, err := p.expect(tokClose); err != nil {
			return nil, err
		}
		left = &node{op: opParen, args: []*node{inner}}
		if b := left.bare().op; b == opPlus || b == opMinus {
			return left, nil
		}
	} else if left, err = p.operand(); err != nil {
		return nil, err
	}
	o := opPlus
	switch p.cur.kind {
	case tokPlus:
	case tokMinus:
		o = opMinus
	default:
		return left, nil
	}
	p.next()
	right, err := p.operand()
	if err != nil {
		return nil, err
	}
	return &node{op: o, args: []*node{left, right}}, nil
}

func wrongUpdateType(name string, k attr.Kind) error {
	return attr.Invalidf("Incorrect operand type for operator or function; operator: %s, operand type: %s, typeSet: ALLOWED_FOR_%s_OPERAND", name, k.Long(), name)
}

// Targets returns the paths that the update changes, in the order of the text.
func (u *Update) Targets() []Path { return u.paths }

// KindOf returns the type of the value that the update gives a top-level attribute, or 0 if it gives none or one that depends on the item.
func (u *Update) KindOf(name string) attr.Kind {
	for _, list := range [][]action{u.sets, u.adds} {
		for _, a := range list {
			if len(a.target.path) == 1 && a.target.path[0].Name == name {
				return resultKind(a.operand)
			}
		}
	}
	return 0
}

// resultKind is like kindOf, but for a value of SET, the type of which is also known if it is a sum, a difference or a list.
func resultKind(n *node) attr.Kind {
	n = n.bare()
	switch {
	case n.op == opPlus, n.op == opMinus:
		return attr.N
	case n.op == opFunc && n.fn == fnListAppend:
		return attr.L
	}
	return kindOf(n)
}

// Paths calls yield with every path that the update changes or reads.
func (u *Update) Paths(yield func(Path)) {
	for _, list := range [][]action{u.sets, u.removes, u.adds, u.deletes} {
		for _, a := range list {
			yield(a.target.path)
			if a.operand != nil {
				a.operand.paths(yield)
			}
		}
	}
}
