package table_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/mortise-go/mortise/internal/attrvalue"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/engines/faulty"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

var errTaken = errors.New("taken")

func TestWrite_OneOperationAndSeveralMeanTheSame(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		for _, many := range []bool{false, true} {
			write := func(op table.Op) error {
				if !many {
					return f.Write(t.Context(), op)
				}
				return f.Write(t.Context(), op, table.Update(key("other", "o"), table.Attr("n").Add(1)))
			}
			t.Run(fmt.Sprintf("several=%v", many), func(t *testing.T) {
				sk := fmt.Sprint("s", many)
				absent := table.Attr("PartKey").NotExists()
				require.NoError(t, write(table.Put(f.item("p", sk, "v", 1)).If(absent)))

				err := write(table.Put(f.item("p", sk, "v", 2)).If(absent).Explain(func(table.Item) error { return errTaken }))
				var failed *table.ConditionError
				require.ErrorAs(t, err, &failed)
				assert.ErrorIs(t, err, table.ErrCondition)
				assert.ErrorIs(t, err, errTaken)
				assert.Equal(t, 0, failed.Index)
				assert.True(t, attrvalue.SameItem(f.item("p", sk, "v", 1), failed.Item), "what stood in the way")
				assert.False(t, failed.Repeated)
				var single *types.ConditionalCheckFailedException
				var whole *types.TransactionCanceledException
				assert.Equal(t, many, errors.As(err, &whole), "the SDK's error stays in the chain")
				assert.Equal(t, !many, errors.As(err, &single), "the SDK's error stays in the chain")

				require.NoError(t, write(table.Update(key("p", sk), table.Attr("v").Add(1)).If(table.Attr("v").Equal(1))))
				require.ErrorIs(t, write(table.Update(key("p", sk), table.Attr("v").Add(1)).If(table.Attr("v").Equal(1))), table.ErrCondition)
				assert.Equal(t, num("2"), f.get(t, "p", sk)["v"])

				require.ErrorIs(t, write(table.Delete(key("p", sk)).If(table.Attr("v").Equal(1))), table.ErrCondition)
				require.NoError(t, write(table.Delete(key("p", sk)).If(table.Attr("v").Equal(2))))
				assert.Nil(t, f.get(t, "p", sk))
				require.NoError(t, write(table.Delete(key("p", sk))), "deleting nothing is no error")

				err = write(table.Delete(key("p", sk)).If(table.Attr("v").Exists()))
				require.ErrorAs(t, err, &failed)
				assert.Nil(t, failed.Item, "nothing stood there")
			})
		}
	})
}

func TestWrite_SendsThePlainestRequestThatDoes(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		put := table.Put(f.item("p", "s"))
		check := table.Check(key("p", "s"), table.Attr("PartKey").Exists())
		for _, c := range []struct {
			name string
			ops  []table.Op
			want string
		}{
			{"put", []table.Op{put}, "PutItem"},
			{"update", []table.Op{table.Update(key("p", "s"), table.Attr("v").Set(1))}, "UpdateItem"},
			{"check alone", []table.Op{check}, "TransactWriteItems"},
			{"delete", []table.Op{table.Delete(key("p", "s"))}, "DeleteItem"},
			{"with", []table.Op{put.With(table.Delete(key("p", "t")))}, "TransactWriteItems"},
			{"two", []table.Op{put, table.Delete(key("p", "t"))}, "TransactWriteItems"},
		} {
			f.faults.Script()
			require.NoError(t, f.Write(t.Context(), c.ops...), c.name)
			assert.Equal(t, []string{c.want}, f.faults.Sent(), c.name)
		}
	})
}

