package table_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

func TestItemFromJSON_ReadsEveryKindOfValue(t *testing.T) {
	item, err := table.ItemFromJSON([]byte(`{
		"s":{"S":"ä\u0000\""}, "e":{"S":""}, "n":{"N":"-1.5E+10"}, "b":{"B":"AAH/"}, "t":{"BOOL":true}, "f":{"BOOL":false}, "z":{"NULL":true},
		"ss":{"SS":["a","b"]}, "ns":{"NS":["1","0.1"]}, "bs":{"BS":["AA==",""]},
		"l":{"L":[{"S":"x"},{"L":[]}]}, "m":{"M":{"k":{"M":{}}}}}`))
	require.NoError(t, err)
	assert.Equal(t, table.Item{
		"s": &types.AttributeValueMemberS{Value: "ä\x00\""}, "e": &types.AttributeValueMemberS{}, "n": &types.AttributeValueMemberN{Value: "-1.5E+10"},
		"b": &types.AttributeValueMemberB{Value: []byte{0, 1, 255}}, "t": &types.AttributeValueMemberBOOL{Value: true}, "f": &types.AttributeValueMemberBOOL{},
		"z": &types.AttributeValueMemberNULL{Value: true}, "ss": &types.AttributeValueMemberSS{Value: []string{"a", "b"}},
		"ns": &types.AttributeValueMemberNS{Value: []string{"1", "0.1"}}, "bs": &types.AttributeValueMemberBS{Value: [][]byte{{0}, {}}},
		"l": &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberS{Value: "x"}, &types.AttributeValueMemberL{Value: []types.AttributeValue{}}}},
		"m": &types.AttributeValueMemberM{Value: table.Item{"k": &types.AttributeValueMemberM{Value: table.Item{}}}},
	}, item)
	_, err = table.ItemFromJSON([]byte(`{"b":{"S":"` + strings.Repeat("x", 400<<10-1) + `"}}`))
	require.NoError(t, err, "the largest item")
	empty, err := table.ItemFromJSON([]byte(`{}`))
	require.NoError(t, err)
	assert.Empty(t, empty)
}

