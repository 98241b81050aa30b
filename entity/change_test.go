package entity_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/table"
)

type Kinds struct {
	ID     string         `dynamo:"id"`
	S      string         `dynamo:"s"`
	Kept   string         `dynamo:"kept,allowempty"`
	I8     int8           `dynamo:"i8"`
	U      uint           `dynamo:"u,omitempty"`
	F      float64        `dynamo:"f"`
	P      *int           `dynamo:"p"`
	At     time.Time      `dynamo:"at,unixtime"`
	Set    []string       `dynamo:"set,set"`
	Nums   []int          `dynamo:"nums,set"`
	Blobs  [][]byte       `dynamo:"blobs,set"`
	List   []int          `dynamo:"list"`
	Bytes  []byte         `dynamo:"bytes"`
	Map    map[string]int `dynamo:"map"`
	Price  Cents          `dynamo:"price"`
	Colour Colour         `dynamo:"colour"`
	Null   *int           `dynamo:"null,null"`
	Array  [2]int         `dynamo:"array"`
	Fixed  *[2]string     `dynamo:"fixed"`
	Nulls  []string       `dynamo:"nulls,set,null"`
	Hidden string         `dynamo:"-"`
}

var kindsSpec = entity.Spec[Kinds]{Type: "Kinds", PK: "KINDS#{id}", SK: "KINDS"}

func TestChange_DoesWhatItsNameSays(t *testing.T) {
	seven := 7
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		kinds := define(t, f.Table, kindsSpec)
		start := Kinds{
			ID: "1", S: "s", Kept: "k", I8: 1, U: 1, F: 1, P: &seven, Set: []string{"a"}, Nums: []int{1}, Blobs: [][]byte{{1}},
			List: []int{1}, Map: map[string]int{"a": 1}, Price: Cents{100}, Colour: "red", At: time.Unix(1, 0).UTC(),
		}
		for _, c := range []struct {
			name   string
			change entity.Change
			want   func(*Kinds)
		}{
			{"Set", entity.Set("s", "x"), func(k *Kinds) { k.S = "x" }},
			{"Set by Go name", entity.Set("Colour", "blue"), func(k *Kinds) { k.Colour = "blue" }},
			{"Set to nothing removes", entity.Set("s", ""), func(k *Kinds) { k.S = "" }},
			{"Set to an empty string that is kept", entity.Set("kept", ""), func(k *Kinds) { k.Kept = "" }},
			{"Set of another integer type", entity.Set("i8", uint64(9)), func(k *Kinds) { k.I8 = 9 }},
			{"Set of a whole float", entity.Set("i8", 9.0), func(k *Kinds) { k.I8 = 9 }},
			{"Set a pointer by value", entity.Set("p", 9), func(k *Kinds) { nine := 9; k.P = &nine }},
			{"Set a pointer to nil", entity.Set("p", nil), func(k *Kinds) { k.P = nil }},
			{"Set a custom type", entity.Set("price", Cents{250}), func(k *Kinds) { k.Price = Cents{250} }},
			{"Set a map", entity.Set("map", map[string]int{"b": 2}), func(k *Kinds) { k.Map = map[string]int{"b": 2} }},
			{"Set a time", entity.Set("at", time.Unix(5, 0)), func(k *Kinds) { k.At = time.Unix(5, 0).UTC() }},
			{"Add", entity.Add("i8", 2), func(k *Kinds) { k.I8 = 3 }},
			{"Add a negative to unsigned", entity.Add("u", -1), func(k *Kinds) { k.U = 0 }},
			{"Add zero to what zero leaves out", entity.Add("u", 0), func(*Kinds) {}},
			{"Add a float", entity.Add("f", 0.5), func(k *Kinds) { k.F = 1.5 }},
			{"Add an int to a float", entity.Add("f", 2), func(k *Kinds) { k.F = 3 }},
			{"Add what a float does not hold", entity.Add("f", int64(1<<53+1)), func(k *Kinds) { k.F = 1<<53 + 2 }},
			{"Add another integer type to a pointer", entity.Add("p", int8(3)), func(k *Kinds) { ten := 10; k.P = &ten }},
			{"Add to a pointer", entity.Add("p", 3), func(k *Kinds) { ten := 10; k.P = &ten }},
			{"Add a custom number", entity.Add("price", Cents{50}), func(k *Kinds) { k.Price = Cents{150} }},
			{"Add to a set", entity.Add("set", []string{"b", "a"}), func(k *Kinds) { k.Set = []string{"a", "b"} }},
			{"Add to a set of numbers", entity.Add("nums", []int{2}), func(k *Kinds) { k.Nums = []int{1, 2} }},
			{"Add to a set of blobs", entity.Add("blobs", [][]byte{{2}}), func(k *Kinds) { k.Blobs = [][]byte{{1}, {2}} }},
			{"RemoveFrom a set", entity.RemoveFrom("nums", []int{2, 3}), func(*Kinds) {}},
			{"RemoveFrom a set all it has", entity.RemoveFrom("set", []string{"a", "z"}), func(k *Kinds) { k.Set = nil }},
			{"RemoveFrom a set of blobs", entity.RemoveFrom("blobs", [][]byte{{1}}), func(k *Kinds) { k.Blobs = nil }},
			{"Append", entity.Append("list", []int{2, 3}), func(k *Kinds) { k.List = []int{1, 2, 3} }},
			{"Append nothing", entity.Append("list", []int(nil)), func(*Kinds) {}},
			{"Remove", entity.Remove("map"), func(k *Kinds) { k.Map = nil }},
		} {
			t.Run(c.name, func(t *testing.T) {
				_, err := kinds.Put(t.Context(), start)
				require.NoError(t, err)
				want := start
				c.want(&want)
				got, err := kinds.Update(t.Context(), Kinds{ID: "1"}, c.change)
				require.NoError(t, err)
				assert.ElementsMatch(t, want.Set, got.Set)
				assert.ElementsMatch(t, want.Nums, got.Nums)
				assert.ElementsMatch(t, want.Blobs, got.Blobs)
				want.Set, want.Nums, want.Blobs, got.Set, got.Nums, got.Blobs = nil, nil, nil, nil, nil, nil
				assert.Equal(t, want, got)
			})
		}
		_, err := kinds.Put(t.Context(), Kinds{ID: "empty"})
		require.NoError(t, err)
		got, err := kinds.Update(t.Context(), Kinds{ID: "empty"}, entity.Append("list", []int{1}), entity.Add("set", []string{"x"}), entity.Add("u", 4), entity.Add("p", 1))
		require.NoError(t, err, "what is missing counts as empty")
		assert.Equal(t, []int{1}, got.List)
		assert.Equal(t, []string{"x"}, got.Set)
		assert.Equal(t, uint(4), got.U)
		assert.Equal(t, 1, *got.P)
	})
}

