package entity_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/engines/faulty"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Guest has attributes that are keys of indexes as they are.
type Guest struct {
	ID      string     `dynamo:"id"`
	Email   string     `dynamo:"email,allowempty"`
	Group   string     `dynamo:"group"`
	Rank    int64      `dynamo:"rank"`
	Score   *float64   `dynamo:"score,null"`
	Seen    time.Time  `dynamo:"seen,unixtime"`
	Left    *time.Time `dynamo:"left"`
	Nick    string     `dynamo:"nick,null"` // key of an index that the entity does not use
	Note    string     `dynamo:"note"`
	Created time.Time  `dynamo:"created"`
}

func guestSpec() entity.Spec[Guest] {
	return entity.Spec[Guest]{
		Type: "Guest", PK: "GUEST#{id}", SK: "GUEST", Created: "created",
		Indexes: []entity.Index[Guest]{
			{Name: "by-email"},
			{Name: "by-rank"},
			{Name: "by-score"},
			{Name: "by-created", PK: "ALL"},
			{Name: "by-seen"},
			{Name: "by-left"},
			{Name: "mixed", SK: "NOTE#{note}"},
			{Name: "local"},
		},
	}
}

func guestSchema(name string) table.Schema {
	return table.Schema{
		Name: name, NoTTL: true, Keys: keys.Scheme{Prefix: "club/"},
		Indexes: []table.Index{
			{Name: "by-email", PK: "email"},
			{Name: "by-rank", PK: "group", SK: "rank", SKType: table.Number},
			{Name: "by-score", PK: "score", PKType: table.Number},
			{Name: "by-created", PK: "all", SK: "created"},
			{Name: "by-seen", PK: "group", SK: "seen", SKType: table.Number},
			{Name: "by-left", PK: "group", SK: "left"},
			{Name: "by-nick", PK: "nick"},
			{Name: "mixed", PK: "email", SK: "mixed"},
			{Name: "local", SK: "rank", SKType: table.Number, Local: true},
		},
	}
}

func newGuests(t *testing.T, e *engines.Engine) (fixture, *entity.Entity[Guest]) {
	t.Helper()
	f := fixture{faults: &faulty.Client{}, clock: newClock()}
	s := guestSchema(e.TableName(t))
	var err error
	f.Table, err = table.Open(e.Client(f.faults.Options), s, eager(5), table.WithClock(f.clock.now))
	require.NoError(t, err)
	f.raw, err = table.Open(e.Client(), s, eager(5), table.WithClock(f.clock.now))
	require.NoError(t, err)
	require.NoError(t, f.raw.Ensure(t.Context()))
	f.faults.Script()
	return f, define(t, f.Table, guestSpec())
}

func ids(list []Guest) (ids []string) {
	for _, m := range list {
		ids = append(ids, m.ID)
	}
	return ids
}

