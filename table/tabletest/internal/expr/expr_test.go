package expr_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
	"github.com/mortise-go/mortise/table/tabletest/internal/expr"
	"github.com/mortise-go/mortise/table/tabletest/internal/jsontree"
)

func item(tb testing.TB, src string) attr.Item {
	tb.Helper()
	n, err := jsontree.Parse([]byte(src))
	require.NoError(tb, err)
	it, err := attr.DecodeItem(n)
	require.NoError(tb, err)
	return it
}

const sample = `{"n":{"N":"5"},"s":{"S":"hello"},"b":{"BOOL":true},"nil":{"NULL":true},"ss":{"SS":["a","b"]},
	"l":{"L":[{"N":"1"},{"S":"x"},{"M":{"z":{"N":"9"}}}]},"m":{"M":{"a":{"S":"q"},"d":{"M":{"e":{"N":"0.5"}}}}}}`

const values = `{":5":{"N":"5.0"},":6":{"N":"6"},":h":{"S":"he"},":a":{"S":"a"},":S":{"S":"S"},":t":{"BOOL":true},
	":l":{"L":[{"N":"1"}]},":ss":{"SS":["b","c"]},":1":{"N":"1"}}`

func TestCondition_IsEvaluated(t *testing.T) {
	it := item(t, sample)
	for _, tt := range []struct {
		src  string
		want bool
	}{
		{"n = :5", true},
		{"n <> :5", false},
		{"gone <> :5", true},
		{"gone = :5", false},
		{"NOT gone = :5", true},
		{"n < :6 AND n > :1", true},
		{"s < :6", false},
		{"n BETWEEN :1 AND :6", true},
		{"n IN (:1, :h, :5)", true},
		{"gone IN (:1)", false},
		{"begins_with(s, :h)", true},
		{"contains(s, :h)", true},
		{"contains(ss, :a)", true},
		{"contains(l, :1)", true},
		{"contains(s, :1)", false},
		{"attribute_exists(m.d.e)", true},
		{"attribute_exists(m.d.f)", false},
		{"attribute_not_exists(l[3])", true},
		{"attribute_type(s, :S)", true},
		{"size(s) = :5", true},
		{"size(l) < :5", true},
		{"size(n) = :1", false},
		{"l[2].z > :6", true},
		{"b = :t", true},
		{"n = :1 OR n = :5 AND s = :a", false},
		{"(n = :1 OR n = :5) AND NOT s = :a", true},
		{"#odd.#a = :5", false},
	} {
		t.Run(tt.src, func(t *testing.T) {
			env := &expr.Env{Names: map[string]string{"#odd": "m.d", "#a": "a"}, Values: item(t, values)}
			c, err := expr.ParseCondition(tt.src, env)
			require.NoError(t, err)
			assert.Equal(t, tt.want, c.Holds(it))
		})
	}
}

func TestParseCondition_RefusesWhatIsWrong(t *testing.T) {
	for _, tt := range []struct{ src, want string }{
		{"", "The expression can not be empty;"},
		{"n =", `Syntax error; token: "<EOF>", near: "="`},
		{"n = :5 = :5", `Syntax error; token: "=", near: ":5 = :5"`},
		{"(n) AND s = :a", `Syntax error; token: "AND", near: ") AND s"`},
		{"l[00] = :5", `Syntax error; token: "0", near: "00]"`},
		{"é = :5", `Syntax error; token: "é", near: "é ="`},
		{"n = :no", "An expression attribute value used in expression is not defined; attribute value: :no"},
		{"#no = :5", "An expression attribute name used in the document path is not defined; attribute name: #no"},
		{"name = :5", "Attribute name is a reserved keyword; reserved keyword: name"},
		{"foo(n)", "Invalid function name; function: foo"},
		{"size(s)", "The function is not allowed to be used this way in an expression; function: size"},
		{"if_not_exists(n, :5) = :5", "The function is not allowed in a condition expression; function: if_not_exists"},
		{"((n = :5))", "The expression has redundant parentheses;"},
		{"n = n", "The first operand must be distinct from the remaining operands for this operator or function; operator: =, first operand: [n]"},
		{"n < :t", "Incorrect operand type for operator or function; operator or function: <, operand type: BOOL"},
		{"n BETWEEN :6 AND :5", "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; lower bound operand: AttributeValue: {N:6}, upper bound operand: AttributeValue: {N:5}"},
		{strings.Repeat("n = :5 OR ", 160) + "n = :5", "The expression contains too many operators; operator count: 301"},
		{strings.Repeat("(", 4096), `Syntax error`},
		{strings.Repeat("x", 4097), "Expression size has exceeded the maximum allowed size; expression size: 4097"},
	} {
		_, err := expr.ParseCondition(tt.src, &expr.Env{Values: item(t, values)})
		require.ErrorContains(t, err, tt.want, tt.src)
	}
}