func TestChange_RefusesWhatDoesNotFit(t *testing.T) {
	tbl := offline(t, schema("app"))
	kinds, orders := define(t, tbl, kindsSpec), define(t, tbl, orderSpec())
	k := Kinds{ID: "1"}
	for name, op := range map[string]table.Op{
		"unknown field":                kinds.UpdateOp(k, entity.Set("nope", 1)),
		"key field":                    kinds.UpdateOp(k, entity.Set("id", "2")),
		"hidden field":                 kinds.UpdateOp(k, entity.Set("hidden", "2")),
		"twice":                        kinds.UpdateOp(k, entity.Set("s", "2"), entity.Remove("S")),
		"string to number":             kinds.UpdateOp(k, entity.Set("i8", "1")),
		"number to string":             kinds.UpdateOp(k, entity.Set("s", 65)),
		"too large":                    kinds.UpdateOp(k, entity.Set("i8", 128)),
		"negative to unsigned":         kinds.UpdateOp(k, entity.Set("u", -1)),
		"fraction to integer":          kinds.UpdateOp(k, entity.Set("i8", 1.5)),
		"2^63 to an int64":             orders.UpdateOp(Order{Tenant: "a", ID: "1", Version: 1}, entity.Set("total", float64(1<<63))), // arm64 makes it 2^63-1
		"2^64 to an unsigned":          kinds.UpdateOp(k, entity.Set("u", float64(1<<64))),
		"2^63-1 to a float64":          kinds.UpdateOp(k, entity.Set("f", int64(math.MaxInt64))), // 2^63, which arm64 takes back for 2^63-1
		"no number to an integer":      kinds.UpdateOp(k, entity.Set("i8", math.NaN())),
		"nil to a number":              kinds.UpdateOp(k, entity.Set("i8", nil)),
		"add a number to a string":     kinds.UpdateOp(k, entity.Add("s", 1)),
		"add a string to a string":     kinds.UpdateOp(k, entity.Add("s", "x")),
		"add a fraction to an integer": kinds.UpdateOp(k, entity.Add("i8", 0.5)),
		"add what cannot fit":          kinds.UpdateOp(k, entity.Add("i8", 300)),
		"subtract what cannot fit":     kinds.UpdateOp(k, entity.Add("i8", int64(math.MinInt64))),
		"add to a time":                kinds.UpdateOp(k, entity.Add("at", time.Unix(1, 0))),
		"add to a list":                kinds.UpdateOp(k, entity.Add("list", []int{1})),
		"add to a map":                 kinds.UpdateOp(k, entity.Add("map", map[string]int{"b": 1})),
		"add to bytes":                 kinds.UpdateOp(k, entity.Add("bytes", []byte("x"))),
		"add nothing":                  kinds.UpdateOp(k, entity.Add("i8", nil)),
		"add an empty set":             kinds.UpdateOp(k, entity.Add("set", []string{})),
		"add one string to a set":      kinds.UpdateOp(k, entity.Add("set", "x")),
		"add a number to a custom one": kinds.UpdateOp(k, entity.Add("price", 1)),
		"append to a set":              kinds.UpdateOp(k, entity.Append("set", []string{"x"})),
		"remove from a number":         kinds.UpdateOp(k, entity.RemoveFrom("i8", 1)),
		"remove from a list":           kinds.UpdateOp(k, entity.RemoveFrom("list", []int{1})),
		"remove nothing from a set":    kinds.UpdateOp(k, entity.RemoveFrom("set", []string{})),
		"append to a number":           kinds.UpdateOp(k, entity.Append("i8", 1)),
		"append one element":           kinds.UpdateOp(k, entity.Append("list", 1)),
		"append others":                kinds.UpdateOp(k, entity.Append("list", []string{"x"})),
		"append bytes":                 kinds.UpdateOp(k, entity.Append("bytes", []byte("x"))),
		"append to an array":           kinds.UpdateOp(k, entity.Append("array", [2]int{3, 4})), // the row could not be read any more
		"append to an array's pointer": kinds.UpdateOp(k, entity.Append("fixed", [2]string{"x"})),
		"add to what can be NULL":      kinds.UpdateOp(k, entity.Add("null", 1)),
		"add to a set or NULL":         kinds.UpdateOp(k, entity.Add("nulls", []string{"x"})),
		"remove from a set or NULL":    kinds.UpdateOp(k, entity.RemoveFrom("nulls", []string{"x"})),
		"version":                      orders.UpdateOp(Order{Tenant: "a", ID: "1"}, entity.Set("version", int64(1))),
		"created":                      orders.UpdateOp(Order{Tenant: "a", ID: "1"}, entity.Set("created", time.Now())),
		"updated":                      orders.UpdateOp(Order{Tenant: "a", ID: "1"}, entity.Remove("updated")),
		"index key too long":           orders.UpdateOp(Order{Tenant: "a", ID: "1", Version: 1, Placed: time.Unix(1, 0)}, entity.Set("status", strings.Repeat("x", 2048))),
		"sum that does not fit":        orders.UpdateOp(Order{Tenant: "a", ID: "1", Version: 1, Total: math.MaxInt64}, entity.Add("total", int64(math.MaxInt64))),
	} {
		require.ErrorIs(t, op.Err(), entity.ErrInvalid, name)
		assert.NotContains(t, op.Err().Error(), "9223372036854775807", name)
	}
}

