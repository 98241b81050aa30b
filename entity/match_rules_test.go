package entity_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-go/mortise/internal/attrvalue"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// ruled is what random rules are about: two attributes, and a part of the key.
type ruled struct {
	ID string `dynamo:"-"`
	N  int    `dynamo:"n,omitempty"`
	A  string `dynamo:"a,omitempty"`
	B  any    `dynamo:"b,omitempty"`
}

// drawRule draws a rule, and what it means.
func drawRule(t *rapid.T, depth int) (entity.Match, func(table.Item) bool) {
	attr := func() string { return rapid.SampledFrom([]string{"a", "b", "a", "b", "type"}).Draw(t, "attribute") }
	last := 6
	if depth == 0 {
		last = 3
	}
	switch rapid.IntRange(0, last).Draw(t, "rule") {
	case 0:
		name := attr()
		return entity.HasAttr(name), func(row table.Item) bool { _, ok := row[name]; return ok }
	case 1:
		name, values := attr(), rapid.SliceOfNDistinct(rapid.SampledFrom([]any{"1", "2", 3}), 1, 2, rapid.ID).Draw(t, "values")
		return entity.AttrEquals(name, values...), func(row table.Item) bool {
			switch have := row[name].(type) {
			case *types.AttributeValueMemberS:
				return slices.Contains(values, any(have.Value))
			case *types.AttributeValueMemberN:
				return have.Value == "3" && slices.Contains(values, any(3))
			}
			return false
		}
	case 2:
		pattern := rapid.SampledFrom([]string{"x", "y", "[xy]", "x+"}).Draw(t, "pattern")
		matches := map[string]string{"x": "x", "y": "y", "[xy]": "x y", "x+": "x xx"}[pattern]
		return entity.KeyPart("id", pattern), func(row table.Item) bool {
			return slices.Contains(strings.Fields(matches), strings.TrimPrefix(text(row, "pk"), "R#"))
		}
	case 3:
		return entity.Match{}, func(table.Item) bool { return true }
	case 4, 5:
		m, one := drawRule(t, depth-1)
		n, two := drawRule(t, depth-1)
		return entity.And(m, n), func(row table.Item) bool { return one(row) && two(row) }
	default:
		m, one := drawRule(t, depth-1)
		return entity.Not(m), func(row table.Item) bool { return !one(row) }
	}
}

var (
	// The texts of the key's part and the values of attributes that rules can tell apart: one of each kind.
	ruledIDs    = []string{"x", "y", "xx", "z"}
	ruledValues = []types.AttributeValue{nil, strf("1"), strf("2"), &types.AttributeValueMemberN{Value: "3"}, &types.AttributeValueMemberN{Value: "1"}}
)

func ruledRow(id string, typ, a, b types.AttributeValue) table.Item {
	row := table.Item{"pk": strf("R#%s", id), "sk": strf("R")}
	for name, av := range map[string]types.AttributeValue{"type": typ, "a": a, "b": b} {
		if av != nil {
			row[name] = av
		}
	}
	return row
}

// ruledRows are all rows that rules can tell apart.
func ruledRows(typ types.AttributeValue) (rows []table.Item) {
	for _, id := range ruledIDs {
		for _, a := range ruledValues {
			for _, b := range ruledValues {
				rows = append(rows, ruledRow(id, typ, a, b))
			}
		}
	}
	return rows
}

func ruledTable(t require.TestingT) *table.Table {
	tbl, err := table.Open(dynamodb.NewFromConfig(aws.Config{Region: "us-east-1"}), table.Schema{Name: "app"})
	require.NoError(t, err)
	return tbl
}

