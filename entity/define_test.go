package entity_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// offline is a table that nothing is sent to.
func offline(t testing.TB, s table.Schema) *table.Table {
	t.Helper()
	tbl, err := table.Open(dynamodb.NewFromConfig(aws.Config{Region: "us-east-1"}), s)
	require.NoError(t, err)
	return tbl
}

type id16 [16]byte // a key that can be written but not read

func (id16) MarshalText() ([]byte, error) { return []byte("id"), nil }

type mistakes struct {
	ID      string    `dynamo:"id"`
	A       string    `dynamo:"same"`
	B       string    `dynamo:"same"`
	Type    string    `dynamo:"_t"`
	Key     string    `dynamo:"PK"`
	Index   string    `dynamo:"g1pk"`
	Chan    chan int  `dynamo:"chan"`
	Version int32     `dynamo:"version"`
	Expires string    `dynamo:"expires"`
	At      time.Time `dynamo:"at"`
	Hidden  time.Time `dynamo:"-"`
	Text    id16      `dynamo:"-"`
	Ratio   float64   `dynamo:"ratio"`
}

func TestDefine_ListsEveryProblemAtOnce(t *testing.T) {
	tbl := offline(t, schema("app"))
	_, err := entity.Define(tbl, entity.Spec[mistakes]{
		PK: "X#{id}#{nope}#{ratio:uint4}", SK: "Y#{text}#{",
		Version: "version", TTL: "expires", Created: "at", Updated: "hidden",
		Indexes: []entity.Index[mistakes]{
			{Name: "nope", PK: "{id}"},
			{Name: "gsi1", PK: "A#{id}", SK: "{hidden:time}", When: func(mistakes) bool { return true }},
			{Name: "gsi1", PK: "{id}", SK: "{id}"},
			{Name: "gsi3", PK: "{id}", SK: "{id}"},
			{Name: "lsi1", PK: "{id}", SK: "{id}"},
			{Name: "gsi2", PK: "{id}#{missing}"},
		},
	})
	require.ErrorIs(t, err, entity.ErrInvalid)
	require.ErrorIs(t, err, keys.ErrSyntax, "of one of the problems")
	var spec *entity.SpecError
	require.ErrorAs(t, err, &spec)
	for _, want := range []string{
		"Type: empty",
		`PK: template names "nope"`,
		`PK: codec uint4 does not take field "Ratio"`,
		"SK: keys",
		"Version: field \"version\" is int32, want int64",
		"TTL: field \"expires\" is string, want time.Time",
		`Updated: field "Hidden" has no attribute`,
		`Indexes[0]: the table has no index "nope"`,
		`Indexes[5].PK: template names "missing"`,
		`Indexes[1].When: no key of index "gsi1" is made of a template`,
		"Indexes[1].When: a predicate needs a Version",
		`Indexes[2]: index "gsi1" is used twice`,
		`Indexes[3].SK: index "gsi3" has no sort key`,
		`Indexes[4].PK: attribute "PK" is a key of the table: leave this empty`,
		"Indexes[5].SK: ",
		`fields A and B are both attribute "same"`,
		`field Type: attribute "_t" is the table's type: leave the field out`,
		`field Key: attribute "PK" is the table's partition key: tag the field "-", and name it in the key's template`,
		`Indexes[1].PK: attribute "g1pk" is that of field Index: leave this empty`,
		"chan int",
	} {
		n := 0
		for _, p := range spec.Problems {
			if strings.HasPrefix(p.Error(), want) || strings.HasSuffix(p.Error(), want) {
				n++
			}
		}
		assert.Equal(t, 1, n, "%q in %v", want, err)
	}
}