func TestNatural_AFieldIsTheKeyOfAnIndex(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f, guests := newGuests(t, e)
		ctx := t.Context()
		find := func(index, name string, v any) []string {
			return ids(collect(t, guests.Query(ctx, keys.Values{name: v}, entity.On(index))))
		}
		ann, err := guests.Create(ctx, Guest{ID: "1", Email: "ann@x#y.org", Group: "g", Note: "n"})
		require.NoError(t, err)
		assert.Equal(t, []string{"1"}, find("by-email", "email", "ann@x#y.org"), "neither prefix nor escaping")
		assert.Equal(t, []string{"1"}, find("mixed", "Email", "ann@x#y.org"))
		row := f.row(t, guests.Key(ann))
		assert.Equal(t, "ann@x#y.org", text(row, "email"))
		assert.Equal(t, "club/ALL", text(row, "all"))
		for _, attr := range []string{"nick", "score", "seen", "left"} {
			assert.NotContains(t, row, attr, "an empty value would be refused by DynamoDB")
		}

		for _, c := range []struct {
			name   string
			change entity.Change
			email  string
		}{
			{"set", entity.Set("email", "bea@x.org"), "bea@x.org"},
			{"emptied", entity.Set("email", ""), ""},
			{"back", entity.Set("email", "cid@x.org"), "cid@x.org"},
			{"removed", entity.Remove("email"), ""},
			{"set again", entity.Set("email", "dot@x.org"), "dot@x.org"},
		} {
			f.faults.Script()
			ann, err = guests.Update(ctx, Guest{ID: "1"}, c.change)
			require.NoError(t, err, c.name)
			assert.Equal(t, c.email, ann.Email, c.name)
			assert.Equal(t, []string{"UpdateItem"}, f.faults.Sent(), "%s: like any other field, without a read", c.name)
			row := f.row(t, guests.Key(ann))
			assert.Equal(t, c.email, text(row, "email"), c.name)
			assert.Equal(t, c.email == "", row["email"] == nil, c.name)
			assert.Equal(t, "NOTE#n", text(row, "mixed"), "%s: made of another field", c.name)
			if c.email != "" {
				assert.Equal(t, []string{"1"}, find("by-email", "email", c.email), c.name)
			}
		}
		assert.Empty(t, find("by-email", "email", "ann@x#y.org"))

		score := 1.5
		for _, m := range []Guest{{ID: "1", Email: "eve@x.org", Score: &score}, {ID: "1"}, {ID: "1", Nick: "e"}} {
			m, err = guests.Modify(ctx, Guest{ID: "1"}, func(o *Guest) error {
				o.Email, o.Score, o.Nick = m.Email, m.Score, m.Nick
				return nil
			})
			require.NoError(t, err, "from empty values and to them")
			if m.Score != nil {
				assert.Equal(t, []string{"1"}, find("by-score", "score", 1.5))
			}
		}
		_, err = guests.Put(ctx, Guest{ID: "1"})
		require.NoError(t, err)
		assert.Empty(t, find("by-email", "email", "eve@x.org"))
		assert.Empty(t, ids(collect(t, guests.Scan(ctx, entity.On("by-email")))))
	})
}

