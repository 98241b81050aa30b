package differential

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Key is a key attribute; an empty Name means that there is none.
type Key struct{ Name, Type string }

// Index is a secondary index of a Table.
type Index struct {
	Name        string
	Hash, Range Key
	Local       bool
	Projection  types.Projection
}

// Table is a table that generated requests use.
type Table struct {
	Name        string
	Hash, Range Key
	Indexes     []Index
	// Big tables get items that fill pages of 1 MB.
	Big bool
}

// Create returns the request that creates the table.
func (t *Table) Create() *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{
		TableName:   aws.String(t.Name),
		BillingMode: types.BillingModePayPerRequest,
		KeySchema:   schema(t.Hash, t.Range),
	}
	keys := []Key{t.Hash, t.Range}
	for _, ix := range t.Indexes {
		keys = append(keys, ix.Hash, ix.Range)
		projection := ix.Projection
		if ix.Local {
			in.LocalSecondaryIndexes = append(in.LocalSecondaryIndexes, types.LocalSecondaryIndex{
				IndexName: aws.String(ix.Name), KeySchema: schema(ix.Hash, ix.Range), Projection: &projection,
			})
			continue
		}
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: aws.String(ix.Name), KeySchema: schema(ix.Hash, ix.Range), Projection: &projection,
		})
	}
	seen := map[string]bool{"": true}
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

func schema(hash, sort Key) []types.KeySchemaElement {
	s := []types.KeySchemaElement{{AttributeName: aws.String(hash.Name), KeyType: types.KeyTypeHash}}
	if sort.Name != "" {
		s = append(s, types.KeySchemaElement{AttributeName: aws.String(sort.Name), KeyType: types.KeyTypeRange})
	}
	return s
}

// indexRange returns the sort key of an index by its name; "" if it has none.
func indexRange(name string) string {
	return map[string]string{"gsi0": "gn", "gsi3": "pk", "gsi4": "gs", "lsi": "ls"}[name]
}

// newTables returns the tables of a round: one with a partition key only, and
// two with sort keys and indexes; key types vary.
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
			gs, gn := Key{"gs", "S"}, Key{"gn", "N"}
			// indexRange knows their sort keys.
			all := []Index{{Hash: gs, Range: gn}, {Hash: gn}, {Hash: gs}, {Hash: gn, Range: t.Hash}, {Hash: t.Hash, Range: gs}}
			for _, j := range g.Perm(len(all))[:g.between(1, 2)] {
				ix := all[j]
				ix.Name, ix.Projection = fmt.Sprintf("gsi%d", j), pick(g.source, projections)
				t.Indexes = append(t.Indexes, ix)
			}
		}
		if i > 0 && g.chance(0.6) {
			t.Indexes = append(t.Indexes, Index{
				Name: "lsi", Local: true, Hash: t.Hash, Range: Key{"ls", "S"}, Projection: pick(g.source, projections),
			})
		}
		all = append(all, t)
	}
	if g.chance(0.1) {
		all[2].Big = true
	}
	return all
}