func TestDefine_RefusesWhatCannotBe(t *testing.T) {
	type row struct {
		ID      string    `dynamo:"id"`
		N       int       `dynamo:"n"`
		Version int64     `dynamo:"v"`
		A       time.Time `dynamo:"a"`
		B       time.Time `dynamo:"b"`
		Text    id16      `dynamo:"-"`
	}
	base := func() entity.Spec[row] { return entity.Spec[row]{Type: "Row", PK: "ROW#{id}", SK: "ROW"} }
	s := schema("app")
	s.Indexes = append(s.Indexes,
		table.Index{Name: "shared", PK: "g1pk", SK: "other"},
		table.Index{Name: "number", PK: "num", PKType: table.Number},
		table.Index{Name: "by-type", PK: "_t", SK: "tsk"})
	tbl := offline(t, s)
	for name, c := range map[string]struct {
		change func(*entity.Spec[row])
		want   string
	}{
		"a long type":          {func(s *entity.Spec[row]) { s.Type = strings.Repeat("x", 256) }, "longer than 255"},
		"a type of bytes":      {func(s *entity.Spec[row]) { s.Type = "\xff" }, "Type: not valid UTF-8"},
		"a schema of bytes":    {func(s *entity.Spec[row]) { s.Schema = "\xff" }, "Schema: not valid UTF-8"},
		"no PK":                {func(s *entity.Spec[row]) { s.PK = "" }, "PK:"},
		"no SK":                {func(s *entity.Spec[row]) { s.SK = "" }, "SK:"},
		"a special in the key": {func(s *entity.Spec[row]) { s.SK, s.Created = "ROW#{a:time}", "a" }, "part of the key"},
		"one field twice":      {func(s *entity.Spec[row]) { s.Created, s.Updated = "a", "a" }, "is Created already"},
		"no such special":      {func(s *entity.Spec[row]) { s.TTL = "nope" }, `TTL: no field "nope"`},
		"a version in an index": {func(s *entity.Spec[row]) {
			s.Version, s.Indexes = "v", []entity.Index[row]{{Name: "gsi3", PK: "{v:int10}"}}
		}, "version cannot be part"},
		"indexes sharing a key": {func(s *entity.Spec[row]) {
			s.Indexes = []entity.Index[row]{{Name: "gsi1", PK: "{id}", SK: "{id}"}, {Name: "shared", PK: "{id}", SK: "{id}"}}
		}, "can be in one of them"},
		"an index of numbers":      {func(s *entity.Spec[row]) { s.Indexes = []entity.Index[row]{{Name: "number", PK: "{id}"}} }, "strings"},
		"an index on the type":     {func(s *entity.Spec[row]) { s.Indexes = []entity.Index[row]{{Name: "by-type", PK: "{id}", SK: "{id}"}} }, "is the scheme's"},
		"the same, by its name":    {func(s *entity.Spec[row]) { s.Indexes = []entity.Index[row]{{Name: "by-type", SK: "{id}"}} }, "is the scheme's: leave the index out, and read it with CollectQuery"},
		"a key that is write only": {func(s *entity.Spec[row]) { s.SK = "ROW#{text}" }, "no UnmarshalText"},
		"a shard of a hidden one":  {func(s *entity.Spec[row]) { s.PK = "ROW#{text:shard16}" }, "read back from a shard"},
	} {
		spec := base()
		c.change(&spec)
		_, err := entity.Define(tbl, spec)
		assert.ErrorContains(t, err, c.want, name)
	}
	_, err := entity.Define(nil, base())
	require.ErrorIs(t, err, entity.ErrInvalid)
	_, err = entity.Define(tbl, entity.Spec[int]{Type: "Int", PK: "A", SK: "B"})
	require.ErrorContains(t, err, "int is not a struct")
	_, err = entity.Define(tbl, entity.Spec[*row]{Type: "Ptr", PK: "A", SK: "B"})
	require.ErrorContains(t, err, "is not a struct")
	_, err = entity.Define(tbl, base())
	require.NoError(t, err, "none of the refused ones has left a trace")
}

