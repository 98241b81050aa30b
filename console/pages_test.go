package console_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/console"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// all are addresses of all kinds of pages.
var all = []string{
	"", "locks", "lock?name=report", "lock?name=nothing", "lock?pk=TENANT%23acme&of=ORDER%23001", "sessions", "items", "items?pk=TENANT%23acme",
	"items?type=Order", "items?pk=TENANT%23acme&type=Order", "items?pk=FOREIGN", "indexes", "migrations",
}

// everything fills the world with markers: in payloads, in attributes of all kinds, in keys of indexes, in a row of an
// unknown type, in the error of a migration.
func (w *world) everything() {
	w.Helper()
	w.fill(20)
	require.NoError(w, w.table.Write(w.Context(), table.Update(keys.NewKey("FOREIGN", "row"),
		table.Attr("type").Set(marker), table.Attr("bytes").Set([]byte(marker)), table.Attr("deep").Set(map[string]any{marker: []any{marker, map[string]any{"x": marker}}}))))
	w.hold(lock.Name("report"), "first", "second")
	lease := w.hold(beside(1), "first-too")
	require.NoError(w, lease.SetData(w.Context(), map[string]any{"deep": []string{marker}}))
	wait := make(chan struct{})
	close(wait)
	_, err := w.migrator(w.table, w.clientOf(w.table, "deploy"), migrationList(wait)).Up(w.Context())
	require.ErrorContains(w, err, marker)
}

func TestPages_ShowNothingHidden(t *testing.T) {
	virtual(t, func(w *world) {
		w.everything()
		var open []*reader
		for _, page := range []string{"locks", "sessions", "lock&name=report", "lock&pk=TENANT%23acme&of=ORDER%23001", "migrations"} {
			open = append(open, w.open(page))
		}
		time.Sleep(10 * time.Second)
		for _, page := range all {
			assert.NotContains(w, w.get(page, http.StatusOK), marker, page)
		}
		for _, r := range open {
			assert.NotEmpty(w, r.last())
			assert.NotContains(w, r.text(), marker)
		}
	}, withMigrations, withOrders)
}

func TestPages_ShowDataWhereItIsAskedFor(t *testing.T) {
	virtual(t, func(w *world) {
		w.everything()
		time.Sleep(10 * time.Second)
		for _, page := range []string{"lock?name=report", "lock?pk=TENANT%23acme&of=ORDER%23001", "items?pk=TENANT%23acme", "items?type=Order", "items?pk=FOREIGN", "migrations"} {
			text := w.get(page, http.StatusOK)
			assert.Contains(w, text, marker, page)
			assert.Contains(w, text, "Data is shown.", page)
		}
		foreign := html.UnescapeString(w.get("items?pk=FOREIGN", http.StatusOK))
		assert.Contains(w, foreign, `{m4rker: ["m4rker", {x: "m4rker"}]}`)
		assert.Contains(w, foreign, "bTRya2Vy", "bytes in base64")
	}, withMigrations, withOrders, showData)
}

// Names come from the application, and owners from anywhere: none of them is code.
func TestNames_AreTextAndNoCode(t *testing.T) {
	const evil = `<script>alert(1)</script>"'><img src=x onerror=alert(1)>`
	virtual(t, func(w *world) {
		w.hold(lock.Name(evil), evil, evil)
		key := keys.NewKey(evil, evil)
		require.NoError(w, w.table.Write(w.Context(), table.Update(key, table.Attr(evil).Set(evil))))
		page, single := w.open("locks"), w.open("lock&"+url.Values{"name": {evil}}.Encode())
		time.Sleep(5 * time.Second)
		q := url.QueryEscape(evil)
		for name, text := range map[string]string{
			"locks": page.last(), "lock": single.last(), "sessions": w.get("sessions", http.StatusOK), "lock page": w.get("lock?name="+q, http.StatusOK),
			"items": w.get("items", http.StatusOK), "collection": w.get("items?pk="+q, http.StatusOK), "bad": w.get("items?type="+q, http.StatusBadRequest),
		} {
			assert.NotContains(w, text, "<script>alert", name)
			assert.NotContains(w, text, "<img", name)
		}
		link := regexp.MustCompile(`href="(lock\?[^"]*)"`).FindStringSubmatch(page.last())
		require.Len(w, link, 2)
		assert.Equal(w, []string{"holds", "1"}, firstWords(drawn(w.get(html.UnescapeString(link[1]), http.StatusOK))), "the link leads to the lock")
	}, showData)
}