func TestWrite_ReportsEveryFailedConditionOfATransaction(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		f.put(t, f.item("p", "1", "v", 1), f.item("p", "3", "v", 3), f.item("p", "4", "v", 4))
		absent := table.Attr("PartKey").NotExists()
		explain := func(name string) func(table.Item) error {
			return func(item table.Item) error { return fmt.Errorf("%s: %d attributes", name, len(item)) }
		}
		err := f.Write(t.Context(),
			table.Put(f.item("p", "0")),
			table.Put(f.item("p", "1")).If(absent).Explain(explain("one")),
			table.Put(f.item("p", "2")).
				With(table.Check(key("p", "3"), absent).Explain(explain("companion"))).
				With(table.Put(f.item("p", "5"))),
			table.Delete(key("p", "4")).If(table.Attr("v").Equal(5)),
		)
		list := table.Conditions(err)
		require.Len(t, list, 3)
		var all table.ConditionErrors
		require.ErrorAs(t, err, &all)
		assert.Equal(t, []int{1, 2, 3}, []int{list[0].Index, list[1].Index, list[2].Index}, "a companion has the index of its operation")
		assert.EqualError(t, list[0].Err, "one: 3 attributes")
		assert.EqualError(t, list[1].Err, "companion: 3 attributes")
		assert.NoError(t, list[2].Err)
		assert.Equal(t, num("4"), list[2].Item["v"])
		assert.Equal(t, "table: write: operation 1 (put): one: 3 attributes; "+
			"operation 2 (check): companion: 3 attributes; "+
			"operation 3 (delete): condition does not hold", err.Error())
		assert.ErrorIs(t, err, table.ErrCondition)
		for _, sk := range []string{"0", "2", "5"} {
			assert.Nil(t, f.get(t, "p", sk), "all or nothing")
		}
		assert.Len(t, table.Conditions(list[1]), 1)
		assert.Empty(t, table.Conditions(errTaken))
	})
}

func TestExplain_FallsBackOnEarlierOnes(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		op := table.Check(key("p", "s"), table.Attr("v").Exists()).Explain(func(table.Item) error { return errTaken })
		later := op.Explain(func(table.Item) error { return nil })
		assert.ErrorIs(t, f.Write(t.Context(), later), errTaken)
		other := errors.New("other")
		last := op.Explain(func(table.Item) error { return other }).Explain(nil)
		err := f.Write(t.Context(), last)
		assert.ErrorIs(t, err, other)
		assert.NotErrorIs(t, err, errTaken)
	})
}

// Go maps have their elements in any order. The operation is built anew each time, as after a crash.
func TestWriteOnce_SetsOfGoMapsAreTheSameEachTime(t *testing.T) {
	type sets struct {
		Words   map[string]struct{} `dynamo:",set"`
		Numbers map[int]bool        `dynamo:",set"`
		Blobs   [][]byte            `dynamo:",set"`
	}
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		token, want := rand.Text(), table.Item{"Words": strs("a", "b", "c", "d"), "Numbers": nums("-1", "1", "10", "9"), "Blobs": blobs("a", "b", "c", "d")}
		for i := range 10 {
			v := sets{
				Words:   map[string]struct{}{"a": {}, "b": {}, "c": {}, "d": {}},
				Numbers: map[int]bool{-1: true, 1: true, 9: true, 10: true},
				Blobs:   [][]byte{{'a'}, {'b'}, {'c'}, {'d'}},
			}
			v.Blobs[0], v.Blobs[i%4] = v.Blobs[i%4], v.Blobs[0]
			op := table.Update(key("p", "s"), table.Attr("v").Set(map[string]any{"list": []sets{v}}), table.Attr("n").Add(1))
			require.NoError(t, f.WriteOnce(t.Context(), token, op))
		}
		item := f.get(t, "p", "s")
		assert.Equal(t, num("1"), item["n"])
		got := item["v"].(*types.AttributeValueMemberM).Value["list"].(*types.AttributeValueMemberL).Value[0].(*types.AttributeValueMemberM)
		assert.True(t, attrvalue.SameItem(want, got.Value))
	})
}

