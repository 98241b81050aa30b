package keys_test

import (
	"cmp"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mortise-go/mortise/keys"
)

// FuzzRoundTrip: what Format accepts, Parse returns; what it refuses was bad.
func FuzzRoundTrip(f *testing.F) {
	f.Add("acme", "a#ORDER#1", uint64(42), int64(-7), 1.5, int64(1700000000))
	f.Add("", "\xff", uint64(0), int64(0), math.NaN(), int64(0))
	tpl := keys.MustTemplate("T#{a}#{b}#{n:uint6}{i:int19:desc}{f:float}{t:time-s:desc}{a:shard16}")
	f.Fuzz(func(t *testing.T, a, b string, n uint64, i int64, fl float64, sec int64) {
		at := time.Unix(sec, 0).UTC()
		key, err := tpl.Format(a, b, n, i, fl, at)
		good := a != "" && b != "" && utf8.ValidString(a) && utf8.ValidString(b) && n < 1e6 && !math.IsNaN(fl) &&
			at.Year() >= 0 && at.Year() <= 9999
		if err != nil {
			if good && !errors.Is(err, keys.ErrTooLong) {
				t.Fatal(err)
			}
			return
		}
		if !good || len(key) > keys.MaxPK || !utf8.ValidString(key) {
			t.Fatalf("accepted %q", key)
		}
		back, err := tpl.Parse(key)
		if err != nil {
			t.Fatal(err)
		}
		if back[0] != a || back[1] != b || back[2] != n || back[3] != i || back[4] != fl || !back[5].(time.Time).Equal(at) {
			t.Fatalf("%q came back as %q", key, back)
		}
	})
}

// FuzzEscapeOrder: for every delimiter, encoding keeps the order of bytes, adds no delimiter and leaves harmless values alone.
func FuzzEscapeOrder(f *testing.F) {
	f.Add("a", "a#", byte('#'))
	f.Add("/.", "./", byte('/'))
	f.Add("|}~", "{|", byte('|'))
	f.Fuzz(func(t *testing.T, a, b string, delim byte) {
		tpl, err := keys.NewTemplate("{v}", keys.WithDelimiter(delim))
		if err != nil {
			return
		}
		ka, errA := tpl.Format(a)
		kb, errB := tpl.Format(b)
		if errA != nil || errB != nil {
			return
		}
		if cmp.Compare(a, b) != cmp.Compare(ka, kb) {
			t.Fatalf("%q and %q became %q and %q", a, b, ka, kb)
		}
		if strings.IndexByte(ka, delim) >= 0 {
			t.Fatalf("%q has the delimiter", ka)
		}
		if len(ka) < len(a) || len(ka) == len(a) && ka != a {
			t.Fatalf("%q became %q", a, ka)
		}
	})
}

// parseTemplates have every codec between them.
var parseTemplates = []string{
	"{a}#{b}", "A#{r:raw}#{a}", "{a}#{r:raw}#{g:rest}", "{d:date}{g:rest}", "{i:id2}{n:uint3}#{a}", "{n:uint20:desc}", "{n:int19}{b:bool:desc}", "{f:float:desc}", "{f:float}#{f:shard4}",
	"{t:time}", "{t:time-ms:desc}", "{t:time-s}{d:date}", "{a:shard16}#{a}", "{d:date:desc}#{d:shard3}",
}

// FuzzParse: Parse never accepts what Format would not write.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"a#b", "A#x$#y", "a$0b007#x", "81553255926290448384", "100000000000000000421", "400fffffffffffff",
		"2024-02-29T23:59:58.123456789Z", "7975-97-70T76:40:41.876Z", "2024-02-29T23:59:58Z2024-02-30", "10#e-1",
	} {
		for i := range parseTemplates {
			f.Add(seed, uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, key string, which uint8) {
		tpl := keys.MustTemplate(parseTemplates[int(which)%len(parseTemplates)])
		values, err := tpl.Parse(key)
		if tpl.Matches(key) != (err == nil) {
			t.Fatalf("Matches and Parse differ on %q", key)
		}
		if err != nil {
			if !errors.Is(err, keys.ErrNoMatch) {
				t.Fatal(err)
			}
			return
		}
		again, err := tpl.Format(values...)
		if err != nil || again != key {
			t.Fatalf("%s: %q came back as %q, %v", tpl, key, again, err)
		}
	})
}

// FuzzTemplate: text compiles or is refused with an *Error; what compiles keeps the promises of its codecs.
func FuzzTemplate(f *testing.F) {
	for _, seed := range parseTemplates {
		f.Add(seed, "x#")
	}
	f.Add("{{}}{a.b-c_d}|", "$")
	f.Add("{a", "1")
	f.Fuzz(func(t *testing.T, text, value string) {
		tpl, err := keys.NewTemplate(text)
		if err != nil {
			var ke *keys.Error
			if tpl != nil || !errors.As(err, &ke) {
				t.Fatal(err)
			}
			return
		}
		if tpl.String() != text {
			t.Fatalf("%q became %q", text, tpl.String())
		}
		values := make([]any, 0, 8)
		var stored []any
		for _, field := range tpl.Fields() {
			var v any
			switch name, _, _ := strings.Cut(field.Codec, ":"); {
			case name == "string", name == "key", name == "rest", strings.HasPrefix(name, "shard"):
				v = value
			case name == "raw":
				v = strings.ReplaceAll(value, "#", "")
			case name == "float":
				v = float64(len(value))
			case name == "bool":
				v = true
			case name == "date", strings.HasPrefix(name, "time"):
				v = time.Unix(0, 0).UTC()
			case strings.HasPrefix(name, "uint"):
				v = uint64(7)
			case strings.HasPrefix(name, "int"):
				v = int64(-7)
			case strings.HasPrefix(name, "id"):
				v = strings.Repeat("$", field.Width)
			default:
				t.Fatalf("unknown codec %q", name)
			}
			values = append(values, v)
			if !field.Computed {
				stored = append(stored, v)
			}
		}
		key, err := tpl.Format(values...)
		if err != nil {
			if value != "" && strings.Trim(value, "#") != "" && utf8.ValidString(value) && !errors.Is(err, keys.ErrTooLong) {
				t.Fatal(err)
			}
			return
		}
		back, err := tpl.Parse(key)
		if err != nil || len(back) != len(stored) {
			t.Fatalf("%q: %q came back as %q, %v", text, key, back, err)
		}
		for i := range back {
			if back[i] != stored[i] {
				t.Fatalf("%q: %q came back as %q", text, key, back)
			}
		}
		r, err := tpl.Range(values...)
		if err != nil || !r.Contains(key) || r.Contains(key+"0") {
			t.Fatalf("%q: range %q of %q, %v", text, r, key, err)
		}
		if !keys.Overlap(tpl, tpl) {
			t.Fatalf("%q does not overlap itself", text)
		}
	})
}