func TestUpdate_ChangesTheItem(t *testing.T) {
	for _, tt := range []struct{ src, attrs string }{
		{"SET n = n + :1", `{"n":{"N":"6"}}`},
		{"SET n = (n - :6)", `{"n":{"N":"-1"}}`},
		{"SET q = if_not_exists(q, :1) + :5", `{"q":{"N":"6"}}`},
		{"SET n = s, s = n", `{"n":{"S":"hello"},"s":{"N":"5"}}`},
		{"SET l = list_append(:l, l)", `{"l":{"L":[{"N":"1"},{"N":"1"},{"S":"x"},{"M":{"z":{"N":"9"}}}]}}`},
		{"SET l[9] = :6, l[5] = :5", `{"l":{"L":[{"N":"1"},{"S":"x"},{"M":{"z":{"N":"9"}}},{"N":"5"},{"N":"6"}]}}`},
		{"SET l[1] = :5 REMOVE l[0]", `{"l":{"L":[{"N":"5"},{"M":{"z":{"N":"9"}}}]}}`},
		{"REMOVE l[0], l[1]", `{"l":{"L":[{"M":{"z":{"N":"9"}}}]}}`},
		{"REMOVE m.d.e SET m.a = :1", `{"m":{"M":{"a":{"N":"1"},"d":{"M":{}}}}}`},
		{"ADD n :1, q :5, ss :ss", `{"n":{"N":"6"},"q":{"N":"5"},"ss":{"SS":["a","b","c"]}}`},
		{"DELETE ss :ss", `{"ss":{"SS":["a"]}}`},
		{"SET l[2].z = m", `{"l":{"L":[{"N":"1"},{"S":"x"},{"M":{"z":{"M":{"a":{"S":"q"},"d":{"M":{"e":{"N":"0.5"}}}}}}}]}}`},
	} {
		t.Run(tt.src, func(t *testing.T) {
			before := item(t, sample)
			u, err := expr.ParseUpdate(tt.src, &expr.Env{Values: item(t, values)})
			require.NoError(t, err)
			got, err := u.Apply(before)
			require.NoError(t, err)
			want := before.Clone()
			maps.Copy(want, item(t, tt.attrs))
			assert.JSONEq(t, string(want.Append(nil)), string(got.Append(nil)))
			assert.True(t, attr.EqualItems(item(t, sample), before), "the item itself is not touched")
		})
	}
}

func TestUpdate_RefusesWhatIsWrong(t *testing.T) {
	for _, tt := range []struct{ src, want string }{
		{"SET n = :1 SET s = :1", `The "SET" section can only be used once in an update expression;`},
		{"SET m.a = :1, m = :1", "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [m, a], path two: [m]"},
		{"SET m.a = :1, m[0] = :1", "Two document paths conflict with each other"},
		{"ADD n :h", "operator: ADD, operand type: STRING, typeSet: ALLOWED_FOR_ADD_OPERAND"},
		{"SET n = n + :1 + :1", `Syntax error; token: "+", near: ":1 + :1"`},
		{"SET n = size(s)", "The function is not allowed in an update expression; function: size"},
		{"SET n = q", "The provided expression refers to an attribute that does not exist in the item"},
		{"SET q = if_not_exists(n, r)", "The provided expression refers to an attribute that does not exist in the item"},
		{"SET q = if_not_exists(n, n)", "The first operand must be distinct from the remaining operands for this operator or function; operator: if_not_exists, first operand: [n]"},
		{"SET n = s + :1", "An operand in the update expression has an incorrect data type"},
		{"SET q.a = :1", "The document path provided in the update expression is invalid for update"},
		{"REMOVE l.a", "The document path provided in the update expression is invalid for update"},
		{"DELETE n :ss", "An operand in the update expression has an incorrect data type"},
	} {
		u, err := expr.ParseUpdate(tt.src, &expr.Env{Values: item(t, values)})
		if err == nil {
			_, err = u.Apply(item(t, sample))
		}
		require.ErrorContains(t, err, tt.want, tt.src)
	}
}

func TestProjection_KeepsWhatItNames(t *testing.T) {
	p, err := expr.ParseProjection("s, m.d.e, l[2].z, l[0], gone", &expr.Env{})
	require.NoError(t, err)
	got := p.Apply(item(t, sample))
	assert.JSONEq(t, `{"s":{"S":"hello"},"m":{"M":{"d":{"M":{"e":{"N":"0.5"}}}}},"l":{"L":[{"N":"1"},{"M":{"z":{"N":"9"}}}]}}`, string(got.Append(nil)))
}

func TestUnused_NamesPlaceholders(t *testing.T) {
	env := &expr.Env{Names: map[string]string{"#n": "n"}, Values: item(t, `{":5":{"N":"5"},":6":{"N":"6"}}`)}
	_, err := expr.ParseCondition("#n = :5", env)
	require.NoError(t, err)
	require.EqualError(t, env.Unused(), "Value provided in ExpressionAttributeValues unused in expressions: keys: {:6}")
}

// FuzzExpressions: no expression makes the parser or the evaluator panic or hang, and an update never touches its input.
func FuzzExpressions(f *testing.F) {
	for _, s := range []string{
		"n = :5 AND (attribute_exists(m.a) OR NOT l[0] < :6)", "begins_with(s, :h)", "n BETWEEN :1 AND :6", "n IN (:1, :5)", "size(s) > :1",
		"SET n = if_not_exists(q, :1) + n, l[0] = list_append(l, :l) REMOVE m.d.e ADD ss :ss DELETE ss :ss", "SET m.a = (n - :1)", "a, b.c, l[0]",
		"((n = :5))", "l[99999999999]", "#a.#b", ":", "#", "n = ", "NOT NOT n = :5",
	} {
		f.Add(s)
	}
	it := item(f, sample)
	vals := item(f, values)
	frozen := string(it.Append(nil))
	f.Fuzz(func(t *testing.T, src string) {
		env := &expr.Env{Names: map[string]string{"#a": "m", "#b": "a"}, Values: vals}
		if c, err := expr.ParseCondition(src, env); err == nil {
			c.Holds(it)
			c.Holds(nil)
		}
		if p, err := expr.ParseProjection(src, env); err == nil {
			p.Apply(it)
		}
		if k, err := expr.ParseKeyCondition(src, env); err == nil {
			if terms, err := k.Terms(); err == nil {
				for _, term := range terms {
					require.NotEmpty(t, term.Values)
				}
			}
		}
		if u, err := expr.ParseUpdate(src, env); err == nil {
			_, _ = u.Apply(it)
			require.Equal(t, frozen, string(it.Append(nil)))
		}
	})
}
