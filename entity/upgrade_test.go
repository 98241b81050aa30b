package entity_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mortise-go/mortise/internal/attrvalue"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Article had a full name in one attribute (schema 0) and a price in whole units (schema 1).
type Article struct {
	ID      string `dynamo:"id"`
	First   string `dynamo:"first,omitempty"`
	Last    string `dynamo:"last,omitempty"`
	Cents   int64  `dynamo:"cents"`
	Count   int    `dynamo:"count"`
	Email   string `dynamo:"email,omitempty"`
	Version int64  `dynamo:"version"`
}

func splitName(item table.Item) (table.Item, error) {
	name, _ := item["name"].(*types.AttributeValueMemberS)
	if name == nil {
		return nil, errors.New("no name")
	}
	first, last, _ := strings.Cut(name.Value, " ")
	item["first"], item["last"] = &types.AttributeValueMemberS{Value: first}, &types.AttributeValueMemberS{Value: last}
	delete(item, "name")
	return item, nil
}

func toCents(item table.Item) (table.Item, error) {
	price, _ := item["price"].(*types.AttributeValueMemberN)
	if price == nil {
		return nil, errors.New("no price")
	}
	n, err := strconv.Atoi(price.Value)
	if err != nil {
		return nil, err
	}
	item["cents"] = &types.AttributeValueMemberN{Value: strconv.Itoa(100 * n)}
	delete(item, "price")
	if m, ok := item["nested"].(*types.AttributeValueMemberM); ok {
		m.Value["seen"] = &types.AttributeValueMemberBOOL{Value: true}
	}
	return item, nil
}

func articleSpec() entity.Spec[Article] {
	return entity.Spec[Article]{
		Type: "Article", PK: "ARTICLE#{id}", SK: "ARTICLE", Version: "version",
		Indexes:  []entity.Index[Article]{{Name: "gsi1", PK: "LAST#{last}", SK: "{first}"}},
		Unique:   []entity.Unique[Article]{{Name: "email", Key: "{email}"}},
		Upgrades: []func(table.Item) (table.Item, error){splitName, toCents},
	}
}

func bareSpec() entity.Spec[Article] {
	spec := articleSpec()
	spec.Type, spec.PK, spec.Version, spec.Unique = "Bare", "BARE#{id}", "", nil
	return spec
}

func oldArticle(key table.Item, schema, version int) table.Item {
	item := key
	item["name"] = &types.AttributeValueMemberS{Value: "Ann Smith"}
	item["price"] = &types.AttributeValueMemberN{Value: "7"}
	item["count"] = &types.AttributeValueMemberN{Value: "1"}
	item["unknown"] = &types.AttributeValueMemberS{Value: "kept"}
	item["nested"] = &types.AttributeValueMemberM{Value: table.Item{"a": &types.AttributeValueMemberN{Value: "1"}}}
	if schema > 0 {
		item, _ = splitName(item)
		item["schema"] = &types.AttributeValueMemberN{Value: strconv.Itoa(schema)}
	}
	if version > 0 {
		item["_v"] = &types.AttributeValueMemberN{Value: strconv.Itoa(version)}
	}
	return item
}

func TestUpgrade_OldRowsWhenRead(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		articles := define(t, f.Table, articleSpec())
		ctx := t.Context()
		for schema := range 2 {
			want := Article{ID: "1", First: "Ann", Last: "Smith", Cents: 700, Count: 1, Version: 3}
			old := oldArticle(f.KeyItem(articles.Key(want)), schema, 3)
			require.NoError(t, f.raw.Write(ctx, table.Put(old)))
			got, err := articles.Get(ctx, Article{ID: "1"}, entity.Consistent())
			require.NoError(t, err)
			assert.Equal(t, want, got)
			assert.Equal(t, []Article{want}, collect(t, articles.Query(ctx, keys.Values{"id": "1"})))
			var into []Article
			require.NoError(t, entity.Collect(ctx, f.Table, articles.Key(want).PK, entity.Into(articles, &into)))
			assert.Equal(t, []Article{want}, into)
			kept := oldArticle(f.KeyItem(articles.Key(want)), schema, 3)
			decoded, err := articles.Decode(kept)
			require.NoError(t, err)
			assert.Equal(t, want, decoded)
			assert.True(t, attrvalue.SameItem(old, kept), "what is decoded is not changed")
			_, err = articles.Modify(ctx, want, func(*Article) error { return nil })
			require.NoError(t, err)
			assert.True(t, attrvalue.SameItem(old, f.row(t, articles.Key(want))), "reading writes nothing")
		}
		_, err := articles.Create(ctx, Article{ID: "2"})
		require.NoError(t, err)
		assert.Equal(t, "2", string(number(f.row(t, articles.Key(Article{ID: "2"})), "schema")))
	})
}

