package console_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// passTime is how long all locks take to be found through the index, at the budget.
const passTime = 15 * time.Second

func TestLocks_AppearMoveAndGoWithoutReload(t *testing.T) {
	for name, settings := range map[string][]setting{"by index": {indexed}, "by table": nil} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(w *world) {
				page := w.open("locks")
				time.Sleep(passTime)
				assert.Contains(w, page.last(), "Nobody holds a lock.")

				lease := w.hold(lock.Name("report"), "first", "second", "third")
				time.Sleep(passTime)
				assert.Equal(w, []string{"holds first", "1 second", "2 third"}, drawn(page.last()))
				assert.Contains(w, page.last(), "<b>1</b> held")
				assert.Contains(w, page.last(), "<b>2</b> waiting")

				require.NoError(w, lease.Release(w.Context()))
				time.Sleep(passTime)
				assert.Equal(w, []string{"holds second", "1 third"}, drawn(page.last()))
			}, settings...)
		})
	}
}

var chip = regexp.MustCompile(`(?s)<li class="place (holds|waits)[^"]*"[^>]*><span class="mark"[^>]*>(\d*)</span><span class="who">([^<]*)</span>`)

// drawn are the places of the lines that a page shows, in their order.
func drawn(page string) (list []string) {
	for _, m := range chip.FindAllStringSubmatch(page, -1) {
		number := m[2]
		if m[1] == "holds" {
			number = "holds"
		}
		list = append(list, number+" "+m[3])
	}
	return list
}

// Those that hold together are drawn as holders: permits, and readers before the first writer.
func TestLocks_SeveralCanHold(t *testing.T) {
	virtual(t, func(w *world) {
		enter := func(name, owner string, opts ...lock.Option) {
			c := w.client(owner)
			go func() { _, _ = c.Acquire(w.Context(), lock.Name(name), opts...) }() // ends with the test
			synctest.Wait()
		}
		for _, owner := range []string{"a", "b", "c"} {
			enter("exports", owner, lock.Permits(2))
		}
		enter("document", "r1", lock.Shared())
		enter("document", "r2", lock.Shared())
		enter("document", "writer")
		enter("document", "r3", lock.Shared())
		page := w.open("locks")
		time.Sleep(3 * time.Second)
		assert.Equal(w, []string{"holds r1", "holds r2", "1 writer", "2 r3", "holds a", "holds b", "1 c"}, drawn(page.last()))
		assert.Equal(w, 3, strings.Count(page.last(), ">reads<"))
		assert.Contains(w, page.last(), "<b>3</b> waiting")
		single := w.get("lock?name=exports", http.StatusOK)
		assert.Equal(w, []string{"holds a", "holds b", "1 c"}, drawn(single))
		assert.Contains(w, single, "<dt>permits</dt><dd>2</dd>")
	})
}

func TestLocks_ALongLineIsCutAndCounted(t *testing.T) {
	virtual(t, func(w *world) {
		owners := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}
		w.hold(lock.Name("busy"), owners...)
		time.Sleep(time.Second)
		page := w.get("locks", http.StatusOK)
		assert.Len(w, drawn(page), 6)
		assert.Contains(w, page, "+ 3 more")
		single := w.get("lock?name=busy", http.StatusOK)
		assert.Len(w, drawn(single), 9, "the lock's own page shows all places")
	})
}

func TestLocks_ThoseThatManyWaitForComeFirst(t *testing.T) {
	virtual(t, func(w *world) {
		w.hold(lock.Name("a"), "p1")
		w.hold(lock.Name("b"), "p2", "p3")
		w.hold(lock.Name("c"), "p4", "p5", "p6", "p7")
		page := w.open("locks")
		time.Sleep(3 * time.Second)
		assert.Equal(w, []string{"holds p4", "1 p5", "2 p6", "3 p7", "holds p2", "1 p3", "holds p1"}, drawn(page.last()))
	})
}

func TestLocks_AreShownInParts(t *testing.T) {
	virtual(t, func(w *world) {
		c := w.client("many")
		for i := range 120 {
			_, err := c.Acquire(w.Context(), beside(i))
			require.NoError(w, err)
		}
		page := w.open("locks&page_number=3")
		time.Sleep(5 * time.Second)
		assert.Len(w, drawn(page.last()), 20)
		assert.Contains(w, page.last(), "page 3 of 3")
		assert.Contains(w, w.get("locks?page_number=2", http.StatusOK), `href="locks?page_number=3"`)
		assert.Len(w, drawn(w.get("locks?page_number=99", http.StatusOK)), 20, "behind the end is the last part")
		w.get("locks?page_number=0", http.StatusBadRequest)
		w.get("locks?page_number=x", http.StatusBadRequest)
	})
}

