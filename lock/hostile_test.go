package lock_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mortise-go/mortise/internal/attrvalue"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// choices are bytes that decide how a row looks. If none are left, the rest of the row is in order.
type choices struct{ left []byte }

func (c *choices) next(n int) int {
	if len(c.left) == 0 {
		return 0
	}
	b := int(c.left[0])
	c.left = c.left[1:]
	return b % n
}

// value is an attribute's value: the right one, none, or one that nobody expects.
func (c *choices) value(right types.AttributeValue) types.AttributeValue {
	odd := []types.AttributeValue{
		text("mortise.Lock"), text(""), text("mortise.LockSession"), text("x"), text(strings.Repeat("y", 5000)),
		text("0"), text("not UTF-8 \x7f \u2028"), numeral(0), numeral(-1), numeral(1), numeral(math.MaxInt64), numeral(math.MaxInt64 - 1),
		&types.AttributeValueMemberN{Value: "-9223372036854775809"}, &types.AttributeValueMemberN{Value: "1e125"},
		&types.AttributeValueMemberN{Value: "0.5"}, numeral(86_400_000), numeral(86_400_001),
		&types.AttributeValueMemberNULL{Value: true}, &types.AttributeValueMemberBOOL{Value: true},
		&types.AttributeValueMemberB{Value: []byte{0, 255}}, &types.AttributeValueMemberSS{Value: []string{"a", "b"}},
		&types.AttributeValueMemberNS{Value: []string{"1"}}, &types.AttributeValueMemberL{Value: []types.AttributeValue{text("a")}},
		&types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"line": text("a")}},
	}
	switch n := c.next(100); {
	case n < 75:
		return right
	case n < 82:
		return nil
	}
	return odd[c.next(len(odd))]
}

// set sets an attribute of a row, unless it is to be missing.
func (c *choices) set(row table.Item, name string, right types.AttributeValue) {
	if v := c.value(right); v != nil {
		row[name] = v
	}
}

// hostile is a lock row, and perhaps the row of its holder's session.
type hostile struct {
	lock    table.Item
	session table.Item // nil for none
}

func (w *world) hostile(c *choices, name string) (h hostile) {
	now := time.Now()
	end := []time.Time{now.Add(-50 * time.Minute), now.Add(time.Minute), now.Add(-time.Second)}[c.next(3)].UnixMilli()
	h.lock = w.table.KeyItem(keys.NewKey("LOCK#"+name, "LOCK#"+name))
	c.set(h.lock, "type", text("mortise.Lock"))
	c.set(h.lock, "fence", numeral(7))
	c.set(h.lock, "since", numeral(now.Add(-time.Hour).UnixMilli()))
	c.set(h.lock, "ttl", numeral(now.Add(time.Hour).Unix()))
	for _, extra := range []struct {
		name  string
		right types.AttributeValue
	}{
		{"data", text("payload")},
		{"forced", text("by hand")},
		{"forced_fence", numeral(3)},
		{"edits", numeral(2)},
		{"writes", numeral(5)},
		{"hold", numeral(50)},
		{"ran", numeral(1000)},
		{"running", numeral(2000)},
		{"failed", numeral(1000)},
	} {
		if c.next(8) == 1 {
			c.set(h.lock, extra.name, extra.right)
		}
	}
	var line []types.AttributeValue
	stand := func(ticket string) {
		if v := c.value(text(ticket)); v != nil {
			line = append(line, v)
		}
	}
	switch c.next(3) {
	case 1:
		stand(fmt.Sprintf("ANOTHER@%013d+1000 another", end-1000))
	case 2:
		stand(fmt.Sprintf("%s/3@%013d another", name, now.Add(-time.Hour).UnixMilli()))
		if c.next(4) > 0 {
			h.session = w.table.KeyItem(keys.NewKey("SESSION#"+name, "SESSION#"+name))
			c.set(h.session, "type", text("mortise.LockSession"))
			c.set(h.session, "owner", text("another"))
			c.set(h.session, "lease", numeral(20_000))
			c.set(h.session, "beat", numeral(700))
			c.set(h.session, "expires", numeral(end))
			c.set(h.session, "ttl", numeral(now.Add(time.Hour).Unix()))
			if c.next(4) == 1 {
				c.set(h.session, "dead", numeral(1))
			}
			if c.next(4) == 1 {
				c.set(h.session, "ask", &types.AttributeValueMemberSS{Value: []string{`{"Kind":"claim","Ticket":"ANOTHER","Key":{"PK":"A","SK":"A"}}`}})
			}
		}
	}
	if c.next(8) == 1 {
		stand(fmt.Sprintf("WAITS/1@%013d another", now.UnixMilli()))
	}
	c.set(h.lock, "line", listOf(line...))
	return h
}

