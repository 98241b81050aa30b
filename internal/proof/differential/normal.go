package differential

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// normal returns an answer without what may differ: the order of lists without an order, and identities and times of
// tables.
func normal(in any, a Answer) Answer {
	if a.normalized {
		return a
	}
	a.normalized = true
	a.Output, _ = copied(a.Output).(map[string]any)
	a.Detail, _ = copied(a.Detail).(map[string]any)
	switch in := in.(type) {
	case *dynamodb.ScanInput:
		// Partitions are scanned in no particular order.
		sortList(a.Output["Items"])
	case *dynamodb.QueryInput:
		if in.IndexName != nil {
			sortTies(a.Output["Items"], indexRange(*in.IndexName))
		}
	case *dynamodb.BatchGetItemInput:
		if r, ok := a.Output["Responses"].(map[string]any); ok {
			for _, items := range r {
				sortList(items)
			}
		}
	}
	if cc, ok := a.Output["ConsumedCapacity"].([]any); ok {
		slices.SortFunc(cc, func(a, b any) int {
			ma, _ := a.(map[string]any)
			mb, _ := b.(map[string]any)
			return strings.Compare(fmt.Sprint(ma["TableName"]), fmt.Sprint(mb["TableName"]))
		})
	}
	for _, description := range []string{"Table", "TableDescription"} {
		if d, ok := a.Output[description].(map[string]any); ok {
			withoutIdentity(d)
		}
	}
	return a
}

func withoutIdentity(d map[string]any) {
	// DynamoDB Local never returns a TableId or a WarmThroughput.
	for _, name := range []string{"CreationDateTime", "TableId", "ItemCount", "TableSizeBytes", "IndexSizeBytes", "TableArn", "IndexArn", "LastUpdateToPayPerRequestDateTime", "LastDecreaseDateTime", "LastIncreaseDateTime", "WarmThroughput"} {
		delete(d, name)
	}
	if _, index := d["IndexName"]; index {
		// DynamoDB Local leaves out the zeros of an on-demand index.
		delete(d, "ProvisionedThroughput")
	}
	// The service sorts these two, DynamoDB Local does not.
	sortList(d["AttributeDefinitions"])
	sortList(d["NonKeyAttributes"])
	for _, v := range d {
		switch v := v.(type) {
		case map[string]any:
			withoutIdentity(v)
		case []any:
			for _, e := range v {
				if m, ok := e.(map[string]any); ok {
					withoutIdentity(m)
				}
			}
		}
	}
	for _, name := range []string{"GlobalSecondaryIndexes", "LocalSecondaryIndexes"} {
		sortList(d[name])
	}
}

func sortList(v any) {
	l, _ := v.([]any)
	slices.SortFunc(l, func(a, b any) int { return strings.Compare(sortForm(a), sortForm(b)) })
}

// sortForm is the same for values that differ only in how numbers are written.
func sortForm(v any) string {
	c := copied(v)
	Spell(c)
	return render(c)
}

// sortTies sorts runs of items with the same sort key, or all items if there
// is none: an index does not order them.
func sortTies(v any, key []string) {
	l, _ := v.([]any)
	same := func(a, b any) bool {
		ma, _ := a.(map[string]any)
		mb, _ := b.(map[string]any)
		return !slices.ContainsFunc(key, func(k string) bool { return sortForm(ma[k]) != sortForm(mb[k]) })
	}
	for from := 0; from < len(l); {
		to := from + 1
		for to < len(l) && same(l[from], l[to]) {
			to++
		}
		sortList(l[from:to])
		from = to
	}
}

// copied returns a deep copy of a tree.
func copied(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if v == nil {
			return v
		}
		m := make(map[string]any, len(v))
		for k, e := range v {
			m[k] = copied(e)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, e := range v {
			l[i] = copied(e)
		}
		return l
	}
	return v
}
