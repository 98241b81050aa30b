package tabletest

import (
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
	part, rng, err := p.keyTerms(terms)
	if err != nil {
		return nil, err
	}
	if err := p.checkStart(); err != nil {
		return nil, err
	}
	if err := p.checkStartKey(); err != nil {
		return nil, err
	}
	forward := !in.has("ScanIndexForward") || in.flag("ScanIndexForward")
	if p.start != nil {
		switch k := p.startKey(); {
		case p.x == nil && !p.t.keys.hasSort():
			hash := p.t.keys.hash()[0].name
			return nil, invalid("The provided exclusive start key is invalid: ExclusiveStartKey: {%s=AttributeValue: {%s}}", hash, p.start[hash].Brief())
		case rng.below(k.sort) || rng.above(k.sort) || p.x == nil && rng.endsAt(k.sort, forward):
			return nil, invalid("The provided starting key does not match the range key predicate")
		case k.part != part && rng != (keyRange{}):
			return nil, invalid("The query can return at most one row and cannot be restarted")
		case k.part != part:
			return nil, invalid("The provided starting key is outside query boundaries based on provided conditions")
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
	if err := p.checkScalars(); err != nil {
		return nil, err
	}
	return p.query(part, rng, forward)
}

// readQuery reads the parts that need no table, and returns the key condition.
func (p *page) readQuery() ([]expr.KeyTerm, error) {
	in := &p.c.in
	older := []string{"AttributesToGet", "QueryFilter", "ConditionalOperator"}
	if in.has("KeyConditionExpression") { // the service allows KeyConditions beside the other expressions
		older = append(older, "KeyConditions")
	}
	if err := refuseMixed(in, older, []string{"ProjectionExpression", "FilterExpression", "KeyConditionExpression"}); err != nil {
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

// keyTerms checks the terms against the key schema. It returns the partition and the range of sort keys.
func (p *page) keyTerms(terms []expr.KeyTerm) (string, keyRange, error) {
	keys, check := p.keys(), p.checkPair
	switch n := len(terms); {
	case keys.several():
		if check = p.checkSeveral; n == 0 {
			return "", keyRange{}, invalid("Conditions must be at least length 1")
		}
	case n == 0, n > 2:
		return "", keyRange{}, invalid("Conditions can be of length 1 or 2 only")
	}
	conditions := make(map[string]expr.KeyTerm, len(terms))
	for _, t := range terms {
		conditions[t.Name] = t
	}
	if err := check(conditions); err != nil {
		return "", keyRange{}, err
	}
	value := func(a keyAttr) *attr.Value { return conditions[a.name].Values[0] }
	return partition(composite(keys.hash(), value)), keys.rangeOf(conditions), nil
}

// checkPair checks the conditions of a query on a partition key and a sort key of one attribute each.
func (p *page) checkPair(conditions map[string]expr.KeyTerm) error {
	keys := p.keys()
	if !keys.hasSort() && len(conditions) > 1 {
		return errConditions()
	}
	hash, ok := conditions[keys.hash()[0].name]
	if !ok {
		return errKeyElement(keys.hash()[0])
	}
	if err := checkTerm(keys.hash()[0], hash); err != nil {
		return err
	}
	if hash.Op != expr.KeyEq {
		return errConditions()
	}
	if err := p.checkOperands(keys.attrs(), conditions); err != nil {
		return err
	}
	return p.checkNames(conditions)
}

// checkNames refuses conditions on attributes that are not in the key.
func (p *page) checkNames(conditions map[string]expr.KeyTerm) error {
	keys := p.keys()
	for name := range conditions {
		if keys.has(name) {
			continue
		}
		for _, a := range keys.sort() {
			if _, ok := conditions[a.name]; !ok {
				return errKeyElement(a)
			}
		}
		return errConditions()
	}
	return nil
}

// checkOperands checks the operands of the conditions on some key attributes.
func (p *page) checkOperands(attrs []keyAttr, conditions map[string]expr.KeyTerm) error {
	for _, a := range attrs {
		t, ok := conditions[a.name]
		if !ok {
			continue
		}
		if err := checkTerm(a, t); err != nil {
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
	}
	return nil
}

// checkTerm checks the operator and the operands' types of the condition on a key attribute.
func checkTerm(a keyAttr, t expr.KeyTerm) error {
	if t.Op == 0 {
		return invalid("Attempted conditional constraint is not an indexable operation")
	}
	for _, v := range t.Values {
		if v.Kind != a.kind || t.Op == expr.KeyBeginsWith && v.Kind == attr.N {
			return parameter("Condition parameter type does not match schema type")
		}
	}
	return nil
}

func errConditions() error { return invalid("Query key condition not supported") }

func errKeyElement(a keyAttr) error {
	return invalid("Query condition missed key schema element: %s", a.name)
}

// checkFilterKeys refuses filters on key attributes of the index or table that the query reads.
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
	var start rowKey
	if p.start != nil {
		start = p.startKey()
	}
	source := p.c.source(p.t, p.x, p.consistent)
	fetch := p.fetches()
	visit := func(r *row) bool {
		p.over = p.x == nil && (!p.t.keys.hasSort() || rng.endsAt(r.sort, forward))
		return p.visit(r, fetch)
	}
	if forward {
		at := source.seek(func(r *row) bool {
			if p.start != nil {
				return r.compare(start) > 0
			}
			return r.part > part || r.part == part && !rng.below(r.sort)
		})
		source.ascend(at, func(r *row) bool {
			return r.part == part && !rng.above(r.sort) && visit(r)
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
		return r.part == part && !rng.below(r.sort) && visit(r)
	})
	return p.output(), nil
}
