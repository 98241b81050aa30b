package differential

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// parts are the places of a request that spoil can change. Absent places are nil.
type parts struct {
	table       **string
	expressions []**string
	names       *map[string]string
	values      *map[string]types.AttributeValue
	key, item   *map[string]types.AttributeValue
}

// partsOf returns the places of a request, or of one action of a transaction.
func (g *Generator) partsOf(in any) parts {
	switch in := in.(type) {
	case *dynamodb.PutItemInput:
		return parts{&in.TableName, []**string{&in.ConditionExpression}, &in.ExpressionAttributeNames, &in.ExpressionAttributeValues, nil, &in.Item}
	case *dynamodb.GetItemInput:
		return parts{&in.TableName, []**string{&in.ProjectionExpression}, &in.ExpressionAttributeNames, nil, &in.Key, nil}
	case *dynamodb.UpdateItemInput:
		return parts{&in.TableName, []**string{&in.UpdateExpression, &in.ConditionExpression}, &in.ExpressionAttributeNames, &in.ExpressionAttributeValues, &in.Key, nil}
	case *dynamodb.DeleteItemInput:
		return parts{&in.TableName, []**string{&in.ConditionExpression}, &in.ExpressionAttributeNames, &in.ExpressionAttributeValues, &in.Key, nil}
	case *dynamodb.QueryInput:
		p := parts{&in.TableName, []**string{&in.KeyConditionExpression, &in.FilterExpression, &in.ProjectionExpression}, &in.ExpressionAttributeNames, &in.ExpressionAttributeValues, nil, nil}
		if in.ExclusiveStartKey != nil {
			p.key = &in.ExclusiveStartKey
		}
		return p
	case *dynamodb.ScanInput:
		return parts{&in.TableName, []**string{&in.FilterExpression, &in.ProjectionExpression}, &in.ExpressionAttributeNames, &in.ExpressionAttributeValues, nil, nil}
	case *dynamodb.TransactWriteItemsInput:
		if len(in.TransactItems) == 0 {
			return parts{}
		}
		switch a := in.TransactItems[g.IntN(len(in.TransactItems))]; {
		case a.Put != nil:
			return parts{&a.Put.TableName, []**string{&a.Put.ConditionExpression}, &a.Put.ExpressionAttributeNames, &a.Put.ExpressionAttributeValues, nil, &a.Put.Item}
		case a.Update != nil:
			return parts{&a.Update.TableName, []**string{&a.Update.UpdateExpression, &a.Update.ConditionExpression}, &a.Update.ExpressionAttributeNames, &a.Update.ExpressionAttributeValues, &a.Update.Key, nil}
		case a.Delete != nil:
			return parts{&a.Delete.TableName, []**string{&a.Delete.ConditionExpression}, &a.Delete.ExpressionAttributeNames, &a.Delete.ExpressionAttributeValues, &a.Delete.Key, nil}
		default:
			c := a.ConditionCheck
			return parts{&c.TableName, []**string{&c.ConditionExpression}, &c.ExpressionAttributeNames, &c.ExpressionAttributeValues, &c.Key, nil}
		}
	case *dynamodb.TransactGetItemsInput:
		if len(in.TransactItems) == 0 {
			return parts{}
		}
		get := in.TransactItems[g.IntN(len(in.TransactItems))].Get
		return parts{&get.TableName, []**string{&get.ProjectionExpression}, &get.ExpressionAttributeNames, nil, &get.Key, nil}
	}
	return parts{}
}