// A carriage return ends a line of an event stream, as a newline does. In a name it must not begin a field of the stream, or an event.
func TestEvents_KeepANameWithControlCharactersInItsPlace(t *testing.T) {
	virtual(t, func(w *world) {
		w.hold(lock.Name("a\rretry: 0\r\rdata: b\r\n\nid: 7\r"), "o\rdata: c\r")
		for _, page := range []string{"locks", "sessions", "lock&" + url.Values{"name": {"a\rretry: 0\r\rdata: b\r\n\nid: 7\r"}}.Encode()} {
			stream := w.open(page)
			time.Sleep(5 * time.Second)
			assert.NotContains(w, stream.text(), "\r", page)
			assert.Contains(w, stream.last(), "a\nretry: 0\n\ndata: b\n\nid: 7\n", page)
			for line := range strings.Lines(stream.text()) {
				assert.Regexp(w, `^(data: .*|retry: 3000|:|)\n$`, line, page)
			}
		}
	})
}

func firstWords(list []string) (words []string) {
	for _, text := range list {
		word, _, _ := strings.Cut(text, " ")
		words = append(words, word)
	}
	return words
}

func TestPages_WorkUnderAStrictPolicyAndBelowAnyPrefix(t *testing.T) {
	virtual(t, func(w *world) {
		w.everything()
		inline := regexp.MustCompile(`(?i)\sstyle=|\son[a-z]+=|<style|<script(?: [^>]*)?>[^<]|javascript:|<base`)
		absolute := regexp.MustCompile(`(?:href|src|action|data-events)="(?:/|[a-z]+:|//)`)
		for _, page := range all {
			r := httptest.NewRequestWithContext(w.Context(), http.MethodGet, "http://localhost/a/b/"+page, nil)
			out := w.do(r, http.StatusOK)
			assert.Empty(w, inline.FindString(out.Body.String()), page)
			assert.Empty(w, absolute.FindString(out.Body.String()), page)
			h := out.Header()
			assert.Equal(w, "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "+
				"form-action 'self'; base-uri 'none'; frame-ancestors 'none'", h.Get("Content-Security-Policy"))
			assert.Equal(w, "no-store", h.Get("Cache-Control"))
			assert.Equal(w, "nosniff", h.Get("X-Content-Type-Options"))
			assert.Equal(w, "no-referrer", h.Get("Referrer-Policy"))
			assert.Equal(w, "text/html; charset=utf-8", h.Get("Content-Type"))
		}
	}, withMigrations, withOrders)
}

func TestAssets_AreKeptByBrowsers(t *testing.T) {
	virtual(t, func(w *world) {
		for _, m := range regexp.MustCompile(`(?:href|src)="([\w.]+\.(?:css|js|svg)\?v=\w+)"`).FindAllStringSubmatch(w.get("locks", http.StatusOK), -1) {
			r := httptest.NewRequestWithContext(w.Context(), http.MethodGet, "http://localhost/"+m[1], nil)
			out := w.do(r, http.StatusOK)
			assert.Equal(w, "public, max-age=31536000, immutable", out.Header().Get("Cache-Control"))
			assert.NotEmpty(w, out.Body.Len())
			r.Header.Set("If-None-Match", out.Header().Get("ETag"))
			w.do(r, http.StatusNotModified)

			// An old page, or nobody's: ask again.
			name, _, _ := strings.Cut(m[1], "?")
			out = w.do(httptest.NewRequestWithContext(w.Context(), http.MethodGet, "http://localhost/"+name+"?v=old", nil), http.StatusOK)
			assert.Equal(w, "no-cache", out.Header().Get("Cache-Control"))
		}
	})
}

