package keys_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
)

func BenchmarkFormat(b *testing.B) {
	tenant, seq, at := "acme", uint64(42), time.Unix(1700000000, 0)
	b.Run("tenant-order", func(b *testing.B) {
		tpl := keys.MustTemplate("TENANT#{tenant}#ORDER#{seq:uint10}")
		b.ReportAllocs()
		for b.Loop() {
			if _, err := tpl.Format(tenant, seq); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("escaped", func(b *testing.B) {
		tpl := keys.MustTemplate("TENANT#{tenant}#ORDER#{seq:uint10}")
		hostile := "a#ORDER#1"
		b.ReportAllocs()
		for b.Loop() {
			if _, err := tpl.Format(hostile, seq); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("time-desc-shard", func(b *testing.B) {
		tpl := keys.MustTemplate("EVENT#{tenant:shard16}#{tenant}#{at:time:desc}")
		b.ReportAllocs()
		for b.Loop() {
			if _, err := tpl.Format(tenant, at); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("append", func(b *testing.B) {
		tpl := keys.MustTemplate("TENANT#{tenant}#ORDER#{seq:uint10}")
		buf := make([]byte, 0, 64)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := tpl.Append(buf, tenant, seq); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	tpl := keys.MustTemplate("TENANT#{tenant}#ORDER#{seq:uint10}")
	key, err := tpl.Format("acme", uint64(42))
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tpl.Parse(key); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMatches(b *testing.B) {
	tpl := keys.MustTemplate("TENANT#{tenant}#ORDER#{seq:uint10}")
	key, err := tpl.Format("acme", uint64(42))
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if !tpl.Matches(key) {
			b.Fatal(key)
		}
	}
}

// The allocations are promised, the nanoseconds are for the benchmarks above. Arguments are variables because the
// compiler needs no memory for constants.
func TestTemplate_AllocatesAsPromised(t *testing.T) {
	tpl := keys.MustTemplate("TENANT#{tenant}#{at:time}#{n:int9}#{f:float}#{id:shard16}#{last}")
	tenant, at, n, f, id, last := named("a#b"), time.Unix(1, 5), code(4242), 1.5, "e-1", "x"
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() {
		if _, err := tpl.Format(tenant, at, n, f, id, last); err != nil {
			t.Error(err)
		}
	}), 1.0)
	buf := make([]byte, 0, 256)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := tpl.Append(buf, tenant, at, n, f, id, last); err != nil {
			t.Error(err)
		}
	}))
	key, err := tpl.Format("ab", at, n, f, id, last)
	require.NoError(t, err)
	other := key + "#"
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if !tpl.Matches(key) || tpl.Matches(other) {
			t.Error("wrong answer")
		}
	}))
}
