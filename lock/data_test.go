package lock_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

type progress struct {
	Host  string   `dynamo:"host"`
	Done  int      `dynamo:"done"`
	Parts []string `dynamo:"parts"`
}

// decoded is a payload as text, or "none".
func decoded(t *testing.T, d lock.Data) string {
	t.Helper()
	var s string
	err := d.Decode(&s)
	if d.IsZero() {
		require.ErrorIs(t, err, table.ErrNotFound)
		return "none"
	}
	require.NoError(t, err)
	return s
}

func TestData_StaysUntilReplaced(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		target := lock.Name("report")
		inspect := func() lock.Record {
			p.Helper()
			r, err := p.client.Inspect(ctx, target)
			require.NoError(p, err)
			return r
		}
		want := progress{Host: "a", Done: 3, Parts: []string{"x", ""}}
		l, err := p.client.Acquire(ctx, target, lock.WithData(want))
		require.NoError(p, err)
		var got progress
		require.NoError(p, l.Data().Decode(&got))
		assert.Equal(p, want, got)
		_, err = p.open(lock.Config{}).TryAcquire(ctx, target, lock.WithData("not written"))
		var held *lock.HeldError
		require.ErrorAs(p, err, &held)
		got = progress{}
		require.NoError(p, held.Data.Decode(&got))
		assert.Equal(p, want, got)

		want.Done = 4
		require.NoError(p, l.SetData(ctx, want))
		got = progress{}
		require.NoError(p, inspect().Data.Decode(&got))
		assert.Equal(p, want, got)
		assert.EqualValues(p, 1, inspect().Edits)
		require.NoError(p, l.Release(ctx))
		require.ErrorIs(p, l.SetData(ctx, "late"), lock.ErrReleased)
		got = progress{}
		require.NoError(p, inspect().Data.Decode(&got))
		assert.Equal(p, want, got, "kept on release")

		for _, step := range []struct {
			opts        []lock.Option
			began, left string
			set         any
		}{
			{nil, "", "begun", "begun"},
			{nil, "begun", "begun", lock.Data{}}, // removes it, see below
			{[]lock.Option{lock.WithData("own")}, "own", "own", nil},
			{[]lock.Option{lock.WithData(nil)}, "none", "", ""},
			{[]lock.Option{lock.WithData(&types.AttributeValueMemberNULL{Value: true})}, "none", "x", "x"},
			{[]lock.Option{lock.Fixed(time.Minute)}, "", "again", "again"},
			{[]lock.Option{lock.Fixed(time.Minute), lock.WithData("fixed")}, "fixed", "again", "again"},
		} {
			l, err := p.client.Acquire(ctx, target, step.opts...)
			require.NoError(p, err)
			if step.began != "" {
				assert.Equal(p, step.began, decoded(p.T, l.Data()))
			}
			require.NoError(p, l.SetData(ctx, step.set))
			if step.set == nil || step.set == (lock.Data{}) {
				assert.NotContains(p, p.raw(l), "data")
			} else {
				assert.Equal(p, step.left, decoded(p.T, inspect().Data))
			}
			require.NoError(p, l.SetData(ctx, lock.Data{}))
			assert.True(p, inspect().Data.IsZero())
			require.NoError(p, l.SetData(ctx, "begun"))
			require.NoError(p, l.Release(ctx))
		}
	})
}