func TestHost_OthersAreRefused(t *testing.T) {
	for _, c := range []struct {
		hosts []string
		host  string
		want  bool
	}{
		{nil, "localhost", true},
		{nil, "LOCALHOST:8080", true},
		{nil, "127.0.0.1:8080", true},
		{nil, "127.8.8.8", true},
		{nil, "[::1]:8080", true},
		{nil, "::1", true},
		{nil, "rebound.example.com:8080", false},
		{nil, "localhost.example.com", false},
		{nil, "10.0.0.1:8080", false},
		{nil, "", false},
		{[]string{"ops.example.com"}, "ops.example.com", true},
		{[]string{"ops.example.com"}, "OPS.example.com.:443", true},
		{[]string{"Ops.Example.COM"}, "ops.example.com", true},
		{[]string{"ops.example.com"}, "example.com", false},
		{[]string{"ops.example.com"}, "localhost", false},
		{[]string{"10.0.0.1", "ops"}, "10.0.0.1:80", true},
		{[]string{"*"}, "anything", true},
	} {
		t.Run(fmt.Sprint(c.hosts, c.host), func(t *testing.T) {
			virtual(t, func(w *world) {
				for _, path := range []string{"/locks", "/events?page=locks", "/console.js", "/nothing"} {
					ctx, cancel := context.WithTimeout(w.Context(), 3*time.Second)
					r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
					r.Host = c.host
					out := httptest.NewRecorder()
					w.c.ServeHTTP(out, r)
					cancel()
					assert.Equal(w, c.want, out.Code != http.StatusMisdirectedRequest, path)
					if !c.want {
						assert.NotContains(w, out.Body.String(), "app", "not even the table's name")
					}
				}
				if !c.want {
					assert.Zero(w, w.eyes.count(), "nothing is read")
				}
			}, func(w *world) { w.config.Hosts = c.hosts })
		})
	}
}

func TestMethods_OnlyGetAndHead(t *testing.T) {
	virtual(t, func(w *world) {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions} {
			for _, path := range []string{"locks", "events?page=locks", "console.js", "nothing"} {
				out := w.do(httptest.NewRequestWithContext(w.Context(), method, "http://localhost/"+path, nil), http.StatusMethodNotAllowed)
				assert.Equal(w, "GET, HEAD", out.Header().Get("Allow"))
			}
		}
		for _, path := range []string{"locks", "events?page=locks", "console.js"} {
			out := w.do(httptest.NewRequestWithContext(w.Context(), http.MethodHead, "http://localhost/"+path, nil), http.StatusOK)
			assert.Zero(w, out.Body.Len(), path)
		}
		w.get("nothing", http.StatusNotFound)
		w.get("migrations", http.StatusNotFound)
		w.get("events?page=migrations", http.StatusNotFound)
		assert.NotContains(w, w.get("locks", http.StatusOK), `href="migrations"`)
	})
}

// It never writes, whatever is looked at.
func TestPages_WriteNothing(t *testing.T) {
	virtual(t, func(w *world) {
		w.everything()
		for _, page := range []string{"locks", "sessions", "lock&name=report", "lock&name=nothing", "migrations"} {
			w.open(page)
		}
		for _, page := range all {
			w.get(page, http.StatusOK)
			time.Sleep(5 * time.Second)
		}
		assert.Equal(w, []string{"BatchGetItem", "DescribeTable", "DescribeTimeToLive", "GetItem", "Query", "Scan"}, w.eyes.operations())
	}, withMigrations, withOrders, indexed)
}