func TestLocks_WhatIsNotInOrderIsCounted(t *testing.T) {
	virtual(t, func(w *world) {
		w.hold(lock.Name("good"), "p1")
		free := w.hold(lock.Name("free"), "p2")
		require.NoError(w, free.Release(w.Context()))
		require.NoError(w, w.table.Write(w.Context(), table.Update(keys.NewKey("LOCK#bad", "LOCK#bad"),
			table.Attr("type").Set("mortise.Lock"), table.Attr("line").Set([]string{"no ticket"}), table.Attr("fence").Set(1))))
		page := w.open("locks")
		time.Sleep(3 * time.Second)
		assert.Equal(w, []string{"holds p1"}, drawn(page.last()))
		assert.Contains(w, page.last(), "malformed rows: 1")
		assert.Contains(w, page.last(), "1 that nobody holds")
	})
}

// A row that is not in order is no failure of the table, and is not tried in vain: its page tells what it is.
func TestLock_WhoseRowIsNotInOrder(t *testing.T) {
	virtual(t, func(w *world) {
		key, row := keys.NewKey("LOCK#bad", "LOCK#bad"), []table.Change{table.Attr("type").Set("mortise.Lock"), table.Attr("fence").Set(1)}
		w.hold(lock.Name("bad"), "p1")
		page := w.open("lock&name=bad")
		time.Sleep(3 * time.Second)
		assert.Equal(w, []string{"holds p1"}, drawn(page.last()))
		for text, changes := range map[string][]table.Change{
			"malformed lock row":            append(row, table.Attr("line").Set([]string{"no ticket"})),
			"the row at the lock&#39;s key": {table.Attr("type").Set("Order")},
		} {
			require.NoError(w, w.table.Write(w.Context(), table.Update(key, changes...)))
			time.Sleep(10 * time.Second)
			for _, shown := range []string{page.last(), w.get("lock?name=bad", http.StatusOK)} {
				assert.Contains(w, shown, text)
				assert.Contains(w, shown, "Nobody can acquire this lock")
				assert.NotContains(w, shown, "cannot be read")
				assert.NotContains(w, shown, "being read")
				assert.Empty(w, drawn(shown))
			}
		}
		require.NoError(w, w.table.Write(w.Context(), table.Update(key, append(row, table.Attr("line").Remove())...)))
		time.Sleep(10 * time.Second)
		assert.Contains(w, page.last(), "Nobody holds it")
		assert.NotContains(w, page.last(), "Nobody can acquire")
	})
}

// However many locks and readers there are, and whatever they look at: two reads a second for each kind of page.
func TestBudget_IsKeptByEachKindOfPage(t *testing.T) {
	const locks, readers, minutes = 200, 3, 2
	for _, page := range []string{"locks", "sessions", "lock&pk=TENANT%23acme&of=ORDER%23001", "migrations"} {
		t.Run(page, func(t *testing.T) {
			virtual(t, func(w *world) {
				c := w.client("many")
				for i := range locks {
					_, err := c.Acquire(w.Context(), beside(i))
					require.NoError(w, err)
				}
				for range readers {
					w.open(page)
				}
				time.Sleep(minutes * time.Minute)
				assert.LessOrEqual(w, w.eyes.most(), 2, "within one second")
				assert.LessOrEqual(w, w.eyes.count(), minutes*60*2)
				assert.Greater(w, w.eyes.count(), minutes*60/6, "it reads at all")
			}, indexed, withMigrations)
		})
	}
}