// However an old row is written, what comes of it is the upgraded row with the change, whole.
func TestUpgrade_WritesNeverMixSchemas(t *testing.T) {
	type entities = *entity.Entity[Article]
	writes := map[string]func(*testing.T, fixture, entities, Article) (Article, error){
		"update by key": func(t *testing.T, _ fixture, e entities, a Article) (Article, error) {
			return e.AnyVersion().Update(t.Context(), Article{ID: a.ID}, entity.Add("cents", 1))
		},
		"update as read": func(t *testing.T, _ fixture, e entities, a Article) (Article, error) {
			return e.Update(t.Context(), a, entity.Add("cents", 1))
		},
		"modify": func(t *testing.T, _ fixture, e entities, a Article) (Article, error) {
			return e.Modify(t.Context(), a, func(a *Article) error { a.Cents++; return nil })
		},
		"upsert": func(t *testing.T, _ fixture, e entities, a Article) (Article, error) {
			return e.Upsert(t.Context(), a, func(a *Article) error { a.Cents++; return nil })
		},
	}
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		for _, spec := range []entity.Spec[Article]{articleSpec(), bareSpec()} {
			articles := define(t, f.Table, spec)
			for name, write := range writes {
				for schema := range 3 {
					for version := range 2 {
						if schema == 2 || spec.Version == "" && version > 0 {
							continue
						}
						t.Run(fmt.Sprint(spec.Type, name, schema, version), func(t *testing.T) {
							key := articles.Key(Article{ID: "1"})
							require.NoError(t, f.raw.Write(t.Context(), table.Put(oldArticle(f.KeyItem(key), schema, version))))
							a, err := articles.Get(t.Context(), Article{ID: "1"}, entity.Consistent())
							require.NoError(t, err)
							got, err := write(t, f, articles, a)
							require.NoError(t, err)
							want := a
							want.Cents = 701
							if spec.Version != "" {
								want.Version++
							}
							assert.Equal(t, want, got)
							row := f.row(t, key)
							assert.NotContains(t, row, "name")
							assert.NotContains(t, row, "price")
							assert.Equal(t, "kept", text(row, "unknown"))
							assert.Equal(t, "2", string(number(row, "schema")))
							assert.Equal(t, "701", string(number(row, "cents")))
							assert.Equal(t, "shop/LAST#Smith", text(row, "g1pk"))
							assert.Contains(t, row["nested"].(*types.AttributeValueMemberM).Value, "seen", "also what is nested")
							again, err := articles.Get(t.Context(), a, entity.Consistent())
							require.NoError(t, err)
							assert.Equal(t, got, again)
						})
					}
				}
			}
		}
	})
}