func TestItems_ArePagedByEntity(t *testing.T) {
	virtual(t, func(w *world) {
		w.fill(120)
		w.hold(beside(7), "p1")
		seen := map[string]int{}
		pages := 0
		for page := "items?pk=TENANT%23acme"; page != ""; pages++ {
			before := w.eyes.count()
			text := w.get(page, http.StatusOK)
			assert.Equal(w, 1, w.eyes.count()-before, "one request for each page")
			for _, m := range regexp.MustCompile(`<b>(ORDER#\d+)</b> <span class="kind">Order</span>`).FindAllStringSubmatch(text, -1) {
				seen[m[1]]++
			}
			if strings.Contains(text, "mortise.Lock") {
				assert.Contains(w, text, `<a href="lock?of=ORDER%23007&amp;pk=TENANT%23acme">the lock</a>`)
				seen["lock"]++
			}
			page = nextOf(text)
		}
		assert.Equal(w, 3, pages)
		assert.Len(w, seen, 121)
		for name, n := range seen {
			assert.Equal(w, 1, n, name)
		}

		// The whole table, an entity at a time.
		orders := 0
		for page := "items?type=Order"; page != ""; {
			text := w.get(page, http.StatusOK)
			assert.NotContains(w, text, "mortise.")
			orders += strings.Count(text, `<span class="kind">Order</span>`)
			page = nextOf(text)
		}
		assert.Equal(w, 120, orders)

		assert.Contains(w, w.get("items?pk=NOBODY", http.StatusOK), "There are no items with this partition key.")
		w.get("items?type=Nothing", http.StatusBadRequest)
		w.get("items?pk="+strings.Repeat("x", 3000), http.StatusBadRequest)
		w.get("items?after=a&after_sort="+strings.Repeat("x", 3000), http.StatusBadRequest)
	}, withOrders)
}

// A role without the permission Scan is shown items by collection, so there has to be a way to name one.
func TestItems_CollectionsCanBeNamedWhereTheTableCannotBeRead(t *testing.T) {
	virtual(t, func(w *world) {
		const form = `<form class="search" action="items">`
		assert.Contains(w, w.get("items?pk=a", http.StatusOK), form)
		w.eyes.to = &broken{http.StatusBadRequest, `{"__type": "x#AccessDeniedException", "message": ""}`}
		assert.Equal(w, 1, strings.Count(w.get("items", http.StatusBadGateway), form))
		assert.NotContains(w, w.get("indexes", http.StatusBadGateway), form)
	})
}

// DynamoDB tells of more rows after each full page, also after the last row.
func TestItems_APageBehindTheLastRowDoesNotDenyTheOthers(t *testing.T) {
	virtual(t, func(w *world) {
		w.fill(50)
		for page, empty := range map[string]string{"items?pk=TENANT%23acme": "There are no items with this partition key.", "items": "The table is empty."} {
			next := nextOf(w.get(page, http.StatusOK))
			require.NotEmpty(w, next, page)
			text := w.get(next, http.StatusOK)
			assert.NotContains(w, text, empty)
			assert.Contains(w, text, "There are no items in this part.")
			assert.Empty(w, nextOf(text))
		}
	})
}

// nextOf returns the address of the next page; empty for none.
func nextOf(text string) string {
	m := regexp.MustCompile(`<a href="([^"]*)" rel="next">`).FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return html.UnescapeString(m[1])
}

// Requests that were cancelled before their turn take none of the budget from those that are still wanted.
func TestItems_ThatNobodyWaitsForAnyMoreAreNotPaidFor(t *testing.T) {
	virtual(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() {
				w.c.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/items", nil))
			})
		}
		time.Sleep(3 * time.Second)
		cancel()
		all.Wait()
		began := time.Now()
		w.get("items", http.StatusOK)
		assert.LessOrEqual(w, time.Since(began), time.Second)
		assert.LessOrEqual(w, w.eyes.count(), 9)
		assert.LessOrEqual(w, w.eyes.most(), 2)
	})
}

// Pages that do not go live share a budget: many loads of them wait for each other.
func TestItems_KeepToTheBudget(t *testing.T) {
	virtual(t, func(w *world) {
		w.fill(10)
		start := time.Now()
		for range 20 {
			w.get("items", http.StatusOK)
		}
		assert.LessOrEqual(w, w.eyes.most(), 2)
		assert.GreaterOrEqual(w, time.Since(start), 9*time.Second)

		// A reader who goes away is waited for no longer.
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		before := w.eyes.count()
		w.c.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/items", nil))
		assert.Equal(w, before, w.eyes.count())
	}, withOrders)
}

