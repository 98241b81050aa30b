package tabletest

import (
	"strings"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
	"github.com/mortise-go/mortise/table/tabletest/internal/expr"
)

func query(c *call) ([]byte, error) {
	p := c.newPage()
	terms, err := p.readQuery()
	if err != nil {
		return nil, err
	}
	if err := p.locate(); err != nil {
		return nil, err
	}
	in := &c.in
	hash, sort, err := p.keyTerms(terms)
	if err != nil {
		return nil, err
	}
	if err := p.checkStart(); err != nil {
		return nil, err
	}
	part := partition(hash)
	if p.start != nil {
		switch k := p.startKey(); {
		case p.x == nil && !p.t.keys.hasSort():
			return nil, invalid("The provided exclusive start key is invalid: ExclusiveStartKey: {%s=AttributeValue: {%s}}", p.keys().hash.name, p.start[p.keys().hash.name].Brief())
		case sort.below(k.sort) || sort.above(k.sort):
			return nil, invalid("The provided starting key does not match the range key predicate")
		case k.part != part && sort.term.Op != 0:
			return nil, invalid("The query can return at most one row and cannot be restarted")
		case k.part != part:
			return nil, invalid("The provided starting key is outside query boundaries based on provided conditions")
		}
	}
	if err := p.checkScalars(); err != nil {
		return nil, err
	}
	if err := p.checkFilterKeys(); err != nil {
		return nil, err
	}
	if err := p.checkFilterCovered(); err != nil {
		return nil, err
	}
	if err := p.readSelect(); err != nil {
		return nil, err
	}
	if err := p.checkGlobal(); err != nil {
		return nil, err
	}
	forward := !in.has("ScanIndexForward") || in.flag("ScanIndexForward")
	if in.err != nil {
		return nil, in.err
	}
	return p.query(part, sort, forward)
}

// readQuery reads what can be judged without the table, and returns the key condition.
func (p *page) readQuery() ([]expr.KeyTerm, error) {
	in := &p.c.in
	if in.has("KeyConditions") && in.has("KeyConditionExpression") && in.text("KeyConditionExpression") == "" && in.err == nil {
		_, err := expr.ParseKeyCondition("", &expr.Env{})
		return nil, within("KeyConditionExpression", err)
	}
	if err := refuseMixed(in,
		[]string{"AttributesToGet", "QueryFilter", "ConditionalOperator", "KeyConditions"},
		[]string{"ProjectionExpression", "FilterExpression", "KeyConditionExpression"}); err != nil && !onlyKeyConditions(in) {
		return nil, err
	}
	if err := checkUsers(in, []string{"FilterExpression", "KeyConditionExpression", "ProjectionExpression"}); err != nil {
		return nil, err
	}
	if err := p.readLegacyFilter("QueryFilter"); err != nil {
		return nil, err
	}
	if err := p.readStart(); err != nil {
		return nil, err
	}
	var err error
	if p.env, err = expressions(in, "FilterExpression", "KeyConditionExpression", "ProjectionExpression"); err != nil {
		return nil, err
	}
	if err := p.readFilter(); err != nil {
		return nil, err
	}
	if p.proj, err = readProjection(in, p.env); err != nil {
		return nil, err
	}
	return p.readTerms()
}