func TestChange_TellsWhichChangeFits(t *testing.T) {
	kinds := define(t, offline(t, schema("app")), kindsSpec)
	for text, change := range map[string]entity.Change{
		`"set" is []string, stored as SS: want Add`: entity.Append("set", []string{"x"}),
		`"list" is []int, stored as L: want Add`:    entity.Add("list", []int{1}),
		`"i8" is int8, stored as N: want Add`:       entity.RemoveFrom("i8", 1),
		`"s" is string, stored as S: want Add`:      entity.Add("s", "x"),
	} {
		err := kinds.UpdateOp(Kinds{ID: "1"}, change).Err()
		require.ErrorIs(t, err, entity.ErrInvalid, text)
		assert.ErrorContains(t, err, text+" for a number or a set, RemoveFrom for a set, Append for a list")
	}
}

// Secret is a field whose type's errors quote its value, as those of many do.
type Secret string

func (s Secret) MarshalText() ([]byte, error) {
	if strings.Contains(string(s), "bad") {
		return nil, errors.New("bad secret " + string(s))
	}
	return []byte(s), nil
}

func (s *Secret) UnmarshalText(b []byte) error {
	if strings.Contains(string(b), "bad") {
		return errors.New("bad secret " + string(b))
	}
	*s = Secret(b)
	return nil
}

type Vault struct {
	ID     string `dynamo:"id"`
	Secret Secret `dynamo:"secret,omitempty"`
	Key    Secret `dynamo:"-"`
	Count  int64  `dynamo:"count"`
}