func TestIndexes_ShowTheSchemaAndWhatDiffers(t *testing.T) {
	virtual(t, func(w *world) {
		text := w.get("indexes", http.StatusOK)
		assert.Contains(w, text, "the table agrees with its schema")
		assert.Regexp(w, `(?s)<b>gsi1</b>.*<code>gsi1pk</code>.*<code>gsi1sk</code>.*all attributes.*<span class="tag">Order</span>`, text)
		assert.Regexp(w, `(?s)<b>gsi2</b>.*keys and status`, text)
		assert.NotRegexp(w, `with \d+ requests`, text, "how many depends on the schema")
	}, withOrders, func(w *world) {
		w.schema.Indexes = append(w.schema.Indexes, table.Index{Name: "gsi2", PK: "gsi2pk", Include: []string{"status"}})
		var err error
		w.config.Table, err = table.Open(w.engine.Client(), w.schema)
		require.NoError(w, err)
		require.NoError(w, w.config.Table.Ensure(w.Context()))
		w.config.Entities = nil
		withOrders(w)
	})
	virtual(t, func(w *world) {
		text := w.get("indexes", http.StatusOK)
		assert.Contains(w, text, "the table differs from its schema")
		assert.Contains(w, html.UnescapeString(text), "+ index gsi3 (gsi3pk:S; all)")
		assert.Regexp(w, `(?s)<b>lsi1</b>.*local.*keys only`, text)
	}, func(w *world) {
		w.schema.Indexes = append(w.schema.Indexes, table.Index{Name: "gsi3", PK: "gsi3pk"}, table.Index{Name: "lsi1", SK: "lsk", Local: true, Include: []string{}})
		var err error
		w.config.Table, err = table.Open(w.engine.Client(), w.schema)
		require.NoError(w, err)
	})
}

func TestNew_RefusesWhatIsNotInOrder(t *testing.T) {
	engine := tabletest.New(t)
	open := func(name string) *table.Table {
		tbl, err := table.Open(engine.Client(), table.Schema{Name: name})
		require.NoError(t, err)
		return tbl
	}
	tbl := open("app")
	locks, err := lock.New(tbl, lock.Config{})
	require.NoError(t, err)
	for text, config := range map[string]console.Config{
		"Config.Table is nil":       {Locks: locks},
		"Config.Locks is nil":       {Table: tbl},
		"client of another table":   {Table: open("other"), Locks: locks},
		"Config.Entities[0] is nil": {Table: tbl, Locks: locks, Entities: []console.Entity{console.Entity(nil)}},
		"Config.Hosts[0]":           {Table: tbl, Locks: locks, Hosts: []string{""}},
		"Config.Hosts[1]":           {Table: tbl, Locks: locks, Hosts: []string{"a", "https://b"}},
		"want a name without":       {Table: tbl, Locks: locks, Hosts: []string{"a:8080"}},
	} {
		t.Run(text, func(t *testing.T) {
			_, err := console.New(config)
			require.ErrorIs(t, err, console.ErrInvalid)
			require.ErrorContains(t, err, text)
		})
	}
	c, err := console.New(console.Config{Table: tbl, Locks: locks, Hosts: []string{"a", "10.0.0.1", "::1", "*"}})
	require.NoError(t, err)
	require.NoError(t, c.Close())
	assert.Empty(t, engine.Requests(), "nothing is read")
}

// broken is a connection over which nothing comes but one answer or error.
type broken struct {
	status int // 0 for an error
	text   string
}

func (b *broken) Do(r *http.Request) (*http.Response, error) {
	if b.status == 0 {
		return nil, errors.New(b.text)
	}
	return &http.Response{
		StatusCode: b.status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amzn-Requestid": {marker}}, Request: r,
		Body: io.NopCloser(strings.NewReader(b.text)),
	}, nil
}