// A page that finds locks by reading the whole table leaves its capacity to the application.
func TestBudget_LimitsReadUnits(t *testing.T) {
	virtual(t, func(w *world) {
		big := strings.Repeat("x", 300_000)
		for i := range 60 { // some 18 MB: 18 requests of 128 read units
			key := w.table.KeyItem(keys.NewKey(fmt.Sprint("BIG#", i), "x"))
			require.NoError(w, w.table.Write(w.Context(), table.Update(mustKey(w, key), table.Attr("text").Set(big))))
		}
		w.hold(lock.Name("held"), "p1")
		w.engine.ResetRequests()
		page := w.open("locks")
		const long = 10 * time.Minute
		time.Sleep(long)
		units := 0.0
		for _, r := range w.engine.Requests() {
			if r.Operation == "Scan" {
				units += r.Consumed
			}
		}
		assert.LessOrEqual(w, units, long.Seconds()*25+128, "the last request may be in debt")
		assert.Greater(w, units, long.Seconds()*15)
		assert.Equal(w, []string{"holds p1"}, drawn(page.last()))
		assert.Regexp(w, `All locks are read every 1 min [\d s]*, with the whole table`, page.last(), "the reader is told")
	})
}

func mustKey(w *world, item table.Item) keys.Key {
	w.Helper()
	key, err := w.table.KeyOf(item)
	require.NoError(w, err)
	return key
}

func TestReading_EndsSoonAfterTheLastReaderHasLeft(t *testing.T) {
	virtual(t, func(w *world) {
		w.hold(lock.Name("report"), "p1")
		for _, page := range []string{"locks", "lock&name=report", "migrations"} {
			r := w.open(page)
			time.Sleep(10 * time.Second)
			before := w.eyes.count()
			r.close()
			<-r.ended
			time.Sleep(20 * time.Second)
			after := w.eyes.count()
			assert.Greater(w, after, before, "%s goes on for a while, for a page that is loaded again", page)
			time.Sleep(time.Hour)
			assert.Equal(w, after, w.eyes.count(), page)
			assert.Contains(w, w.get(strings.Replace(page, "&", "?", 1), http.StatusOK), "</main>", "it begins again")
			time.Sleep(time.Hour)
		}
	}, withMigrations)
}

func TestEvents_EndWithCloseAndWithTheRequest(t *testing.T) {
	virtual(t, func(w *world) {
		a, b, c := w.open("locks"), w.open("lock&name=x"), w.open("sessions")
		a.close()
		synctest.Wait()
		ended(w, a, true)
		ended(w, b, false)
		require.NoError(w, w.c.Close())
		ended(w, b, true)
		ended(w, c, true)
		assert.Equal(w, "text/event-stream", b.header.Get("Content-Type"))
		assert.Equal(w, "no-store", b.header.Get("Cache-Control"))

		w.get("locks", http.StatusServiceUnavailable)
		w.get("events?page=locks", http.StatusServiceUnavailable)
		require.NoError(w, w.c.Close(), "again")
	})
}

func ended(w *world, r *reader, want bool) {
	w.Helper()
	select {
	case <-r.ended:
		assert.True(w, want, "the stream has ended")
	default:
		assert.False(w, want, "the stream goes on")
	}
}

func TestEvents_AreFewWhileNothingChanges(t *testing.T) {
	virtual(t, func(w *world) {
		page := w.open("locks")
		time.Sleep(time.Minute)
		before := page.text()
		time.Sleep(10 * time.Minute)
		rest := strings.TrimPrefix(page.text(), before)
		assert.NotContains(w, rest, "data:")
		assert.InDelta(w, 10*60/15, strings.Count(rest, ":\n\n"), 2, "the connection is shown to be alive")
	})
}

func TestEvents_ArePartOfThePagesThatGoLive(t *testing.T) {
	virtual(t, func(w *world) {
		w.hold(lock.Name("report"), "p1")
		for _, page := range []string{"locks", "sessions", "lock?name=report", "migrations", "lock?pk=A%26B&of=C"} {
			html := w.get(page, http.StatusOK)
			found := regexp.MustCompile(`data-events="([^"]*)"`).FindStringSubmatch(html)
			require.Len(w, found, 2, page)
			r := w.follow(strings.ReplaceAll(found[1], "&amp;", "&"))
			time.Sleep(5 * time.Second)
			assert.Contains(w, r.last(), "<h1", page)
			r.close()
		}
		for _, page := range []string{"items", "indexes"} {
			assert.NotContains(w, w.get(page, http.StatusOK), "data-events", page)
			w.get("events?page="+page, http.StatusNotFound)
		}
		w.get("events?page=nothing", http.StatusNotFound)
		for _, query := range []string{"", "&name=%ff", "&name=" + strings.Repeat("x", 513), "&pk=a&of=%ff", "&pk=a&of=" + strings.Repeat("x", 1025)} {
			w.get("lock?"+query, http.StatusBadRequest)
			w.get("events?page=lock"+query, http.StatusBadRequest)
		}
	}, withMigrations)
}