func TestItemFromJSON_RefusesWhatIsNoItem(t *testing.T) {
	const canary = "cAnArY"
	for name, text := range map[string]string{
		"no JSON": canary, "nothing": "", "null": "null", "a list": `["` + canary + `"]`, "two documents": `{} {}`, "cut off": `{"a":{"S":"` + canary,
		"no type": `{"a":{}}`, "two types": `{"a":{"S":"` + canary + `","N":"1"}}`, "plain": `{"a":"` + canary + `"}`, "unknown type": `{"a":{"` + canary + `":"x"}}`,
		"unknown type of null": `{"a":{"` + canary + `":null}}`, "small letters": `{"a":{"s":"x"}}`,
		"S": `{"a":{"S":5}}`, "S null": `{"a":{"S":null}}`, "N": `{"a":{"N":5}}`, "N text": `{"a":{"N":"` + canary + `"}}`, "N empty": `{"a":{"N":""}}`,
		"N spaces": `{"a":{"N":" 1 "}}`, "N space behind": `{"a":{"N":"1 "}}`, "N too large": `{"a":{"N":"1E126"}}`, "N too small": `{"a":{"N":"1E-131"}}`, "N NaN": `{"a":{"N":"NaN"}}`, "N true": `{"a":{"N":"true"}}`, "N long": `{"a":{"N":"` + strings.Repeat("1", 65) + `"}}`,
		"B": `{"a":{"B":"*` + canary + `"}}`, "BOOL": `{"a":{"BOOL":"true"}}`, "NULL": `{"a":{"NULL":1}}`,
		"SS": `{"a":{"SS":"` + canary + `"}}`, "SS null": `{"a":{"SS":[null]}}`, "NS": `{"a":{"NS":["1","` + canary + `"]}}`, "BS": `{"a":{"BS":["*"]}}`,
		"L": `{"a":{"L":{}}}`, "L element": `{"a":{"L":["` + canary + `"]}}`, "M": `{"a":{"M":[]}}`, "M element": `{"a":{"M":{"x":{"` + canary + `":1}}}}`,
		"SS empty": `{"a":{"SS":[]}}`, "SS twice": `{"a":{"SS":["` + canary + `","` + canary + `"]}}`, "NS twice": `{"a":{"NS":["1","1.0"]}}`, "BS twice": `{"a":{"BS":["AA==","AA=="]}}`,
		"NULL false": `{"a":{"NULL":false}}`, "B array": `{"a":{"B":[1,2]}}`, "BS array": `{"a":{"BS":[[1,2]]}}`, "B lines": `{"a":{"B":"AA\n=="}}`, "B bits": `{"a":{"B":"AB=="}}`,
		"in a list": `{"a":{"L":[{"SS":[]}]}}`, "twice": `{"a":{"S":"` + canary + `"},"a":{"S":"y"}}`, "twice, escaped": `{"a":{"S":"` + canary + `"},"\u0061":{"S":"y"}}`,
		"type twice": `{"a":{"S":"` + canary + `","S":"y"}}`, "field twice": `{"a":{"M":{"` + canary + `":{"S":"x"},"` + canary + `":{"S":"y"}}}}`,
		"no name": `{"":{"S":"` + canary + `"}}`, "no name inside": `{"a":{"M":{"":{"S":"` + canary + `"}}}}`, "long name": `{"` + strings.Repeat("n", 65536) + `":{"S":"x"}}`,
		"long name inside": `{"a":{"M":{"` + strings.Repeat("n", 65536) + `":{"S":"x"}}}}`, "too large": `{"b":{"S":"` + strings.Repeat("x", 400<<10) + `"}}`,
		"cut off between": `{"a":{"S":"` + canary + `"}`, "a name that is none": `{1:{"S":"` + canary + `"}}`, "comma behind": `{"a":{"S":"` + canary + `"},}`,
		"bad escape": `{"a":{"S":"\u00g0"}}`,
		"bad UTF-8":  "{\"a\":{\"S\":\"\xff\"}}",
		"deep":       `{"a":` + strings.Repeat(`{"L":[`, 40) + `{"S":"x"}` + strings.Repeat(`]}`, 40) + `}`,
		"very deep":  `{"a":` + strings.Repeat(`{"L":[`, 100_000),
	} {
		item, err := table.ItemFromJSON([]byte(text))
		require.ErrorIs(t, err, table.ErrInvalid, name)
		assert.Nil(t, item, name)
		assert.NotContains(t, err.Error(), canary, name)
		if strings.HasPrefix(text, `{"a":{`) && !strings.HasPrefix(name, "twice") && json.Valid([]byte(text)) && utf8.ValidString(text) {
			assert.ErrorContains(t, err, `"a"`, name)
		}
	}
}

func TestItemFromJSON_KnowsTheDepthThatDynamoDBHolds(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		nested := func(lists int, innermost string) []byte {
			return []byte(`{"a":` + strings.Repeat(`{"L":[`, lists) + innermost + strings.Repeat(`]}`, lists) + `}`)
		}
		for innermost, lists := range map[string]int{`{"S":"x"}`: 31, `{"SS":["x"]}`: 31, `{"L":[]}`: 30, `{"M":{}}`: 30} {
			fits, err := table.ItemFromJSON(nested(lists, innermost))
			require.NoError(t, err, innermost)
			item := f.item("p", "s")
			item["a"] = fits["a"]
			require.NoError(t, f.Write(t.Context(), table.Put(item)), innermost)
			item["a"] = list(fits["a"])
			require.ErrorIs(t, f.Write(t.Context(), table.Put(item)), table.ErrInvalid, innermost)
			_, err = table.Encode(item["a"])
			require.ErrorIs(t, err, table.ErrInvalid, innermost)
			_, err = f.engine.Client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(f.Name()), Item: item})
			require.ErrorContains(t, err, "ValidationException", innermost)
			_, err = table.ItemFromJSON(nested(lists+1, innermost))
			require.ErrorIs(t, err, table.ErrInvalid, innermost)
		}
	})
}