func TestDefine_EntitiesOfOneTableMustNotClash(t *testing.T) {
	type row struct {
		ID    string `dynamo:"id"`
		Other string `dynamo:"other"`
	}
	type twin row
	type twice struct {
		row
		Until   time.Time `dynamo:"until"`
		Version int64     `dynamo:"version"`
	}
	tbl := offline(t, schema("app"))
	orders := entity.Spec[row]{Type: "Order", PK: "T#{id}", SK: "ORDER#{other}"}
	_, err := entity.Define(tbl, orders)
	require.NoError(t, err)
	_, err = entity.Define(tbl, orders)
	require.NoError(t, err, "the same again")
	_, err = entity.Define(tbl, entity.Spec[twin]{Type: "Order", PK: "T#{id}", SK: "ORDER#{other}"})
	require.ErrorContains(t, err, `Type "Order" is taken`)
	_, err = entity.Define(tbl, entity.Spec[row]{Type: "Order", PK: "T#{id}", SK: "OTHER"})
	require.ErrorContains(t, err, `Type "Order" is taken`)
	for name, change := range map[string]func(*entity.Spec[twice]){
		"another index": func(s *entity.Spec[twice]) {
			s.Indexes = append(s.Indexes, entity.Index[twice]{Name: "gsi3", PK: "{other}"})
		},
		"an index less":      func(s *entity.Spec[twice]) { s.Indexes = s.Indexes[:1] },
		"another key":        func(s *entity.Spec[twice]) { s.Indexes[0].SK = "{id}" },
		"no predicate":       func(s *entity.Spec[twice]) { s.Indexes[1].When = nil },
		"another unique one": func(s *entity.Spec[twice]) { s.Unique[0].Key = "{id}" },
		"no version":         func(s *entity.Spec[twice]) { s.Version, s.Indexes[1].When = "", nil },
		"a time to live":     func(s *entity.Spec[twice]) { s.TTL = "until" },
		"a schema":           func(s *entity.Spec[twice]) { s.Schema = "schema" },
		"untyped":            func(s *entity.Spec[twice]) { s.Untyped = true },
		"a prefix":           func(s *entity.Spec[twice]) { s.AttributePrefix = "a_" },
	} {
		tbl := offline(t, schema("app"))
		spec := func() entity.Spec[twice] {
			return entity.Spec[twice]{
				Type: "Twice", PK: "T#{id}", SK: "TWICE", Version: "version",
				Indexes: []entity.Index[twice]{{Name: "gsi1", PK: "O#{other}", SK: "{other}"}, {Name: "gsi2", PK: "{other}", SK: "{id}", When: func(twice) bool { return true }}},
				Unique:  []entity.Unique[twice]{{Name: "other", Key: "{other}"}},
			}
		}
		_, err := entity.Define(tbl, spec())
		require.NoError(t, err)
		reader := spec()
		slices.Reverse(reader.Indexes)
		reader.ReadOnly = true
		_, err = entity.Define(tbl, reader)
		require.NoError(t, err, "the same rows")
		changed := spec()
		change(&changed)
		_, err = entity.Define(tbl, changed)
		require.ErrorContains(t, err, `Type "Twice" is taken`, name)
	}
	_, err = entity.Define(tbl, entity.Spec[twin]{Type: "Line", PK: "T#{id}", SK: "{other}#{id}"})
	require.ErrorContains(t, err, `could be the key of a "Order"`)
	_, err = entity.Define(tbl, entity.Spec[twin]{Type: "Line", PK: "T#{id}", SK: "LINE#{other}"})
	require.NoError(t, err)
	_, err = entity.Define(offline(t, schema("another")), entity.Spec[twin]{Type: "Order", PK: "T#{id}", SK: "{other}"})
	require.NoError(t, err, "another table")
}

func TestDefine_NamesFieldsAsTheirReaderWould(t *testing.T) {
	type base struct {
		ID    string `dynamo:"id"`
		Inner string `dynamo:"inner"`
	}
	type row struct {
		base
		URL   string `dynamo:"link"`
		Plain string
		Inner string `dynamo:"outer"` // another attribute than base's
		ABC   string `dynamo:"abc1"`
		Abc   string `dynamo:"abc2"`
	}
	for template, ok := range map[string]bool{
		"{id}": true, "{ID}": true, "{link}": true, "{URL}": true, "{url}": true, "{Plain}": true, "{plain}": true, "{inner}": true, "{outer}": true, "{nope}": false, "{base}": false, "{ABC}": true, "{Abc}": true, "{abc}": false,
	} {
		e, err := entity.Define(offline(t, schema("app")), entity.Spec[row]{Type: "Row", PK: template, SK: "X"})
		assert.Equal(t, ok, err == nil, "%s: %v", template, err)
		if template == "{inner}" {
			assert.Equal(t, "shop/from base", e.Key(row{base: base{Inner: "from base"}, Inner: "outer"}).PK, "the attribute's name goes first")
		}
	}
}