func TestErrors_QuoteNoValues(t *testing.T) {
	const canary = "bad-cAnArY"
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		vaults := define(t, f.Table, entity.Spec[Vault]{Type: "Vault", PK: "VAULT#{id}", SK: "KEY#{key}"})
		orders := define(t, f.Table, orderSpec())
		ctx := t.Context()
		ok := Vault{ID: canary, Key: "k"}
		_, err := vaults.Create(ctx, ok)
		require.NoError(t, err)
		errs := map[string]error{}
		note := func(name string, err error) {
			require.Error(t, err, name)
			errs[name] = err
		}
		_, err = vaults.Create(ctx, ok)
		note("exists", err)
		_, err = vaults.Get(ctx, Vault{ID: canary, Key: "none"})
		note("not found", err)
		_, err = vaults.Put(ctx, Vault{ID: canary, Key: "k", Secret: canary})
		note("encode", err)
		_, err = vaults.Put(ctx, Vault{ID: canary, Key: canary})
		note("key", err)
		_, err = vaults.Update(ctx, ok, entity.Set("secret", Secret(canary)))
		note("set", err)
		_, err = vaults.Update(ctx, ok, entity.Set("count", canary))
		note("type", err)
		_, err = vaults.Put(ctx, Vault{ID: strings.Repeat(canary, 400), Key: "k"})
		note("long key", err)
		_, err = vaults.Put(ctx, Vault{ID: canary + "\xff", Key: "k"})
		note("UTF-8", err)
		for _, err := range vaults.Query(ctx, map[string]any{"id": canary, "key": Secret(canary)}) {
			note("query", err)
		}
		for _, err := range vaults.Query(ctx, map[string]any{"id": canary}, entity.From("key", Secret(canary))) {
			note("query from", err)
		}
		row := f.row(t, vaults.Key(ok))
		row["secret"], _ = table.Encode(canary)
		require.NoError(t, f.Write(ctx, table.Put(row)))
		_, err = vaults.Get(ctx, ok)
		note("decode", err)
		delete(row, "secret")
		row["SK"], _ = table.Encode("KEY#" + canary)
		_, err = vaults.Decode(row)
		note("decode key", err)
		_, err = orders.Create(ctx, Order{Tenant: canary, ID: canary, Tags: []string{canary, canary}})
		note("duplicates", err)
		o, err := orders.Create(ctx, Order{Tenant: canary, ID: canary})
		require.NoError(t, err)
		o.Version = 9
		_, err = orders.Put(ctx, o)
		note("stale", err)
		note("several", f.Write(ctx, orders.PutOp(o), vaults.CreateOp(ok)))
		for name, err := range errs {
			assert.NotContains(t, err.Error(), canary, name)
			assert.NotContains(t, err.Error(), "cAnArY", name)
		}
	})
}

// recorder keeps the bodies of the updates that go through it.
type recorder struct {
	next   aws.HTTPClient
	bodies []map[string]any
}

func (r *recorder) Do(request *http.Request) (*http.Response, error) {
	if strings.HasSuffix(request.Header.Get("X-Amz-Target"), ".UpdateItem") {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return nil, err
		}
		request.Body = io.NopCloser(bytes.NewReader(body))
		var fields map[string]any
		if err := json.Unmarshal(body, &fields); err != nil {
			return nil, err
		}
		r.bodies = append(r.bodies, fields)
	}
	return r.next.Do(request)
}

func TestUpdate_TheSameUpdateIsTheSameRequest(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		r := &recorder{}
		tbl, err := table.Open(e.Client(func(o *dynamodb.Options) {
			r.next = o.HTTPClient
			if r.next == nil {
				r.next = http.DefaultClient
			}
			o.HTTPClient = r
		}), f.raw.Schema(), table.WithClock(f.clock.now))
		require.NoError(t, err)
		orders := define(t, tbl, orderSpec())
		start := Order{Tenant: "acme", ID: "1", Status: "open", Placed: time.Unix(1e9, 0), Total: 5, Tags: []string{"a"}, Note: "n"}
		for range 20 {
			o, err := orders.Create(t.Context(), start)
			require.NoError(t, err)
			_, err = orders.Update(t.Context(), o,
				entity.Set("status", "paid"), entity.Add("total", 200), entity.Add("tags", []string{"c", "b"}), entity.Append("lines", []string{"x"}), entity.Remove("note"))
			require.NoError(t, err)
			_, err = orders.Modify(t.Context(), o, func(o *Order) error {
				o.Status, o.Total, o.Note, o.Lines, o.Tags, o.Placed = "void", 1, "again", nil, nil, time.Time{}
				return nil
			})
			require.NoError(t, err)
			require.NoError(t, orders.AnyVersion().Delete(t.Context(), Order{Tenant: "acme", ID: "1"}))
		}
		require.Len(t, r.bodies, 40)
		for i := 2; i < len(r.bodies); i++ {
			require.Equal(t, r.bodies[i-2], r.bodies[i])
		}
	})
}
