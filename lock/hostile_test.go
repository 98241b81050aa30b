package lock_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/figure"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// choices are bytes that decide how a row looks. Without any left everything is in order.
type choices struct{ left []byte }

func (c *choices) next(n int) int {
	if len(c.left) == 0 {
		return 0
	}
	b := int(c.left[0])
	c.left = c.left[1:]
	return b % n
}

func numeral(v int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
}

// value is what an attribute has: the right one, none, or one of those that nobody expects.
func (c *choices) value(right types.AttributeValue) types.AttributeValue {
	odd := []types.AttributeValue{
		text("mortise.Lock"), text(""), text("mortise.LockSession"), text("x"), text(strings.Repeat("y", 5000)),
		text("0"), text("not UTF-8 \x7f \u2028"), numeral(0), numeral(-1), numeral(1), numeral(math.MaxInt64), numeral(math.MaxInt64 - 1),
		&types.AttributeValueMemberN{Value: "-9223372036854775809"}, &types.AttributeValueMemberN{Value: "1e125"},
		&types.AttributeValueMemberN{Value: "0.5"}, numeral(86_400_000), numeral(86_400_001),
		&types.AttributeValueMemberNULL{Value: true}, &types.AttributeValueMemberBOOL{Value: true},
		&types.AttributeValueMemberB{Value: []byte{0, 255}}, &types.AttributeValueMemberSS{Value: []string{"a", "b"}},
		&types.AttributeValueMemberNS{Value: []string{"1"}}, &types.AttributeValueMemberL{Value: []types.AttributeValue{text("a")}},
		&types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"nonce": text("a")}},
	}
	switch n := c.next(100); {
	case n < 75:
		return right
	case n < 82:
		return nil
	}
	return odd[c.next(len(odd))]
}

// set puts an attribute into a row, unless it is to be missing.
func (c *choices) set(row table.Item, name string, right types.AttributeValue) {
	if v := c.value(right); v != nil {
		row[name] = v
	}
}

// hostile is a lock row and perhaps the row of its holder's session.
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
	c.set(h.lock, "owner", text("another"))
	c.set(h.lock, "acquired", numeral(now.Add(-time.Hour).UnixMilli()))
	c.set(h.lock, "ttl", numeral(now.Add(time.Hour).Unix()))
	for _, extra := range []struct {
		name  string
		right types.AttributeValue
	}{{"data", text("payload")}, {"forced", text("by hand")}, {"forced_nonce", text("OPERATOR")}, {"forced_fence", numeral(3)}, {"edits", numeral(2)}, {"ran", numeral(1000)}, {"running", numeral(2000)}} {
		if c.next(8) == 1 {
			c.set(h.lock, extra.name, extra.right)
		}
	}
	switch c.next(3) {
	case 0:
		c.set(h.lock, "released", numeral(now.Add(-time.Minute).UnixMilli()))
		c.set(h.lock, "released_nonce", text("ANOTHER"))
		for _, left := range []string{"session", "lease", "beat", "expires"} {
			if c.next(8) == 1 {
				c.set(h.lock, left, numeral(1))
			}
		}
	case 1:
		c.set(h.lock, "nonce", text("ANOTHER"))
		c.set(h.lock, "lease", numeral(1000))
		c.set(h.lock, "beat", numeral(3))
		c.set(h.lock, "expires", numeral(end))
		if c.next(8) == 1 {
			c.set(h.lock, "session", text(name))
		}
	case 2:
		c.set(h.lock, "nonce", text("ANOTHER"))
		c.set(h.lock, "lease", numeral(20_000))
		c.set(h.lock, "session", text(name))
		if c.next(8) == 1 {
			c.set(h.lock, "beat", numeral(3))
		}
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
				c.set(h.session, "ask", &types.AttributeValueMemberSS{Value: []string{"owned ANOTHER QQ QQ"}})
			}
		}
	}
	return h
}

// integer is a number that is one.
func integer(v types.AttributeValue) (int64, bool) {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0, false
	}
	i, err := strconv.ParseInt(n.Value, 10, 64)
	return i, err == nil
}

// String is for people who look for what was wrong.
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

// mayBeTaken says whether the documentation lets anybody acquire it, independently of how
// the package finds out.
func (h hostile) mayBeTaken(now time.Time) bool {
	const skew = 2 * time.Second
	row := h.lock
	if typ, _ := isText(row["type"]); typ != "mortise.Lock" {
		return false
	}
	if fence, ok := integer(row["fence"]); !ok || fence < 1 || fence == math.MaxInt64 {
		return false
	}
	for _, name := range []string{"owner", "released_nonce", "session", "forced", "forced_nonce"} {
		if _, ok := isText(row[name]); row[name] != nil && !ok {
			return false
		}
	}
	for _, name := range []string{"acquired", "released", "ttl", "lease", "beat", "expires", "edits", "ran", "running"} {
		n, ok := row[name].(*types.AttributeValueMemberN)
		if row[name] != nil && !ok || ok && strings.HasPrefix(name, "r") && name != "released" && strings.HasPrefix(n.Value, "-") {
			return false
		}
	}
	if row["nonce"] == nil {
		return true
	}
	nonce, _ := isText(row["nonce"])
	lease, leased := integer(row["lease"])
	if nonce == "" || !leased || lease < 1 || lease > lock.MaxFixed.Milliseconds() {
		return false
	}
	past := func(row table.Item) bool {
		n, ok := row["expires"].(*types.AttributeValueMemberN)
		if !ok {
			return false
		}
		end, err := strconv.ParseFloat(n.Value, 64)
		return err == nil && end >= 0 && end < float64(now.Add(-skew).UnixMilli())
	}
	session, under := isText(row["session"])
	if len(session) > 256 {
		return false
	}
	if !under || session == "" {
		beat, ok := row["beat"].(*types.AttributeValueMemberN)
		return !under && ok && !strings.HasPrefix(beat.Value, "-") && past(row)
	}
	if h.session == nil {
		return true // there is no such session, or there never was
	}
	if session != lastPart(h.session) {
		return true
	}
	typ, _ := isText(h.session["type"])
	if _, dead := h.session["dead"].(*types.AttributeValueMemberN); dead && h.session["type"] == nil {
		return true // by its key it is a session, and its holder cannot renew it without a type either
	} else if dead && typ == "mortise.LockSession" {
		return true
	}
	return typ == "mortise.LockSession" && past(h.session)
}