func TestWriteOnce_AppliesOnce(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		add := func(n int) table.Op { return table.Update(key("p", "s"), table.Attr("n").Add(n)) }
		token := rand.Text() + strings.Repeat("t", 10) // of its own, since a token is the account's and not the table's
		for range 3 {
			require.NoError(t, f.WriteOnce(t.Context(), token, add(1)))
		}
		assert.Equal(t, num("1"), f.get(t, "p", "s")["n"])
		err := f.WriteOnce(t.Context(), token, add(2))
		require.ErrorIs(t, err, table.ErrInvalid, "one token, other operations")
		var mismatch *types.IdempotentParameterMismatchException
		assert.ErrorAs(t, err, &mismatch)
		require.NoError(t, f.WriteOnce(t.Context(), rand.Text(), add(1)))
		assert.Equal(t, num("2"), f.get(t, "p", "s")["n"])
		require.NoError(t, f.WriteOnce(t.Context(), rand.Text()+strings.Repeat("é", 10), add(1)), "characters, not bytes")
		require.NoError(t, f.WriteOnce(t.Context(), rand.Text()+strings.Repeat("😀", 5), add(1)))
		for _, bad := range []string{"", strings.Repeat("t", 37), strings.Repeat("é", 37), strings.Repeat("😀", 19), "a\xff"} {
			f.faults.Script()
			assert.ErrorIs(t, f.WriteOnce(t.Context(), bad, add(1)), table.ErrInvalid, "%q", bad)
			assert.Empty(t, f.faults.Sent())
		}
	})
}

func TestWrite_HoldsOneHundredActions(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		op := table.Put(f.item("p", "0"))
		for i := 1; i < table.MaxOps; i++ {
			op = op.With(table.Put(f.item("p", fmt.Sprint(i))))
		}
		require.NoError(t, f.Write(t.Context(), op))
		f.faults.Script()
		err := f.Write(t.Context(), op, table.Put(f.item("p", "one more")))
		require.ErrorIs(t, err, table.ErrInvalid)
		assert.ErrorContains(t, err, "101 actions")
		assert.Empty(t, f.faults.Sent())
	})
}