// spoil changes a request so that it will, most probably, be refused.
func (g *Generator) spoil(in any) {
	if g.chance(0.35) && g.spoilShape(in) {
		return
	}
	p := g.partsOf(in)
	switch in.(type) {
	case *dynamodb.TransactWriteItemsInput, *dynamodb.TransactGetItemsInput:
		if !slices.ContainsFunc(p.expressions, func(e **string) bool { return *e != nil }) {
			p.names, p.values = nil, nil // the service ignores them, DynamoDB Local does not
		}
	}
	ways := []weighted[func(parts) bool]{
		{6, g.spoilSyntax},
		{2, g.spoilName},
		{2, g.spoilUnusedName},
		{2, g.spoilUnusedValue},
		{1, g.spoilBoth},
		{2, g.spoilUndefinedName},
		{2, g.spoilUndefinedValue},
		{1, g.spoilEmpty},
		{3, g.spoilValue},
		{5, g.spoilKey},
		{3, g.spoilItem},
		{1, g.spoilTable},
	}
	for range 20 {
		if pickWeighted(g.source, ways)(p) {
			return
		}
	}
}

func (g *Generator) expression(p parts) **string {
	var set []**string
	for _, e := range p.expressions {
		if *e != nil {
			set = append(set, e)
		}
	}
	if len(set) == 0 {
		return nil
	}
	return pick(g.source, set)
}

// spoilSyntax deletes, repeats, swaps or inserts a token.
func (g *Generator) spoilSyntax(p parts) bool {
	e := g.expression(p)
	if e == nil {
		return false
	}
	text := **e
	words := strings.SplitAfter(text, " ")
	i := g.IntN(len(words))
	switch g.IntN(6) {
	case 0:
		words = slices.Delete(words, i, i+1)
	case 1:
		words = slices.Insert(words, i, words[i])
	case 2:
		words = slices.Insert(words, i, pick(g.source, []string{"AND ", "SET ", "(", ")", ", ", "= ", ":", "#", "0 ", "$ ", "[0] ", ".x ", "size(", "foo(s) ", "NOT ", "'a' ", "+ ", "1a ", "a..b ", "BETWEEN "}))
	case 3:
		text = text[:g.IntN(len(text)+1)]
		words = []string{text}
	case 4:
		words[i] = strings.NewReplacer("(", "", ")", "").Replace(words[i])
	case 5:
		words[i] = pick(g.source, []string{"foo ", "attribute_exists ", ":v0 ", "s ", "list_append(l) ", "if_not_exists(s) ", "size(s, n) ", "contains(s) "})
	}
	*e = aws.String(strings.Join(words, ""))
	return true
}

// spoilName uses a reserved word as an attribute name.
func (g *Generator) spoilName(p parts) bool {
	e := g.expression(p)
	if e == nil {
		return false
	}
	word := pick(g.source, []string{"status", "name", "Size", "KEYS", "hash", "value", "ttl"})
	for _, name := range []string{"s", "n", "q", "m", "l"} {
		for _, after := range []string{" ", ")", ",", "=", ".", "["} {
			if i := strings.Index(" "+**e+" ", " "+name+after); i >= 0 {
				*e = aws.String((**e)[:i] + word + (**e)[i+len(name):])
				return true
			}
		}
	}
	return false
}

func (g *Generator) spoilUnusedName(p parts) bool {
	if p.names == nil {
		return false
	}
	*p.names = cloned(*p.names)
	(*p.names)["#unused"] = "s"
	if g.chance(0.2) {
		(*p.names)[pick(g.source, []string{"unhashed", "#", "#a-b", "#other"})] = "s"
	}
	return true
}

func (g *Generator) spoilUnusedValue(p parts) bool {
	if p.values == nil {
		return false
	}
	*p.values = cloned(*p.values)
	(*p.values)[":unused"] = str("a")
	if g.chance(0.2) {
		(*p.values)[pick(g.source, []string{"nocolon", ":", ":a-b", ":other"})] = str("a")
	}
	return true
}

// spoilBoth makes two of the mistakes at once, to see which one is reported.
func (g *Generator) spoilBoth(p parts) bool {
	g.spoilSyntax(p)
	return g.spoilUnusedValue(p) || g.spoilUnusedName(p)
}

func (g *Generator) spoilUndefinedName(p parts) bool {
	if p.names == nil || len(*p.names) == 0 {
		return false
	}
	*p.names = cloned(*p.names)
	delete(*p.names, pick(g.source, slices.Sorted(maps.Keys(*p.names))))
	if len(*p.names) == 0 && g.chance(0.7) {
		*p.names = nil
	}
	return true
}