func TestNatural_RangesOfSortKeys(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f, guests := newGuests(t, e)
		ctx := t.Context()
		start := f.clock.now().Truncate(time.Second)
		for i, rank := range []int64{-10, -9, 0, 2, 10, 10} {
			f.clock.advance(time.Duration(i) * 400 * time.Millisecond) // several in a second, of texts of different lengths
			left := start.Add(time.Duration(i) * time.Hour)
			_, err := guests.Create(ctx, Guest{ID: string(rune('a' + i)), Group: "g", Rank: rank, Seen: left, Left: &left})
			require.NoError(t, err)
		}
		created := map[string]time.Time{}
		for m, err := range guests.Scan(ctx) {
			require.NoError(t, err)
			created[m.ID] = m.Created
		}
		in := func(lo, hi time.Time) (list []string) {
			for id, at := range created {
				if !at.Before(lo) && at.Before(hi) {
					list = append(list, id)
				}
			}
			slices.Sort(list)
			return list
		}
		group := keys.Values{"group": "g"}
		for name, c := range map[string]struct {
			match keys.Values
			opts  []entity.ReadOption
			want  string
		}{
			"numbers in order":      {group, []entity.ReadOption{entity.On("by-rank")}, "abcdee"},
			"downwards":             {group, []entity.ReadOption{entity.On("by-rank"), entity.Descending(), entity.Until("rank", 10)}, "dcba"},
			"from":                  {group, []entity.ReadOption{entity.On("by-rank"), entity.From("Rank", -9)}, "bcdee"},
			"half open":             {group, []entity.ReadOption{entity.On("by-rank"), entity.From("rank", -10), entity.Until("rank", 2)}, "abc"},
			"half open, downwards":  {group, []entity.ReadOption{entity.On("by-rank"), entity.From("rank", -10), entity.Until("rank", 10), entity.Descending(), entity.Limit(2)}, "dc"},
			"one number":            {keys.Values{"group": "g", "rank": uint8(10)}, []entity.ReadOption{entity.On("by-rank")}, "ee"},
			"nothing":               {group, []entity.ReadOption{entity.On("by-rank"), entity.From("rank", 2), entity.Until("rank", 2)}, ""},
			"times as numbers":      {group, []entity.ReadOption{entity.On("by-seen"), entity.From("seen", start.Add(time.Hour)), entity.Until("seen", start.Add(3*time.Hour))}, "bc"},
			"times as text":         {group, []entity.ReadOption{entity.On("by-left"), entity.From("left", start.Add(time.Hour)), entity.Until("left", start.Add(3*time.Hour))}, "bc"},
			"one time":              {keys.Values{"group": "g", "left": start.Add(time.Hour)}, []entity.ReadOption{entity.On("by-left")}, "b"},
			"a local index":         {keys.Values{"id": "c"}, []entity.ReadOption{entity.On("local"), entity.From("rank", 0), entity.Consistent()}, "c"},
			"another local index's": {keys.Values{"id": "c"}, []entity.ReadOption{entity.On("local"), entity.From("rank", 1)}, ""},
		} {
			t.Run(name, func(t *testing.T) {
				got := strings.Join(ids(collect(t, guests.Query(ctx, c.match, c.opts...))), "")
				assert.Equal(t, c.want, strings.ReplaceAll(got, "f", "e"), "where e and f have the same rank, in either order")
			})
		}
		for lo := range 8 { // whichever way fractions of a second are spelled
			for hi := lo; hi < 8; hi++ {
				from, until := start.Add(time.Duration(lo)*time.Second), start.Add(time.Duration(hi)*time.Second)
				got := ids(collect(t, guests.Query(ctx, nil, entity.On("by-created"), entity.From("created", from), entity.Until("created", until))))
				slices.Sort(got)
				assert.Equal(t, in(from, until), got, "seconds %d to %d", lo, hi)
			}
		}

		for _, index := range []string{"by-rank", "by-seen", "by-left"} {
			for _, opts := range [][]entity.ReadOption{{}, {entity.Descending()}} {
				opts = append(opts, entity.On(index))
				want := ids(collect(t, guests.Query(ctx, group, opts...)))
				var got []string
				var next entity.Cursor
				for {
					page, err := guests.Page(ctx, group, append(opts, entity.Limit(1), entity.After(next))...)
					require.NoError(t, err)
					got = append(got, ids(page.Items)...)
					if next = page.Next; next == "" {
						break
					}
				}
				assert.Equal(t, want, got, index)
			}
		}
		page, err := guests.Page(ctx, group, entity.On("by-rank"), entity.Limit(1), entity.From("rank", -9))
		require.NoError(t, err)
		_, err = guests.Page(ctx, group, entity.On("by-rank"), entity.From("rank", 3), entity.After(page.Next))
		require.ErrorIs(t, err, entity.ErrCursor)
		page, err = guests.Page(ctx, keys.Values{"group": "g", "rank": 10}, entity.On("by-rank"), entity.Limit(1))
		require.NoError(t, err)
		require.NotEmpty(t, page.Next)
		first := page.Items[0].ID
		page, err = guests.Page(ctx, keys.Values{"group": "g", "rank": 10}, entity.On("by-rank"), entity.After(page.Next))
		require.NoError(t, err)
		assert.ElementsMatch(t, []string{"e", "f"}, append(ids(page.Items), first))
	})
}

