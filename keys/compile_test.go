package keys_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
)

func TestNewTemplate_RefusesNamingTheField(t *testing.T) {
	for _, tc := range []struct {
		text   string
		opts   []keys.Option
		field  string
		cause  error
		phrase string
	}{
		{"", nil, "", keys.ErrEmpty, ""},
		{"\xff", nil, "", keys.ErrInvalidUTF8, ""},
		{"a}", nil, "", keys.ErrSyntax, "byte 1"},
		{"{a", nil, "", keys.ErrSyntax, "byte 0"},
		{"x{a{b}", nil, "", keys.ErrSyntax, "byte 1"},
		{"{}", nil, "", keys.ErrSyntax, "byte 1"},
		{"{:uint4}", nil, "", keys.ErrSyntax, ""},
		{"{a b}", nil, "", keys.ErrSyntax, ""},
		{"{a..b}", nil, "", keys.ErrSyntax, ""},
		{"{.a}", nil, "", keys.ErrSyntax, ""},
		{"{a.}", nil, "", keys.ErrSyntax, ""},
		{"{a:}", nil, "a", keys.ErrSyntax, ""},
		{"{a:text}", nil, "a", keys.ErrSyntax, `"text"`},
		{"{a:uint}", nil, "a", keys.ErrSyntax, "1 to 20"},
		{"{a:uint0}", nil, "a", keys.ErrSyntax, ""},
		{"{a:uint21}", nil, "a", keys.ErrSyntax, ""},
		{"{a:uint04}", nil, "a", keys.ErrSyntax, ""},
		{"{a:uint+4}", nil, "a", keys.ErrSyntax, ""},
		{"{a:int20}", nil, "a", keys.ErrSyntax, "1 to 19"},
		{"{a:id0}", nil, "a", keys.ErrSyntax, ""},
		{"{a:id2049}", nil, "a", keys.ErrSyntax, ""},
		{"{a:id99999999999999999999}", nil, "a", keys.ErrSyntax, ""},
		{"{a:shard1}", nil, "a", keys.ErrSyntax, "2 to 1000"},
		{"{a:shard1001}", nil, "a", keys.ErrSyntax, ""},
		{"{a:uint4:asc}", nil, "a", keys.ErrSyntax, "desc"},
		{"{a:uint4:desc:desc}", nil, "a", keys.ErrSyntax, ""},
		{"{a:string:desc}", nil, "a", keys.ErrSyntax, "descending"},
		{"{a:raw:desc}", nil, "a", keys.ErrSyntax, "descending"},
		{"{a:rest:desc}", nil, "a", keys.ErrSyntax, "descending"},
		{"{a:id4:desc}", nil, "a", keys.ErrSyntax, "descending"},
		{"{a:shard4:desc}", nil, "a", keys.ErrSyntax, "descending"},
		{"{a}#{a}", nil, "a", keys.ErrDuplicate, ""},
		{"{a:shard4}#{b:shard4}", nil, "b", keys.ErrDuplicate, "one shard"},
		{"{a:shard4}#{a:shard8}", nil, "a", keys.ErrDuplicate, "one shard"},
		{"{a}{b}", nil, "a", keys.ErrAmbiguous, `"b"`},
		{"{a}-{b}", nil, "a", keys.ErrAmbiguous, `"b"`},
		{"{a:raw}{b:uint4}", nil, "a", keys.ErrAmbiguous, `"b"`},
		{"{a:rest}#{b}", nil, "a", keys.ErrAmbiguous, "rest of the key"},
		{"{a:rest}{b:uint4}", nil, "a", keys.ErrAmbiguous, "rest of the key"},
		{"{a:rest}#", nil, "a", keys.ErrAmbiguous, "rest of the key"},
		{"{a:raw}{b:rest}", nil, "a", keys.ErrAmbiguous, `"b"`},
		{"{a}.", nil, "a", keys.ErrAmbiguous, "after"},
		{"{a}#{b}", []keys.Option{keys.WithDelimiter('|')}, "a", keys.ErrAmbiguous, `'|'`},
		{"{a}", []keys.Option{keys.WithDelimiter('x')}, "", keys.ErrDelimiter, ""},
		{"{a}", []keys.Option{keys.WithDelimiter(0)}, "", keys.ErrDelimiter, ""},
		{"{a}", []keys.Option{keys.WithLimit(0)}, "", keys.ErrRange, ""},
		{"{a}", []keys.Option{keys.WithLimit(2049)}, "", keys.ErrRange, ""},
		{"{a}", []keys.Option{nil}, "", keys.ErrEmpty, "nil option"},
		{"{a}", []keys.Option{keys.WithPrefix("\xff")}, "", keys.ErrInvalidUTF8, "prefix"},
		{"{n:uint4}", []keys.Option{keys.WithLimit(3)}, "", keys.ErrTooLong, ""},
		{"{n:uint4}", []keys.Option{keys.WithLimit(4), keys.WithPrefix("p")}, "", keys.ErrTooLong, ""},
		{"{a}#{b}", []keys.Option{keys.WithLimit(2)}, "", keys.ErrTooLong, ""},
	} {
		t.Run(tc.text, func(t *testing.T) {
			tpl, err := keys.NewTemplate(tc.text, tc.opts...)
			require.ErrorIs(t, err, tc.cause)
			require.Nil(t, tpl)
			var ke *keys.Error
			require.ErrorAs(t, err, &ke)
			assert.Equal(t, tc.field, ke.Field)
			assert.Contains(t, err.Error(), tc.phrase)
		})
	}
	assert.PanicsWithError(t, `keys: template "{a": syntax error at byte 0: '{' without '}'; write {{ for a brace`, func() {
		keys.MustTemplate("{a")
	})
}