// readTerms reads the key condition, in either form.
func (p *page) readTerms() ([]expr.KeyTerm, error) {
	in := &p.c.in
	var condition *expr.KeyCondition
	if in.has("KeyConditionExpression") {
		var err error
		condition, err = expr.ParseKeyCondition(in.text("KeyConditionExpression"), p.env)
		if in.err != nil {
			return nil, in.err
		}
		if err != nil {
			return nil, within("KeyConditionExpression", err)
		}
	}
	if err := p.env.Unused(); err != nil {
		return nil, err
	}
	switch {
	case condition != nil:
		return condition.Terms()
	case in.has("KeyConditions"):
		return readKeyConditions(in)
	}
	return nil, invalid("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
}

// onlyKeyConditions allows KeyConditions beside a filter or projection expression, which the service accepts.
func onlyKeyConditions(in *fields) bool {
	return in.has("KeyConditions") && !in.has("KeyConditionExpression") &&
		len(given(in, []string{"AttributesToGet", "QueryFilter", "ConditionalOperator"})) == 0
}

// keyTerms checks the terms against the key schema and returns the partition's value and the sort key's range.
func (p *page) keyTerms(terms []expr.KeyTerm) (*attr.Value, *sortRange, error) {
	if len(terms) == 0 || len(terms) > 2 {
		return nil, nil, invalid("Conditions can be of length 1 or 2 only")
	}
	for _, t := range terms {
		if t.Op == 0 {
			return nil, nil, invalid("Attempted conditional constraint is not an indexable operation")
		}
	}
	keys := p.keys()
	if !keys.hasSort() && len(terms) > 1 {
		return nil, nil, invalid("Query key condition not supported")
	}
	var hash *attr.Value
	restricted, missed := false, false
	rng := &sortRange{}
	for _, t := range terms {
		switch {
		case t.Name == keys.hash.name:
			hash, restricted = t.Values[0], t.Op != expr.KeyEq
		case keys.hasSort() && t.Name == keys.sort.name:
			rng.term = t
		default:
			missed = true
		}
	}
	if hash == nil {
		return nil, nil, errKeyElement(keys.hash)
	}
	for _, t := range terms {
		a := keys.hash
		if t.Name != a.name {
			a = keys.sort
		}
		if t.Name != a.name {
			continue
		}
		for _, v := range t.Values {
			if v.Kind != a.kind || t.Op == expr.KeyBeginsWith && v.Kind == attr.N {
				return nil, nil, parameter("Condition parameter type does not match schema type")
			}
			if err := a.checkEmpty(v); err != nil {
				return nil, nil, err
			}
		}
	}
	if missed {
		return nil, nil, errKeyElement(keys.sort)
	}
	if restricted {
		return nil, nil, invalid("Query key condition not supported")
	}
	return hash, rng, nil
}

func errKeyElement(a keyAttr) error {
	return invalid("Query condition missed key schema element: %s", a.name)
}

// checkFilterKeys refuses filters on the key that the query already restricts.
func (p *page) checkFilterKeys() error {
	name := "Filter Expression"
	if _, legacy := p.filter.(*legacyConditions); legacy {
		name = "QueryFilter"
	}
	for _, root := range filterRoots(p.filter) {
		if p.keys().has(root) {
			return invalid("%s can only contain non-primary key attributes: Primary key attribute: %s", name, root)
		}
	}
	return nil
}

// sortRange restricts a sort key; without a term it is everything.
type sortRange struct{ term expr.KeyTerm }

// below reports whether an encoded sort key lies before the range, above whether it lies behind it.
func (s *sortRange) below(key string) bool {
	switch s.term.Op {
	case expr.KeyEq, expr.KeyGe, expr.KeyBetween, expr.KeyBeginsWith:
		return key < s.term.Values[0].Sortable()
	case expr.KeyGt:
		return key <= s.term.Values[0].Sortable()
	}
	return false
}

func (s *sortRange) above(key string) bool {
	switch s.term.Op {
	case expr.KeyEq, expr.KeyLe:
		return key > s.term.Values[0].Sortable()
	case expr.KeyLt:
		return key >= s.term.Values[0].Sortable()
	case expr.KeyBetween:
		return key > s.term.Values[1].Sortable()
	case expr.KeyBeginsWith:
		prefix := s.term.Values[0].Sortable()
		return key > prefix && !strings.HasPrefix(key, prefix)
	}
	return false
}

func (p *page) query(part string, rng *sortRange, forward bool) ([]byte, error) {
	p.single = p.x == nil && !p.t.keys.hasSort()
	var start rowKey
	if p.start != nil {
		start = p.startKey()
	}
	source := p.c.source(p.t, p.x, p.consistent)
	fetch := p.fetches()
	if forward {
		at := source.seek(func(r *row) bool {
			if p.start != nil {
				return r.compare(start) > 0
			}
			return r.part > part || r.part == part && !rng.below(r.sort)
		})
		source.ascend(at, func(r *row) bool {
			return r.part == part && !rng.above(r.sort) && p.visit(r, fetch)
		})
		return p.output(), nil
	}
	at := source.seek(func(r *row) bool {
		if p.start != nil {
			return r.compare(start) >= 0
		}
		return r.part > part || r.part == part && rng.above(r.sort)
	})
	source.descend(at, func(r *row) bool {
		return r.part == part && !rng.below(r.sort) && p.visit(r, fetch)
	})
	return p.output(), nil
}