// Bounds and values mean the same as in a key that is made by a template.
func TestNatural_QueriesTakeWhatTemplatesTake(t *testing.T) {
	type login struct {
		ID    string     `dynamo:"id"`
		Group string     `dynamo:"group"`
		Rank  int        `dynamo:"rank,omitempty"` // a row of rank 0 is not in the index
		Seen  time.Time  `dynamo:"seen,unixtime"`
		From  netip.Addr `dynamo:"left"` // a struct that makes its text
	}
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f, _ := newGuests(t, e)
		logins := define(t, f.Table, entity.Spec[login]{
			Type: "Login", PK: "LOGIN#{id}", SK: "LOGIN",
			Indexes: []entity.Index[login]{{Name: "by-rank"}, {Name: "by-seen"}, {Name: "by-left"}},
		})
		for i, rank := range []int{-1, 0, 1} {
			_, err := logins.Create(t.Context(), login{
				ID: string(rune('a' + i)), Group: "g", Rank: rank, Seen: time.Unix(int64(i), 0), From: netip.MustParseAddr("10.0.0.1"),
			})
			require.NoError(t, err)
		}
		at, zero, address := time.Time{}, 0, netip.MustParseAddr("10.0.0.1")
		for name, c := range map[string]struct {
			index   string
			address any
			opt     entity.ReadOption
			want    string
		}{
			"from 0":              {"by-rank", nil, entity.From("rank", 0), "c"},
			"from 0 by a pointer": {"by-rank", nil, entity.From("rank", &zero), "c"},
			"from 0 as a float":   {"by-rank", nil, entity.From("rank", 0.0), "c"},
			"until 0":             {"by-rank", nil, entity.Until("rank", uint8(0)), "a"},
			"from the zero time":  {"by-seen", nil, entity.From("seen", at), "abc"},
			"until the zero time": {"by-seen", nil, entity.Until("seen", &at), ""},
			"a text":              {"by-left", "10.0.0.1", nil, "abc"},
			"another text":        {"by-left", "10.0.0.2", nil, ""},
			"a value":             {"by-left", address, nil, "abc"},
			"a pointer":           {"by-left", &address, nil, "abc"},
			"from a text":         {"by-left", nil, entity.From("from", "10.0.0.1"), "abc"},
			"until a text":        {"by-left", nil, entity.Until("from", "10.0.0.1"), ""},
			"from a longer text":  {"by-left", nil, entity.From("from", "10.0.0.10"), ""},
		} {
			match, opts := keys.Values{"group": "g"}, []entity.ReadOption{entity.On(c.index)}
			if c.address != nil {
				match["from"] = c.address
			} else {
				opts = append(opts, c.opt)
			}
			found := collect(t, logins.Query(t.Context(), match, opts...))
			got := make([]string, len(found))
			for i := range found {
				got[i] = found[i].ID
			}
			slices.Sort(got)
			assert.Equal(t, c.want, strings.Join(got, ""), name)
		}
		f.faults.Script()
		for _, refused := range []string{"", "10\xff", strings.Repeat("1", 2000)} {
			for _, err := range logins.Query(t.Context(), keys.Values{"group": "g", "from": refused}, entity.On("by-left")) {
				require.ErrorIs(t, err, entity.ErrInvalid)
			}
		}
		for _, err := range logins.Query(t.Context(), keys.Values{"group": "g", "rank": 0}, entity.On("by-rank")) {
			require.ErrorIs(t, err, entity.ErrInvalid, "no row has it")
		}
		assert.Empty(t, f.faults.Sent())
	})
}

// What DynamoDB would refuse is refused before anything is sent, and the error does not quote it.
func TestNatural_RefusesKeysThatCannotBe(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f, guests := newGuests(t, e)
		ctx := t.Context()
		secret := strings.Repeat("secret", 400)
		for name, m := range map[string]Guest{
			"too long":                               {ID: "1", Email: secret},
			"too long, of an index that is not used": {ID: "1", Nick: secret},
			"no text":                                {ID: "1", Group: "secret\xff"},
		} {
			_, err := guests.Create(ctx, m)
			require.ErrorIs(t, err, entity.ErrInvalid, name)
			assert.NotContains(t, err.Error(), "secret", name)
		}
		_, err := guests.Update(ctx, Guest{ID: "1"}, entity.Set("email", secret))
		require.ErrorIs(t, err, keys.ErrTooLong)
		group := keys.Values{"group": "g"}
		for name, c := range map[string]struct {
			match keys.Values
			opts  []entity.ReadOption
		}{
			"no value":                 {nil, []entity.ReadOption{entity.On("by-email")}},
			"nil":                      {keys.Values{"email": nil}, []entity.ReadOption{entity.On("by-email")}},
			"an empty value":           {keys.Values{"email": ""}, []entity.ReadOption{entity.On("by-email")}},
			"another type":             {keys.Values{"email": 5}, []entity.ReadOption{entity.On("by-email")}},
			"twice":                    {keys.Values{"email": "a", "Email": "b"}, []entity.ReadOption{entity.On("by-email")}},
			"another field":            {keys.Values{"email": "a", "nick": "b"}, []entity.ReadOption{entity.On("by-email")}},
			"a bound of no sort key":   {keys.Values{"email": "a"}, []entity.ReadOption{entity.On("by-email"), entity.From("nick", "b")}},
			"a bound of another":       {group, []entity.ReadOption{entity.On("by-rank"), entity.From("seen", 1)}},
			"a bound and a value":      {keys.Values{"group": "g", "rank": 1}, []entity.ReadOption{entity.On("by-rank"), entity.From("rank", 1)}},
			"bounds the wrong way":     {group, []entity.ReadOption{entity.On("by-rank"), entity.From("rank", 10), entity.Until("rank", 9)}},
			"an empty bound":           {group, []entity.ReadOption{entity.On("by-left"), entity.From("left", (*time.Time)(nil))}},
			"a bound of nil":           {group, []entity.ReadOption{entity.On("by-left"), entity.Until("left", nil)}},
			"less than a second":       {group, []entity.ReadOption{entity.On("by-seen"), entity.From("seen", time.Unix(1, 1))}},
			"less than a second, text": {group, []entity.ReadOption{entity.On("by-left"), entity.From("left", time.Unix(1, 1))}},
			"a year that is no text":   {group, []entity.ReadOption{entity.On("by-left"), entity.From("left", time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))}},
			"an index not named":       {keys.Values{"nick": "n"}, []entity.ReadOption{entity.On("by-nick")}},
		} {
			n := 0
			for _, err := range guests.Query(ctx, c.match, c.opts...) {
				require.ErrorIs(t, err, entity.ErrInvalid, name)
				n++
			}
			assert.Equal(t, 1, n, name)
		}
		assert.Empty(t, f.faults.Sent())
	})
}