// Pages of others can have links to the console. They cannot have a browser read the table for them, again and again: as an image, in a
// frame, or with a script.
func TestPages_AreNotLoadedForOtherSites(t *testing.T) {
	virtual(t, func(w *world) {
		ask := func(path, site, dest string, status int) {
			r := httptest.NewRequestWithContext(w.Context(), http.MethodGet, "http://localhost/"+path, nil)
			r.Header.Set("Sec-Fetch-Site", site)
			r.Header.Set("Sec-Fetch-Dest", dest)
			w.do(r, status)
		}
		for _, path := range []string{"locks", "lock?name=a", "sessions", "items", "indexes", "migrations", "events?page=locks", "events?page=lock&name=a"} {
			for _, site := range []string{"cross-site", "same-site"} {
				for _, dest := range []string{"image", "iframe", "empty", ""} {
					ask(path, site, dest, http.StatusForbidden)
				}
			}
		}
		assert.Zero(w, w.eyes.count())
		ask("locks", "cross-site", "document", http.StatusOK)
		ask("locks", "same-origin", "empty", http.StatusOK)
		ask("locks", "none", "document", http.StatusOK)
	}, withMigrations)
}

func TestEvents_TooManyPagesAreRefused(t *testing.T) {
	virtual(t, func(w *world) {
		for range 200 {
			w.open("locks")
		}
		r := w.open("locks")
		<-r.ended
		assert.Equal(w, http.StatusServiceUnavailable, r.status)
		assert.NotEmpty(w, r.header.Get("Retry-After"))
		w.get("locks", http.StatusOK)
	})
}

// Refused requests take up none of the places for locks whose page is open.
func TestEvents_ThatAreRefusedLeaveNothingBehind(t *testing.T) {
	virtual(t, func(w *world) {
		var open []*reader
		for range 200 {
			open = append(open, w.open("locks"))
		}
		for i := range 200 {
			w.get(fmt.Sprintf("events?page=lock&name=l%d", i), http.StatusServiceUnavailable)
		}
		w.get("lock?name=other", http.StatusOK)
		for _, r := range open {
			r.close()
			<-r.ended
		}
		w.get("lock?name=another", http.StatusOK)
	})
}

// A page that is being read when the console is closed is answered as a later one is.
func TestClose_EndsWhatIsRead(t *testing.T) {
	virtual(t, func(w *world) {
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Hour})
		for _, page := range []string{"items", "items?pk=a", "indexes", "locks"} {
			go func() {
				text := w.get(page, map[bool]int{true: http.StatusOK, false: http.StatusServiceUnavailable}[page == "locks"]) // which shows what is known
				assert.Equal(w, page != "locks", strings.Contains(text, "The console is closed."), page)
			}()
		}
		time.Sleep(2 * time.Second)
		require.NoError(w, w.c.Close())
		time.Sleep(5 * time.Second)
		w.engine.ClearFaults()
	})
}

// As many locks can be followed as pages can be open. When those are closed, others can.
func TestLock_TooManyThatAreFollowedAreRefused(t *testing.T) {
	if testkit.RaceEnabled {
		t.Skip("so many goroutines at once crash the race detector (CHECK failed: tsan_rtl.cpp): it runs without it")
	}
	virtual(t, func(w *world) {
		var open []*reader
		for i := range 200 {
			open = append(open, w.open(fmt.Sprintf("lock&name=l%d", i)))
		}
		assert.Contains(w, w.get("lock?name=other", http.StatusServiceUnavailable), "Too many locks are looked at.")
		w.get("lock?name=l7", http.StatusOK)
		open[0].close()
		<-open[0].ended
		time.Sleep(time.Minute)
		other := w.open("lock&name=other")
		time.Sleep(time.Second)
		assert.Equal(w, http.StatusOK, other.status)
		for _, r := range append(open[1:], other) {
			r.close()
			<-r.ended
		}
	})
}