func (g *Generator) spoilUndefinedValue(p parts) bool {
	if p.values == nil || len(*p.values) == 0 {
		return false
	}
	*p.values = cloned(*p.values)
	delete(*p.values, pick(g.source, slices.Sorted(maps.Keys(*p.values))))
	if len(*p.values) == 0 && g.chance(0.7) {
		*p.values = nil
	}
	return true
}

func (g *Generator) spoilEmpty(p parts) bool {
	if len(p.expressions) == 0 {
		return false
	}
	*pick(g.source, p.expressions) = aws.String("")
	return true
}

// badValue returns a value that no request may contain.
func (g *Generator) badValue() types.AttributeValue {
	switch g.IntN(8) {
	case 0:
		return &types.AttributeValueMemberSS{Value: []string{}}
	case 1:
		return &types.AttributeValueMemberNS{Value: []string{}}
	case 2:
		return &types.AttributeValueMemberSS{Value: []string{"a", "b", "a"}}
	case 3:
		return &types.AttributeValueMemberNS{Value: []string{"1", "1.0"}}
	case 4:
		return &types.AttributeValueMemberNULL{Value: false}
	case 5:
		deep := num("1")
		for range 33 {
			deep = list(deep)
		}
		return deep
	default:
		return num(pick(g.source, badNumbers))
	}
}

func (g *Generator) spoilValue(p parts) bool {
	if p.values == nil || len(*p.values) == 0 {
		return false
	}
	*p.values = cloned(*p.values)
	ph := pick(g.source, slices.Sorted(maps.Keys(*p.values)))
	if g.chance(0.5) {
		(*p.values)[ph] = g.anyValue(1)
	} else {
		(*p.values)[ph] = g.badValue()
	}
	return true
}

// spoilKey makes a key invalid: wrong type, missing, additional, empty or too long.
func (g *Generator) spoilKey(p parts) bool {
	k := p.key
	if k == nil {
		k = p.item
	}
	if k == nil {
		return false
	}
	*k = cloned(*k)
	names := []string{"pk"}
	if _, ok := (*k)["sk"]; ok {
		names = append(names, "sk")
	}
	name := pick(g.source, names)
	switch g.IntN(8) {
	case 0:
		delete(*k, name)
	case 1:
		(*k)["extra"] = str("a")
	case 2:
		(*k)[name] = str("")
	case 3:
		(*k)[name] = bin([]byte{})
	case 4:
		(*k)[name] = str(strings.Repeat("k", pick(g.source, []int{1024, 1025, 2048, 2049})))
	case 5:
		(*k)[name] = bin([]byte(strings.Repeat("k", pick(g.source, []int{1024, 1025, 2048, 2049}))))
	case 6:
		(*k)[name] = g.badValue()
	default:
		(*k)[name] = g.anyValue(1)
	}
	return true
}

func (g *Generator) spoilItem(p parts) bool {
	if p.item == nil {
		return false
	}
	*p.item = cloned(*p.item)
	item := *p.item
	switch g.IntN(7) {
	case 0:
		item["s"] = str(strings.Repeat("x", 409_600))
	case 1:
		item["gs"] = g.anyValue(1)
	case 2:
		item["gn"] = g.anyValue(1)
	case 3:
		item["ls"] = g.anyValue(1)
	case 4:
		item["gs"] = str(pick(g.source, []string{"", strings.Repeat("k", 2049), strings.Repeat("k", 1025)}))
	case 5:
		item[""] = str("a")
	default:
		item["s"] = g.badValue()
	}
	return true
}

func (g *Generator) spoilTable(p parts) bool {
	if p.table == nil {
		return false
	}
	*p.table = aws.String(pick(g.source, []string{g.tables[0].Name + "-missing", "ab", "with space", strings.Repeat("x", 256)}))
	return true
}

func cloned[V any](m map[string]V) map[string]V {
	c := maps.Clone(m)
	if c == nil {
		c = map[string]V{}
	}
	return c
}
