package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Rows by another hand: whatever is in them, it does not control a terminal, what is written as JSON is JSON, and one row does not blow up
// what is written for the others.
func TestLook_RowsByAnotherHand(t *testing.T) {
	const evil = "\x1b]52;c;cHduZWQ=\a\x1b[2J\u009b31m\u202e\u2066\n\r\t%s%n\x7f\U000E0001<b>"
	long := strings.Repeat("h", 90_000)
	odd := []any{-1, int64(math.MinInt64), int64(math.MaxInt64), 0.5, evil, long, &types.AttributeValueMemberNULL{Value: true}, true, []byte{0, 0x1b, 0xff}, []string{evil}, map[string]any{evil: evil}}
	onEngines(t, keys.Scheme{}, func(b *bench) {
		var names []string
		put := func(key string, attributes map[string]any) {
			var changes []table.Change
			for name, value := range attributes {
				changes = append(changes, table.Attr(name).Set(value))
			}
			require.NoError(b, b.table.Write(b.Context(), table.Update(keys.NewKey(key, key), changes...)))
		}
		n := 0
		for _, value := range odd {
			for _, attribute := range []string{"line", "fence", "since", "permits", "stays", "ran", "data", "forced", "ttl"} {
				n++
				name := evil + strconv.Itoa(n)
				row := map[string]any{"type": "mortise.Lock", "fence": 7, "since": 1000, "line": []string{fmt.Sprint("s", n, "/1@0000000000000 ", "\x1b]52;c;cHduZWQ=\a\u009b\u202e")}}
				row[attribute] = value
				put("LOCK#"+name, row)
				names = append(names, name)
			}
			for _, attribute := range []string{"owner", "lease", "beat", "expires", "dead", "ask"} {
				n++
				id := fmt.Sprint("s", n)
				put("LOCK#"+id, map[string]any{"type": "mortise.Lock", "fence": 7, "line": []string{id + "/1@0000000000000 x"}})
				row := map[string]any{"type": "mortise.LockSession", "owner": "x", "lease": 20_000, "beat": 7, "expires": 1000}
				row[attribute] = value
				put("SESSION#"+id, row)
				names = append(names, id)
			}
			n++
			require.NoError(b, b.table.Write(b.Context(), table.Update(keys.NewKey("C", evil+strconv.Itoa(n)),
				table.Attr("type").Set(value), table.Attr("version").Set(value), table.Attr("ttl").Set(value), table.Attr(evil).Set(value))))
		}
		check := func(args ...string) {
			for _, more := range [][]string{nil, {"--json"}} {
				var stdout, stderr strings.Builder
				code := run(b.Context(), append(args, more...), b.environ(), strings.NewReader(""), &stdout, &stderr)
				assert.False(b, strings.ContainsFunc(stdout.String()+stderr.String(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }), args)
				assert.Less(b, stdout.Len(), 3_000_000, args)
				assert.LessOrEqual(b, strings.Count(stderr.String(), "\n"), 1, args)
				assert.True(b, more == nil || json.Valid([]byte(stdout.String())), "%s: %.500s", args, stdout.String()+stderr.String())
				if args[0] == "sessions" { // it lists them, and tells that some cannot be read
					assert.Equal(b, exitFailure, code)
				} else {
					assert.Zero(b, code, "%s: %.500s", args, stderr.String())
				}
			}
		}
		for _, args := range []string{"ls", "ls --all", "sessions", "collection C", "table"} {
			check(strings.Fields(args)...)
		}
		for _, name := range names {
			check("show", name)
		}
	})
}