func TestPages_TellOfFailuresAndGoOn(t *testing.T) {
	virtual(t, func(w *world) {
		w.hold(lock.Name("report"), "p1")
		for _, page := range []string{"locks", "lock&name=report", "migrations"} {
			r := w.open(page)
			time.Sleep(3 * time.Second)
			assert.NotContains(w, r.last(), "cannot be read", page)
			w.engine.Inject(tabletest.Fault{Kind: tabletest.ExpiredCredentials})
			time.Sleep(10 * time.Second)
			assert.Contains(w, r.last(), "The table cannot be read at the moment", page)
			assert.Contains(w, r.last(), "credentials missing or refused", page)
			w.engine.ClearFaults()
			time.Sleep(15 * time.Second)
			assert.NotContains(w, r.last(), "cannot be read", page)
			r.close()
		}
		w.engine.Inject(tabletest.Fault{Kind: tabletest.ExpiredCredentials})
		assert.Contains(w, w.get("items", http.StatusBadGateway), "credentials missing or refused")
		assert.Contains(w, w.get("indexes", http.StatusBadGateway), "credentials missing or refused")
		w.engine.ClearFaults()
	}, withMigrations)
}

func TestSessions_ShowWhoLives(t *testing.T) {
	virtual(t, func(w *world) {
		w.locks.Lease = time.Hour
		w.hold(lock.Name("a"), "living", "waiting")
		w.hold(lock.Name("b"), "silent")
		w.hold(lock.Name("c"), "marked")
		_, err := w.client("lambda").Acquire(w.Context(), lock.Name("d"), lock.Fixed(time.Hour))
		require.NoError(w, err)
		look := w.client("test")
		change := func(name, attribute string, at time.Time) {
			r, err := look.Inspect(w.Context(), lock.Name(name))
			require.NoError(w, err)
			id := "SESSION#" + r.Holder().Session
			require.NoError(w, w.table.Write(w.Context(), table.Update(keys.NewKey(id, id), table.Attr(attribute).Set(at.UnixMilli()))))
		}
		change("b", "expires", time.Now().Add(-time.Minute))
		change("c", "dead", time.Now().Add(-2*time.Minute))

		page, locks := w.open("sessions"), w.open("locks")
		time.Sleep(10 * time.Second)
		rows := map[string]string{}
		for _, row := range strings.Split(page.last(), "<tr ")[1:] {
			rows[regexp.MustCompile(`<b class="who">([^<]*)<`).FindStringSubmatch(row)[1]] = row
		}
		require.Len(w, rows, 4)
		assert.Contains(w, rows["living"], `class="alive"`)
		assert.Contains(w, rows["living"], "alive, its lease ends in 59 min")
		assert.Contains(w, rows["living"], `>a</a>`)
		assert.Regexp(w, `data-label="Waits for">1<`, rows["waiting"])
		assert.Contains(w, rows["silent"], "silent, its lease ended 1 min")
		assert.Contains(w, rows["marked"], "marked dead 2 min")
		assert.Contains(w, page.last(), "<b>1</b> places with a lease of their own")
		assert.Less(w, strings.Index(page.last(), ">silent<"), strings.Index(page.last(), ">living<"), "those that need a look come first")
		assert.Contains(w, locks.last(), "silent: silent, its lease ended 1 min")
	})
}

// A process renews its session much more often than the pages read it, where leases are short or processes are many. A lease that lasted
// when its row was read is no dead one because the row was not read again since.
func TestSessions_ThatAreSeldomReadAreNotShownAsDead(t *testing.T) {
	for name, processes := range map[string]int{"short leases": 1, "many processes": 300} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(w *world) {
				for i := range processes {
					w.hold(beside(i), fmt.Sprint("p", i))
				}
				pages := []*reader{w.open("locks"), w.open("sessions"), w.open("lock&pk=TENANT%23acme&of=ORDER%23000")}
				for range 60 {
					time.Sleep(time.Second)
					for _, page := range pages {
						assert.NotRegexp(w, "silent|late, its lease", page.last())
					}
				}
			}, indexed, func(w *world) {
				if processes == 1 {
					w.locks.Lease = time.Second
				}
			})
		})
	}
}