func TestWrite_RefusesBadOperationsBeforeAnythingIsSent(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		put := table.Put(f.item("p", "s"))
		exists := table.Attr("PartKey").Exists()
		set := table.Attr("v").Set(1)
		n := table.Attr("n")
		long := strings.Repeat("x", 1025)
		other, err := table.Open(e.Client(), table.Schema{Name: "other"})
		require.NoError(t, err)
		for _, c := range []struct {
			name string
			ops  []table.Op
			text string
		}{
			{"none", nil, "no operations"},
			{"zero", []table.Op{{}}, "empty operation"},
			{"zero among others", []table.Op{put, {}}, "operation 1: invalid request: empty operation"},
			{"duplicates", []table.Op{put, table.Delete(key("p", "x")), table.Delete(key("p", "s"))}, "operations 0 and 2 are on one item"},
			{"duplicate companion", []table.Op{put.With(table.Check(key("p", "s"), exists))}, "operations 0 and 0 are on one item, which one of them changes beside its own"},
			{"check without condition", []table.Op{table.Check(key("p", "s"), table.Cond{})}, "check without a condition"},
			{"update without changes", []table.Op{table.Update(key("p", "s"))}, "update without changes"},
			{"update of a key", []table.Op{table.Update(key("p", "s"), table.Attr("SortKey").Set("x"))}, `key attribute "SortKey"`},
			{"changes on a put", []table.Op{put.Changing(set)}, "changes on a put"},
			{"no key", []table.Op{table.Put(table.Item{"PartKey": str("p")})}, `without the key attribute "SortKey"`},
			{"number as key", []table.Op{table.Put(table.Item{"PartKey": str("p"), "SortKey": num("1")})}, `"SortKey" is not a string`},
			{"nil item", []table.Op{table.Put(nil)}, `without the key attribute "PartKey"`},
			{"empty key", []table.Op{table.Delete(key("p", ""))}, "SK"},
			{"item with an empty key", []table.Op{table.Put(table.Item{"PartKey": str("p"), "SortKey": str("")})}, "SK"},
			{"long key", []table.Op{table.Delete(key("p", long))}, "too long"},
			{"invalid UTF-8", []table.Op{table.Delete(key("p\xff", "s"))}, "UTF-8"},
			{"key with an error", []table.Op{table.Delete(keys.InvalidKey(errTaken))}, "taken"},
			{"invalid", []table.Op{table.Invalid(fmt.Errorf("%w: %w", table.ErrInvalid, errTaken))}, "operation 0: invalid request: taken"},
			{"invalid companion", []table.Op{put, table.Delete(key("p", "x")).With(table.Invalid(table.ErrInvalid))}, "operation 1"},
			{"empty name", []table.Op{put.If(table.Attr("").Exists())}, "empty attribute name"},
			{"empty field", []table.Op{put.If(table.Attr("m").Field("").Exists())}, "empty attribute name"},
			{"name not UTF-8", []table.Op{put.If(table.Attr("m").Field("\xff").Exists())}, "not valid UTF-8"},
			{"another table", []table.Op{put.In(other)}, "operation 0: invalid request: an operation on table other"},
			{"companion on another table", []table.Op{put.With(table.Delete(key("p", "x")).In(other))}, "an operation on table other"},
			{"negative index", []table.Op{put.If(table.Attr("l").At(-1).Exists())}, "negative index"},
			{"In without values", []table.Op{put.If(n.In())}, "1 to 100"},
			{"In with too many", []table.Op{put.If(n.In(make([]any, 101)...))}, "1 to 100"},
			{"Exists of a value", []table.Op{put.If(table.Value(1).Exists())}, "asked of an attribute"},
			{"Plus in a condition", []table.Op{put.If(n.Equal(n.Plus(1)))}, "Plus does not belong"},
			{"OrElse in a condition", []table.Op{put.If(n.OrElse(1).Equal(1))}, "OrElse does not belong"},
			{"Append in a condition", []table.Op{put.If(n.Append(list()).Equal(1))}, "Append does not belong"},
			{"Size in a change", []table.Op{table.Update(key("p", "s"), n.Set(n.Size()))}, "Size does not belong"},
			{"sum of sums", []table.Op{table.Update(key("p", "s"), n.Set(n.Plus(1).Plus(2)))}, "Plus does not belong"},
			{"change of a value", []table.Op{table.Update(key("p", "s"), table.Value(1).Set(2))}, "only an attribute"},
			{"Add of an attribute", []table.Op{table.Update(key("p", "s"), n.Add(n))}, "values only"},
			{"Add of a text", []table.Op{put, table.Update(key("p", "x"), n.Add("1"))}, "operation 1: invalid request: Add takes a number or a set"},
			{"Add of a list", []table.Op{put, table.Update(key("p", "x"), n.Add([]int{1}))}, "operation 1: invalid request: Add takes a number or a set"},
			{"RemoveFrom with a number", []table.Op{put, table.Update(key("p", "x"), n.RemoveFrom(1))}, "operation 1: invalid request: RemoveFrom takes a set"},
			{"zero change", []table.Op{table.Update(key("p", "s"), table.Change{})}, "empty attribute name"},
			{"nil value", []table.Op{put.If(n.Equal(nil))}, "no value"},
			{"typed nil value", []table.Op{put.If(n.Equal((*types.AttributeValueMemberS)(nil)))}, "is nil"},
			{"nil in a set", []table.Op{put.If(n.Equal(&types.AttributeValueMemberBS{Value: [][]byte{{1}, nil}}))}, "is nil"},
			{"nil key", []table.Op{table.Put(table.Item{"PartKey": (*types.AttributeValueMemberS)(nil), "SortKey": str("s")})}, `"PartKey" is not a string`},
			{"nil table", []table.Op{put.In(nil)}, "a table that is nil"},
			{"nil pointer", []table.Op{put.If(n.Equal((*int)(nil)))}, "no value"},
			{"unsupported value", []table.Op{put.If(n.Equal(make(chan int)))}, "a chan int cannot be encoded"},
		} {
			for _, several := range []bool{false, true} {
				ops := c.ops
				if several && len(ops) > 0 {
					ops = append(append([]table.Op(nil), ops...), table.Put(f.item("p", "unrelated")))
				}
				f.faults.Script()
				err := f.Write(t.Context(), ops...)
				assert.ErrorContains(t, err, c.text, c.name)
				assert.Empty(t, f.faults.Sent(), c.name)
				if c.name != "key with an error" {
					assert.ErrorIs(t, err, table.ErrInvalid, c.name)
				} else {
					assert.ErrorIs(t, err, errTaken, c.name)
				}
			}
		}
	})
}

