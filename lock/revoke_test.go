package lock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Revoke returns an error if the holder can never answer.
func TestRevoke_OfADeadHolderIsAnError(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wire := &line{to: w.engine.HTTPClient()}
		dead, c := w.clientOver(wire, lock.Config{}), w.client(lock.Config{})
		_, err := dead.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		id := sessionKey(dead)
		wire.cut(refused)
		time.Sleep(time.Minute)
		require.ErrorIs(t, c.Revoke(ctx, lock.Name("report")), lock.ErrNoSession, "its recorded end lies back")
		require.NoError(t, w.table.Write(ctx, table.Update(id, table.Attr("dead").Set(1))))
		require.ErrorIs(t, c.Revoke(ctx, lock.Name("report")), lock.ErrNoSession, "declared dead")
		require.NoError(t, w.table.Write(ctx, table.Delete(id)))
		require.ErrorIs(t, c.Revoke(ctx, lock.Name("report")), lock.ErrNoSession, "gone")
		r, err := c.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, c.ForceRelease(ctx, lock.Name("report"), r.Holder().Ticket), "it needs no answer")
		_, err = c.TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err)
	})
}

// The set of questions is bounded, so that the session row can always be renewed. Once it was read, there is room again.
func TestRevoke_QuestionsAreBounded(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		holder := p.open(lock.Config{Lease: lock.MaxLease}) // does not renew meanwhile
		pk, name := "ROW#"+strings.Repeat("p", keys.MaxPK-4), func(i int) string { return fmt.Sprintf("%04d", i) + strings.Repeat("s", 1015) }
		asked, full := 0, 0
		for i := range 150 {
			target := lock.Beside(keys.NewKey(pk, name(i)))
			_, err := holder.Acquire(ctx, target)
			require.NoError(p, err)
			if err = p.client.Revoke(ctx, target); err == nil {
				asked++
				continue
			}
			require.ErrorIs(p, err, table.ErrThrottled)
			require.NotErrorIs(p, err, lock.ErrNoSession)
			full++
		}
		assert.Equal(p, 129, asked)
		assert.Equal(p, 21, full)
		require.NoError(p, p.client.Revoke(ctx, lock.Beside(keys.NewKey(pk, name(3)))), "asked already")

		// And a thousand of usual lengths.
		other := p.open(lock.Config{Lease: lock.MaxLease})
		_, err := other.AcquireAll(ctx, names(2))
		require.NoError(p, err)
		others := &types.AttributeValueMemberSS{}
		for i := range 999 {
			others.Value = append(others.Value, fmt.Sprint(i))
		}
		require.NoError(p, p.table.Write(ctx, table.Update(sessionKey(other), table.Attr("ask").Add(others))))
		require.NoError(p, p.client.Revoke(ctx, lock.Name("n00")))
		require.ErrorIs(p, p.client.Revoke(ctx, lock.Name("n01")), table.ErrThrottled)
		require.NoError(p, p.client.Revoke(ctx, lock.Name("n00")), "asked already")
	})
}

func TestRevoke_QuestionsBeyondTheBoundAreAnsweredLater(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, op := w.client(lock.Config{}), w.client(lock.Config{})
		locks := testkit.IfSmall(1100, 2200)
		leases := make([]*lock.Lease, locks)
		for i := range leases {
			var err error
			leases[i], err = c.Acquire(ctx, lock.Name(fmt.Sprint(i)))
			require.NoError(t, err)
		}
		start := time.Now()
		for i := range leases {
			for {
				err := op.Revoke(ctx, lock.Name(fmt.Sprint(i)))
				if err == nil {
					break
				}
				require.ErrorIs(t, err, table.ErrThrottled)
				time.Sleep(time.Second)
			}
		}
		time.Sleep(6 * time.Second)
		for _, l := range leases {
			require.ErrorIs(t, context.Cause(l.Context()), lock.ErrRevoked)
		}
		// 1,000 in two periods: one renewal brings them, the next removes them.
		assert.LessOrEqual(t, time.Since(start), 45*time.Second)
		for i, l := range leases {
			require.NoError(t, l.Release(ctx), "%d", i)
		}
	})
}

