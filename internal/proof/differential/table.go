package differential

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Key is a key attribute; an empty Name means that there is none.
type Key struct{ Name, Type string }

// Keys are the key attributes of an index or of a table. A table has at most one for each role.
type Keys struct{ Hash, Range []Key }

// Index is a secondary index of a Table.
type Index struct {
	Keys
	Name       string
	Local      bool
	Projection types.Projection
}

// Table is a table that generated requests use.
type Table struct {
	Name        string
	Hash, Range Key
	Indexes     []Index
	// Big tables get items that fill pages of 1 MB.
	Big bool
}

func (t *Table) keys() Keys {
	k := Keys{Hash: []Key{t.Hash}}
	if t.Range.Name != "" {
		k.Range = []Key{t.Range}
	}
	return k
}

// Create returns the request that creates the table.
func (t *Table) Create() *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{
		TableName:   aws.String(t.Name),
		BillingMode: types.BillingModePayPerRequest,
		KeySchema:   t.keys().schema(),
	}
	keys := t.keys().all()
	for _, ix := range t.Indexes {
		keys = append(keys, ix.all()...)
		projection := ix.Projection
		if ix.Local {
			in.LocalSecondaryIndexes = append(in.LocalSecondaryIndexes, types.LocalSecondaryIndex{
				IndexName: aws.String(ix.Name), KeySchema: ix.schema(), Projection: &projection,
			})
			continue
		}
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: aws.String(ix.Name), KeySchema: ix.schema(), Projection: &projection,
		})
	}
	seen := map[string]bool{}
	for _, k := range keys {
		if !seen[k.Name] {
			seen[k.Name] = true
			in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{
				AttributeName: aws.String(k.Name), AttributeType: types.ScalarAttributeType(k.Type),
			})
		}
	}
	return in
}

func (k Keys) all() []Key { return slices.Concat(k.Hash, k.Range) }

func (k Keys) schema() []types.KeySchemaElement {
	var s []types.KeySchemaElement
	for _, h := range k.Hash {
		s = append(s, types.KeySchemaElement{AttributeName: aws.String(h.Name), KeyType: types.KeyTypeHash})
	}
	for _, r := range k.Range {
		s = append(s, types.KeySchemaElement{AttributeName: aws.String(r.Name), KeyType: types.KeyTypeRange})
	}
	return s
}

// globals returns the keys of all global indexes that a table with the partition key hash may have. The one at place
// 5 is called gsi5.
func globals(hash Key) []Keys {
	gs, gn, ls := Key{"gs", "S"}, Key{"gn", "N"}, Key{"ls", "S"}
	one := func(k ...Key) []Key { return k }
	return []Keys{
		{one(gs), one(gn)},
		{one(gn), nil},
		{one(gs), nil},
		{one(gn), one(hash)},
		{one(hash), one(gs)},
		{one(gs, gn), nil},
		{one(gs), one(gn, ls)},
		{one(gn, hash), one(ls, gs)},
		{one(hash), one(gs, gn, ls)},
	}
}

// indexRange returns the names of the sort attributes of an index.
func indexRange(name string) []string {
	if name == "lsi" {
		return []string{"ls"}
	}
	at, err := strconv.Atoi(strings.TrimPrefix(name, "gsi"))
	all := globals(Key{Name: "pk"})
	if err != nil || at >= len(all) {
		return nil
	}
	var names []string
	for _, k := range all[at].Range {
		names = append(names, k.Name)
	}
	return names
}

// newTables returns the tables of a round: one with a partition key only, and two with sort keys and indexes. Key
// types vary.
func (g *Generator) newTables(prefix string) []*Table {
	scalar := []string{"S", "S", "N", "B"}
	projections := []types.Projection{
		{ProjectionType: types.ProjectionTypeAll},
		{ProjectionType: types.ProjectionTypeKeysOnly},
		{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: []string{"s", "m"}},
	}
	var all []*Table
	for i := range 3 {
		t := &Table{
			Name: fmt.Sprintf("%s-%d", prefix, i),
			Hash: Key{"pk", pick(g.source, scalar)},
		}
		if i > 0 {
			t.Range = Key{"sk", pick(g.source, scalar)}
		}
		if i == 2 || g.chance(0.5) {
			all := globals(t.Hash)
			for _, j := range g.Perm(len(all))[:g.between(1, 2)] {
				t.Indexes = append(t.Indexes, Index{Keys: all[j], Name: fmt.Sprintf("gsi%d", j), Projection: pick(g.source, projections)})
			}
		}
		if i > 0 && g.chance(0.6) {
			t.Indexes = append(t.Indexes, Index{
				Keys: Keys{[]Key{t.Hash}, []Key{{"ls", "S"}}}, Name: "lsi", Local: true, Projection: pick(g.source, projections),
			})
		}
		all = append(all, t)
	}
	if g.chance(0.1) {
		all[2].Big = true
	}
	return all
}