func TestApply_ReturnsWhatIsAsked(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		before, after := f.item("p", "s", "v", 1), f.item("p", "s", "v", 2)
		none, err := f.Apply(t.Context(), table.Put(before), table.ReturnOld)
		require.NoError(t, err)
		assert.Nil(t, none)
		set := table.Update(key("p", "s"), table.Attr("v").Set(2))
		now, err := f.Apply(t.Context(), set, table.ReturnNew)
		require.NoError(t, err)
		assert.True(t, attrvalue.SameItem(after, now))
		old, err := f.Apply(t.Context(), table.Delete(key("p", "s")), table.ReturnOld)
		require.NoError(t, err)
		assert.True(t, attrvalue.SameItem(after, old))

		f.faults.Script()
		for name, call := range map[string]struct {
			op table.Op
			r  table.Returned
		}{
			"new of a put":    {table.Put(before), table.ReturnNew},
			"new of a delete": {table.Delete(key("p", "s")), table.ReturnNew},
			"unknown":         {set, "SOME_OF_IT"},
			"empty":           {set, ""},
			"check":           {table.Check(key("p", "s"), table.Attr("v").Exists()), table.ReturnNone},
			"nothing":         {table.Op{}, table.ReturnOld},
			"transaction":     {set.With(table.Delete(key("p", "t"))), table.ReturnNone},
		} {
			_, err := f.Apply(t.Context(), call.op, call.r)
			assert.ErrorIs(t, err, table.ErrInvalid, name)
		}
		assert.Empty(t, f.faults.Sent())
	})
}

func TestWrite_SurvivesLostAnswers(t *testing.T) {
	absent := table.Attr("PartKey").NotExists()
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		server := faulty.Refuse(500, "InternalServerError")

		t.Run("a transaction is applied once", func(t *testing.T) {
			f.faults.Script(faulty.DropReply, faulty.DropRequest, faulty.DropReply, server)
			require.NoError(t, f.Write(t.Context(),
				table.Update(key("p", "tx"), table.Attr("n").Add(1)),
				table.Put(f.item("p", "tx2")).If(absent)))
			assert.Len(t, f.faults.Sent(), 5)
			assert.Equal(t, num("1"), f.get(t, "p", "tx")["n"])
		})
		t.Run("an unconditional add is applied per attempt", func(t *testing.T) {
			f.faults.Script(faulty.DropReply)
			require.NoError(t, f.Write(t.Context(), table.Update(key("p", "add"), table.Attr("n").Add(1))))
			assert.Equal(t, num("2"), f.get(t, "p", "add")["n"], "which is why WriteOnce exists")
			f.faults.Script(faulty.DropReply)
			require.NoError(t, f.WriteOnce(t.Context(), rand.Text(), table.Update(key("p", "add"), table.Attr("n").Add(1))))
			assert.Equal(t, num("3"), f.get(t, "p", "add")["n"])
		})
		for name, c := range map[string]struct {
			first    faulty.Outcome
			applied  bool
			repeated bool
		}{
			"lost answer":   {faulty.DropReply, true, true},
			"lost request":  {faulty.DropRequest, false, true},
			"server error":  {server, false, true},
			"throttled":     {faulty.Throttle(), false, false},
			"a clear error": {faulty.Refuse(400, "TransactionConflictException"), false, false},
		} {
			t.Run("a condition after a "+name, func(t *testing.T) {
				item := f.item("p", name, "v", 1)
				if !c.applied {
					f.put(t, item) // somebody else's
				}
				f.faults.Script(c.first)
				err := f.Write(t.Context(), table.Put(item).If(absent))
				var failed *table.ConditionError
				require.ErrorAs(t, err, &failed)
				assert.Equal(t, c.repeated, failed.Repeated, "whether Item may be the operation's own")
				assert.True(t, attrvalue.SameItem(item, failed.Item))
			})
		}
	})
}