func TestEntity_KnowsItself(t *testing.T) {
	tbl := offline(t, schema("app"))
	plain := define(t, tbl, plainSpec())
	assert.Same(t, tbl, plain.Table())
	assert.Equal(t, "Plain", plain.Type())
	k := plain.Key(Plain{})
	require.ErrorIs(t, k.Err(), entity.ErrInvalid)
	require.ErrorContains(t, k.Err(), `field "ID" of the key is empty`)
	for _, op := range []table.Op{
		plain.CreateOp(Plain{}), plain.PutOp(Plain{}), plain.UpdateOp(Plain{}, entity.Set("other", "x")), plain.DeleteOp(Plain{}),
		plain.PutOp(Plain{ID: "x", Group: "g", Rank: 10_000_000}),
	} {
		require.ErrorIs(t, op.Err(), entity.ErrInvalid)
		require.NotContains(t, op.Err().Error(), "\n")
	}
	orders := define(t, tbl, orderSpec())
	for _, op := range []table.Op{
		orders.PutOp(Order{Tenant: "a", ID: "1", Version: -1}), orders.DeleteOp(Order{Tenant: "a", ID: "1", Version: -1}),
		orders.UpdateOp(Order{Tenant: "a", ID: "1", Version: -1}, entity.Set("note", "x")),
	} {
		require.ErrorIs(t, op.Err(), entity.ErrInvalid)
	}
	var none *entity.SpecError
	require.NotErrorAs(t, k.Err(), &none)
}

type endlessList []endlessList

func TestDefine_ListsProblemsBesideTheGravestToo(t *testing.T) {
	tbl := offline(t, schema("app"))
	type first struct{ ID string }
	define(t, tbl, entity.Spec[first]{Type: "First", PK: "A#{id}", SK: "A"})
	define(t, tbl, entity.Spec[first]{Type: "Second", PK: "B#{id}", SK: "A"})
	type bad struct {
		ID      string
		Endless endlessList
	}
	spec := entity.Spec[bad]{Type: "Bad", PK: "{id:raw}#{id2}", SK: "A", Indexes: []entity.Index[bad]{{Name: "nope", PK: "{what}", SK: "{"}}}
	_, err := entity.Define(tbl, spec)
	for _, want := range []string{
		"contains itself without end", `PK: template names "id2"`, `no index "nope"`, `Indexes[0].PK: template names "what"`, "Indexes[0].SK: keys: ",
	} {
		assert.ErrorContains(t, err, want)
	}
	type clashing struct {
		ID   string
		A, B chan int
	}
	_, err = entity.Define(tbl, entity.Spec[clashing]{Type: "Bad", PK: "{k}#{id}", SK: "A", Version: "v"})
	for _, want := range []string{`no field "v"`, `attribute "A"`, `attribute "B"`, `key of a "First"`, `key of a "Second"`} {
		assert.ErrorContains(t, err, want)
	}
	define(t, tbl, entity.Spec[first]{Type: "Bad", PK: "C#{id}", SK: "A"}) // which no mistake has taken
}

// Origin is embedded by a pointer, so that its fields cannot be named. They are attributes all the same.
type Origin struct {
	Key     string `dynamo:"PK,omitempty"`
	Type    string `dynamo:"_t,omitempty"`
	Expires int64  `dynamo:"_ttl,omitempty"`
	Version int64  `dynamo:"_v,omitempty"`
	Schema  string `dynamo:"schema,omitempty"`
	Index   string `dynamo:"g1pk,omitempty"`
	Other   string `dynamo:"g2pk,omitempty"`
	Source  string `dynamo:"source,omitempty"`
}

type Import struct {
	*Origin
	ID      string    `dynamo:"id"`
	Group   string    `dynamo:"group,omitempty"`
	Rev     int64     `dynamo:"rev"`
	Expires time.Time `dynamo:"until"`
}

