package entity

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

type secret struct {
	Tenant string `dynamo:"tenant"`
	Box    string `dynamo:"box"`
	No     int    `dynamo:"no"`
	Mood   string `dynamo:"mood"`
}

// FuzzCursor: whoever makes up a cursor, digest included, gets an error or rows of the
// query's own range, and never a panic.
func FuzzCursor(f *testing.F) {
	tbl, err := table.Open(tabletest.New(f).Client(), table.Schema{Name: "app", NoTTL: true, Indexes: []table.Index{
		{Name: "gsi1", PK: "g1pk", SK: "g1sk"}, {Name: "gsi2", PK: "g2pk"}, {Name: "inverted", PK: "sk", SK: "pk"},
	}})
	require.NoError(f, err)
	require.NoError(f, tbl.Ensure(f.Context()))
	var usage table.Usage
	tbl = tbl.Metered(&usage)
	secrets, err := Define(tbl, Spec[secret]{
		Type: "Secret", PK: "TENANT#{tenant}", SK: "BOX#{box}#{no:uint3}",
		Indexes: []Index[secret]{
			{Name: "gsi1", PK: "MOOD#{mood}#{no:shard3}", SK: "{tenant}#{box}"}, {Name: "gsi2", PK: "ALL#{tenant}"}, {Name: "inverted"},
		},
	})
	require.NoError(f, err)
	for _, tenant := range []string{"a", "b", "a#BOX#x"} {
		for _, box := range []string{"x", "xx", "y"} {
			for no := range 4 {
				_, err := secrets.Create(f.Context(), secret{tenant, box, no, "sad"})
				require.NoError(f, err)
			}
		}
	}
	type query struct {
		match keys.Values
		opts  []ReadOption
		mine  func(secret) bool
	}
	var queries []query
	for _, down := range []bool{false, true} {
		list := []query{
			{keys.Values{"tenant": "a", "box": "x"}, nil, func(s secret) bool { return s.Tenant == "a" && s.Box == "x" }},
			{keys.Values{"tenant": "a", "box": "x"}, []ReadOption{From("no", 1), Until("no", 3)}, func(s secret) bool {
				return s.Tenant == "a" && s.Box == "x" && s.No >= 1 && s.No < 3
			}},
			{keys.Values{"mood": "sad", "tenant": "a"}, []ReadOption{On("gsi1")}, func(s secret) bool { return s.Tenant == "a" && s.Mood == "sad" }},
			{keys.Values{"tenant": "a"}, []ReadOption{On("gsi2")}, func(s secret) bool { return s.Tenant == "a" }},
			{keys.Values{"box": "x", "no": 1, "tenant": "a"}, []ReadOption{On("inverted")}, func(s secret) bool {
				return s.Tenant == "a" && s.Box == "x" && s.No == 1
			}},
		}
		for _, q := range list {
			if down {
				q.opts = append(q.opts, Descending())
			}
			queries = append(queries, q)
		}
	}
	ask := func(ctx context.Context, q *query, c Cursor) ([]secret, error) {
		var rows []secret
		for row, err := range secrets.Query(ctx, q.match, append(slices.Clip(q.opts), After(c))...) {
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
		return rows, nil
	}
	for i := range queries {
		q := &queries[i]
		rows, err := ask(f.Context(), q, "")
		require.NoError(f, err)
		require.NotEmpty(f, rows)
		page, err := secrets.Page(f.Context(), q.match, append(slices.Clip(q.opts), Limit(1))...)
		require.NoError(f, err)
		f.Add(uint8(i), []byte(page.Next), false)
		// Positions as whoever knows the format writes them: shard, then keys with their lengths.
		for _, at := range [][]string{
			{"BOX#x#001"},
			{"BOX#y#001"},
			{"BOX#x#000", "TENANT#b"},
			{"b#x", "TENANT#b", "BOX#x#001"},
			{"TENANT#b", "BOX#x#001"},
			{"\xff"},
			{""},
			{"a#x", "", "BOX#x#001"},
			{"a#x", "TENANT#a", ""},
			{"a#x", "TENANT#a", "\xff"},
			{"BOX#x#001", "more"},
		} {
			for shard := range 4 {
				position := []byte{byte(shard)}
				for _, s := range at {
					position = append(append(position, byte(len(s))), s...)
				}
				f.Add(uint8(i), position, true)
			}
		}
	}
	f.Fuzz(func(t *testing.T, n uint8, data []byte, forge bool) {
		q := &queries[int(n)%len(queries)]
		c := Cursor(data)
		if forge {
			s, err := secrets.core.search(q.match, q.opts, 0)
			require.NoError(t, err)
			c = s.binding.pack(data)
		}
		before := usage.Totals().Requests
		rows, err := ask(t.Context(), q, c)
		if err != nil {
			require.ErrorIs(t, err, ErrCursor)
			require.Equal(t, before, usage.Totals().Requests, "refused before anything is sent")
			return
		}
		if forge {
			require.Equal(t, c, canonical(t, secrets, q.match, q.opts, c), "one place has one cursor")
		}
		seen := map[string]bool{}
		for _, row := range rows {
			require.True(t, q.mine(row), "a row of somebody else: %v", row)
			id := fmt.Sprint(row)
			require.False(t, seen[id], "twice: %v", row)
			seen[id] = true
		}
	})
}

func canonical(t *testing.T, e *Entity[secret], match keys.Values, opts []ReadOption, c Cursor) Cursor {
	t.Helper()
	s, err := e.core.search(match, opts, 0)
	require.NoError(t, err)
	shard, start, err := s.binding.open(c)
	require.NoError(t, err)
	return s.binding.seal(shard, start)
}
