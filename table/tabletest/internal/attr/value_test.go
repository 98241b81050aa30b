package attr_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
	"github.com/mortise-go/mortise/table/tabletest/internal/jsontree"
)

func decode(t *testing.T, src string) (*attr.Value, error) {
	t.Helper()
	n, err := jsontree.Parse([]byte(src))
	require.NoError(t, err)
	return attr.Decode(n)
}

func TestValues_ReadBack(t *testing.T) {
	for _, src := range []string{
		`{"S":""}`,
		`{"S":"a\"\\\nü😀"}`,
		`{"N":"12.5"}`,
		`{"B":"YWI="}`,
		`{"BOOL":false}`,
		`{"NULL":true}`,
		`{"L":[{"S":"a"},{"L":[]}]}`,
		`{"M":{"a":{"N":"1"},"b":{"M":{}}}}`,
		`{"SS":["a","b"]}`,
		`{"NS":["-1","2","10"]}`,
		`{"BS":["YQ==","Yg=="]}`,
	} {
		v, err := decode(t, src)
		require.NoError(t, err, src)
		assert.JSONEq(t, src, string(v.Append(nil)), src)
		again, err := decode(t, string(v.Append(nil)))
		require.NoError(t, err)
		assert.True(t, attr.Equal(v, again), src)
	}
}

func TestSets_HaveOneOrder(t *testing.T) {
	a, err := decode(t, `{"NS":["10","2","1"]}`)
	require.NoError(t, err)
	b, err := decode(t, `{"NS":["2","1.0","10"]}`)
	require.NoError(t, err)
	assert.True(t, attr.Equal(a, b))
	assert.JSONEq(t, `{"NS":["1","2","10"]}`, string(b.Append(nil)))
}

func TestDecode_RefusesWhatIsNoValue(t *testing.T) {
	for _, tt := range []struct{ src, want string }{
		{`{}`, "is empty"},
		{`{"S":null}`, "is empty"},
		{`{"Q":"a"}`, "is empty"},
		{`{"S":"a","N":"1"}`, "more than one datatypes"},
		{`{"NULL":false}`, "must have the value of true"},
		{`{"SS":[]}`, "string set  may not be empty"},
		{`{"NS":["1","1.0"]}`, "contains duplicates"},
		{`{"SS":["a","b","a"]}`, "[a, b, a] contains duplicates"},
		{`{"S":1}`, "cannot be converted"},
		{`{"BOOL":"true"}`, "cannot be converted"},
		{`{"B":"?"}`, "binary"},
		{`{"L":[null]}`, "null AttributeValue"},
		{strings.Repeat(`{"L":[`, 32) + `{"M":{}}` + strings.Repeat(`]}`, 32), "Nesting Levels"},
	} {
		_, err := decode(t, tt.src)
		require.ErrorContains(t, err, tt.want, tt.src)
	}
	_, err := decode(t, strings.Repeat(`{"L":[`, 32)+`{"S":"x"}`+strings.Repeat(`]}`, 32))
	require.NoError(t, err, "32 lists are allowed outside of items")
}

// The sizes were measured on DynamoDB Local, where one more byte costs one more write unit.
func TestSize_IsAsMeasured(t *testing.T) {
	for _, tt := range []struct {
		src  string
		size int
	}{
		{`{"S":"ü"}`, 2},
		{`{"N":"0"}`, 1},
		{`{"N":"12"}`, 2},
		{`{"N":"123"}`, 3},
		{`{"N":"-12"}`, 3},
		{`{"N":"1.5"}`, 3},
		{`{"N":"0.05"}`, 2},
		{`{"N":"1e100"}`, 2},
		{`{"N":"1234.5"}`, 4},
		{`{"N":"12345678901234567890123456789012345678"}`, 20},
		{`{"BOOL":true}`, 1},
		{`{"NULL":true}`, 1},
		{`{"L":[]}`, 3},
		{`{"L":[{"N":"1"},{"S":"a"}]}`, 8},
		{`{"M":{"a":{"L":[{"S":"a"}]}}}`, 10},
		{`{"SS":["a","b"]}`, 2},
	} {
		v, err := decode(t, tt.src)
		require.NoError(t, err)
		assert.Equal(t, tt.size, v.Size(), tt.src)
	}
}

// The order in which DynamoDB Local writes these attributes, and the same with enough of them for a larger table.
func TestAttributes_ComeInTheOrderOfAJavaMap(t *testing.T) {
	item := attr.Item{}
	for _, name := range []string{"pk", "sk", "prop1", "prop2", "prop3", "prop4", "prop5", "__edb_e__", "__edb_v__", "gsi1pk", "gsi1sk"} {
		item[name] = &attr.Value{Kind: attr.NULL}
	}
	order := func() []string {
		return regexp.MustCompile(`\w+":\{`).FindAllString(string(item.Append(nil)), -1)
	}
	assert.Equal(t, []string{`prop2":{`, `prop1":{`, `gsi1sk":{`, `gsi1pk":{`, `sk":{`, `__edb_e__":{`, `__edb_v__":{`, `pk":{`, `prop5":{`, `prop4":{`, `prop3":{`}, order())
	item["x"], item["y"] = &attr.Value{Kind: attr.NULL}, &attr.Value{Kind: attr.NULL}
	assert.Equal(t, []string{`gsi1sk":{`, `gsi1pk":{`, `__edb_e__":{`, `prop5":{`, `prop4":{`, `prop3":{`, `prop2":{`, `prop1":{`}, order()[:8])
}