func TestDefine_RefusesFieldsThatCannotBeKeys(t *testing.T) {
	type row struct {
		ID      string   `dynamo:"id"`
		Text    string   `dynamo:"text"`
		Number  int      `dynamo:"number"`
		List    []string `dynamo:"list"`
		Bytes   []byte   `dynamo:"bytes"`
		Any     any      `dynamo:"any"`
		Version int64    `dynamo:"version"`
	}
	for name, c := range map[string]struct {
		index  table.Index
		use    bool
		change func(*entity.Spec[row])
		want   string
	}{
		"a number for text":         {table.Index{PK: "number"}, true, nil, `field Number: attribute "number" is a key of index x, of type S, and the field's is N`},
		"text for a number":         {table.Index{PK: "id", SK: "text", SKType: table.Number}, true, nil, "of type N, and the field's is S"},
		"a list, not used":          {table.Index{PK: "list"}, false, nil, "of type S, and the field's is L"},
		"bytes":                     {table.Index{PK: "bytes", PKType: table.Binary}, true, nil, "cannot be queried"},
		"bytes, not used":           {table.Index{PK: "bytes", PKType: table.Binary}, false, nil, ""},
		"whatever it holds":         {table.Index{PK: "any"}, true, nil, ""},
		"a template too":            {table.Index{PK: "text"}, true, func(s *entity.Spec[row]) { s.Indexes[0].PK = "{text}" }, "leave this empty"},
		"a number that is no field": {table.Index{PK: "other", PKType: table.Number}, true, func(s *entity.Spec[row]) { s.Indexes[0].PK = "{text}" }, "is no field's"},
		"the version":               {table.Index{PK: "version", PKType: table.Number}, false, func(s *entity.Spec[row]) { s.Version = "version" }, `field Version: attribute "version" is the table's key of index x`},
		"a predicate without an effect": {table.Index{PK: "text"}, true, func(s *entity.Spec[row]) {
			s.Version, s.Indexes[0].When = "version", func(row) bool { return true }
		}, "no row can be kept out"},
		"shards and numbers": {table.Index{PK: "other", SK: "number", SKType: table.Number}, true, func(s *entity.Spec[row]) {
			s.Indexes[0].PK = "ALL#{id:shard4}"
		}, "cannot be merged"},
		"a shard and text": {table.Index{PK: "other", SK: "text"}, true, func(s *entity.Spec[row]) { s.Indexes[0].PK = "ALL#{id:shard4}" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.index.Name = "x"
			spec := entity.Spec[row]{Type: "Row", PK: "ROW#{id}", SK: "ROW"}
			if c.index.Name = "x-x"; c.use {
				spec.Indexes = []entity.Index[row]{{Name: c.index.Name}}
			}
			if c.change != nil {
				c.change(&spec)
			}
			_, err := entity.Define(offline(t, table.Schema{Name: "app", Keys: keys.Scheme{Version: "_v"}, Indexes: []table.Index{c.index}}), spec)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			var refused *entity.SpecError
			require.ErrorAs(t, err, &refused)
			assert.Len(t, refused.Problems, 1)
			assert.ErrorContains(t, err, strings.ReplaceAll(c.want, "index x", "index x-x"))
		})
	}
}