// Sessions are read by another operation than the lists of locks, which can be the only one that fails.
func TestSessions_ThatCannotBeReadAreToldAndAreNotDead(t *testing.T) {
	virtual(t, func(w *world) {
		w.hold(lock.Name("report"), "p1")
		pages := []*reader{w.open("locks"), w.open("sessions"), w.open("lock&name=report")}
		time.Sleep(time.Minute)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.ExpiredCredentials, Operation: "BatchGetItem"})
		time.Sleep(10 * time.Second)
		for range 60 {
			time.Sleep(time.Second)
			for i, page := range pages {
				assert.Contains(w, page.last(), "The table cannot be read at the moment", i)
				assert.NotContains(w, page.last(), "silent", i)
			}
		}
		for i, page := range pages {
			assert.Contains(w, page.last(), "alive when its row was read, 1 min", i)
		}
		w.engine.ClearFaults()
		time.Sleep(20 * time.Second)
		for i, page := range pages {
			assert.NotContains(w, page.last(), "cannot be read", i)
			assert.Contains(w, page.last(), "alive, its lease ends in", i)
		}
	}, indexed)
}

// An operator whose clock is an hour off must not take living holders for dead ones.
func TestSessions_AWrongClockOfTheViewerShowsNobodyAsDead(t *testing.T) {
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		virtual(t, func(w *world) {
			w.hold(lock.Name("a"), "first")
			page, one := w.open("sessions"), w.open("lock&name=a")
			time.Sleep(time.Minute)
			const alive = `alive, its lease ends in \d+ s ` // how many depends on when the page has looked
			assert.Regexp(w, alive, page.last())
			assert.Regexp(w, alive, one.last())
		}, indexed, func(w *world) {
			var err error
			w.config.Table, err = table.Open(w.engine.Client(func(o *dynamodb.Options) { o.HTTPClient = w.eyes }), w.schema,
				table.WithClock(func() time.Time { return time.Now().Add(off) }))
			require.NoError(w, err)
		})
	}
}

func TestSessions_OneThatIsNotInOrderHidesNoOther(t *testing.T) {
	virtual(t, func(w *world) {
		w.hold(lock.Name("a"), "first")
		w.hold(lock.Name("b"), "second")
		row := w.table.KeyItem(keys.NewKey("SESSION#STRANGER", "SESSION#STRANGER"))
		row["type"], row["lease"] = &types.AttributeValueMemberS{Value: "mortise.LockSession"}, &types.AttributeValueMemberS{Value: "x"}
		require.NoError(w, w.table.Write(w.Context(), table.Put(row)))
		line := table.Attr("line")
		stranger := line.Append([]string{"STRANGER/1@0946684800000 stranger"})
		require.NoError(w, w.table.Write(w.Context(), table.Update(keys.NewKey("LOCK#b", "LOCK#b"), line.Set(stranger))))
		page, one := w.open("sessions"), w.open("lock&name=b")
		time.Sleep(time.Minute)
		assert.Equal(w, 2, strings.Count(page.last(), "alive, its lease ends in"))
		assert.Equal(w, 2, strings.Count(one.last(), "alive, its lease ends in"), "in the line, and beside it")
	}, indexed)
}

func TestLock_HasItsHistorySinceItWasOpened(t *testing.T) {
	virtual(t, func(w *world) {
		page := w.open("lock&name=report")
		time.Sleep(2 * time.Second)
		assert.Contains(w, page.last(), "There is no such lock")
		lease := w.hold(lock.Name("report"), "first", "second")
		time.Sleep(2 * time.Second)
		require.NoError(w, lease.Write(w.Context(), table.Put(w.table.KeyItem(keys.NewKey("X", "Y")))))
		time.Sleep(2 * time.Second)
		require.NoError(w, lease.Release(w.Context()))
		time.Sleep(2 * time.Second)
		var texts []string
		for _, m := range regexp.MustCompile(`<time>[\d:]{8}</time> (.*)</li>`).FindAllStringSubmatch(page.last(), -1) {
			texts = append(texts, regexp.MustCompile(`fence \d+`).ReplaceAllString(m[1], "fence N"))
		}
		assert.Equal(w, []string{
			"second holds the lock, with fence N",
			"first has left",
			"guarded writes up to number 1",
			"second has entered the line",
			"first holds the lock, with fence N",
		}, texts)
		assert.Equal(w, []string{"holds second"}, drawn(page.last()))
		assert.Contains(w, page.last(), "held lately for")

		// The same lock, by the place of its row.
		assert.Equal(w, []string{"holds second"}, drawn(w.get("lock?pk=LOCK%23report&of=report", http.StatusOK)))
	})
}