// What the SDK says of a failure names accounts, roles, hosts and files of the server. The page tells what has failed, and of which kind it is.
func TestPages_OfAFailureShowItsKind(t *testing.T) {
	for want, connection := range map[string]*broken{
		"access denied":                  {http.StatusBadRequest, `{"__type": "x#AccessDeniedException", "message": "User: arn:aws:iam::` + marker + `:role/a is not authorized"}`},
		"credentials missing or refused": {http.StatusBadRequest, `{"__type": "x#ExpiredTokenException", "message": "` + marker + `"}`},
		"no such table or index":         {http.StatusBadRequest, `{"__type": "x#ResourceNotFoundException", "message": "` + marker + `"}`},
		"endpoint unreachable":           {0, "dial tcp: lookup " + marker + ".internal: no such host"},
		"on app: failed":                 {http.StatusBadRequest, `{"__type": "x#OtherException", "message": "` + marker + `"}`},
	} {
		for _, shown := range []bool{false, true} {
			virtual(t, func(w *world) {
				w.eyes.to = connection
				for page, live := range map[string]bool{"locks": true, "sessions": true, "lock?name=report": true, "migrations": true, "items": false, "items?pk=a": false, "indexes": false} {
					texts := []string{w.get(page, map[bool]int{true: http.StatusOK, false: http.StatusBadGateway}[live])}
					if live {
						stream := w.open(strings.Replace(page, "?", "&", 1))
						time.Sleep(2 * time.Minute)
						texts = append(texts, stream.text())
						stream.close()
					}
					all := strings.Join(texts, "")
					if shown && page == "items" {
						assert.Contains(w, all, marker, want)
					} else if !shown {
						assert.NotContains(w, all, marker, "%s: %s", page, want)
						assert.Contains(w, all, want, page)
					}
				}
			}, withMigrations, func(w *world) { w.config.ShowData = shown })
		}
	}
}

// Characters that control a terminal, as of somebody who loads a page with curl, or that turn the direction of writing, are in no answer.
// The links of the page lead to the row all the same.
func TestPages_HaveNoCharactersThatControlWhatShowsThem(t *testing.T) {
	const evil = "a\x1b]52;c;cHduZWQ=\a\u009b31m\x7f\b\u202eb\u2066c\u200fd"
	virtual(t, func(w *world) {
		w.hold(lock.Name(evil), evil, evil)
		key := keys.NewKey(evil, evil)
		require.NoError(w, w.table.Write(w.Context(), table.Update(key, table.Attr(evil).Set(evil), table.Attr("m").Set(map[string]any{evil: evil}))))
		require.NoError(w, w.table.Write(w.Context(), table.Update(keys.NewKey("MIGRATIONS#main", "MIGRATION#1"), table.Attr("type").Set("mortise.Migration"),
			table.Attr("state").Set("failed"), table.Attr("base").Set(1), table.Attr("attempts").Set(1),
			table.Attr("name").Set(evil), table.Attr("owner").Set(evil), table.Attr("step").Set(evil), table.Attr("error").Set(evil))))
		q := url.QueryEscape(evil)
		controls := regexp.MustCompile(`[^\P{C}\n]`) // all of Unicode's "other" characters but newlines
		for _, page := range []string{"locks", "sessions", "migrations", "lock?name=" + q, "lock?pk=" + q + "&of=" + q, "items", "items?pk=" + q} {
			text := w.get(page, http.StatusOK)
			assert.Contains(w, text, "a\uFFFD]52;c;cHduZWQ=\uFFFD\uFFFD31m\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFDd", page)
			assert.Empty(w, controls.FindAllString(text, -1), page)
			if !strings.HasPrefix(page, "i") {
				stream := w.open(strings.Replace(page, "?", "&", 1))
				time.Sleep(10 * time.Second)
				stream.close()
				assert.Empty(w, controls.FindAllString(stream.text(), -1), page)
			}
		}
		for _, page := range []string{"items?type=" + q, "lock?name=a&pk=" + q, "events?page=" + q} {
			r := httptest.NewRequestWithContext(w.Context(), http.MethodGet, "http://localhost/"+page, nil)
			out := httptest.NewRecorder()
			w.c.ServeHTTP(out, r)
			assert.Empty(w, controls.FindAllString(out.Body.String(), -1), page)
		}
		link := regexp.MustCompile(`href="(lock\?[^"]*)"`).FindStringSubmatch(w.get("locks", http.StatusOK))
		require.Len(w, link, 2)
		assert.Len(w, drawn(w.get(html.UnescapeString(link[1]), http.StatusOK)), 2, "the link leads to the lock")
	}, showData, withMigrations)
}