// The type, the time to live and the version have the names that the scheme gives them. DynamoDB would refuse every row if one of them is
// a key of an index, of another type, also if the entity does not use that index.
func TestDefine_RefusesAnIndexOnAnAttributeOfTheSchemeOfAnotherType(t *testing.T) {
	type row struct {
		ID      string    `dynamo:"-"`
		Email   string    `dynamo:"email"`
		Count   int64     `dynamo:"-"`
		Expires time.Time `dynamo:"-"`
	}
	type spec = entity.Spec[row]
	unique := []entity.Unique[row]{{Name: "email", Key: "{email}"}}
	for name, c := range map[string]struct {
		index  table.Index
		change func(*spec)
		want   string // the setting to change, or "" if there is nothing wrong
	}{
		"type":                          {table.Index{PK: "type", PKType: table.Number}, func(*spec) {}, "Type"},
		"type of sentinels":             {table.Index{PK: "type", PKType: table.Binary}, func(s *spec) { s.Untyped, s.Unique = true, unique }, "Type"},
		"no type":                       {table.Index{PK: "type", PKType: table.Number}, func(s *spec) { s.Untyped = true }, ""},
		"type as it is written":         {table.Index{PK: "type"}, func(*spec) {}, ""},
		"time to live":                  {table.Index{PK: "email", SK: "ttl"}, func(s *spec) { s.TTL = "Expires" }, "TTL"},
		"no time to live":               {table.Index{PK: "email", SK: "ttl"}, func(*spec) {}, ""},
		"time to live as it is written": {table.Index{PK: "email", SK: "ttl", SKType: table.Number}, func(s *spec) { s.TTL = "Expires" }, ""},
		"version":                       {table.Index{PK: "email", SK: "version"}, func(s *spec) { s.Version = "Count" }, "Version"},
		"no version":                    {table.Index{PK: "email", SK: "version"}, func(*spec) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.index.Name = "by-it"
			s := spec{Type: "Row", PK: "ROW#{id}", SK: "ROW"}
			c.change(&s)
			tbl, err := table.Open(tabletest.New(t).Client(), table.Schema{Name: "app", NoTTL: true, Indexes: []table.Index{c.index}})
			require.NoError(t, err)
			require.NoError(t, tbl.Ensure(t.Context()))
			rows, err := entity.Define(tbl, s)
			if c.want != "" {
				var refused *entity.SpecError
				require.ErrorAs(t, err, &refused)
				assert.Len(t, refused.Problems, 1)
				assert.ErrorContains(t, err, "index by-it")
				assert.ErrorContains(t, err, "name another attribute in Keys."+c.want)
				return
			}
			require.NoError(t, err)
			_, err = rows.Create(t.Context(), row{ID: "a", Email: "ada@example.com", Expires: time.Now().Add(time.Hour)})
			require.NoError(t, err)
		})
	}
}

// A value whose type only shows when it is written.
func TestNatural_RefusesAKeyOfTheWrongType(t *testing.T) {
	type row struct {
		ID  string `dynamo:"id"`
		Any any    `dynamo:"any"`
	}
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		tbl, err := table.Open(e.Client(), table.Schema{Name: e.TableName(t), NoTTL: true, Indexes: []table.Index{{Name: "by-any", PK: "any"}}})
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(t.Context()))
		rows := define(t, tbl, entity.Spec[row]{Type: "Row", PK: "ROW#{id}", SK: "ROW", Indexes: []entity.Index[row]{{Name: "by-any"}}})
		_, err = rows.Create(t.Context(), row{"1", 5})
		require.ErrorIs(t, err, entity.ErrInvalid)
		require.ErrorContains(t, err, `attribute "any" is a key of index by-any and has to be of type S`)
		_, err = rows.Create(t.Context(), row{"1", "five"})
		require.NoError(t, err)
		updated, err := rows.Update(t.Context(), row{ID: "1"}, entity.Set("any", "six"))
		require.NoError(t, err)
		assert.Equal(t, "six", updated.Any)
		_, err = rows.Update(t.Context(), row{ID: "1"}, entity.Set("any", 6))
		require.ErrorIs(t, err, entity.ErrInvalid)
		assert.Len(t, collect(t, rows.Query(t.Context(), keys.Values{"any": "six"}, entity.On("by-any"))), 1)
	})
}