func TestOp_PrintsNoKeysAndNoValues(t *testing.T) {
	const canary = "canary"
	tbl, err := table.Open(tabletest.New(t).Client(), table.Schema{Name: "app"})
	require.NoError(t, err)
	v := table.Attr("v")
	for want, op := range map[string]table.Op{
		"delete":              table.Delete(key(canary, canary)),
		"put on table app":    table.Put(table.Item{"pk": str(canary)}).In(tbl),
		"update on table app": table.Update(key(canary, "s"), v.Set(canary)).If(v.Equal(canary)).With(table.Check(key(canary, "t"), v.Exists())).In(tbl),
		"nothing":             {},
	} {
		assert.Equal(t, want, op.String())
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			for _, x := range []any{op, &op, []table.Op{op}, struct{ Op table.Op }{op}} {
				assert.NotContains(t, fmt.Sprintf(verb, x), canary, verb)
			}
		}
		var b bytes.Buffer
		slog.New(slog.NewJSONHandler(&b, nil)).Info("op", "op", op, "list", []table.Op{op})
		slog.New(slog.NewTextHandler(&b, nil)).Info("op", "op", op, "list", []table.Op{op})
		assert.NotContains(t, b.String(), canary)
	}
}

func TestOp_IsAValue(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		base := table.Update(key("p", "s"), append(make([]table.Change, 0, 8), table.Attr("base").Set(1))...).
			With(append(make([]table.Op, 0, 8), table.Put(f.item("p", "with")))...)
		a := base.Changing(table.Attr("a").Set(1)).If(table.Attr("a").NotExists()).With(table.Put(f.item("p", "a")))
		b := base.Changing(table.Attr("b").Set(1)).If(table.Attr("b").NotExists()).With(table.Put(f.item("p", "b")))
		require.NoError(t, f.Write(t.Context(), a))
		require.NoError(t, f.Write(t.Context(), b))
		require.NoError(t, f.Write(t.Context(), base))
		assert.True(t, attrvalue.SameItem(f.item("p", "s", "base", 1, "a", 1, "b", 1), f.get(t, "p", "s")))
		assert.ErrorIs(t, f.Write(t.Context(), a), table.ErrCondition)
		require.NoError(t, f.Write(t.Context(), base), "its copies' conditions are not its own")

		path := table.Attr("m").Field("x")
		left, right := path.Field("l"), path.Field("r")
		require.NoError(t, f.Write(t.Context(), table.Put(f.item("p", "m", "m", map[string]any{"x": map[string]int{"l": 1, "r": 2}}))))
		require.NoError(t, f.Write(t.Context(), table.Check(key("p", "m"), table.And(left.Equal(1), right.Equal(2)))))
	})
}

func TestGet_FindsOrTellsSo(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		f.put(t, f.item("p", "s", "v", 1))
		for _, consistent := range []bool{false, true} {
			item, err := f.Get(t.Context(), key("p", "s"), consistent)
			require.NoError(t, err)
			assert.True(t, attrvalue.SameItem(f.item("p", "s", "v", 1), item))
			_, err = f.Get(t.Context(), key("p", "t"), consistent)
			assert.ErrorIs(t, err, table.ErrNotFound)
			_, err = f.Get(t.Context(), key("", "t"), consistent)
			assert.ErrorIs(t, err, table.ErrInvalid)
			assert.ErrorIs(t, err, keys.ErrEmpty)
		}
	})
}