// integer is the value of a number that is an integer.
func integer(v types.AttributeValue) (int64, bool) {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0, false
	}
	i, err := strconv.ParseInt(n.Value, 10, 64)
	return i, err == nil
}

// String shows the rows, for messages.
func (h hostile) String() string {
	var b strings.Builder
	for _, row := range []table.Item{h.lock, h.session} {
		for _, name := range slices.Sorted(maps.Keys(row)) {
			fmt.Fprintf(&b, "%s=%T%.40v ", name, row[name], reflect.Indirect(reflect.ValueOf(row[name])).Field(0))
		}
		b.WriteString("| ")
	}
	return strings.ReplaceAll(b.String(), "*types.AttributeValueMember", "")
}

func isText(v types.AttributeValue) (string, bool) {
	s, ok := v.(*types.AttributeValueMemberS)
	if !ok {
		return "", false
	}
	return s.Value, true
}

var (
	ofSession = regexp.MustCompile(`^([^/@ ]+)/[0-9]+@[0-9]{13,15} .{0,64}$`)
	ofItself  = regexp.MustCompile(`^[^/@ ]+@([0-9]{13,15})\+([0-9]+) .{0,64}$`)
)

// mayBeTaken reports whether the documentation allows an acquire without waiting. It does not use the package's own code.
func (h hostile) mayBeTaken(now time.Time) bool {
	const skew = 2 * time.Second
	row := h.lock
	if typ, _ := isText(row["type"]); typ != "mortise.Lock" {
		return false
	}
	if fence, ok := integer(row["fence"]); !ok || fence < 1 || fence == math.MaxInt64 {
		return false
	}
	if _, ok := isText(row["forced"]); row["forced"] != nil && !ok {
		return false
	}
	for _, name := range []string{"since", "hold", "writes", "edits", "ran", "running", "failed", "forced_fence"} {
		if n, ok := integer(row[name]); row[name] != nil && (!ok || n < 0) {
			return false
		}
	}
	since, _ := integer(row["since"])
	list, ok := row["line"].(*types.AttributeValueMemberL)
	switch {
	case row["line"] == nil:
		return true
	case !ok || len(list.Value) > 1:
		return false
	case len(list.Value) == 0:
		return true
	}
	past := func(end float64) bool { return end < float64(now.Add(-skew).UnixMilli()) }
	first, _ := isText(list.Value[0])
	if m := ofItself.FindStringSubmatch(first); m != nil {
		at, _ := strconv.ParseFloat(m[1], 64)
		length, _ := strconv.ParseFloat(m[2], 64)
		return past(max(at, float64(since)) + length)
	}
	m := ofSession.FindStringSubmatch(first)
	switch {
	case m == nil:
		return false
	case h.session == nil, m[1] != lastPart(h.session):
		return true // there is no such session
	}
	typ, _ := isText(h.session["type"])
	end, ok := integer(h.session["expires"])
	return typ == "mortise.LockSession" && (h.session["dead"] != nil || ok && end >= 0 && past(float64(end)))
}

// lastPart is the name in a key like SESSION#name.
func lastPart(item table.Item) string {
	pk, _ := isText(item["pk"])
	_, name, _ := strings.Cut(pk, "#")
	return name
}