func TestDefine_RefusesMaintainedAttributesInEmbeddedPointers(t *testing.T) {
	_, err := entity.Define(offline(t, schema("app")), entity.Spec[Import]{
		Type: "Import", PK: "IMPORT#{id}", SK: "IMPORT", Version: "rev", TTL: "until", Schema: "schema",
		Indexes: []entity.Index[Import]{{Name: "gsi1", PK: "GROUP#{group}", SK: "{id}"}},
	})
	var spec *entity.SpecError
	require.ErrorAs(t, err, &spec)
	var texts []string
	for _, p := range spec.Problems {
		texts = append(texts, p.Error())
	}
	var want []string
	for _, attr := range []string{"PK", "_t", "_ttl", "_v", "schema", "g1pk"} {
		want = append(want, fmt.Sprintf("attribute %q, of a field of an embedded pointer, is the table's, or the entity maintains it", attr))
	}
	assert.ElementsMatch(t, want, texts)
}

// Left and Right are embedded by pointers below.
type Left struct {
	Note int    `dynamo:"note"`
	Name string `dynamo:"name"`
}

type Right struct {
	Note string `dynamo:"note"`
}

type (
	ring      *ring
	ringLeft  *ringRight
	ringRight *ringLeft
)

func TestDefine_RefusesPointersToThemselvesInKeys(t *testing.T) {
	s := schema("app")
	const want = "contains itself without end"
	_, err := entity.Define(offline(t, s), entity.Spec[struct {
		ID ring `dynamo:"-"`
	}]{Type: "Row", PK: "{id}", SK: "ROW"})
	require.ErrorContains(t, err, want)
	_, err = entity.Define(offline(t, s), entity.Spec[struct{ ID ringLeft }]{Type: "Row", PK: "ROW", SK: "{id}", TTL: "id"})
	require.ErrorContains(t, err, want)
}

func TestDefine_RefusesFieldsThatOthersReplaceInDocumentsToo(t *testing.T) {
	type line struct {
		Left
		Name string `dynamo:"name"`
	}
	type order struct {
		ID    string `dynamo:"-"`
		Lines []line `dynamo:"lines"`
	}
	_, err := entity.Define(offline(t, schema("app")), entity.Spec[order]{Type: "Row", PK: "{id}", SK: "ROW"})
	require.ErrorContains(t, err, `attribute "lines": fields Name and Name are both attribute "name"`)
}

// The encoder stores the first of several fields with one attribute. A field that stands after an embedded pointer with the same
// attribute would not be stored, and its values would be encoded as those of the pointer's field.
func TestDefine_RefusesFieldsThatAnEmbeddedPointerHides(t *testing.T) {
	type after struct {
		ID string `dynamo:"-"`
		*Left
		Note string `dynamo:"note"`
	}
	type twice struct {
		ID string `dynamo:"-"`
		*Left
		*Right
	}
	type before struct {
		ID   string `dynamo:"-"`
		Note string `dynamo:"note"`
		*Left
	}
	type deep struct{ Right }
	type deeper struct {
		ID string `dynamo:"-"`
		*Left
		deep
	}
	const want = `fields Note and Note are both attribute "note"`
	s := schema("app")
	_, err := entity.Define(offline(t, s), entity.Spec[after]{Type: "Row", PK: "{id}", SK: "ROW"})
	require.ErrorContains(t, err, want)
	_, err = entity.Define(offline(t, s), entity.Spec[twice]{Type: "Row", PK: "{id}", SK: "ROW"})
	require.ErrorContains(t, err, want)

	first := define(t, offline(t, s), entity.Spec[before]{Type: "Row", PK: "{id}", SK: "ROW"})
	item := first.CreateOp(before{ID: "a", Note: "x", Left: &Left{Note: 1, Name: "ada"}}).Item()
	assert.Equal(t, "x", text(item, "note"), "as Go selects it")
	assert.Equal(t, "ada", text(item, "name"))

	// As Go selects it, too, row.Note is that of Left. That of Right is no field that a caller can name.
	hidden := define(t, offline(t, s), entity.Spec[deeper]{Type: "Row", PK: "{id}", SK: "ROW"})
	require.ErrorIs(t, hidden.UpdateOp(deeper{ID: "a"}, entity.Set("note", "x")).Err(), entity.ErrInvalid)
}