func TestItemFromJSON_ReadsTextAsItIsWritten(t *testing.T) {
	for text, want := range map[string]string{`\ud83d\ude00`: "😀", `\\ud800`: `\ud800`, `\ufffd`: "\ufffd", `\"\u00e4\\`: `"ä\`, `\uD83D\uDE00\uD83D\uDE00`: "😀😀"} {
		item, err := table.ItemFromJSON([]byte(`{"a":{"S":"` + text + `"}}`))
		require.NoError(t, err, text)
		assert.Equal(t, str(want), item["a"], text)
	}
	for _, text := range []string{`\ud800`, `\udc00`, `\ud800x`, `\ud800\ud800`, `\ud800\n`, `\\\ud800`, `\udc00\ud800`, `\ud83d\ude00\ud83d`} {
		_, err := table.ItemFromJSON([]byte(`{"a":{"S":"` + text + `"}}`))
		assert.ErrorIs(t, err, table.ErrInvalid, text)
		_, err = table.ItemFromJSON([]byte(`{"` + text + `":{"S":"x"}}`))
		assert.ErrorIs(t, err, table.ErrInvalid, text)
	}
}

// DynamoDB returns numbers without exponents: of up to 38 digits, and as many zeros as there have to be.
func TestItemFromJSON_ReadsNumbersAsTheyComeBack(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		item := f.item("numbers", "1")
		for _, n := range []string{"0", "1E125", "-9." + strings.Repeat("9", 37) + "E125", "1E-130", "-1." + strings.Repeat("1", 37) + "E-93", "12.50"} {
			item[n] = num(n)
		}
		require.NoError(t, f.Write(t.Context(), table.Put(item)))
		got, err := f.Get(t.Context(), keys.NewKey("numbers", "1"), true)
		require.NoError(t, err)
		text, err := table.ItemToJSON(got)
		require.NoError(t, err)
		back, err := table.ItemFromJSON(text)
		require.NoError(t, err)
		assert.Equal(t, got, back)
		assert.True(t, attrvalue.SameItem(item, back))
	})
}

// asJSON writes a value the way that the service does.
func asJSON(av types.AttributeValue) map[string]any {
	switch av := av.(type) {
	case *types.AttributeValueMemberS:
		return map[string]any{"S": av.Value}
	case *types.AttributeValueMemberN:
		return map[string]any{"N": av.Value}
	case *types.AttributeValueMemberB:
		return map[string]any{"B": av.Value}
	case *types.AttributeValueMemberBOOL:
		return map[string]any{"BOOL": av.Value}
	case *types.AttributeValueMemberNULL:
		return map[string]any{"NULL": av.Value}
	case *types.AttributeValueMemberSS:
		return map[string]any{"SS": av.Value}
	case *types.AttributeValueMemberNS:
		return map[string]any{"NS": av.Value}
	case *types.AttributeValueMemberBS:
		return map[string]any{"BS": av.Value}
	case *types.AttributeValueMemberL:
		list := make([]any, len(av.Value))
		for i := range av.Value {
			list[i] = asJSON(av.Value[i])
		}
		return map[string]any{"L": list}
	case *types.AttributeValueMemberM:
		m := map[string]any{}
		for name, v := range av.Value {
			m[name] = asJSON(v)
		}
		return map[string]any{"M": m}
	}
	return nil
}

func TestItemFromJSON_ReadsWhatIsWritten(t *testing.T) {
	name := rapid.StringN(1, -1, -1)
	scalar := rapid.OneOf(
		rapid.Map(rapid.String(), func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }),
		rapid.Map(rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,9})?(E[+-]?[0-9]{1,2})?`), func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 1, 20), func(b []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: b} }),
		rapid.Map(rapid.Bool(), func(b bool) types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: b} }),
		rapid.Just[types.AttributeValue](&types.AttributeValueMemberNULL{Value: true}),
		rapid.Map(rapid.SliceOfNDistinct(rapid.String(), 1, 5, rapid.ID), func(s []string) types.AttributeValue { return &types.AttributeValueMemberSS{Value: s} }),
		rapid.Map(rapid.SliceOfNDistinct(rapid.StringMatching(`-?[1-9][0-9]{0,9}`), 1, 5, rapid.ID), func(s []string) types.AttributeValue { return &types.AttributeValueMemberNS{Value: s} }),
		rapid.Map(rapid.SliceOfNDistinct(rapid.SliceOfN(rapid.Byte(), 0, 9), 1, 5, func(b []byte) string { return string(b) }), func(s [][]byte) types.AttributeValue { return &types.AttributeValueMemberBS{Value: s} }),
	)
	value := rapid.OneOf(scalar,
		rapid.Map(rapid.SliceOf(scalar), func(l []types.AttributeValue) types.AttributeValue { return &types.AttributeValueMemberL{Value: l} }),
		rapid.Map(rapid.MapOf(name, scalar), func(m map[string]types.AttributeValue) types.AttributeValue {
			return &types.AttributeValueMemberM{Value: m}
		}))
	rapid.Check(t, func(rt *rapid.T) {
		want := rapid.MapOf(name, value).Draw(rt, "item")
		doc := map[string]any{}
		for name, av := range want {
			doc[name] = asJSON(av)
		}
		text, err := json.Marshal(doc)
		require.NoError(rt, err)
		got, err := table.ItemFromJSON(text)
		require.NoError(rt, err)
		require.True(rt, attrvalue.SameItem(want, got), "%s", text)
		ours, err := table.ItemToJSON(want)
		require.NoError(rt, err)
		require.JSONEq(rt, string(text), string(ours))
	})
}