func TestUpgrade_WritesOfOldRows(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		articles := define(t, f.Table, articleSpec())
		ctx := t.Context()
		key := articles.Key(Article{ID: "1"})
		put := func(schema, version int) {
			require.NoError(t, f.raw.Write(ctx, table.Put(oldArticle(f.KeyItem(key), schema, version))))
		}
		put(1, 3)
		a, err := articles.Get(ctx, Article{ID: "1"}, entity.Consistent())
		require.NoError(t, err)
		require.ErrorIs(t, f.Write(ctx, articles.UpdateOp(a, entity.Add("cents", 1))), entity.ErrOlder, "it cannot read")
		is := a
		is.Cents = 1
		require.ErrorIs(t, f.Write(ctx, articles.ModifyOp(a, is)), entity.ErrOlder)
		_, err = articles.Update(ctx, Article{ID: "1", Version: 2}, entity.Add("cents", 1))
		require.ErrorIs(t, err, entity.ErrStale)

		f.faults.Script()
		a, err = articles.Update(ctx, a, entity.Set("email", "a@x"), entity.Add("count", 2))
		require.NoError(t, err, "a transaction upgrades too")
		assert.Equal(t, Article{ID: "1", First: "Ann", Last: "Smith", Cents: 700, Count: 3, Email: "a@x", Version: 4}, a)
		assert.Equal(t, "700", string(number(f.row(t, key), "cents")))
		require.Len(t, f.sentinels(t), 1)
		a, err = articles.Put(ctx, a)
		require.NoError(t, err)
		require.NoError(t, articles.Delete(ctx, a))
		require.Empty(t, f.sentinels(t))

		put(1, 3)
		_, err = articles.Put(ctx, Article{ID: "1", Version: 3, First: "Bob"})
		require.NoError(t, err)
		assert.Equal(t, "2", string(number(f.row(t, key), "schema")))
		put(1, 3)
		require.NoError(t, articles.AnyVersion().Delete(ctx, Article{ID: "1"}))
		put(0, 0)
		require.NoError(t, articles.AnyVersion().Delete(ctx, Article{ID: "1"}))

		// An upgrade may look at anything: without a version nothing may have changed meanwhile.
		bare := define(t, f.Table, bareSpec())
		key = bare.Key(Article{ID: "1"})
		for _, change := range []table.Change{table.Attr("price").Set(8), table.Attr("unknown").Remove(), table.Attr("first").Set("late")} {
			require.NoError(t, f.raw.Write(ctx, table.Put(oldArticle(f.KeyItem(key), 0, 0))))
			once := true
			f.faults.Before(func(op string) {
				if op == "GetItem" { // before the write that follows it
					f.faults.Before(func(op string) {
						if op == "UpdateItem" && once {
							once = false
							require.NoError(t, f.raw.Write(ctx, table.Update(key, change)))
						}
					})
				}
			})
			f.faults.Script()
			_, err = bare.Update(ctx, Article{ID: "1"}, entity.Set("count", 9))
			require.NoError(t, err)
			f.faults.Before(nil)
			assert.Equal(t, []string{"UpdateItem", "GetItem", "UpdateItem", "GetItem", "UpdateItem"}, f.faults.Sent(), change.Target())
		}
	})
}

func TestUpgrade_RowsOfANewerSchemaAreNeverTouched(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		none := bareSpec()
		none.Type, none.PK, none.Upgrades, none.Schema, none.Indexes = "None", "NONE#{id}", nil, "schema", nil
		for _, spec := range []entity.Spec[Article]{articleSpec(), bareSpec(), none} {
			articles := define(t, f.Table, spec)
			ctx := t.Context()
			for version := range int64(2) {
				if spec.Version == "" && version > 0 {
					continue
				}
				a := Article{ID: "1", Version: version}
				newer := f.KeyItem(articles.Key(a))
				newer["schema"] = &types.AttributeValueMemberN{Value: "3"}
				if version > 0 {
					newer["_v"] = &types.AttributeValueMemberN{Value: "1"}
				}
				require.NoError(t, f.raw.Write(ctx, table.Put(newer)))
				touch := func(a *Article) error { a.Count++; return nil }
				is := a
				is.Count++
				for name, err := range map[string]error{
					"get":      second(articles.Get(ctx, a)),
					"decode":   second(articles.Decode(newer)),
					"put":      second(articles.Put(ctx, a)),
					"update":   second(articles.Update(ctx, a, entity.Set("count", 1))),
					"index":    second(articles.Update(ctx, a, entity.Set("last", "x"))),
					"unique":   second(articles.Update(ctx, a, entity.Set("email", "x"))),
					"modify":   second(articles.Modify(ctx, a, touch)),
					"upsert":   second(articles.Upsert(ctx, a, touch)),
					"delete":   articles.Delete(ctx, a),
					"updateOp": f.Write(ctx, articles.UpdateOp(a, entity.Set("count", 1))),
					"deleteOp": f.Write(ctx, articles.DeleteOp(a)),
				} {
					require.ErrorIs(t, err, entity.ErrNewer, "%s of %s", name, spec.Type)
					require.ErrorContains(t, err, entity.ErrNewer.Error(), name) // by which docs/troubleshooting.md finds the remedy
				}
				_, err := articles.Create(ctx, a)
				require.ErrorIs(t, err, entity.ErrExists)
				assert.True(t, attrvalue.SameItem(newer, f.row(t, articles.Key(a))))
				assert.Empty(t, f.sentinels(t))
			}
		}
	})
}