func TestFields_AreInTheOrderOfTheirValues(t *testing.T) {
	tpl := keys.MustTemplate("{id:shard16}#{région}#{at.day:date:desc}{id:uint10}#{x:id4}{n:int4}")
	assert.Equal(t, []keys.Field{
		{Name: "région", Codec: "string"},
		{Name: "at.day", Codec: "date:desc", Width: 10},
		{Name: "id", Codec: "uint10", Width: 10},
		{Name: "x", Codec: "id4", Width: 4},
		{Name: "n", Codec: "int4", Width: 5},
	}, tpl.Fields())
	fields := tpl.Fields()
	fields[0].Name = "changed"
	assert.Equal(t, "région", tpl.Fields()[0].Name, "Fields returns a copy")

	assert.Equal(t, []keys.Field{
		{Name: "who", Codec: "shard20", Width: 2, Computed: true},
		{Name: "a", Codec: "raw"},
	}, keys.MustTemplate("{who:shard20}#{a:raw}").Fields())
}

func TestField_AcceptsTypesThatFormatTakes(t *testing.T) {
	samples := []any{"1", named("1"), 1, int8(1), uint64(1), code(1), 1.5, celsius(1), true, flag(true), time.Unix(0, 0), []byte("1"), new(string), struct{}{}}
	for _, codec := range []string{"string", "raw", "rest", "key", "id1", "uint4", "int4", "float", "bool", "time", "time-ms", "time-s", "date", "shard4", "uint4:desc", "date:desc"} {
		tpl := keys.MustTemplate("{a:" + codec + "}")
		field := tpl.Fields()[0]
		accepted := 0
		for _, v := range samples {
			_, err := tpl.Format(v)
			assert.Equal(t, err == nil, field.Accepts(reflect.TypeOf(v)), "%s, %T", codec, v)
			if err == nil {
				accepted++
			}
		}
		assert.Positive(t, accepted, codec)
		assert.False(t, field.Accepts(nil))
	}
	assert.False(t, keys.Field{Codec: "nonsense"}.Accepts(reflect.TypeFor[string]()))
}

func TestWithPrefix_IsLiteral(t *testing.T) {
	tpl := keys.MustTemplate("A|{a}", keys.WithDelimiter('|'), keys.WithPrefix("{p}|"), keys.WithLimit(9))
	key, err := tpl.Format("x|")
	require.NoError(t, err)
	assert.Equal(t, "{p}|A|x}0", key)
	assert.Equal(t, "A|{a}", tpl.String())
	head, err := tpl.Prefix()
	require.NoError(t, err)
	assert.Equal(t, "{p}|A|", head)
	assert.False(t, tpl.Matches("A|x"))
	_, err = tpl.Format(strings.Repeat("x", 4))
	require.ErrorIs(t, err, keys.ErrTooLong, "the prefix counts")
	constant := keys.MustTemplate("META", keys.WithPrefix("shop/"))
	key, err = constant.Format()
	require.NoError(t, err)
	assert.Equal(t, "shop/META", key)
}
