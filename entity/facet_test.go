package entity_test

import (
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Tree contains itself, as trees do.
type Tree struct {
	Kids []Tree `dynamo:"kids"`
}

// Endless contains nothing but itself.
type Endless []map[string]*Endless

type Typed struct {
	ID      string            `dynamo:"-"`
	Text    string            `dynamo:"text,omitempty"`
	Int     int               `dynamo:"int,omitempty"`
	Uint    uint8             `dynamo:"uint"`
	Float   *float64          `dynamo:"float,omitempty"`
	Bool    bool              `dynamo:"bool"`
	Time    time.Time         `dynamo:"time"`
	Unix    time.Time         `dynamo:"unix,unixtime,omitempty"`
	Bytes   []byte            `dynamo:"bytes,omitempty"`
	List    []string          `dynamo:"list,omitempty"`
	Set     []string          `dynamo:"set,set,omitempty"`
	Numbers map[int]struct{}  `dynamo:"numbers,set,omitempty"`
	Blobs   [][]byte          `dynamo:"blobs,set,omitempty"`
	Map     map[string]int    `dynamo:"map,omitempty"`
	Struct  struct{ A int }   `dynamo:"struct"`
	Tree    Tree              `dynamo:"tree"`
	Texts   map[string]string `dynamo:"texts,omitempty"`
	Group   string            `dynamo:"group,omitempty"`
	Version int64             `dynamo:"version"`
	Expires time.Time         `dynamo:"expires"`
}

// The types in a facet are those of the attributes that rows really have.
func TestFacet_HasTheTypesOfTheEncoding(t *testing.T) {
	tbl, err := table.Open(dynamodb.New(dynamodb.Options{}), schema("app"))
	require.NoError(t, err)
	spec := entity.Spec[Typed]{
		Type: "Typed", PK: "TYPED#{id}", SK: "TYPED", Version: "version", TTL: "expires",
		Indexes: []entity.Index[Typed]{{Name: "gsi1", PK: "GROUP#{group}", SK: "{id}"}, {Name: "inverted"}},
	}
	f := define(t, tbl, spec).Facet()
	assert.Equal(t, "Typed", f.Name)
	assert.Equal(t, "TYPED#{id}", f.PK)
	assert.Equal(t, "TYPED", f.SK)
	assert.Equal(t, []table.FacetAttribute{
		{Name: "_t", Type: "S"},
		{Name: "_ttl", Type: "N"},
		{Name: "_v", Type: "N"},
		{Name: "blobs", Type: "BS"},
		{Name: "bool", Type: "BOOL"},
		{Name: "bytes", Type: "B"},
		{Name: "float", Type: "N"},
		{Name: "g1pk", Type: "S"},
		{Name: "g1sk", Type: "S"},
		{Name: "group", Type: "S"},
		{Name: "int", Type: "N"},
		{Name: "list", Type: "L"},
		{Name: "map", Type: "M"},
		{Name: "numbers", Type: "NS"},
		{Name: "set", Type: "SS"},
		{Name: "struct", Type: "M"},
		{Name: "text", Type: "S"},
		{Name: "texts", Type: "M"},
		{Name: "time", Type: "S"},
		{Name: "tree", Type: "M"},
		{Name: "uint", Type: "N"},
		{Name: "unix", Type: "N"},
	}, f.Attributes)
	_, err = tbl.Schema().Workbench(f)
	require.NoError(t, err)

	spec.Type, spec.PK, spec.Untyped = "Untyped", "UNTYPED#{id}", true
	for _, a := range define(t, tbl, spec).Facet().Attributes {
		assert.NotEqual(t, "_t", a.Name)
	}
}

// Shy encodes nothing, and contains itself, which Define does not refuse of a type with an encoding of its own.
type Shy []Shy

func (Shy) MarshalDynamo() (types.AttributeValue, error) { return nil, nil }

func (*Shy) UnmarshalDynamo(types.AttributeValue) error { return nil }

func TestFacet_OfValuesWhoseTypesDoNotShow(t *testing.T) {
	type row struct {
		ID   string    `dynamo:"-"`
		Shy  Shy       `dynamo:"shy"`
		Any  any       `dynamo:"any"`
		Pair [2]string `dynamo:"pair"`
	}
	tbl := offline(t, table.Schema{Name: "app", Indexes: []table.Index{{Name: "by-any", PK: "any", PKType: table.Number}}})
	f := define(t, tbl, entity.Spec[row]{Type: "Row", PK: "ROW#{id}", SK: "ROW", Indexes: []entity.Index[row]{{Name: "by-any"}}}).Facet()
	assert.Equal(t, []table.FacetAttribute{{Name: "any", Type: "N"}, {Name: "pair", Type: "L"}, {Name: "shy", Type: "S"}, {Name: "type", Type: "S"}}, f.Attributes)
}

// The encoder would use up the stack, which ends the process.
func TestDefine_RefusesTypesWithoutEnd(t *testing.T) {
	tbl, err := table.Open(dynamodb.New(dynamodb.Options{}), schema("app"))
	require.NoError(t, err)
	type inner struct{ Bad Endless }
	type outer struct {
		ID    string `dynamo:"id"`
		Inner []inner
	}
	_, err = entity.Define(tbl, entity.Spec[outer]{Type: "Outer", PK: "OUTER#{id}", SK: "OUTER"})
	var refused *entity.SpecError
	require.ErrorAs(t, err, &refused)
	assert.ErrorContains(t, err, "Endless contains itself")
}

func ExampleEntity_Facet() {
	type Order struct {
		ID    string `dynamo:"-"`
		Total int    `dynamo:"total"`
	}
	tbl, err := table.Open(tabletest.NewEngine().Client(), table.Schema{Name: "app"})
	if err != nil {
		log.Fatal(err)
	}
	orders, err := entity.Define(tbl, entity.Spec[Order]{Type: "Order", PK: "ORDER#{id}", SK: "ORDER"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(orders.Facet())
	model, err := tbl.Schema().Workbench(orders.Facet()) // a file for NoSQL Workbench
	fmt.Println(len(model) > 0, err)
	// Output:
	// {Order ORDER#{id} ORDER [{total N} {type S}]}
	// true <nil>
}