// try lets a client meet a hostile row, and reports whether it was granted the lock.
func (w *world) try(ctx context.Context, c *lock.Client, h hostile) (granted bool) {
	w.Helper()
	require.NoError(w, w.table.Write(ctx, table.Put(h.lock)))
	if h.session != nil {
		require.NoError(w, w.table.Write(ctx, table.Put(h.session)))
	}
	name := lastPart(h.lock)
	key := keys.NewKey("LOCK#"+name, "LOCK#"+name)
	typed := func(err error) {
		w.Helper()
		known := false
		for _, is := range []error{lock.ErrHeld, lock.ErrNotLock, lock.ErrMalformed} {
			known = known || errors.Is(err, is)
		}
		assert.True(w, known, "%v: %v", err, h)
	}
	if _, err := c.Inspect(ctx, lock.Name(name)); err != nil {
		typed(err)
	}
	l, err := c.TryAcquire(ctx, lock.Name(name))
	if err == nil {
		assert.True(w, h.mayBeTaken(time.Now()), "granted: %v", h)
		require.NoError(w, l.Release(ctx))
		return true
	}
	typed(err)
	if fence, _ := integer(h.lock["fence"]); fence == math.MaxInt64-1 && h.mayBeTaken(time.Now()) {
		assert.ErrorIs(w, err, lock.ErrMalformed, "a takeover has counted the fence beyond the greatest: %v", h)
		return false
	}
	w.unchanged(ctx, h, key)
	w.operate(ctx, c, h, key)
	return false
}

// unchanged checks that a row is as it was. A client that was refused may have put off its deletion, and has left its line.
func (w *world) unchanged(ctx context.Context, h hostile, key keys.Key) {
	w.Helper()
	got, err := w.table.Get(ctx, key, true)
	require.NoError(w, err)
	was := maps.Clone(h.lock)
	if list, ok := got["line"].(*types.AttributeValueMemberL); ok && len(list.Value) == 0 && was["line"] == nil {
		delete(got, "line")
	}
	if typ, _ := isText(was["type"]); typ == "mortise.Lock" {
		delete(was, "ttl")
		delete(got, "ttl")
	}
	assert.True(w, attrvalue.SameItem(was, got), "changed: %v to %v", h, hostile{lock: got})
}

// operate makes the calls of an operator on a hostile row that is not free.
func (w *world) operate(ctx context.Context, c *lock.Client, h hostile, key keys.Key) {
	w.Helper()
	for r, err := range c.List(ctx, lock.In(key.PK)) {
		var payload any
		_ = r.Data.Decode(&payload)
		if err != nil {
			assert.ErrorIs(w, err, lock.ErrMalformed, "%v", h)
		}
	}
	target := lock.Name(lastPart(h.lock))
	r, seen := c.Inspect(ctx, target)
	_ = c.Revoke(ctx, target) // cannot be written if the session's row is malformed
	if seen != nil || !r.Held() {
		require.Error(w, c.ForceRelease(ctx, target, "NOBODY"), "%v", h)
		w.unchanged(ctx, h, key)
		return
	}
	require.NoError(w, c.ForceRelease(ctx, target, r.Holder().Ticket), "%v", h)
	freed, err := c.Inspect(ctx, target)
	if r.Fence == math.MaxInt64-1 {
		assert.ErrorIs(w, err, lock.ErrMalformed, "there is no greater fence")
		return
	}
	require.NoError(w, err)
	assert.Equal(w, r.Waiting() > 0, freed.Held())
	assert.Equal(w, r.Fence+1, freed.Fence, "%v", h)
}