// Brief is a row that expires.
type Brief struct {
	ID      string    `dynamo:"id"`
	Note    string    `dynamo:"note,omitempty"`
	Version int64     `dynamo:"version"`
	Expires time.Time `dynamo:"expires,omitempty"`
}

func TestUpgrade_AnExpiredRowOfANewerSchemaIsNoRow(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		ctx := t.Context()
		for _, version := range []string{"", "version"} {
			spec := entity.Spec[Brief]{Type: "Brief" + version, PK: "BRIEF#{id}", SK: "BRIEF" + version, TTL: "expires", Schema: "schema", Version: version}
			briefs := define(t, f.Table, spec)
			b := Brief{ID: "1"}
			key := briefs.Key(b)
			put := func(expires time.Time) {
				newer := f.KeyItem(key)
				newer["schema"] = &types.AttributeValueMemberN{Value: "3"}
				newer["_ttl"] = &types.AttributeValueMemberN{Value: strconv.FormatInt(expires.Unix(), 10)}
				require.NoError(t, f.raw.Write(ctx, table.Put(newer)))
			}
			blind := briefs.AnyVersion()
			for name, write := range map[string]func() error{
				"create":        func() error { return second(briefs.Create(ctx, b)) },
				"put":           func() error { return second(briefs.Put(ctx, b)) },
				"any put":       func() error { return second(blind.Put(ctx, b)) },
				"putOp":         func() error { return f.Write(ctx, briefs.PutOp(b)) },
				"upsert":        func() error { return second(briefs.Upsert(ctx, b, func(b *Brief) error { b.Note = "x"; return nil })) },
				"delete any":    func() error { return blind.Delete(ctx, b) },
				"delete any op": func() error { return f.Write(ctx, blind.DeleteOp(b)) },
			} {
				put(f.clock.now())
				require.NoError(t, write(), "%s %s", name, version)
				assert.NotContains(t, f.row(t, key), "schema")
				put(f.clock.now().Add(time.Minute))
				if err := write(); name == "create" {
					require.ErrorIs(t, err, entity.ErrExists)
				} else {
					require.ErrorIs(t, err, entity.ErrNewer, "%s %s", name, version)
				}
			}
			put(f.clock.now())
			require.ErrorIs(t, second(briefs.Update(ctx, b, entity.Set("note", "x"))), entity.ErrNotFound)
			require.NoError(t, f.raw.Write(ctx, table.Delete(key)))
		}
	})
}

func TestUpgrade_SchemaZeroIsWrittenOrNot(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		spec := bareSpec()
		spec.Upgrades, spec.Schema = nil, "schema"
		articles := define(t, f.Table, spec)
		ctx := t.Context()
		a, err := articles.Create(ctx, Article{ID: "1"})
		require.NoError(t, err)
		require.NoError(t, f.raw.Write(ctx, table.Update(articles.Key(a), table.Attr("schema").Set(0))))
		_, err = articles.Update(ctx, a, entity.Set("count", 1))
		require.NoError(t, err)
		_, err = articles.Modify(ctx, a, func(a *Article) error { a.Count++; return nil })
		require.NoError(t, err)
		assert.Equal(t, "2", string(number(f.row(t, articles.Key(a)), "count")))
	})
}

