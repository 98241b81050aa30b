package differential

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func (g *Generator) query() any {
	t := g.table()
	keys := t.keys()
	in := &dynamodb.QueryInput{
		TableName:              aws.String(t.Name),
		ReturnConsumedCapacity: g.capacity(),
	}
	index := Index{Local: true}
	if len(t.Indexes) > 0 && g.chance(0.55) {
		index = pick(g.source, t.Indexes)
		keys = index.Keys
		in.IndexName = aws.String(index.Name)
	}
	b := g.builder(t)
	if g.chance(0.25) {
		in.KeyConditions = g.legacyConditions(keys)
	} else {
		in.KeyConditionExpression = aws.String(b.keyCondition(keys))
	}
	if g.chance(0.35) {
		in.FilterExpression = aws.String(g.withoutKeys(b, keys))
	}
	g.selection(b, index, func(s types.Select, projection *string) { in.Select, in.ProjectionExpression = s, projection })
	if g.chance(0.4) {
		in.Limit = aws.Int32(int32(g.between(1, 4)))
	}
	if g.chance(0.5) {
		in.ScanIndexForward = aws.Bool(g.chance(0.3))
	}
	if g.chance(0.3) && index.Local {
		in.ConsistentRead = aws.Bool(true)
	}
	// Where an index continues after a key that is not in it depends on how it orders rows with the same key.
	if index.Name == "" && g.chance(0.06) {
		in.ExclusiveStartKey = g.startKey(t, index)
	}
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = b.names, b.values
	return in
}

// withoutKeys returns a filter. A filter on key attributes is refused, so most filters avoid them.
func (g *Generator) withoutKeys(b *builder, keys Keys) string {
	t := *b.table
	t.Hash, t.Range = Key{"s", "S"}, Key{}
	if g.chance(0.05) {
		t.Hash, t.Range = pick(g.source, keys.all()), pick(g.source, keys.all())
	}
	saved := b.table
	b.table = &t
	f := b.condition(2)
	b.table = saved
	return f
}

func (g *Generator) startKey(t *Table, index Index) map[string]types.AttributeValue {
	start := g.key(t)
	for _, k := range index.all() {
		if _, have := start[k.Name]; !have && !g.chance(0.05) {
			start[k.Name] = g.keyValue(k.Type, false)
		}
	}
	return start
}

// selection sets Select and ProjectionExpression, alone or together.
func (g *Generator) selection(b *builder, index Index, set func(types.Select, *string)) {
	switch n := g.IntN(20); {
	case n < 10:
		set("", nil)
	case n < 15:
		set("", aws.String(b.projection()))
	case n < 17:
		set(types.SelectCount, nil)
	case n < 18:
		set(types.SelectSpecificAttributes, aws.String(b.projection()))
	case n < 19:
		set(types.SelectAllAttributes, nil)
	default:
		if index.Name == "" {
			set("", nil)
			return
		}
		set(types.SelectAllProjectedAttributes, nil)
	}
}

// restrictions returns the key attributes that a query restricts, and how many of them, from the first, by equality.
// The rule is: all partition attributes, and then sort attributes from the left. A few queries break it.
func (g *Generator) restrictions(keys Keys) (restricted []Key, equal int) {
	restricted = slices.Clone(keys.Hash)
	equal = len(restricted)
	for _, k := range keys.Range {
		if g.chance(0.35) {
			break
		}
		restricted = append(restricted, k)
		equal = len(restricted) - 1
	}
	if len(keys.all()) > 2 && g.chance(0.08) {
		i := g.IntN(len(restricted))
		if equal = min(equal, i); g.chance(0.5) && len(restricted) > 1 {
			restricted = slices.Delete(restricted, i, i+1)
		}
	}
	return restricted, equal
}

// keyCondition returns a key condition expression for a table or an index.
func (b *builder) keyCondition(keys Keys) string {
	g := b.g
	restricted, equal := g.restrictions(keys)
	parts := make([]string, len(restricted))
	for i, k := range restricted {
		if i < equal {
			parts[i] = b.name(k.Name) + pick(g.source, []string{" = ", "="}) + b.value(g.keyValue(k.Type, slices.Contains(keys.Hash, k)))
		} else {
			parts[i] = b.sortCondition(k)
		}
		if g.chance(0.08) {
			parts[i] = "(" + parts[i] + ")"
		}
	}
	if g.chance(0.1) {
		g.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	}
	whole := strings.Join(parts, " "+b.spell("AND")+" ")
	if len(parts) > 1 && g.chance(0.05) {
		whole = "(" + whole + ")"
	}
	return whole
}