// B3.
func TestHostileRow_GrantsNothing(t *testing.T) {
	rows := testkit.IfSmall(500, 2000)
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		granted, forbidden := 0, 0
		random := rand.NewChaCha8([32]byte{'B', '3'})
		for i := range rows {
			bytes := make([]byte, 64)
			_, err := random.Read(bytes)
			require.NoError(t, err)
			h := w.hostile(&choices{bytes}, fmt.Sprint(i))
			if !h.mayBeTaken(time.Now()) {
				forbidden++
			}
			if w.try(ctx, c, h) {
				granted++
			}
			if w.Failed() {
				return
			}
		}
		testkit.Check(t, "B3, hostile rows", testkit.AtLeast(forbidden, "out of order or in use, none granted, none changed", rows/4),
			testkit.AtLeast(granted, "that may be taken granted", rows/10))
	})
}

func FuzzHostileRow(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 90, 3, 95, 7, 0, 0, 0, 1})
	f.Add([]byte{0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 3, 90, 9, 90, 9, 90, 9})
	f.Add([]byte("00X#0000000000010")) // a dead holder with the greatest fence
	f.Fuzz(func(t *testing.T, data []byte) {
		virtual(t, func(ctx context.Context, w *world) {
			w.try(ctx, w.client(lock.Config{}), w.hostile(&choices{data}, "fuzzed"))
		})
	})
}

// B3: strangers write into a client's own session row.
func TestHostileQuestion_ChangesNothing(t *testing.T) {
	const rounds = 300
	ended := 0
	random := rand.New(rand.NewPCG(3, 3))
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(lock.Config{}), w.client(lock.Config{})
		innocent := w.table.KeyItem(w.row("innocent"))
		innocent["line"] = listOf(text("ANOTHER@1764000000123+1000 another"))
		require.NoError(t, w.table.Write(ctx, table.Put(innocent)))
		for round := range rounds {
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			parts := make([]any, 5)
			for i := range parts {
				parts[i] = []any{"claim", "revoke", "forced", "ANOTHER", "", 7, nil, "ROW#innocent", "ROW", "=", "\n", strings.Repeat("A", 3000)}[random.IntN(12)]
			}
			odd, err := json.Marshal(map[string]any{"Kind": parts[0], "Ticket": parts[1], "Fence": parts[2], "Key": map[string]any{
				"PK": []any{"ROW#innocent", "", 7, nil, strings.Repeat("A", 3000)}[random.IntN(5)], "SK": parts[3], "err": parts[4],
			}})
			require.NoError(t, err)
			var asked types.AttributeValue = &types.AttributeValueMemberSS{Value: []string{
				string(odd), "claim x", "{", "[]", `{"Kind":"claim","Ticket":"ANOTHER","Fence":7,"Key":{"PK":"ROW#innocent","SK":"ROW#innocent"}}`,
				`{"Kind":"` + []string{"claim", "forced"}[random.IntN(2)] + `","Ticket":"` + l.Ticket() + `","Key":{"PK":"ROW#innocent","SK":"ROW"}}`,
			}}
			if random.IntN(8) == 0 {
				asked = (&choices{[]byte{99, byte(random.IntN(256))}}).value(nil)
			}
			name := "ask"
			if round > rounds/2 { // if these are malformed, no question is read any more
				name = []string{"ask", "lease", "owner", "expires"}[random.IntN(4)]
			}
			require.NoError(t, w.table.Write(ctx, table.Update(sessionKey(c), table.Attr(name).Set(asked))))
			time.Sleep(20 * time.Second)
			_, err = other.TryAcquire(ctx, lock.Name("report"))
			if l.Context().Err() == nil {
				require.ErrorIs(t, err, lock.ErrHeld)
				require.NoError(t, l.Write(ctx, w.count("n")))
				require.NoError(t, l.Release(ctx))
				continue
			}
			ended++
			require.ErrorIs(t, context.Cause(l.Context()), lock.ErrLost)
			_ = l.Release(ctx)
		}
		got, err := w.table.Get(ctx, w.row("innocent"), true)
		require.NoError(t, err)
		assert.True(t, attrvalue.SameItem(innocent, got), "a row that is no lock was changed")
		testkit.Check(t, fmt.Sprintf("B3, %d hostile session rows", rounds), testkit.Exactly(ended, "locks lost", 0))
	})
}