func FuzzItemFromJSON(f *testing.F) {
	for _, seed := range []string{`{"a":{"S":"x"}}`, `{"a":{"M":{"b":{"L":[{"N":"1"},{"NULL":true}]}}}}`, `{"a":{"BS":["AA=="]}}`, `{"a":{"NS":["1"]},"a":{"SS":[null]}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		item, err := table.ItemFromJSON(data)
		if err != nil {
			require.ErrorIs(t, err, table.ErrInvalid)
			return
		}
		for _, av := range item {
			require.NotNil(t, av)
		}
	})
}

func TestItemToJSON_HasAnOrderAndNoNull(t *testing.T) {
	text, err := table.ItemToJSON(table.Item{"b": &types.AttributeValueMemberL{}, "a": &types.AttributeValueMemberS{Value: "<&>"}})
	require.NoError(t, err)
	assert.Equal(t, `{"a":{"S":"<&>"},"b":{"L":[]}}`, string(text)) //nolint:testifylint // the order counts
	for _, bad := range []types.AttributeValue{
		nil, &types.UnknownUnionMember{}, (*types.AttributeValueMemberS)(nil), &types.AttributeValueMemberB{}, &types.AttributeValueMemberBS{Value: [][]byte{nil}},
		str("\xff"), num("\xff"), strs("a", "\xff"), nums("\xff"),
	} {
		for _, item := range []table.Item{{"a": bad}, {"a": list(bad)}, {"a": &types.AttributeValueMemberM{Value: table.Item{"b": bad}}}} {
			_, err := table.ItemToJSON(item)
			require.ErrorIs(t, err, table.ErrInvalid, "%#v", bad)
		}
	}
	_, err = table.ItemToJSON(table.Item{"\xff": str("x")})
	require.ErrorIs(t, err, table.ErrInvalid)
}