// sortCondition returns a condition on the last restricted attribute.
func (b *builder) sortCondition(k Key) string {
	g := b.g
	value := func() string { return b.value(g.keyValue(k.Type, false)) }
	name := b.name(k.Name)
	switch n := g.IntN(10); {
	case n < 6:
		return name + pick(g.source, []string{" = ", " < ", " <= ", " > ", " >= "}) + value()
	case n < 8:
		return name + " " + b.spell("BETWEEN") + " " + value() + " " + b.spell("AND") + " " + value()
	}
	return "begins_with(" + name + ", " + value() + ")"
}

// legacyConditions returns the older form of a key condition, which
// guregu/dynamo sends.
func (g *Generator) legacyConditions(keys Keys) map[string]types.Condition {
	restricted, equal := g.restrictions(keys)
	all := map[string]types.Condition{}
	for i, k := range restricted {
		op := types.ComparisonOperatorEq
		if i >= equal {
			op = pick(g.source, []types.ComparisonOperator{
				types.ComparisonOperatorEq, types.ComparisonOperatorLt, types.ComparisonOperatorLe, types.ComparisonOperatorGt,
				types.ComparisonOperatorGe, types.ComparisonOperatorBetween, types.ComparisonOperatorBeginsWith,
			})
		}
		values := []types.AttributeValue{g.keyValue(k.Type, slices.Contains(keys.Hash, k))}
		if op == types.ComparisonOperatorBetween {
			values = append(values, g.keyValue(k.Type, false))
		}
		all[k.Name] = types.Condition{ComparisonOperator: op, AttributeValueList: values}
	}
	return all
}

func (g *Generator) scan() any {
	t := g.table()
	in := &dynamodb.ScanInput{
		TableName:              aws.String(t.Name),
		ReturnConsumedCapacity: g.capacity(),
	}
	index := Index{Local: true}
	if len(t.Indexes) > 0 && g.chance(0.4) {
		index = pick(g.source, t.Indexes)
		in.IndexName = aws.String(index.Name)
	}
	b := g.builder(t)
	if g.chance(0.4) {
		in.FilterExpression = aws.String(b.condition(2))
	}
	g.selection(b, index, func(s types.Select, projection *string) { in.Select, in.ProjectionExpression = s, projection })
	if g.chance(0.3) {
		in.Limit = aws.Int32(int32(g.between(1, 6)))
	}
	if g.chance(0.3) && index.Local {
		in.ConsistentRead = aws.Bool(true)
	}
	if g.chance(0.25) {
		n := g.between(1, 4)
		in.TotalSegments, in.Segment = aws.Int32(int32(n)), aws.Int32(int32(g.IntN(n)))
	}
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = b.names, b.values
	return in
}

func (g *Generator) batchGet() any {
	in := &dynamodb.BatchGetItemInput{
		RequestItems:           map[string]types.KeysAndAttributes{},
		ReturnConsumedCapacity: g.capacity(),
	}
	for _, t := range subset(g.source, g.tables, 2) {
		ka := types.KeysAndAttributes{}
		seen := map[string]bool{}
		for range g.between(1, 6) {
			key := g.key(t)
			if id := identity(key); !seen[id] || g.chance(0.03) {
				seen[id] = true
				ka.Keys = append(ka.Keys, key)
			}
		}
		if g.chance(0.3) {
			ka.ConsistentRead = aws.Bool(true)
		}
		if g.chance(0.4) {
			b := g.builder(t)
			ka.ProjectionExpression = aws.String(b.projection())
			ka.ExpressionAttributeNames = b.names
		}
		in.RequestItems[t.Name] = ka
	}
	return in
}

func (g *Generator) transactGet() any {
	in := &dynamodb.TransactGetItemsInput{ReturnConsumedCapacity: g.capacity()}
	seen := map[string]bool{}
	for range g.between(1, 6) {
		t := g.table()
		get := &types.Get{TableName: aws.String(t.Name), Key: g.key(t)}
		id := t.Name + identity(get.Key)
		if seen[id] && !g.chance(0.05) {
			continue
		}
		seen[id] = true
		if g.chance(0.4) {
			b := g.builder(t)
			get.ProjectionExpression = aws.String(b.projection())
			get.ExpressionAttributeNames = b.names
		}
		in.TransactItems = append(in.TransactItems, types.TransactGetItem{Get: get})
	}
	return in
}

// identity returns a text that is the same for equal keys. Numbers that are written differently count as different,
// which only makes duplicates.
func identity(key map[string]types.AttributeValue) string {
	return render(Canonical(key))
}