// Every value that DynamoDB has comes back. A value that it does not have is refused without a request. Such values can be
// in rows that others have written.
func TestData_OfAllTypes(t *testing.T) {
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	num := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	nested := func(depth int) types.AttributeValue {
		av := text("x")
		for range depth {
			av = &types.AttributeValueMemberL{Value: []types.AttributeValue{av}}
		}
		return av
	}
	good := []any{
		"", strings.Repeat("x", lock.MaxData), make([]byte, lock.MaxData), true, 0, -1.5, uint64(math.MaxUint64), time.Now().UTC(),
		[]string{},
		map[string]int{"a": 1},
		progress{},
		map[string]any{"a": &types.AttributeValueMemberNULL{Value: true}},
		&types.AttributeValueMemberSS{Value: []string{"a", ""}}, &types.AttributeValueMemberBS{Value: [][]byte{{1}, {2}}},
		&types.AttributeValueMemberNS{Value: []string{"1", "1.5"}},
		num("9.9999999999999999999999999999999999999E125"), num("1E-130"), num("-0012.500"), num("+1"), num("0e125"), num(".5"), num("5."), nested(31),
	}
	bad := []any{
		strings.Repeat("x", lock.MaxData+1), strings.Repeat("é", lock.MaxData/2) + "x", make([]byte, lock.MaxData+1), "a\xff",
		map[string]string{"a": "\xff"},
		map[string]int{"\xff": 1},
		make(chan int), func() {}, (*progress)(nil), math.NaN(), math.Inf(1), 1e200,
		num("x"), num(""), num("1E126"), num("0e126"), num("1E-131"), num("123456789012345678901234567890123456789"), num("1e9999999999999"), num("--1"), num("1.2.3"), num("0x1"),
		&types.AttributeValueMemberNULL{}, &types.AttributeValueMemberSS{}, &types.AttributeValueMemberSS{Value: []string{"a", "a"}},
		&types.AttributeValueMemberNS{Value: []string{"1", "1.0"}}, &types.AttributeValueMemberBS{Value: [][]byte{{1}, {1}}},
		nested(40), (*types.AttributeValueMemberS)(nil), &types.AttributeValueMemberL{Value: []types.AttributeValue{nil}},
		&types.UnknownUnionMember{Tag: "x"}, strings.Repeat("x", 1<<20),
		map[string]string{"k": strings.Repeat("x", lock.MaxData-4)}, // 3 for the map, 1 for the name, 1 for the element
	}
	good = append(good, map[string]string{"k": strings.Repeat("x", lock.MaxData-5)})
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		l, err := p.client.Acquire(ctx, lock.Name("report"))
		require.NoError(p, err)
		for i, v := range good {
			require.NoError(p, l.SetData(ctx, v), "%d: %T", i, v)
			r, err := p.client.Inspect(ctx, lock.Name("report"))
			require.NoError(p, err)
			require.False(p, r.Data.IsZero(), "%d: %T", i, v)
			want, err := table.Encode(v)
			require.NoError(p, err)
			var got any
			require.NoError(p, r.Data.Decode(&got), "%d: %T", i, v)
			if _, number := want.(*types.AttributeValueMemberN); !number { // numbers come back in another notation
				require.True(p, attrvalue.SameItem(table.Item{"data": want}, table.Item{"data": p.raw(l)["data"]}), "%d: %T", i, v)
			}
			require.NoError(p, l.SetData(ctx, r.Data), "a payload is a payload")
		}
		for i, v := range bad {
			cost := totals(ctx, func(ctx context.Context) {
				require.ErrorIs(p, l.SetData(ctx, v), lock.ErrInvalid, "%d: %T", i, v)
				_, err := p.client.TryAcquire(ctx, lock.Name("other"), lock.WithData(v))
				require.ErrorIs(p, err, lock.ErrInvalid, "%d: %T", i, v)
				require.ErrorContains(p, err, "WithData")
			})
			require.Zero(p, cost.Requests, "%d: %T", i, v)
		}
	})
}

// A lock that is passed within the process has the payload that release and acquire would have given it, and the lease
// shows it.
func TestData_OfAPassIsThatOfReleaseAndAcquire(t *testing.T) {
	for _, opts := range [][]lock.Option{nil, {lock.WithData("next")}, {lock.WithData(nil)}, {lock.Fixed(time.Minute)}, {lock.Fixed(time.Minute), lock.WithData("next")}} {
		for _, before := range []any{nil, "before"} {
			for _, set := range []any{"no", nil, "set"} {
				for _, commits := range []bool{false, true} {
					virtual(t, func(ctx context.Context, w *world) {
						c := w.client(lock.Config{})
						run := func(name string, handsOver bool) (began, row string) {
							first, err := c.Acquire(ctx, lock.Name(name), lock.WithData(before))
							require.NoError(t, err)
							if set != "no" {
								require.NoError(t, first.SetData(ctx, set))
							}
							var got <-chan *lock.Lease
							if handsOver {
								got = acquireAsync(ctx, c, lock.Name(name), opts...)
							}
							ops := w.requests(func() {
								if commits {
									require.NoError(t, first.Commit(ctx, w.put("x")))
								} else {
									require.NoError(t, first.Release(ctx))
								}
							})
							require.Len(t, ops, 1)
							if !handsOver {
								got = acquireAsync(ctx, c, lock.Name(name), opts...)
							}
							next := <-got
							require.NotNil(t, next)
							require.Equal(t, first.Fence()+1, next.Fence())
							r, err := c.Inspect(ctx, lock.Name(name))
							require.NoError(t, err)
							if set == "no" {
								require.Zero(t, r.Edits)
							} else {
								require.EqualValues(t, 1, r.Edits, "no other payload was written by itself")
							}
							return decoded(t, next.Data()), decoded(t, r.Data)
						}
						began, row := run("released", false)
						assert.Equal(t, began, row)
						again, rowAgain := run("handed", true)
						assert.Equal(t, began, again)
						assert.Equal(t, row, rowAgain)
					})
				}
			}
		}
	}
}

// handOver lets another acquire wait for a lease, and then passes it the lock.
func (p *place) handOver(l *lock.Lease, opts ...lock.Option) *lock.Lease {
	p.Helper()
	got := make(chan *lock.Lease, 1)
	go func() {
		var next *lock.Lease
		cost := totals(p.Context(), func(ctx context.Context) {
			var err error
			next, err = p.client.Acquire(ctx, l.Target(), opts...)
			assert.NoError(p, err)
		})
		assert.Zero(p, cost.Requests, "it was handed over, not released and acquired")
		got <- next
	}()
	require.Eventually(p, func() bool { return lock.Queued(p.client, l.Key()) == 1 }, 10*time.Second, time.Millisecond)
	require.NoError(p, l.Release(p.Context()))
	next := <-got
	require.NotNil(p, next)
	assert.Equal(p, l.Fence()+1, next.Fence())
	return next
}

