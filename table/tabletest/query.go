package tabletest

import (
	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
	"github.com/mortise-go/mortise/table/tabletest/internal/expr"
)

func query(c *call) ([]byte, error) {
	p, err := c.readPage()
	if err != nil {
		return nil, err
	}
	in := &c.in
	if in.has("KeyConditions") && in.has("KeyConditionExpression") && in.text("KeyConditionExpression") == "" && in.err == nil {
		_, err := expr.ParseKeyCondition("", &expr.Env{})
		return nil, within("KeyConditionExpression", err)
	}
	if err := refuseMixed(in,
		[]string{"AttributesToGet", "QueryFilter", "ConditionalOperator", "KeyConditions"},
		[]string{"ProjectionExpression", "FilterExpression", "KeyConditionExpression"}); err != nil && !onlyKeyConditions(in) {
		return nil, err
	}
	if p.env, err = expressions(in, "FilterExpression", "KeyConditionExpression", "ProjectionExpression"); err != nil {
		return nil, err
	}
	if err := p.readFilter("QueryFilter"); err != nil {
		return nil, err
	}
	if p.proj, err = readProjection(in, p.env); err != nil {
		return nil, err
	}
	terms, err := p.readTerms()
	if err != nil {
		return nil, err
	}
	if err := p.checkScalars(); err != nil {
		return nil, err
	}
	if err := p.checkConsistent(); err != nil {
		return nil, err
	}
	part, rng, err := p.keyTerms(terms)
	if err != nil {
		return nil, err
	}
	if err := p.readStart(); err != nil {
		return nil, err
	}
	if p.start != nil {
		if k := p.startKey(); k.part != part || rng.below(k.sort) || rng.above(k.sort) {
			return nil, invalid("The provided starting key does not match the range key predicate")
		}
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
	return p.query(part, rng, forward)
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
		if err := p.checkScalars(); err != nil {
			return nil, err
		}
		return readKeyConditions(in)
	}
	return nil, invalid("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
}

// onlyKeyConditions allows KeyConditions beside a filter or projection expression, which the service accepts.
func onlyKeyConditions(in *fields) bool {
	return in.has("KeyConditions") && !in.has("KeyConditionExpression") &&
		len(given(in, []string{"AttributesToGet", "QueryFilter", "ConditionalOperator"})) == 0
}

// keyTerms checks the terms against the key schema and returns the partition and the range of sort keys that they name.
func (p *page) keyTerms(terms []expr.KeyTerm) (string, keyRange, error) {
	if len(terms) == 0 {
		return "", keyRange{}, invalid("Conditions must be at least length 1")
	}
	conditions := make(map[string]expr.KeyTerm, len(terms))
	for _, t := range terms {
		conditions[t.Name] = t
	}
	keys, check := p.keys(), p.checkPair
	if keys.several() {
		check = p.checkSeveral
	}
	if err := check(conditions); err != nil {
		return "", keyRange{}, err
	}
	value := func(a keyAttr) *attr.Value { return conditions[a.name].Values[0] }
	return partition(composite(keys.hash(), value)), keys.rangeOf(conditions), nil
}

// checkPair checks the conditions of a query against a partition key and a sort key of one attribute each.
func (p *page) checkPair(conditions map[string]expr.KeyTerm) error {
	if len(conditions) > 2 {
		return invalid("Conditions can be of length 1 or 2 only")
	}
	keys := p.keys()
	hash, ok := conditions[keys.hash()[0].name]
	if !ok {
		return errKeyElement()
	}
	if err := checkTypes(keys.hash()[0], hash); err != nil {
		return err
	}
	if hash.Op != expr.KeyEq {
		return invalid("Query key condition not supported")
	}
	if err := p.checkOperands(keys.attrs(), conditions); err != nil {
		return err
	}
	for name := range conditions {
		if !keys.has(name) {
			return errKeyElement()
		}
	}
	return nil
}

// checkOperands checks operators and operands of the conditions on some key attributes.
func (p *page) checkOperands(attrs []keyAttr, conditions map[string]expr.KeyTerm) error {
	for _, a := range attrs {
		t, ok := conditions[a.name]
		if !ok {
			continue
		}
		if err := checkTypes(a, t); err != nil {
			return err
		}
		for _, v := range t.Values {
			if err := p.checkEmpty(a, v); err != nil {
				return err
			}
			if named(p.keys().sort(), a.name) && v.Size() > maxSortKey {
				return parameter("Aggregated size of all range keys has exceeded the size limit of %d bytes", maxSortKey)
			}
		}
		if t.Op == 0 {
			return invalid("Attempted conditional constraint is not an indexable operation")
		}
	}
	return nil
}

func checkTypes(a keyAttr, t expr.KeyTerm) error {
	for _, v := range t.Values {
		if v.Kind != a.kind || t.Op == expr.KeyBeginsWith && v.Kind == attr.N {
			return parameter("Condition parameter type does not match schema type")
		}
	}
	return nil
}

func errKeyElement() error { return invalid("Query condition missed key schema element") }

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

func (p *page) query(part string, rng keyRange, forward bool) ([]byte, error) {
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