// A question about a ticket whose acquire is under way is answered once that is over.
func TestRevoke_OfAnAcquireUnderWay(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, op := w.client(lock.Config{Lease: 8 * time.Second}), w.client(lock.Config{})
		w.engine.ResetRequests()
		// Applied, but answered only after the next renewal.
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, When: func(r tabletest.Request) bool {
			return strings.HasPrefix(r.Keys[0].Attrs["pk"].(*types.AttributeValueMemberS).Value, "LOCK#")
		}, Operation: "UpdateItem"})
		got := acquireAsync(ctx, c, lock.Name("report"))
		require.NoError(t, op.Revoke(ctx, lock.Name("report")))
		time.Sleep(2200 * time.Millisecond)
		require.Empty(t, got, "still under way")
		item, err := w.table.Get(ctx, sessionKey(c), true)
		require.NoError(t, err)
		assert.Positive(t, number(t, item["beat"]), "a renewal has brought the question")
		assert.Contains(t, item, "ask", "it waits for what becomes of the acquisition")
		w.engine.ClearFaults()
		l := <-got
		require.NotNil(t, l)
		time.Sleep(3 * time.Second)
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrRevoked)
		require.NoError(t, l.Release(ctx))
	})
}

// Revoke of a lease of the same client whose session has ended returns the error of a dead holder: nobody is left who could
// release.
func TestRevoke_OfAnOwnLostLeaseIsAnError(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wire := &line{to: w.engine.HTTPClient()}
		c, other := w.clientOver(wire, quiet), w.client(quiet)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		wire.cut(refused)
		time.Sleep(time.Minute)
		wire.cut(open)
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrExpired)
		require.ErrorIs(t, other.Revoke(ctx, lock.Name("report")), lock.ErrNoSession)
		require.ErrorIs(t, c.Revoke(ctx, lock.Name("report")), lock.ErrNoSession)
	})
}

// A lease that was revoked goes on, and shows that, until it is released or lost.
func TestRevoke_LeaseGoesOnUntilReleased(t *testing.T) {
	for _, lost := range []bool{false, true} {
		virtual(t, func(ctx context.Context, w *world) {
			wire := &line{to: w.engine.HTTPClient()}
			c := w.clientOver(wire, quiet)
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			require.NoError(t, c.Revoke(ctx, l.Target()))
			require.ErrorIs(t, context.Cause(l.Context()), lock.ErrRevoked)
			time.Sleep(time.Minute)
			assert.Greater(t, l.Remaining(), 10*time.Second)
			require.NoError(t, l.Renew(ctx))
			require.NoError(t, l.Write(ctx, w.count("n")))
			want := lock.ErrReleased
			if lost {
				wire.cut(refused)
				time.Sleep(time.Minute)
				want = lock.ErrExpired
			} else {
				require.NoError(t, l.Release(ctx))
			}
			assert.Zero(t, l.Remaining())
			require.ErrorIs(t, l.Renew(ctx), want)
		})
	}
}

// Revoke asks the present holder.
func TestRevoke_ReadsConsistently(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		holder, op := w.client(lock.Config{}), w.client(lock.Config{})
		l, err := holder.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		_, err = holder.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.StaleRead, Writes: 1})
		require.NoError(t, op.Revoke(ctx, lock.Name("report")))
	})
}

// An operator first asks, and then takes the lock by force: OnLost is called.
func TestOnLost_IsCalledAfterARevocation(t *testing.T) {
	for _, asks := range []bool{false, true} {
		virtual(t, func(ctx context.Context, w *world) {
			lost := make(chan error, 1)
			config := quiet
			config.OnLost = func(_ *lock.Lease, cause error) { lost <- cause }
			c, other := w.client(config), w.client(quiet)
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			if asks {
				require.NoError(t, other.Revoke(ctx, lock.Name("report")))
				<-l.Context().Done()
				require.NoError(t, l.Write(ctx, w.put("x")))
			}
			w.force(ctx, other, lock.Name("report"))
			time.Sleep(time.Minute)
			select {
			case cause := <-lost:
				assert.ErrorIs(t, cause, lock.ErrStolen)
			default:
				assert.Fail(t, "nobody was told", "asks: %t", asks)
			}
		})
	}
}

// forbidding is the connection of a process that has no permission for one operation.
type forbidding struct {
	to        aws.HTTPClient
	operation string
	times     atomic.Int64
}

func (f *forbidding) Do(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), "."+f.operation) {
		return f.to.Do(r)
	}
	f.times.Add(1)
	text := `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"no identity-based policy allows it"}`
	return &http.Response{
		StatusCode: http.StatusBadRequest, Header: http.Header{"X-Amzn-Requestid": {"forbidden"}},
		Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)), Request: r,
	}, nil
}