func TestUpgrade_ThatFails(t *testing.T) {
	tbl := offline(t, schema("app"))
	const canary = "cAnArY"
	for name, c := range map[string]struct {
		upgrade func(table.Item) (table.Item, error)
		want    error
	}{
		"error":   {func(table.Item) (table.Item, error) { return nil, fmt.Errorf("bad %s", canary) }, nil},
		"nil":     {func(table.Item) (table.Item, error) { return nil, nil }, entity.ErrInvalid},
		"key":     {func(i table.Item) (table.Item, error) { delete(i, "PK"); return i, nil }, entity.ErrInvalid},
		"version": {func(i table.Item) (table.Item, error) { i["_v"] = i["PK"]; return i, nil }, entity.ErrInvalid},
		"type":    {func(i table.Item) (table.Item, error) { i["_t"] = i["PK"]; return i, nil }, entity.ErrInvalid},
	} {
		spec := bareSpec()
		spec.Type, spec.PK, spec.Upgrades = name, name+"#{id}", []func(table.Item) (table.Item, error){c.upgrade}
		broken := define(t, tbl, spec)
		_, err := broken.Decode(oldArticle(tbl.KeyItem(broken.Key(Article{ID: canary})), 0, 0))
		var decode *entity.DecodeError
		require.ErrorAs(t, err, &decode, name)
		assert.Equal(t, broken.Key(Article{ID: canary}), decode.Key)
		assert.NotContains(t, err.Error(), canary)
		if c.want != nil {
			require.ErrorIs(t, err, c.want, name)
		}
	}
	articles := define(t, tbl, articleSpec())
	for _, bad := range []types.AttributeValue{
		&types.AttributeValueMemberN{Value: "-1"}, &types.AttributeValueMemberN{Value: "1.5"}, &types.AttributeValueMemberS{Value: "1"},
	} {
		row := oldArticle(tbl.KeyItem(articles.Key(Article{ID: "1"})), 1, 0)
		row["schema"] = bad
		_, err := articles.Decode(row)
		var decode *entity.DecodeError
		require.ErrorAs(t, err, &decode)
		assert.Equal(t, "schema", decode.Attribute)
	}

	for name, c := range map[string]struct {
		change func(*entity.Spec[Article])
		want   string
	}{
		"nil":          {func(s *entity.Spec[Article]) { s.Upgrades = append(s.Upgrades, nil) }, "Upgrades[2]: nil function"},
		"a field's":    {func(s *entity.Spec[Article]) { s.Schema = "count" }, "that of field Count"},
		"a key":        {func(s *entity.Spec[Article]) { s.Schema = "g1pk" }, "is a key or the scheme's"},
		"the scheme's": {func(s *entity.Spec[Article]) { s.Schema = "_v" }, "is a key or the scheme's"},
	} {
		spec := articleSpec()
		c.change(&spec)
		_, err := entity.Define(tbl, spec)
		require.ErrorContains(t, err, c.want, name)
	}
}

// An older program deletes the row and creates it again, between the read and the write. The version is the same.
func TestUpgrade_AnOldRowThatCameBackIsNotTakenForTheOneRead(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		articles := define(t, f.Table, articleSpec())
		ctx := t.Context()
		key := articles.Key(Article{ID: "1"})
		put := func(name, price string) {
			old := oldArticle(f.KeyItem(key), 0, 1)
			old["name"], old["price"] = &types.AttributeValueMemberS{Value: name}, &types.AttributeValueMemberN{Value: price}
			require.NoError(t, f.raw.Write(ctx, table.Put(old)))
		}
		for name, write := range map[string]func() (Article, error){
			"modify": func() (Article, error) {
				return articles.Modify(ctx, Article{ID: "1"}, func(a *Article) error { a.Cents++; return nil })
			},
			"update": func() (Article, error) {
				return articles.AnyVersion().Update(ctx, Article{ID: "1"}, entity.Add("cents", 1))
			},
			"update of a unique value": func() (Article, error) {
				return articles.AnyVersion().Update(ctx, Article{ID: "1"}, entity.Set("email", "e"), entity.Add("cents", 1))
			},
		} {
			put("Ann Smith", "7")
			f.faults.Before(func(op string) {
				if op == "GetItem" {
					f.faults.Before(func(string) {
						f.faults.Before(nil)
						put("Bob Jones", "9")
					})
				}
			})
			a, err := write()
			require.NoError(t, err, name)
			assert.EqualValues(t, 901, a.Cents, name)
			assert.Equal(t, "Bob", a.First, name)
			row := f.row(t, key)
			assert.Equal(t, "shop/LAST#Jones", text(row, "g1pk"), name)
			assert.Equal(t, "Bob", text(row, "first"), name)
		}
	})
}