func TestData_IsWrittenWithThePass(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		l, err := p.client.Acquire(ctx, lock.Name("report"), lock.WithData("first"))
		require.NoError(p, err)
		require.NoError(p, l.SetData(ctx, "second"))
		for _, step := range []struct {
			opts []lock.Option
			want string
		}{
			{nil, "second"},
			{[]lock.Option{lock.WithData("third")}, "third"},
			{[]lock.Option{lock.Fixed(time.Minute)}, "third"},
			{[]lock.Option{lock.WithData(nil), lock.Fixed(time.Minute)}, "none"},
			{[]lock.Option{lock.WithData([]byte("x"))}, ""},
			{[]lock.Option{lock.WithData(nil)}, "none"},
			{nil, "none"},
		} {
			l = p.handOver(l, step.opts...)
			row := p.raw(l)
			assert.EqualValues(p, 1, number(p.T, row["edits"]), "it was written with the pass")
			if step.want != "" {
				assert.Equal(p, step.want, decoded(p.T, l.Data()))
			}
			assert.Equal(p, step.want == "none", row["data"] == nil)
		}
	})
}

// The answer of an acquire is lost: the lease has its own payload, and so has its row.
func TestData_OfARecognisedAcquire(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "UpdateItem", Times: 1})
		l, err := c.Acquire(ctx, lock.Name("report"), lock.WithData("mine"))
		require.NoError(t, err)
		assert.Equal(t, "mine", decoded(t, l.Data()))
	})
}

// A payload that its caller, or a reader, changes afterwards changes nowhere else.
func TestData_IsACopy(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		mine := []byte("abc")
		option := lock.WithData(mine)
		mine[0] = 'x'
		l, err := c.Acquire(ctx, lock.Name("report"), option)
		require.NoError(t, err)
		for range 2 {
			var got []byte
			require.NoError(t, l.Data().Decode(&got))
			assert.Equal(t, "abc", string(got))
			got[0] = 'y'
		}
	})
}

// hidden checks that no way to print a value, and no log record with it, shows the canary.
func hidden(t *testing.T, v any) {
	t.Helper()
	var out strings.Builder
	slog.New(slog.NewJSONHandler(&out, nil)).Info("it", "v", v)
	slog.New(slog.NewTextHandler(&out, nil)).Info("it", "v", v)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%X"} {
		fmt.Fprintf(&out, verb+"\n", v)
	}
	js, err := json.Marshal(v)
	require.NoError(t, err)
	out.Write(js)
	for _, secret := range []string{canary, fmt.Sprintf("%x", canary), fmt.Sprintf("%X", canary), fmt.Sprintf("%d", []byte(canary))} {
		assert.NotContains(t, out.String(), secret)
	}
}

// B4, of the types that carry payloads.
func TestData_IsNeverPrinted(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		for _, v := range []any{canary, []byte(canary), map[string]any{canary: []string{canary}}} {
			l, err := c.Acquire(ctx, lock.Name("report"), lock.WithData(v))
			require.NoError(t, err)
			hidden(t, l.Data())
			r, err := c.Inspect(ctx, lock.Name("report"))
			require.NoError(t, err)
			hidden(t, r)
			_, err = c.TryAcquire(ctx, lock.Name("report"))
			var held *lock.HeldError
			require.ErrorAs(t, err, &held)
			hidden(t, held)
			var n int
			for _, err := range []error{err, l.Data().Decode(&n), l.Data().Decode(nil), l.Data().Decode(n), l.SetData(ctx, canary+"\xff"), l.SetData(ctx, map[string]string{canary: "\xff"})} {
				require.Error(t, err)
				hidden(t, err)
			}
			require.NoError(t, l.Release(ctx))
		}
		assert.Equal(t, "no data", lock.Data{}.String())
		require.ErrorIs(t, lock.Data{}.Decode(new(int)), table.ErrNotFound)
		require.ErrorIs(t, lock.Data{}.Decode(nil), lock.ErrInvalid)
		require.ErrorIs(t, lock.Data{}.Decode((*int)(nil)), lock.ErrInvalid)
	})
}

// Exactly those payloads are refused that DynamoDB would refuse.
func TestWithData_IsAsDeepAsDynamoDBAllows(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		for depth := 30; depth <= 34; depth++ {
			var data types.AttributeValue = &types.AttributeValueMemberS{Value: "x"}
			for range depth {
				data = &types.AttributeValueMemberL{Value: []types.AttributeValue{data}}
			}
			refused := p.table.Write(ctx, table.Update(keys.NewKey("ROW", "ROW"), table.Attr("data").Set(data)))
			var l *lock.Lease
			var err error
			cost := totals(ctx, func(ctx context.Context) { l, err = p.client.TryAcquire(ctx, lock.Name("report"), lock.WithData(data)) })
			if refused != nil {
				require.ErrorIs(p, err, lock.ErrInvalid, "%d: %v", depth, refused)
				require.Zero(p, cost.Requests)
				continue
			}
			require.NoError(p, err, "%d", depth)
			require.NoError(p, l.Release(ctx))
		}
	})
}