// The script finds an entry by its key. Two with the same key would be drawn anew with each event, and what a reader has selected in them
// would be lost.
func TestLock_EntriesOfItsHistoryCanBeToldApart(t *testing.T) {
	virtual(t, func(w *world) {
		page := w.open("lock&name=exports")
		time.Sleep(2 * time.Second)
		one := w.client("one")
		for range 2 {
			_, err := one.Acquire(w.Context(), lock.Name("exports"), lock.Permits(2))
			require.NoError(w, err)
		}
		time.Sleep(2 * time.Second)
		entries := regexp.MustCompile(`<li data-key="([^"]*)"><time>[\d:]{8}</time> one has a permit</li>`).FindAllStringSubmatch(page.last(), -1)
		require.Len(w, entries, 2)
		assert.NotEqual(w, entries[0][1], entries[1][1])
	})
}

// The fence of the row is that of none of the permits.
func TestLock_APermitTakenByForceIsNobodysFence(t *testing.T) {
	virtual(t, func(w *world) {
		var list []*lock.Lease
		for _, owner := range []string{"a", "b", "c"} {
			l, err := w.client(owner).Acquire(w.Context(), lock.Name("exports"), lock.Permits(3))
			require.NoError(w, err)
			list = append(list, l)
		}
		page := w.open("lock&name=exports")
		time.Sleep(5 * time.Second)
		for _, l := range list[:2] {
			require.NoError(w, w.config.Locks.ForceRelease(w.Context(), lock.Name("exports"), l.Ticket()))
			time.Sleep(5 * time.Second)
		}
		next, err := w.client("d").Acquire(w.Context(), lock.Name("exports"), lock.Permits(3))
		require.NoError(w, err)
		assert.Equal(w, 2, strings.Count(page.last(), "</time> a permit was taken by force"))
		assert.NotContains(w, page.last(), strconv.FormatInt(next.Fence(), 10), "it was not taken from this one, which holds")
	})
}

func withMigrations(w *world) {
	w.config.Migrations = w.migrator(w.config.Table, w.clientOf(w.config.Table, "console"), migrationList(nil))
}

// migrationList has one migration that succeeds, a backfill that waits for its items, one that fails, and one that is never begun.
func migrationList(wait <-chan struct{}) []migrations.Migration {
	return []migrations.Migration{
		{ID: "1_first", Name: "the first", Up: func(context.Context, *migrations.Run) error { return nil }},
		{ID: "2_fill", Idempotent: true, Up: func(ctx context.Context, run *migrations.Run) error {
			seen := 0
			_, err := run.Backfill(ctx, migrations.Backfill{
				Name: "orders", Segments: 1, Writers: 1, PageSize: 10,
				Transform: func(_ context.Context, item table.Item) (table.Item, error) {
					if seen++; seen == 15 {
						<-wait
					}
					return item, nil
				},
			})
			return err
		}},
		{ID: "3_fails", Up: func(context.Context, *migrations.Run) error { return errors.New("no room for " + marker) }},
		{ID: "4_last", Up: func(context.Context, *migrations.Run) error { return nil }},
	}
}

func TestMigrations_ShowTheirProgress(t *testing.T) {
	virtual(t, func(w *world) {
		w.fill(20)
		page := w.open("migrations")
		time.Sleep(time.Second)
		assert.Contains(w, page.last(), "<b>4</b> pending")

		wait, ended := make(chan struct{}), make(chan error, 1)
		m := w.migrator(w.table, w.clientOf(w.table, "deploy-1"), migrationList(wait))
		go func() {
			_, err := m.Up(w.Context())
			ended <- err
		}()
		time.Sleep(10 * time.Second)
		assert.Contains(w, page.last(), "up was begun by deploy-1")
		assert.Contains(w, page.last(), "it runs now")
		assert.Regexp(w, `orders: [1-9]\d* items read of about`, page.last()) // a page of 10, in which rows of the migrations do not count
		assert.Regexp(w, `<progress max="100" value="[1-9]\d*">`, page.last())

		close(wait)
		require.Error(w, <-ended)
		time.Sleep(10 * time.Second)
		assert.Contains(w, page.last(), "<b>1</b> failed")
		assert.Contains(w, page.last(), "<b>2</b> applied")
		assert.Contains(w, page.last(), "its error is hidden")
		assert.NotContains(w, page.text(), marker)
	}, withMigrations)
}