// Version and time of creation identify an old row: one that came back is read again, and other attributes may change meanwhile.
func TestUpgrade_AnOldRowIsIdentifiedByItsTimeOfCreation(t *testing.T) {
	type Dated struct {
		ID      string    `dynamo:"id"`
		Cents   int64     `dynamo:"cents"`
		Note    string    `dynamo:"note,omitempty"`
		Created time.Time `dynamo:"created"`
		Version int64     `dynamo:"version"`
	}
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		dated := define(t, f.Table, entity.Spec[Dated]{
			Type: "Dated", PK: "DATED#{id}", SK: "DATED", Version: "version", Created: "created",
			Upgrades: []func(table.Item) (table.Item, error){toCents},
		})
		ctx := t.Context()
		key := dated.Key(Dated{ID: "1"})
		put := func(price string, created time.Time, more string) {
			old := f.KeyItem(key)
			old["price"], old["created"], old["_v"], old["unknown"] = num(price), str(created.Format(time.RFC3339Nano)), num("1"), str(more)
			require.NoError(t, f.raw.Write(ctx, table.Put(old)))
		}
		at := f.clock.now()
		for more, came := range map[string]time.Time{"came back": at.Add(1), "changed": at} {
			put("7", at, "")
			f.faults.Before(func(op string) {
				if op == "UpdateItem" {
					f.faults.Before(nil)
					put("7", came, more)
				}
			})
			f.faults.Script()
			d, err := dated.Modify(ctx, Dated{ID: "1"}, func(d *Dated) error { d.Note = "n"; return nil })
			require.NoError(t, err, more)
			assert.Equal(t, Dated{ID: "1", Cents: 700, Note: "n", Created: came, Version: 2}, d, more)
			assert.Equal(t, more, text(f.row(t, key), "unknown"))
			assert.Len(t, f.faults.Sent(), map[string]int{"came back": 4, "changed": 2}[more], more)
		}
	})
}

// A condition cannot compare all attributes of a wide row.
func TestUpgrade_AWideRowIsIdentifiedByItsVersion(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		articles := define(t, f.Table, articleSpec())
		ctx := t.Context()
		for _, width := range []int{60, 90, 100, 101, 400} {
			id := strconv.Itoa(width)
			old := oldArticle(f.KeyItem(articles.Key(Article{ID: id})), 0, 1)
			for len(old) < width {
				old["more"+strconv.Itoa(len(old))] = &types.AttributeValueMemberS{Value: "kept"}
			}
			require.NoError(t, f.raw.Write(ctx, table.Put(old)))
			a, err := articles.Modify(ctx, Article{ID: id}, func(a *Article) error { a.Cents++; a.Email = id; return nil })
			require.NoError(t, err, width)
			assert.EqualValues(t, 701, a.Cents, width)
			_, err = articles.Put(ctx, a)
			require.NoError(t, err, width)

			require.NoError(t, f.raw.Write(ctx, table.Put(old)))
			require.NoError(t, articles.AnyVersion().Delete(ctx, Article{ID: id}), width)
		}
	})
}

// Renamed was a row with the attribute mail (schema 0), which is now email.
type Renamed struct {
	ID      string `dynamo:"id"`
	Email   string `dynamo:"email,omitempty"`
	Version int64  `dynamo:"version"`
}

type renamedBefore struct {
	ID      string `dynamo:"id"`
	Email   string `dynamo:"mail,omitempty"`
	Version int64  `dynamo:"version"`
}

