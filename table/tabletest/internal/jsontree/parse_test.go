package jsontree_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/table/tabletest/internal/jsontree"
)

func TestParse_KeepsOrder(t *testing.T) {
	n, err := jsontree.Parse([]byte(` {"b":[1,true,null,"\u00e9\ud83d\ude00\n"],"a":{}} `))
	require.NoError(t, err)
	got := []string{string(n.Append(nil)), string(n.AppendSorted(nil))} // texts: JSON equality has no order
	assert.Equal(t, []string{`{"b":[1,true,null,"é😀\n"],"a":{}}`, `{"a":{},"b":[1,true,null,"é😀\n"]}`}, got)
	assert.True(t, n.Get("missing").IsNull())
}

// FuzzParse accepts exactly what encoding/json accepts, and reads the same values.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"a":[1,-2.5e+3,"x\\\"\u0041",true,false,null]}`, `[`, `{"a"}`, `"\ud800"`, `01`, `1.`, "\"\x00\"", `nul`, `[1,]`, `{"a":1}x`,
		`"\b\f\n\r\t\/\u00AF\uD83D\uDE00\ud83dx\ud83d\u0041"`, `{1:2}`, `{"a\x":1}`, `{"a":}`, `{"a":1`, `{"a":1]`, `[1`, `"abc`, `"\n`, `"\`, `"\u12`, `"\u12g4"`, `"\ud83d\u12"`, `"\x"`,
		"\"\n\"", "\"\\n\n\"", `1.x`, `1e`, "\"a\xff\"", "\"\\n\xff\r\"",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := jsontree.Parse(data)
		var want any
		wantErr := json.Unmarshal(data, &want)
		if wantErr != nil {
			if err == nil {
				// encoding/json also refuses numbers that no float64 can hold.
				require.True(t, json.Valid(data), "%q: %v", data, wantErr)
			}
			return
		}
		if err != nil {
			require.ErrorContains(t, err, "too deeply")
			return
		}
		var got any
		require.NoError(t, json.Unmarshal(n.Append(nil), &got), "%q", n.Append(nil))
		assert.Equal(t, want, got)
	})
}
