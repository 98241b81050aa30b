package differential

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// attributes are the names that generated items use, with the usual type of each. Three of them cannot be written in
// an expression directly: "status" is a reserved word, the others have characters that a name token must not have.
// gs, gn and ls may be index keys.
var attributes = []struct{ name, kind string }{
	{"s", "S"},
	{"n", "N"},
	{"b", "B"},
	{"k", "N"},
	{"ss", "SS"},
	{"ns", "NS"},
	{"bs", "BS"},
	{"l", "L"},
	{"m", "M"},
	{"t", "BOOL"},
	{"z", "NULL"},
	{"status", "S"},
	{"data-x", "N"},
	{"a.b", "S"},
	{"gs", "S"},
	{"gn", "N"},
	{"ls", "S"},
}

var kinds = []string{"S", "N", "B", "SS", "NS", "BS", "L", "M", "BOOL", "NULL"}

var (
	someStrings = []string{"", "a", "b", "ab", "abc", "é", "ä", "日本", "😀", "A", "a b", "0", "10", "9"}
	someNumbers = []string{"0", "1", "2", "3", "-1", "5", "10", "0.5", "-0.5", "3.14", "100"}
	// oddNumbers are allowed, but have a different canonical form, or are at the limit of precision or range.
	oddNumbers = []string{
		"-0", "0.0", "1.0", "1.10", "1e2", "1E+2", "5e-1", "007", "+5", ".5", "5.", "100e-2", "0e10", "0E-130", "-0.00",
		"12345678901234567890123456789012345678", "99999999999999999999999999999999999999",
		"0.12345678901234567890123456789012345678", "1.0000000000000000000000000000000000000",
		"100000000000000000000000000000000000000000", "0.0000000000000000000000001", "1e21", "1.5e-7", "123e-10", "1e37", "1e38", "-1e40",
		"1e125", "9.9999999999999999999999999999999999999E+125", "-9.9999999999999999999999999999999999999E+125",
		"1e-130", "-1e-130", "1e-129", "1.5e-129", "-1e125", "1.7e-120",
	}
	// badNumbers are refused.
	badNumbers = []string{
		"", "abc", "1e126", "-1e126", "1e-131", "1e200", "123456789012345678901234567890123456789",
		"1.00000000000000000000000000000000000001", "NaN", "Infinity", "0x10", "1_000", " 1", "1 ", "--1", "1e", "1,5", "1e10000000000000000000",
	}
	someBytes = [][]byte{{}, {0}, {1}, {0xff}, {1, 2}, {1, 2, 3}, []byte("a"), []byte("ab"), {0x80, 0}}
)

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }
func bin(b []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: b} }
func isSet(kind string) bool            { return len(kind) == 2 }
func element(kind string) string        { return strings.TrimSuffix(kind, "S") }
func list(e ...types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberL{Value: e}
}

func (g *Generator) number() string {
	if g.chance(0.15) {
		return pick(g.source, oddNumbers)
	}
	if g.chance(0.6) {
		return pick(g.source, someNumbers[:4]) // few, so that equal ones meet
	}
	return pick(g.source, someNumbers)
}

// value returns a random value of a type; depth limits nesting.
func (g *Generator) value(kind string, depth int) types.AttributeValue {
	switch kind {
	case "S":
		if g.chance(0.01) {
			return str(strings.Repeat(pick(g.source, []string{"x", "é", "日"}), g.between(300, 5000)))
		}
		if g.chance(0.6) {
			return str(pick(g.source, someStrings[:4])) // few, so that equal ones meet
		}
		return str(pick(g.source, someStrings))
	case "N":
		return num(g.number())
	case "B":
		return bin(pick(g.source, someBytes))
	case "BOOL":
		return &types.AttributeValueMemberBOOL{Value: g.chance(0.5)}
	case "NULL":
		return &types.AttributeValueMemberNULL{Value: true}
	case "SS":
		// The service refuses an empty set, but not an empty string in one.
		return &types.AttributeValueMemberSS{Value: subset(g.source, someStrings, 4)}
	case "NS":
		return &types.AttributeValueMemberNS{Value: subset(g.source, someNumbers, 4)}
	case "BS":
		return &types.AttributeValueMemberBS{Value: subset(g.source, someBytes, 3)}
	case "L":
		var l []types.AttributeValue
		for range g.between(0, 4) {
			l = append(l, g.anyValue(depth-1))
		}
		if l == nil {
			l = []types.AttributeValue{}
		}
		return list(l...)
	case "M":
		m := map[string]types.AttributeValue{}
		for _, f := range []struct{ name, kind string }{{"x", "N"}, {"y", "S"}, {"l", "L"}, {"m", "M"}, {"ss", "SS"}} {
			if nested := f.kind == "L" || f.kind == "M"; g.chance(0.6) && (!nested || depth > 0) {
				m[f.name] = g.value(f.kind, depth-1)
			}
		}
		return &types.AttributeValueMemberM{Value: m}
	}
	return str("a")
}

func (g *Generator) anyValue(depth int) types.AttributeValue {
	kind := pick(g.source, kinds)
	if depth <= 0 && (kind == "L" || kind == "M") {
		kind = "N"
	}
	return g.value(kind, depth)
}

// subset returns between one and most members, without repeats.
func subset[T any](s source, from []T, most int) []T {
	n := s.between(1, min(most, len(from)))
	out := make([]T, 0, n)
	for _, i := range s.Perm(len(from))[:n] {
		out = append(out, from[i])
	}
	return out
}

// keyValue returns a value for a key attribute from a small space.
func (g *Generator) keyValue(kind string, few bool) types.AttributeValue {
	n := 5
	if few {
		n = 3
	}
	switch kind {
	case "N":
		if g.chance(0.1) {
			// Other ways to write numbers that are already in the space.
			return num(pick(g.source, []string{"1.0", "2e0", "+10", "0.50"}))
		}
		return num(pick(g.source, []string{"1", "10", "2", "-5", "0.5"}[:n]))
	case "B":
		return bin(pick(g.source, [][]byte{{1}, {1, 0}, {0xff}, []byte("a"), []byte("ab")}[:n]))
	default:
		return str(pick(g.source, []string{"a", "ab", "é", "b", "Z"}[:n]))
	}
}

// item returns a random item of a table.
func (g *Generator) item(t *Table) map[string]types.AttributeValue {
	item := g.key(t)
	for _, a := range attributes {
		if !g.chance(0.65) {
			continue
		}
		kind := a.kind
		indexed := a.name == "gs" || a.name == "gn" || a.name == "ls"
		if odd := 0.15; g.chance(odd) && (!indexed || g.chance(0.05)) {
			kind = pick(g.source, kinds)
		}
		if indexed && kind == a.kind {
			item[a.name] = g.keyValue(kind, false)
			continue
		}
		item[a.name] = g.value(kind, 2)
	}
	if t.Big && g.chance(0.3) {
		item["s"] = str(strings.Repeat("x", g.between(50_000, 395_000)))
	}
	return item
}

// key returns the primary key of an item that may or may not exist.
func (g *Generator) key(t *Table) map[string]types.AttributeValue {
	key := map[string]types.AttributeValue{t.Hash.Name: g.keyValue(t.Hash.Type, true)}
	if t.Range.Name != "" {
		key[t.Range.Name] = g.keyValue(t.Range.Type, false)
	}
	return key
}