func TestUpgrade_SentinelsOfAnOldRowThatCameBackStayRight(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		ctx := t.Context()
		before := define(t, f.raw, entity.Spec[renamedBefore]{
			Type: "Renamed", PK: "RENAMED#{id}", SK: "RENAMED", Version: "version",
			Unique: []entity.Unique[renamedBefore]{{Name: "email", Key: "{Email}"}},
		})
		now := define(t, f.Table, entity.Spec[Renamed]{
			Type: "Renamed", PK: "RENAMED#{id}", SK: "RENAMED", Version: "version",
			Unique: []entity.Unique[Renamed]{{Name: "email", Key: "{Email}"}},
			Upgrades: []func(table.Item) (table.Item, error){func(item table.Item) (table.Item, error) {
				item["email"] = item["mail"]
				delete(item, "mail")
				return item, nil
			}},
		})
		for name, write := range map[string]func() error{
			"put":    func() error { return second(now.Put(ctx, Renamed{ID: "1", Email: "a", Version: 1})) },
			"delete": func() error { return now.AnyVersion().Delete(ctx, Renamed{ID: "1"}) },
		} {
			first, err := before.Create(ctx, renamedBefore{ID: "1", Email: "a"})
			require.NoError(t, err)
			f.faults.Before(func(op string) {
				if op == "GetItem" {
					f.faults.Before(func(string) {
						f.faults.Before(nil)
						require.NoError(t, before.Delete(ctx, first))
						_, err := before.Create(ctx, renamedBefore{ID: "1", Email: "b"})
						require.NoError(t, err)
					})
				}
			})
			if err = write(); name == "put" {
				require.ErrorIs(t, err, entity.ErrStale)
				require.Len(t, f.sentinels(t), 1)
				require.NoError(t, now.AnyVersion().Delete(ctx, Renamed{ID: "1"}))
			} else {
				require.NoError(t, err)
			}
			assert.Empty(t, f.sentinels(t), name)
		}
	})
}

// A row of an older schema has not changed since it was read, although its attributes are others.
func TestUpgrade_DeleteOpOfAnOldRow(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		articles := define(t, f.Table, articleSpec())
		ctx := t.Context()
		spec := articleSpec()
		spec.Type, spec.PK, spec.Upgrades = "Named", "NAMED#{id}", []func(table.Item) (table.Item, error){splitName, func(item table.Item) (table.Item, error) {
			item["email"] = item["mail"]
			delete(item, "mail")
			return item, nil
		}}
		named := define(t, f.Table, spec)
		for version := range 2 {
			key := named.Key(Article{ID: "1"})
			old := oldArticle(f.KeyItem(key), 0, version)
			old["mail"] = &types.AttributeValueMemberS{Value: "a@x"}
			require.NoError(t, f.raw.Write(ctx, table.Put(old)))
			a, err := named.Get(ctx, Article{ID: "1"}, entity.Consistent())
			require.NoError(t, err)
			err = f.Write(ctx, named.DeleteOp(a))
			require.ErrorIs(t, err, entity.ErrOlder)
			require.NotErrorIs(t, err, entity.ErrStale)
			a.Version++
			require.ErrorIs(t, f.Write(ctx, named.DeleteOp(a)), entity.ErrStale)
			a.Version--
			require.NoError(t, named.Delete(ctx, a))
			assert.Nil(t, f.row(t, key))
		}
		require.NoError(t, f.raw.Write(ctx, table.Put(oldArticle(f.KeyItem(articles.Key(Article{ID: "1"})), 1, 3))))
		require.NoError(t, f.Write(ctx, articles.DeleteOp(Article{ID: "1", Version: 3})), "what does not depend on the attributes applies")
	})
}

// An older program replaces the row between the read and the write.
func TestUpgrade_ARowThatBecomesOlderIsReadAgain(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		bare := define(t, f.Table, bareSpec())
		ctx := t.Context()
		key := bare.Key(Article{ID: "1"})
		for name, write := range map[string]func() (Article, error){
			"modify": func() (Article, error) {
				return bare.Modify(ctx, Article{ID: "1"}, func(a *Article) error { a.Count++; return nil })
			},
			"upsert": func() (Article, error) {
				return bare.Upsert(ctx, Article{ID: "1"}, func(a *Article) error { a.Count++; return nil })
			},
			"update": func() (Article, error) {
				return bare.Update(ctx, Article{ID: "1"}, entity.Add("count", 1), entity.Set("first", "Ann"))
			},
		} {
			_, err := bare.Put(ctx, Article{ID: "1", Last: "new"})
			require.NoError(t, err)
			f.faults.Before(func(op string) {
				if op == "UpdateItem" {
					f.faults.Before(nil)
					require.NoError(t, f.raw.Write(ctx, table.Put(oldArticle(f.KeyItem(key), 0, 0))))
				}
			})
			a, err := write()
			require.NoError(t, err, name)
			assert.Equal(t, Article{ID: "1", First: "Ann", Last: "Smith", Cents: 700, Count: 2}, a, name)
		}
	})
}