// Define refuses two rules exactly if there is a row for which both hold, and one rule exactly if there is none for which
// it holds, as a search through all rows that rules can tell apart finds out.
func TestMatchIsRefusedExactlyWhereARowIsOfTwoTypes(t *testing.T) {
	counts := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		m, one := drawRule(t, 3)
		n, two := drawRule(t, 3)
		first := entity.Spec[ruled]{Type: "1", PK: "R#{id}", SK: "R", Match: m}
		second := entity.Spec[ruled]{Type: "2", PK: "R#{id}", SK: "R", Match: n}
		for _, c := range []struct {
			spec entity.Spec[ruled]
			has  func(table.Item) bool
		}{{first, one}, {second, two}} {
			e, err := entity.Define(ruledTable(t), c.spec)
			own := ruledRows(strf("%s", c.spec.Type))
			if !slices.ContainsFunc(ruledRows(nil), c.has) && !slices.ContainsFunc(own, c.has) {
				require.ErrorContains(t, err, "no row matches", "%s", c.spec.Match)
				counts["nothing"]++
				return
			}
			require.NoError(t, err)
			for _, row := range ruledRows(nil) {
				require.Equal(t, c.has(row), e.Owns(row), "%s and %v", c.spec.Match, row)
			}
			for _, row := range own {
				require.True(t, e.Owns(row))
			}
		}
		tbl := ruledTable(t)
		_, err := entity.Define(tbl, first)
		require.NoError(t, err)
		_, err = entity.Define(tbl, second)
		if slices.ContainsFunc(ruledRows(nil), func(row table.Item) bool { return one(row) && two(row) }) {
			require.ErrorContains(t, err, "could be the key of", "%s and %s", m, n)
			counts["common"]++
		} else {
			require.NoError(t, err, "%s and %s", m, n)
			counts["apart"]++
		}
	})
	for _, what := range []string{"nothing", "common", "apart"} {
		assert.Positive(t, counts[what], what)
	}
}

// What a rule says of a row that was read is what DynamoDB says of the condition that it makes of a write; and a write
// that is accepted leaves a row that matches.
func TestMatchIsTheConditionOfWrites(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		s := table.Schema{Name: e.TableName(t), NoTTL: true}
		raw, err := table.Open(e.Client(), s)
		require.NoError(t, err)
		require.NoError(t, raw.Ensure(t.Context()))
		ctx := t.Context()
		counts := map[string]int{}
		rapid.Check(t, func(t *rapid.T) {
			tbl, err := table.Open(e.Client(), s) // with no definitions of others
			require.NoError(t, err)
			m, has := drawRule(t, 3)
			things, err := entity.Define(tbl, entity.Spec[ruled]{Type: "1", PK: "R#{id}", SK: "R", Match: m, Untyped: rapid.Bool().Draw(t, "untyped")})
			if err != nil {
				require.ErrorContains(t, err, "no row matches")
				return
			}
			value := rapid.SampledFrom(ruledValues)
			id := rapid.SampledFrom(ruledIDs).Draw(t, "id")
			row := ruledRow(id, rapid.SampledFrom([]types.AttributeValue{nil, nil, strf("1"), strf("2")}).Draw(t, "type"), value.Draw(t, "a"), value.Draw(t, "b"))
			delete(row, "a") // a number there does not decode
			if a := rapid.SampledFrom([]types.AttributeValue{nil, strf("1"), strf("2"), strf("4")}).Draw(t, "text"); a != nil {
				row["a"] = a
			}
			require.NoError(t, raw.Write(ctx, table.Put(row)))
			typ, typed := row["type"]
			owns := has(row) && !typed || typed && attrvalue.Same(typ, strf("1"))
			change := rapid.SampledFrom([]entity.Change{
				entity.Set("n", 1), entity.Set("a", "1"), entity.Set("a", "2"), entity.Set("a", ""), entity.Remove("a"), entity.Remove("b"), entity.Add("n", 1),
			}).Draw(t, "change")
			_, err = things.Update(ctx, ruled{ID: id}, change)
			now, readErr := raw.Get(ctx, keys.NewKey("R#"+id, "R"), true)
			require.NoError(t, readErr)
			switch {
			case err == nil:
				counts["written"]++
				require.True(t, owns, "%s and %v", m, row)
				require.True(t, things.Owns(now), "%s and %v, which was %v", m, now, row)
			case errors.Is(err, entity.ErrMatch):
				counts["refused"]++
				require.Equal(t, row, now)
				after := maps.Clone(row)
				switch change {
				case entity.Set("a", "1"):
					after["a"] = strf("1")
				case entity.Set("a", "2"):
					after["a"] = strf("2")
				case entity.Remove("b"):
					delete(after, "b")
				default:
					delete(after, "a")
				}
				delete(after, "type")
				require.False(t, things.Owns(after), "%s: %v could have become %v", m, row, after)
			default:
				require.ErrorIs(t, err, entity.ErrType, "%s and %v", m, row)
				require.Equal(t, row, now)
				counts["another's"]++
			}
			err = things.Delete(ctx, ruled{ID: id})
			require.Equal(t, things.Owns(now), err == nil, "%s and %v: %v", m, now, err)
		})
		for _, what := range []string{"written", "refused", "another's"} {
			assert.Positive(t, counts[what], what)
		}
		t.Log(counts)
	})
}