// A process without permission to read its rows still answers: questions that stay would fill its session's row, and keep
// out others.
func TestRevoke_IsAnsweredWithoutPermissionToRead(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &forbidding{to: w.engine.HTTPClient(), operation: "GetItem"}
		holder, op := w.clientOver(&line{to: way}, quiet), w.client(quiet)
		keeps, err := holder.Acquire(ctx, lock.Name("keeps the session"))
		require.NoError(t, err)
		l, err := holder.TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.force(ctx, op, lock.Name("report"))
		// A ghost of its session, behind which another process waits.
		stranger := text(fmt.Sprintf("%s/1000@%013d test", lock.SessionID(holder), time.Now().UnixMilli()))
		require.NoError(t, w.table.Write(ctx, table.Put(w.lineRow("ghost", stranger))))
		waiting, cancel := context.WithTimeout(ctx, 2*time.Minute)
		defer cancel()
		<-acquireAsync(waiting, op, lock.Name("ghost"))
		time.Sleep(10 * time.Second)
		assert.Greater(t, way.times.Load(), int64(1), "it was asked, and has tried to read")
		row, err := w.table.Get(ctx, sessionKey(holder), true)
		require.NoError(t, err)
		assert.NotContains(t, row, "ask")
		require.NoError(t, context.Cause(keeps.Context()))
		require.ErrorIs(t, l.Write(ctx, w.put("x")), lock.ErrLost)
		require.NoError(t, keeps.Release(ctx))
	})
}

// A ticket that somebody else wrote into a row cannot forge a question.
func TestRevoke_ForgedTicketIsNotAsked(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		l, err := p.client.Acquire(ctx, lock.Name("keeps the session"))
		require.NoError(p, err)
		key := p.keyOf(lock.Name("report"))
		id := lock.SessionID(p.client)
		for _, ticket := range []string{id + "/x", id + "/1 forced a b", id + "/1/2", id + "/" + strings.Repeat("0", 256), id + "/" + strings.Repeat("1", 300_000)} {
			item := p.lockRow(key, true, func(i table.Item) {
				i["line"] = listOf(text(fmt.Sprintf("%s@%013d another", ticket, time.Now().UnixMilli())))
			})
			require.NoError(p, p.table.Write(ctx, table.Put(item)))
			require.ErrorIs(p, p.open(lock.Config{}).Revoke(ctx, lock.Name("report")), lock.ErrMalformed)
		}
		require.NoError(p, context.Cause(l.Context()))
		own, err := p.table.Get(ctx, sessionKey(p.client), true)
		require.NoError(p, err)
		assert.NotContains(p, own, "ask")
	})
}

// A lease that was revoked, and released without an answer, is released: later calls do not say that it was revoked.
func TestRevoke_ReleaseWithoutAnAnswerIsARelease(t *testing.T) {
	for name, use := range map[string]func(ctx context.Context, w *world, l *lock.Lease) error{
		"Commit":  func(ctx context.Context, w *world, l *lock.Lease) error { return l.Commit(ctx, w.put("x")) },
		"Write":   func(ctx context.Context, w *world, l *lock.Lease) error { return l.Write(ctx, w.put("x")) },
		"SetData": func(ctx context.Context, _ *world, l *lock.Lease) error { return l.SetData(ctx, "x") },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c, other := w.client(quiet), w.client(quiet)
				l, err := c.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				require.NoError(t, other.Revoke(ctx, lock.Name("report")))
				<-l.Context().Done()
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key())})
				short, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				require.ErrorIs(t, l.Release(short), context.DeadlineExceeded)
				w.engine.ClearFaults()
				err = use(ctx, w, l)
				require.ErrorIs(t, err, lock.ErrReleased)
				assert.NotErrorIs(t, err, lock.ErrRevoked)
			})
		})
	}
}

// Many holders are asked at a time: a slow network, or one that fails, does not make it long.
func TestRevoke_AsksManyHoldersAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		slow, atMost time.Duration
		fails        bool
	}{
		"slow":    {200 * time.Millisecond, 2 * time.Second, false},
		"failing": {3 * time.Second, 2 * time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				w.permits(ctx, 50, 50)
				var on atomic.Bool
				op := w.clientOver(w.passing(func(operation, body string, send func() (*http.Response, error)) (*http.Response, error) {
					if on.Load() && operation == "UpdateItem" && strings.Contains(body, "SESSION#") {
						time.Sleep(tc.slow)
						if tc.fails {
							return nil, errors.New("connection reset")
						}
					}
					return send()
				}), quiet)
				on.Store(true)
				start := time.Now()
				err := op.Revoke(ctx, exports)
				on.Store(false)
				assert.Equal(t, tc.fails, err != nil, "%v", err)
				assert.Less(t, time.Since(start), tc.atMost)
			})
		})
	}
}