// A program without the list, such as a command for every table, shows what the table's records tell.
func TestMigrations_ThoseThatOnlyTheTableHasAreShown(t *testing.T) {
	virtual(t, func(w *world) {
		wait := make(chan struct{})
		close(wait)
		_, err := w.migrator(w.table, w.clientOf(w.table, "deploy-1"), migrationList(wait)).Up(w.Context())
		require.Error(w, err)
		text := w.get("migrations", http.StatusOK)
		assert.Contains(w, text, "<b>2</b> applied")
		assert.Contains(w, text, "<b>1</b> failed")
		assert.Contains(w, text, "only the table has it")
		assert.Contains(w, text, "the first", "its name stands in the record")
		assert.NotContains(w, text, marker)
	}, func(w *world) {
		w.config.Migrations = w.migrator(w.config.Table, w.clientOf(w.config.Table, "console"), nil)
	})
}

// A lock can be given up after a pass has met it, and before the pass ends: then it is not counted.
func TestLocks_AreCountedAsTheyAreShown(t *testing.T) {
	virtual(t, func(w *world) {
		c, page := w.client("p1"), w.open("locks")
		for i := range 100 {
			lease, err := c.Acquire(w.Context(), beside(i))
			require.NoError(w, err)
			for second := range 20 {
				if second == 10+i%5 {
					require.NoError(w, lease.Release(w.Context()))
				}
				time.Sleep(time.Second)
				text := page.last()
				assert.Equal(w, len(drawn(text)), strings.Count(text, "<b>1</b> held"))
				assert.NotContains(w, text, "not shown")
			}
		}
	}, indexed)
}

// A lease of its own that lasted when the row of its lock was read may have been given up since.
func TestLocks_AFixedLeaseThatWasGivenUpIsNotShownAsDead(t *testing.T) {
	virtual(t, func(w *world) {
		c, pages := w.client("lambda"), []*reader{w.open("locks"), w.open("lock&pk=TENANT%23acme&of=ORDER%23001")}
		for range 60 {
			lease, err := c.Acquire(w.Context(), beside(1), lock.Fixed(time.Second))
			require.NoError(w, err)
			time.Sleep(900 * time.Millisecond)
			require.NoError(w, lease.Release(w.Context()))
			for range 6 {
				time.Sleep(time.Second)
				for _, page := range pages {
					assert.NotRegexp(w, "silent|late, its lease", page.last())
				}
			}
		}
		// Nothing gives this one up.
		_, err := c.Acquire(w.Context(), beside(1), lock.Fixed(time.Second))
		require.NoError(w, err)
		time.Sleep(time.Minute)
		for _, page := range pages {
			assert.Contains(w, page.last(), "silent, its lease ended")
		}
	}, indexed)
}

// A console can be deployed before the index of locks exists.
func TestLocks_AreShownWhileTheTableLacksTheIndex(t *testing.T) {
	virtual(t, func(w *world) {
		w.hold(lock.Name("report"), "p1")
		for _, x := range w.schema.Indexes {
			_, err := w.engine.Client().UpdateTable(w.Context(), &dynamodb.UpdateTableInput{
				TableName: &w.schema.Name,
				GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{
					{Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: &x.Name}},
				},
			})
			require.NoError(w, err)
			time.Sleep(time.Hour)
		}
		page := w.open("locks")
		time.Sleep(time.Minute)
		assert.NotContains(w, page.last(), "cannot be read")
		assert.Contains(w, page.last(), "report")
	}, indexed)
}

func TestLock_FailureToReadSessionsEndsWithARowThatIsNoLock(t *testing.T) {
	virtual(t, func(w *world) {
		l, err := w.client("p1").Acquire(w.Context(), lock.Name("report"))
		require.NoError(w, err)
		page := w.open("lock&name=report")
		time.Sleep(10 * time.Second)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.ExpiredCredentials, Operation: "BatchGetItem"})
		time.Sleep(20 * time.Second)
		assert.Contains(w, page.last(), "The table cannot be read at the moment")
		require.NoError(w, w.table.Write(w.Context(), table.Update(l.Key(), table.Attr("hold").Set("damaged"))))
		time.Sleep(20 * time.Second)
		assert.NotContains(w, page.last(), "The table cannot be read at the moment")
	}, indexed)
}
