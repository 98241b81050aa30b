package table_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

func TestOpen_TellsAllThatIsWrong(t *testing.T) {
	client := dynamodb.New(dynamodb.Options{})
	index := func(x table.Index) table.Schema { return table.Schema{Name: "app", Indexes: []table.Index{x}} }
	many := table.Schema{Name: "app"}
	for _, c := range "abcdef" {
		many.Indexes = append(many.Indexes, table.Index{Name: "lsi-" + string(c), SK: string(c), Local: true})
	}
	for name, c := range map[string]struct {
		schema table.Schema
		want   []string
	}{
		"name":            {table.Schema{Name: "a b"}, []string{`Name "a b"`}},
		"no name":         {table.Schema{}, []string{"Name"}},
		"long name":       {table.Schema{Name: strings.Repeat("x", 256)}, []string{"Name"}},
		"keys":            {table.Schema{Name: "app", Keys: keys.Scheme{PK: "a", SK: "a"}}, []string{"Keys"}},
		"capacity":        {table.Schema{Name: "app", Capacity: &table.Capacity{Read: 1}}, []string{"Capacity"}},
		"stream":          {table.Schema{Name: "app", Stream: "ALL"}, []string{`Stream: unknown view "ALL"`}},
		"index name":      {index(table.Index{Name: "x", PK: "a"}), []string{`Indexes[0].Name "x"`}},
		"index PK":        {index(table.Index{Name: "gsi"}), []string{"Indexes[0].PK: empty"}},
		"index one key":   {index(table.Index{Name: "gsi", PK: "a", SK: "a"}), []string{"Indexes[0].SK: the same"}},
		"index type":      {index(table.Index{Name: "gsi", PK: "a", PKType: "X"}), []string{`Indexes[0].PKType: unknown type "X"`}},
		"index long key":  {index(table.Index{Name: "gsi", PK: strings.Repeat("x", 256)}), []string{"Indexes[0].PK: longer"}},
		"index on key":    {index(table.Index{Name: "gsi", PK: "sk", PKType: table.Number}), []string{`attribute "sk" is of type S elsewhere`}},
		"index on TTL":    {index(table.Index{Name: "gsi", PK: "ttl"}), []string{`attribute "ttl" is of type N elsewhere`}},
		"index include":   {index(table.Index{Name: "gsi", PK: "a", Include: []string{"b", ""}}), []string{"Indexes[0].Include"}},
		"local PK":        {index(table.Index{Name: "lsi", PK: "other", SK: "a", Local: true}), []string{"table's partition key"}},
		"local SK":        {index(table.Index{Name: "lsi", Local: true}), []string{"needs a sort key"}},
		"too many locals": {many, []string{"6 are local, at most 5"}},
		"all at once": {
			table.Schema{Name: "", Stream: "x", Indexes: []table.Index{{Name: "gsi"}, {Name: "gsi", PK: "a", SK: "a"}}},
			[]string{"Name", "Stream", "Indexes[0].PK", `Indexes[1].Name "gsi": used twice`, "Indexes[1].SK"},
		},
	} {
		_, err := table.Open(client, c.schema)
		require.ErrorIs(t, err, table.ErrInvalid, name)
		for _, want := range c.want {
			assert.ErrorContains(t, err, want, name)
		}
	}
	_, err := table.Open(nil, table.Schema{Name: "app"})
	require.ErrorIs(t, err, table.ErrInvalid)
	_, err = table.Open(client, table.Schema{Name: "app"}, table.WithClock(nil))
	require.ErrorIs(t, err, table.ErrInvalid)
}

func TestSchema_HoldsWhatAnIndexProjects(t *testing.T) {
	s := table.Schema{Name: "app", Keys: keys.Scheme{PK: "PK"}, Indexes: []table.Index{
		{Name: "all", PK: "a"}, {Name: "keys", PK: "a", SK: "b", Include: []string{}}, {Name: "some", PK: "a", Include: []string{"c"}},
	}}
	for index, want := range map[string][]string{
		"all": {"PK", "sk", "a", "b", "c", "d"}, "keys": {"PK", "sk", "a", "b"}, "some": {"PK", "sk", "a", "c"}, "unknown": nil,
	} {
		var got []string
		for _, attr := range []string{"PK", "sk", "a", "b", "c", "d"} {
			if s.Holds(index, attr) {
				got = append(got, attr)
			}
		}
		assert.Equal(t, want, got, index)
	}
}

func TestSchema_IsCopied(t *testing.T) {
	s := table.Schema{
		Name: "app", Tags: map[string]string{"a": "1"}, Capacity: &table.Capacity{Read: 1, Write: 1},
		Indexes: []table.Index{{Name: "gsi", PK: "g", Include: []string{"x"}}},
	}
	tbl, err := table.Open(dynamodb.New(dynamodb.Options{}), s)
	require.NoError(t, err)
	want := table.Schema{
		Name: "app", Keys: keys.Scheme{}.WithDefaults(), Tags: map[string]string{"a": "1"}, Capacity: &table.Capacity{Read: 1, Write: 1},
		Indexes: []table.Index{{Name: "gsi", PK: "g", PKType: table.String, SKType: table.String, Include: []string{"x"}}},
	}
	s.Tags["a"], s.Capacity.Read, s.Indexes[0].Name, s.Indexes[0].Include[0] = "2", 2, "other", "y"
	got := tbl.Schema()
	got.Tags["a"], got.Capacity.Read, got.Indexes[0].Name, got.Indexes[0].Include[0] = "3", 3, "third", "z"
	assert.Equal(t, want, tbl.Schema())
	assert.Equal(t, "app", tbl.Name())
}

func TestKeyOf_ReadsTheKeyOfAnItem(t *testing.T) {
	tbl, err := table.Open(dynamodb.New(dynamodb.Options{}), table.Schema{Name: "app"})
	require.NoError(t, err)
	k := keys.NewKey("p", "s")
	got, err := tbl.KeyOf(tbl.KeyItem(k))
	require.NoError(t, err)
	assert.Equal(t, k, got)
	_, err = tbl.KeyOf(nil)
	require.ErrorIs(t, err, table.ErrInvalid)
}