// An upgrade may make what no index can hold.
func TestUpgrade_KeepsNaturalKeysFit(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f, _ := newGuests(t, e)
		type old struct {
			ID   string `dynamo:"id"`
			Note string `dynamo:"note"`
		}
		for nick, want := range map[string]string{"": "", "n": "n"} {
			before := define(t, f.raw, entity.Spec[old]{Type: "Old", PK: "OLD#{id}", SK: "OLD"})
			_, err := before.Put(t.Context(), old{ID: "1", Note: "x"})
			require.NoError(t, err)
			type current struct {
				ID   string `dynamo:"id"`
				Nick string `dynamo:"nick"`
				Note string `dynamo:"note"`
			}
			tbl, err := table.Open(e.Client(), f.Schema(), eager(5))
			require.NoError(t, err)
			now := define(t, tbl, entity.Spec[current]{Type: "Old", PK: "OLD#{id}", SK: "OLD", Upgrades: []func(table.Item) (table.Item, error){
				func(item table.Item) (table.Item, error) {
					item["nick"] = &types.AttributeValueMemberS{Value: nick}
					return item, nil
				},
			}})
			_, err = now.Update(t.Context(), current{ID: "1"}, entity.Set("note", "y"))
			require.NoError(t, err)
			assert.Equal(t, want, text(f.row(t, before.Key(old{ID: "1"})), "nick"))
		}
	})
}

func TestFacet_OfNaturalKeys(t *testing.T) {
	tbl := offline(t, guestSchema("app"))
	f := define(t, tbl, guestSpec()).Facet()
	kinds := map[string]string{}
	for _, a := range f.Attributes {
		kinds[a.Name] = a.Type
	}
	assert.Equal(t, map[string]string{
		"id": "S", "email": "S", "group": "S", "rank": "N", "score": "N", "seen": "N", "left": "S", "nick": "S", "note": "S",
		"created": "S", "all": "S", "mixed": "S", "type": "S",
	}, kinds)
	_, err := tbl.Schema().Workbench(f)
	require.NoError(t, err)
}

// An index with a binary key is left out of a specification. Rows are in it all the same, if a field is the attribute of the key.
func TestIndex_WithABinaryKeyIsFollowedWithoutAName(t *testing.T) {
	type photo struct {
		ID   string `dynamo:"-"`
		Hash []byte `dynamo:"hash"`
	}
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		ctx := t.Context()
		tbl, err := table.Open(e.Client(), table.Schema{
			Name: e.TableName(t), NoTTL: true, Indexes: []table.Index{{Name: "by-hash", PK: "hash", PKType: table.Binary}},
		})
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(ctx))
		spec := entity.Spec[photo]{Type: "Photo", PK: "PHOTO#{id}", SK: "PHOTO", Indexes: []entity.Index[photo]{{Name: "by-hash"}}}
		_, err = entity.Define(tbl, spec)
		require.ErrorIs(t, err, entity.ErrInvalid)
		require.ErrorContains(t, err, `attribute "hash" is binary: such an index cannot be queried, so leave it out`)
		spec.Indexes = nil
		photos, err := entity.Define(tbl, spec)
		require.NoError(t, err)
		for _, p := range []photo{{"1", []byte{0, 255}}, {"2", nil}} {
			_, err = photos.Create(ctx, p)
			require.NoError(t, err)
		}
		var ids []string
		for item, err := range tbl.Scan(ctx, table.Scan{Index: "by-hash"}) {
			require.NoError(t, err)
			p, err := photos.Decode(item)
			require.NoError(t, err)
			ids = append(ids, p.ID)
		}
		require.Equal(t, []string{"1"}, ids, "an empty hash is no key")
	})
}