// lastPart is the name in a key like SESSION#name.
func lastPart(item table.Item) string {
	pk, _ := isText(item["pk"])
	_, name, _ := strings.Cut(pk, "#")
	return name
}

// try has a client meet a hostile row, and says whether it was granted the lock.
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
	fence, whole := integer(h.lock["fence"])
	if _, is := h.lock["fence"].(*types.AttributeValueMemberN); is && !whole && fence == 0 {
		return false // a fraction is granted by the condition and given back: TestFractionalFenceIsNotGranted
	}
	got, err := w.table.Get(ctx, key, true)
	require.NoError(w, err)
	assert.True(w, table.SameItem(h.lock, got), "changed: %v", h)
	w.operate(ctx, c, h, key)
	return false
}

// operate does to a hostile row, which is not free, what people do to locks.
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
	_ = c.Revoke(ctx, target) // which may not be written where the session's row is not in order
	if seen == nil && r.Held() && r.Fence == math.MaxInt64-1 {
		assert.ErrorIs(w, c.ForceRelease(ctx, target, r.Nonce), lock.ErrMalformed, "there is no greater fence")
		return
	}
	if seen == nil && r.Held() {
		require.NoError(w, c.ForceRelease(ctx, target, r.Nonce), "%v", h)
		freed, err := c.Inspect(ctx, target)
		require.NoError(w, err)
		assert.False(w, freed.Held())
		assert.Equal(w, r.Fence+1, freed.Fence, "%v", h)
		return
	}
	nonce, _ := isText(h.lock["nonce"])
	if nonce == "" {
		nonce = "ANOTHER"
	}
	err := c.ForceRelease(ctx, target, nonce)
	if err == nil {
		assert.True(w, h.unreadable(), "freed although it is not in order: %v", h)
		return
	}
	got, err := w.table.Get(ctx, key, true)
	require.NoError(w, err)
	assert.True(w, table.SameItem(h.lock, got), "changed: %v", h)
}

// unreadable says that the row has a number that is no integer of 64 bits, which a condition
// cannot tell.
func (h hostile) unreadable() bool {
	for _, v := range h.lock {
		if _, is := v.(*types.AttributeValueMemberN); is {
			if _, whole := integer(v); !whole {
				return true
			}
		}
	}
	return false
}

// B3.
func TestHostileRows(t *testing.T) {
	const rows = 2000
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
		figure.Check(t, "B3, hostile rows", figure.AtLeast(forbidden, "out of order or in use, none granted, none changed", rows/4),
			figure.AtLeast(granted, "that may be taken granted", rows/10))
	})
}

func FuzzHostileRow(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 90, 3, 95, 7, 0, 0, 0, 1})
	f.Add([]byte{0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 3, 90, 9, 90, 9, 90, 9})
	f.Fuzz(func(t *testing.T, data []byte) {
		virtual(t, func(ctx context.Context, w *world) {
			w.try(ctx, w.client(lock.Config{}), w.hostile(&choices{data}, "fuzzed"))
		})
	})
}

// B3: what strangers write into a client's own session row.
func TestHostileQuestions(t *testing.T) {
	const rounds, innocentPK = 300, "Uk9XI2lubm9jZW50" // ROW#innocent
	ended := 0
	random := rand.New(rand.NewPCG(3, 3))
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(lock.Config{}), w.client(lock.Config{})
		innocent := w.table.KeyItem(w.row("innocent"))
		innocent["nonce"] = text("ANOTHER")
		require.NoError(t, w.table.Write(ctx, table.Put(innocent)))
		for round := range rounds {
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			parts := make([]string, random.IntN(6))
			for i := range parts {
				parts[i] = []string{"owned", "release", "taken", "ANOTHER", "", "QQ", innocentPK, "Uk9X", "=", "\n", strings.Repeat("A", 3000)}[random.IntN(11)]
			}
			var asked types.AttributeValue = &types.AttributeValueMemberSS{Value: []string{
				strings.Join(parts, " "), "owned x", "owned ANOTHER " + innocentPK + " Uk9X",
			}}
			if random.IntN(8) == 0 {
				asked = (&choices{[]byte{99, byte(random.IntN(256))}}).value(nil)
			}
			name := "ask"
			if round > rounds/2 { // with these out of order nothing that is asked is read any more
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
		assert.True(t, table.SameItem(innocent, got), "a row that is no lock was changed")
		figure.Check(t, fmt.Sprintf("B3, %d hostile session rows", rounds), figure.Exactly(ended, "locks lost", 0))
	})
}
