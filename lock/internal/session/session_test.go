package session_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/clock"
	"github.com/mortise-go/mortise/lock/internal/session"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }

const (
	lease     = 20 * time.Second
	period    = lease / 4
	margin    = 200 * time.Millisecond
	skew      = 2 * time.Second
	retention = 24 * time.Hour
)

func keyOf(id string) keys.Key { return keys.NewKey("SESSION#"+id, "SESSION#"+id) }

// world is an engine in virtual time.
type world struct {
	*testing.T
	engine *tabletest.Engine
}

func virtual(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, engine: tabletest.New(t)}
		require.NoError(t, w.process(0).table.Ensure(t.Context()))
		f(w)
	})
}

// wire is a process's way to DynamoDB, which can be cut.
type wire struct {
	to  aws.HTTPClient
	cut atomic.Bool
}

func (w *wire) Do(r *http.Request) (*http.Response, error) {
	if w.cut.Load() {
		return nil, errors.New("cut off")
	}
	return w.to.Do(r)
}

// process is one process, with what its hooks were called with.
type process struct {
	*session.Keeper
	wire   *wire
	table  *table.Table
	others *session.Others

	mu     sync.Mutex
	offset time.Duration // of its wall clock
	ended  []error
	asked  []session.Question
	refuse bool // questions are not answered
}

// process opens the table as another process would, whose wall clock is off.
func (w *world) process(offset time.Duration) *process {
	w.Helper()
	p := &process{offset: offset, wire: &wire{to: w.engine.HTTPClient()}}
	tbl, err := table.Open(w.engine.Client(func(o *dynamodb.Options) { o.HTTPClient = p.wire }), table.Schema{Name: "app"}, table.WithClock(func() time.Time { return time.Now().Add(p.offset) }))
	require.NoError(w, err)
	return p.over(clock.Clock{Skew: skew}, tbl)
}

// over sets a process up with the settings of a clock.
func (p *process) over(settings clock.Clock, tbl *table.Table) *process {
	p.table = tbl
	r := &attempt.Repeater{Clock: clock.New(tbl), Table: tbl}
	r.Clock.Skew, r.Clock.ObservedOnly = settings.Skew, settings.ObservedOnly
	names := session.NamesOf(tbl.Scheme(), "")
	config := session.Config{
		Names: names, Key: keyOf, Owner: "host/1", Lease: lease, Own: lease - margin, Retention: retention,
		Hooks: session.Hooks{
			Opened: func(*session.Session) {}, Renewed: func(context.Context, time.Duration) {}, Failed: func(error) {}, Risk: func(bool) {},
			Ending: func(*session.Session, error) {},
			Ended: func(_ *session.Session, cause error) {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.ended = append(p.ended, cause)
			},
			Asked: func(_ context.Context, q session.Question) bool {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.asked = append(p.asked, q)
				return !p.refuse
			},
		},
	}
	p.Keeper, p.others = session.NewKeeper(r, clock.NewTerms(r.Clock), config), session.NewOthers(r, config)
	return p
}

// use opens the process's session, and closes it when the test ends.
func (w *world) use(p *process) *session.Session {
	w.Helper()
	s, err := p.Use(w.Context())
	require.NoError(w, err)
	return s
}

func (w *world) close(p *process) { w.Helper(); require.NoError(w, p.Close(w.Context())) }

func (p *process) causes() []error {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.ended)
}

func (p *process) questions() []session.Question {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// look has a process see the row of a session.
func (w *world) look(p *process, id string) {
	w.Helper()
	at := time.Now()
	item, err := p.table.Get(w.Context(), keyOf(id), true)
	if !errors.Is(err, table.ErrNotFound) {
		require.NoError(w, err)
	}
	p.others.Saw(id, item, at)
}

func (w *world) markDead(p *process, id string) bool {
	w.Helper()
	dead, err := p.others.MarkDead(w.Context(), id)
	require.NoError(w, err)
	return dead
}

func TestSession_CostsOneWritePerPeriod(t *testing.T) {
	virtual(t, func(w *world) {
		p := w.process(0)
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { w.use(p) })
		}
		all.Wait()
		w.engine.ResetRequests()
		time.Sleep(100 * period)
		assert.InDelta(t, 100, len(w.engine.Requests()), 10)
		s := p.Current()
		require.NoError(t, s.Cause())
		assert.Greater(t, s.Remaining(), lease-margin-period-period/5)
		assert.Equal(t, int64(1), s.Next())
		assert.Equal(t, int64(2), s.Next())
		w.close(p)
		assert.Len(t, p.causes(), 1)
		require.ErrorIs(t, p.causes()[0], session.ErrClosed)
		_, err := p.table.Get(w.Context(), keyOf(s.ID()), true)
		require.ErrorIs(t, err, table.ErrNotFound)
		_, err = p.Use(w.Context())
		require.ErrorIs(t, err, session.ErrClosed)
	})
}

func TestSession_IsNotRenewedWhileNothingDependsOnIt(t *testing.T) {
	virtual(t, func(w *world) {
		p := w.process(0)
		s := w.use(p)
		time.Sleep(3 * lease)
		for s.Remaining() < lease-margin-period/4 { // until the next renewal, which comes after a time of chance
			time.Sleep(period / 100)
		}
		require.NoError(t, s.Cause())
		w.engine.ResetRequests()
		s.Unuse()
		time.Sleep(period)
		require.NoError(t, s.Cause(), "it is kept for a while")
		assert.Same(t, s, w.use(p))
		time.Sleep(period / 4)
		assert.Len(t, w.engine.Requests(), 1, "it is renewed once it is needed again")
		s.Unuse()
		time.Sleep(lease)
		require.ErrorIs(t, s.Cause(), session.ErrIdle)
		assert.Nil(t, p.Current())
		time.Sleep(time.Hour)
		assert.Len(t, w.engine.Requests(), 1)
		w.close(p)
		_, err := p.table.Get(w.Context(), keyOf(s.ID()), true)
		require.ErrorIs(t, err, table.ErrNotFound)
	})
}

func TestSession_GoesOnWithTheRowOfTheLastOne(t *testing.T) {
	virtual(t, func(w *world) {
		p, q := w.process(0), w.process(0)
		s := w.use(p)
		number := s.Next()
		s.Unuse()
		time.Sleep(time.Hour)
		w.engine.ResetRequests()
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "UpdateItem", Times: 1})
		next := w.use(p)
		w.engine.ClearFaults()
		assert.Len(t, w.engine.Requests(), 2, "one is repeated")
		assert.Equal(t, s.ID(), next.ID())
		assert.Greater(t, next.Next(), number, "no ticket comes twice")
		w.look(q, s.ID())
		assert.Positive(t, q.others.Suspect(s.ID()).Wait)
		time.Sleep(10 * lease)
		require.NoError(t, next.Cause())

		next.Unuse()
		time.Sleep(time.Hour)
		assert.True(t, w.markDead(q, s.ID()))
		assert.NotEqual(t, s.ID(), w.use(p).ID(), "a session that was marked dead is dead for good")
		w.close(p)
	})
}

// A new session says from the beginning when it ends, also in a process that has not heard DynamoDB's time yet.
func TestSession_RecordsItsEndWithTheFirstWrite(t *testing.T) {
	for offset, requests := range map[time.Duration]int{0: 1, time.Hour: 1, -time.Minute: 2} {
		t.Run(offset.String(), func(t *testing.T) {
			virtual(t, func(w *world) {
				time.Sleep(300 * time.Millisecond) // the date of an answer is rounded down
				p := w.process(offset)
				p.over(clock.Clock{Skew: 2 * time.Hour}, p.table)
				w.engine.ResetRequests()
				s := w.use(p)
				assert.Len(t, w.engine.Requests(), requests, "a slow clock is noticed before anything depends on it")
				item, err := p.table.Get(w.Context(), keyOf(s.ID()), true)
				require.NoError(t, err)
				row, err := session.NamesOf(p.table.Scheme(), "").Parse(item)
				require.NoError(t, err)
				assert.GreaterOrEqual(t, row.Expires, time.Now().Add(lease).UnixMilli())
				w.close(p)
			})
		})
	}
}

func TestSession_LostAnswersLoseNothing(t *testing.T) {
	virtual(t, func(w *world) {
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "UpdateItem", Every: 2})
		p := w.process(0)
		s := w.use(p)
		time.Sleep(2000 * period)
		require.NoError(t, s.Cause())
		assert.Empty(t, p.causes())
		w.close(p)
	})
}

// A renewal that is sent again shows others a beat that they have not seen: they count from it, as the session does.
func TestSession_CountsFromNoBeatThatOthersSawBefore(t *testing.T) {
	virtual(t, func(w *world) {
		p, q := w.process(0), w.process(0)
		q.over(clock.Clock{ObservedOnly: true}, q.table)
		s := w.use(p)
		time.Sleep(period / 2)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "UpdateItem"})
		for range 20 {
			time.Sleep(period / 10)
			w.look(q, s.ID())
		}
		w.engine.ClearFaults()
		until(func() bool { return s.Remaining() > lease-period })
		p.wire.cut.Store(true)
		until(func() bool {
			w.look(q, s.ID())
			return q.others.Suspect(s.ID()).Wait == 0
		})
		require.Error(t, s.Cause(), "others may take it for dead")
		p.wire.cut.Store(false)
		w.close(p)
	})
}

func TestSession_OutlivesAnOutageThatIsShorterThanItsLease(t *testing.T) {
	virtual(t, func(w *world) {
		p := w.process(0)
		s := w.use(p)
		time.Sleep(period + period/4) // a renewal has just gone through
		for range 20 {
			p.wire.cut.Store(true)
			time.Sleep(lease - period - period/2)
			p.wire.cut.Store(false)
			time.Sleep(period)
		}
		require.NoError(t, s.Cause())
		w.close(p)
	})
}

func TestSession_EndsOnTimeHoweverRequestsFail(t *testing.T) {
	for _, fault := range []tabletest.Fault{{Kind: tabletest.DropRequest}, {Kind: tabletest.Delay, For: 24 * time.Hour}, {Kind: tabletest.InternalError}} {
		t.Run(fault.Kind.String(), func(t *testing.T) {
			virtual(t, func(w *world) {
				p := w.process(0)
				s := w.use(p)
				began := time.Now()
				w.engine.Inject(fault)
				<-s.Ended()
				assert.LessOrEqual(t, time.Since(began), lease-margin)
				require.ErrorIs(t, s.Cause(), clock.ErrEnded)
				require.Len(t, p.causes(), 1)
				assert.ErrorContains(t, p.causes()[0], "last renewal")
				ctx, cancel := context.WithTimeout(w.Context(), time.Second)
				defer cancel()
				_ = p.Close(ctx)
				time.Sleep(48 * time.Hour) // what hangs ends
			})
		})
	}
}

func TestSession_ThatIsMarkedDeadEndsWithItsNextRenewal(t *testing.T) {
	virtual(t, func(w *world) {
		p, q := w.process(0), w.process(0)
		s := w.use(p)
		require.NoError(t, q.table.Write(w.Context(), table.Update(keyOf(s.ID()), table.Attr("dead").Set(1))))
		time.Sleep(period + period/10)
		require.ErrorIs(t, s.Cause(), session.ErrDead)
		require.Len(t, p.causes(), 1)
		next := w.use(p)
		assert.NotEqual(t, s.ID(), next.ID(), "the next use opens another one")
		w.close(p)
	})
}

func TestSession_ThatIsDeletedEnds(t *testing.T) {
	virtual(t, func(w *world) {
		p := w.process(0)
		s := w.use(p)
		require.NoError(t, p.table.Write(w.Context(), table.Delete(keyOf(s.ID()))))
		time.Sleep(period + period/10)
		require.ErrorIs(t, s.Cause(), session.ErrDead)
		_, err := p.table.Get(w.Context(), keyOf(s.ID()), true)
		require.ErrorIs(t, err, table.ErrNotFound, "a renewal makes no row")
		w.close(p)
	})
}

func TestConfirm_TellsWhetherTheSessionLivesNow(t *testing.T) {
	for _, end := range []func(keys.Key) table.Op{
		table.Delete, func(key keys.Key) table.Op { return table.Update(key, table.Attr("dead").Set(1)) },
	} {
		virtual(t, func(w *world) {
			p, q := w.process(0), w.process(0)
			s := w.use(p)
			w.engine.Inject(tabletest.Fault{Kind: tabletest.ExpiredCredentials, Operation: "GetItem", Times: 1})
			_, err := s.Confirm(w.Context())
			require.ErrorIs(t, err, table.ErrCredentials)
			require.NoError(t, s.Cause(), "this tells nothing")
			alive, err := s.Confirm(w.Context())
			require.NoError(t, err)
			assert.True(t, alive)
			require.NoError(t, q.table.Write(w.Context(), end(keyOf(s.ID()))))
			alive, err = s.Confirm(w.Context())
			require.NoError(t, err)
			assert.False(t, alive)
			require.ErrorIs(t, s.Cause(), session.ErrDead, "nobody waits for a renewal to find out")
			w.close(p)
		})
	}
}

// A read that lags behind shows a session alive that was marked dead by then.
func TestConfirm_GoesByNoReadThatLagsBehind(t *testing.T) {
	virtual(t, func(w *world) {
		p, q := w.process(0), w.process(0)
		s := w.use(p)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.StaleRead, Writes: 1})
		require.NoError(t, q.table.Write(w.Context(), table.Update(keyOf(s.ID()), table.Attr("dead").Set(1))))
		alive, err := s.Confirm(w.Context())
		require.NoError(t, err)
		assert.False(t, alive)
		w.close(p)
	})
}

func TestMarkDead_NeedsEvidence(t *testing.T) {
	virtual(t, func(w *world) {
		p, q := w.process(0), w.process(0)
		s := w.use(p)
		assert.False(t, q.others.Suspect(s.ID()).Known)
		assert.False(t, w.markDead(q, s.ID()), "it has just been renewed")
		assert.True(t, q.others.Suspect(s.ID()).Known)
		for range 20 {
			time.Sleep(period)
			w.look(q, s.ID())
			got := q.others.Suspect(s.ID())
			assert.Positive(t, got.Wait)
			assert.Equal(t, lease, got.Lease)
			assert.False(t, w.markDead(q, s.ID()))
		}
		time.Sleep(2 * lease)
		assert.False(t, w.markDead(q, s.ID()), "it was renewed since it was seen")
		require.NoError(t, s.Cause())
		w.close(p)
		w.look(q, s.ID())
		assert.Zero(t, q.others.Suspect(s.ID()).Wait, "its row is gone")
		assert.True(t, w.markDead(q, s.ID()))
		assert.True(t, q.others.Suspect(s.ID()).Dead)
	})
}

// What a session showed a lease ago says nothing: it may have been renewed since.
func TestSuspect_KnowsNothingOfWhatWasSeenLongAgo(t *testing.T) {
	virtual(t, func(w *world) {
		p, q := w.process(0), w.process(0)
		s := w.use(p)
		w.look(q, s.ID())
		time.Sleep(lease - time.Second)
		assert.True(t, q.others.Suspect(s.ID()).Known)
		time.Sleep(2 * time.Second)
		assert.False(t, q.others.Suspect(s.ID()).Known)
		w.look(q, s.ID())
		got := q.others.Suspect(s.ID())
		assert.True(t, got.Known)
		assert.Positive(t, got.Wait)
		assert.Zero(t, got.Silent)
		w.close(p)
	})
}

// A look that lags behind shows a beat of before, and no sign of life.
func TestSaw_TakesNoOlderBeatForARenewal(t *testing.T) {
	virtual(t, func(w *world) {
		p, q := w.process(0), w.process(0)
		s := w.use(p)
		old, err := q.table.Get(w.Context(), keyOf(s.ID()), true)
		require.NoError(t, err)
		time.Sleep(2 * period)
		w.look(q, s.ID())
		time.Sleep(period)
		q.others.Saw(s.ID(), old, time.Now())
		assert.Equal(t, period, q.others.Suspect(s.ID()).Silent)
		w.close(p)
	})
}

// Nor does such a look bring a session back to life that was marked dead.
func TestSaw_DeadIsForGood(t *testing.T) {
	virtual(t, func(w *world) {
		p, q := w.process(0), w.warm(w.process(0))
		s := w.use(p)
		w.crash(p, s)
		old, err := q.table.Get(w.Context(), keyOf(s.ID()), true)
		require.NoError(t, err)
		until(func() bool { return w.markDead(q, s.ID()) })
		q.others.Saw(s.ID(), old, time.Now())
		assert.True(t, q.others.Suspect(s.ID()).Dead)
		w.close(p)
	})
}

// warm has a process hear DynamoDB's time.
func (w *world) warm(p *process) *process {
	w.Helper()
	_, err := p.table.Plan(w.Context())
	require.NoError(w, err)
	return p
}

// crash has a process send nothing any more, after a renewal that says when the session ends.
func (w *world) crash(p *process, s *session.Session) {
	w.Helper()
	time.Sleep(period + period/5)
	require.NoError(w, s.Cause())
	p.wire.cut.Store(true)
}

// until is how long it takes until f holds.
func until(f func() bool) time.Duration {
	began := time.Now()
	for !f() {
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(began)
}

func TestMarkDead_ByTheRecordedEndWithoutHavingWatched(t *testing.T) {
	virtual(t, func(w *world) {
		p := w.process(0)
		s := w.use(p)
		w.crash(p, s)
		took := until(func() bool { return w.markDead(w.warm(w.process(0)), s.ID()) })
		assert.Greater(t, took, lease-period)
		assert.LessOrEqual(t, took, lease+skew+2*time.Second)
		w.close(p)
		require.Len(t, p.causes(), 1)
	})
}

func TestMarkDead_BySilenceWhereNoEndIsRecordedOrUsed(t *testing.T) {
	virtual(t, func(w *world) {
		p := w.process(0)
		q := w.process(0)
		q.over(clock.Clock{ObservedOnly: true}, q.table)
		s := w.use(p)
		w.crash(p, s)
		w.look(q, s.ID())
		assert.Equal(t, lease, q.others.Suspect(s.ID()).Wait)
		time.Sleep(lease - time.Second)
		w.look(q, s.ID())
		assert.False(t, w.markDead(q, s.ID()))
		time.Sleep(time.Second)
		w.look(q, s.ID())
		assert.Zero(t, q.others.Suspect(s.ID()).Wait)
		assert.True(t, w.markDead(q, s.ID()))
		time.Sleep(48 * time.Hour)
		fresh := w.process(0)
		fresh.over(clock.Clock{ObservedOnly: true}, fresh.table)
		w.look(fresh, s.ID())
		assert.True(t, fresh.others.Suspect(s.ID()).Dead)
		w.close(p)
	})
}

// Where only observation counts, a recorded end says nothing, however far it lies back.
func TestMarkDead_NotByARecordedEndThatDoesNotCount(t *testing.T) {
	virtual(t, func(w *world) {
		p, q := w.process(0), w.warm(w.process(0))
		q.over(clock.Clock{ObservedOnly: true}, q.table)
		s := w.use(p)
		w.crash(p, s)
		time.Sleep(time.Hour)
		w.look(q, s.ID())
		assert.False(t, w.markDead(q, s.ID()), "nobody has watched it")
		time.Sleep(lease)
		assert.True(t, w.markDead(q, s.ID()))
		w.close(p)
	})
}

func TestMarkDead_IsTerminal(t *testing.T) {
	virtual(t, func(w *world) {
		p, q := w.process(0), w.warm(w.process(0))
		s := w.use(p)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DuplicateLate, Operation: "UpdateItem", For: 2 * lease})
		w.crash(p, s)
		until(func() bool { return w.markDead(q, s.ID()) })
		time.Sleep(3 * lease) // late copies of its renewals arrive
		w.look(q, s.ID())
		assert.True(t, q.others.Suspect(s.ID()).Dead)
		w.look(w.process(0), s.ID())
		w.close(p)
	})
}

func TestRenewal_ALateCopySetsTheBeatNotBack(t *testing.T) {
	virtual(t, func(w *world) {
		p, q := w.process(0), w.process(0)
		s := w.use(p)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DuplicateLate, Operation: "UpdateItem", For: period + period/2})
		beat := ""
		for range 400 {
			time.Sleep(period / 10)
			item, err := q.table.Get(w.Context(), keyOf(s.ID()), true)
			require.NoError(t, err)
			is := fmt.Sprintf("%9s", item["beat"].(*types.AttributeValueMemberN).Value)
			require.GreaterOrEqual(t, is, beat)
			beat = is
		}
		require.NoError(t, s.Cause())
		w.close(p)
	})
}

// However far clocks are off, a session that lives is not taken for dead, and one that died is within a
// lease of being watched.
func TestMarkDead_WhateverTheClocksSay(t *testing.T) {
	for _, holder := range []time.Duration{-time.Hour, 0, time.Hour} {
		for _, observer := range []time.Duration{-time.Hour, 0, time.Hour} {
			t.Run(holder.String()+" "+observer.String(), func(t *testing.T) {
				virtual(t, func(w *world) {
					p, q := w.process(holder), w.warm(w.process(observer))
					s := w.use(p)
					for range 40 {
						time.Sleep(period / 2)
						w.look(q, s.ID())
						require.False(t, w.markDead(q, s.ID()))
					}
					w.crash(p, s)
					took := until(func() bool { w.look(q, s.ID()); return w.markDead(q, s.ID()) })
					assert.LessOrEqual(t, took, lease+skew+time.Second)
					w.close(p)
				})
			})
		}
	}
}

func TestMarkDead_LeavesAForeignRowAlone(t *testing.T) {
	virtual(t, func(w *world) {
		q := w.warm(w.process(0))
		item := q.table.KeyItem(keyOf("X"))
		item["type"], item["expires"] = &types.AttributeValueMemberS{Value: "Order"}, &types.AttributeValueMemberN{Value: "1"}
		require.NoError(t, q.table.Write(w.Context(), table.Put(item)))
		w.look(q, "X")
		_, err := q.others.MarkDead(w.Context(), "X")
		require.ErrorIs(t, err, session.ErrMalformed)
		have, err := q.table.Get(w.Context(), keyOf("X"), true)
		require.NoError(t, err)
		assert.Equal(t, item, have)
	})
}

func TestMailbox_IsReadWithTheNextRenewal(t *testing.T) {
	virtual(t, func(w *world) {
		p, q := w.process(0), w.process(0)
		s := w.use(p)
		revoke := session.Question{Kind: session.Revoke, Ticket: s.ID() + "/1", Key: keys.NewKey("LOCK#a b", "LOCK\x00#a")}
		claim := session.Question{Kind: session.Claim, Ticket: s.ID() + "/2", Key: keys.NewKey("LOCK#b", "LOCK#b")}
		require.NoError(t, q.others.Ask(w.Context(), s.ID(), revoke, claim))
		require.NoError(t, q.others.Ask(w.Context(), s.ID(), revoke), "asked twice is asked once")
		require.NoError(t, q.others.Ask(w.Context(), s.ID(), claim, revoke, claim), "also by one request")
		require.NoError(t, q.table.Write(w.Context(), table.Update(keyOf(s.ID()), table.Attr("ask").Add(&types.AttributeValueMemberSS{Value: []string{"no question"}}))))
		time.Sleep(period + period/10)
		assert.ElementsMatch(t, []session.Question{revoke, claim}, p.questions())
		time.Sleep(period + period/5)
		item, err := q.table.Get(w.Context(), keyOf(s.ID()), true)
		require.NoError(t, err)
		assert.Nil(t, item["ask"], "answered, and what is no question is dropped")
		w.close(p)
		require.ErrorIs(t, q.others.Ask(w.Context(), s.ID(), claim), session.ErrNobody)
	})
}

// A process that needs its session for a moment, again and again, opens it each time and never renews it. It reads its questions all the
// same.
func TestMailbox_IsReadByAProcessThatNeverRenews(t *testing.T) {
	virtual(t, func(w *world) {
		p, q := w.process(0), w.process(0)
		s := w.use(p)
		claim := session.Question{Kind: session.Claim, Ticket: s.ID() + "/1", Key: keys.NewKey("LOCK#a", "LOCK#a")}
		require.NoError(t, q.others.Ask(w.Context(), s.ID(), claim))
		s.Unuse()
		for range 2 {
			time.Sleep(lease * 3 / 4)
			require.ErrorIs(t, s.Cause(), session.ErrIdle)
			s = w.use(p)
			s.Unuse()
		}
		assert.Equal(t, []session.Question{claim}, p.questions())
		item, err := q.table.Get(w.Context(), keyOf(s.ID()), true)
		require.NoError(t, err)
		assert.Nil(t, item["ask"], "the next opening takes what was answered out of the mailbox")
		w.close(p)
	})
}

func TestMailbox_WhatIsNotAnsweredComesAgain(t *testing.T) {
	virtual(t, func(w *world) {
		p, q := w.process(0), w.process(0)
		p.refuse = true
		s := w.use(p)
		require.NoError(t, q.others.Ask(w.Context(), s.ID(), session.Question{Kind: session.Claim, Ticket: "T", Key: keyOf("a")}))
		time.Sleep(5 * period)
		assert.GreaterOrEqual(t, len(p.questions()), 4)
		for i := range 999 {
			require.NoError(t, q.others.Ask(w.Context(), s.ID(), session.Question{Kind: session.Claim, Ticket: fmt.Sprint(i), Key: keyOf("a")}))
		}
		err := q.others.Ask(w.Context(), s.ID(), session.Question{Kind: session.Claim, Ticket: "one too many", Key: keyOf("a")})
		require.ErrorIs(t, err, session.ErrBusy)
		require.ErrorIs(t, err, table.ErrThrottled)
		w.close(p)
	})
}

// As many questions as one request has fit in a mailbox, with the longest keys of characters that JSON for web pages escapes.
func TestMailbox_HoldsQuestionsWithTheLongestKeys(t *testing.T) {
	virtual(t, func(w *world) {
		p, q := w.process(0), w.process(0)
		s := w.use(p)
		questions := make([]session.Question, session.MaxAsked)
		for i := range questions {
			pk, sk := strings.Repeat("<", 2048), fmt.Sprintf("%03d", i)+strings.Repeat("&", 1021)
			questions[i] = session.Question{Kind: session.Claim, Ticket: s.ID(), Key: keys.NewKey(pk, sk)}
		}
		require.NoError(t, q.others.Ask(w.Context(), s.ID(), questions...))
		time.Sleep(period + period/10)
		assert.ElementsMatch(t, questions, p.questions())
		w.close(p)
	})
}

// A question to a dead session is refused, and does not make its row larger.
func TestMailbox_OfADeadSessionTakesNoQuestions(t *testing.T) {
	virtual(t, func(w *world) {
		p, q := w.process(0), w.process(0)
		s := w.use(p)
		require.NoError(t, q.table.Write(w.Context(), table.Update(keyOf(s.ID()), table.Attr("dead").Set(1))))
		err := q.others.Ask(w.Context(), s.ID(), session.Question{Kind: session.Claim, Ticket: "T", Key: keyOf("a")})
		require.ErrorIs(t, err, session.ErrNobody)
		require.ErrorIs(t, q.others.Ask(w.Context(), "x.MARK", session.Question{Key: keyOf("a")}), session.ErrNobody, "of a client with another Key")
		_, err = q.table.Get(w.Context(), keyOf("x.MARK"), true)
		require.ErrorIs(t, err, table.ErrNotFound)
		item, err := q.table.Get(w.Context(), keyOf(s.ID()), true)
		require.NoError(t, err)
		assert.Nil(t, item["ask"])
		w.close(p)
	})
}

func TestMailbox_ThatIsNoneDoesNotEndTheSession(t *testing.T) {
	virtual(t, func(w *world) {
		p, q := w.process(0), w.process(0)
		s := w.use(p)
		require.NoError(t, q.others.Ask(w.Context(), s.ID(), session.Question{Kind: session.Claim, Ticket: "T", Key: keyOf("a")}))
		time.Sleep(period + period/10)
		require.NoError(t, q.table.Write(w.Context(), table.Update(keyOf(s.ID()), table.Attr("ask").Set("a string"))))
		time.Sleep(20 * period)
		require.NoError(t, s.Cause())
		w.close(p)
	})
}

// A mailbox that fills the row to the last byte keeps the session neither from being renewed nor from being marked dead.
func TestMailbox_ThatIsFull(t *testing.T) {
	for _, dies := range []bool{false, true} {
		virtual(t, func(w *world) {
			p, q := w.process(0), w.process(0)
			p.refuse = true
			s := w.use(p)
			fill(w, q, s)
			if dies {
				p.wire.cut.Store(true)
				time.Sleep(2 * lease)
				dead, err := q.others.MarkDead(w.Context(), s.ID())
				require.NoError(t, err)
				require.True(t, dead)
				return
			}
			time.Sleep(500 * period)
			require.NoError(t, s.Cause())
			w.close(p)
		})
	}
}

// Neither does it keep the next session from continuing the row.
func TestMailbox_ThatIsFullWhenTheSessionIsOpenedAgain(t *testing.T) {
	virtual(t, func(w *world) {
		p, q := w.process(0), w.process(0)
		s := w.use(p)
		s.Unuse()
		time.Sleep(lease)
		require.ErrorIs(t, s.Cause(), session.ErrIdle)
		fill(w, q, s)
		next := w.use(p)
		assert.Equal(t, s.ID(), next.ID())
		time.Sleep(10 * lease)
		require.NoError(t, next.Cause())
		w.close(p)
	})
}

// fill makes the mailbox of a session so large that its row cannot have another byte.
func fill(w *world, q *process, s *session.Session) {
	w.Helper()
	put := func(n int) error {
		return q.table.Write(w.Context(), table.Update(keyOf(s.ID()), table.Attr("ask").Set(
			&types.AttributeValueMemberSS{Value: []string{`{"Kind":"claim","Ticket":"T","Key":{"PK":"a","SK":"` + strings.Repeat("a", n) + `"}}`}})))
	}
	n := 400 * 1024
	for put(n) != nil {
		n -= 32
	}
	for put(n) == nil {
		n++
	}
	require.ErrorIs(w, put(n), table.ErrInvalid)
}

func TestUse_ManyAtOnceOpenOneSession(t *testing.T) {
	virtual(t, func(w *world) {
		p := w.process(0)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 100 * time.Millisecond})
		w.engine.ResetRequests()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() { w.use(p) })
		}
		all.Wait()
		assert.Len(t, w.engine.Requests(), 1)
		w.close(p)
	})
}

// It makes no difference who of several was first: the opening goes on without it, and its error is everybody's.
func TestUse_ManyAtOnceShareWhatBecomesOfTheOpening(t *testing.T) {
	virtual(t, func(w *world) {
		p := w.process(0)
		p.wire.cut.Store(true)
		begun := time.Now()
		leaves, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		var all sync.WaitGroup
		all.Go(func() {
			_, err := p.Use(leaves)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.Equal(t, time.Second, time.Since(begun))
		})
		synctest.Wait()
		ends := make([]time.Duration, 3)
		for i := range ends {
			all.Go(func() {
				_, err := p.Use(w.Context())
				assert.ErrorIs(t, err, table.ErrUnreachable)
				ends[i] = time.Since(begun)
			})
		}
		all.Wait()
		assert.Equal(t, []time.Duration{ends[0], ends[0], ends[0]}, ends)
		assert.Less(t, ends[0], 20*time.Second)
		p.wire.cut.Store(false)
		w.use(p)
		w.close(p)
	})
}

func TestUse_FailsWithoutLeavingAnything(t *testing.T) {
	virtual(t, func(w *world) {
		p := w.process(0)
		p.wire.cut.Store(true)
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		_, err := p.Use(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		p.wire.cut.Store(false)
		w.use(p)
		w.close(p)
	})
}

// An opening that has failed may have written the row: the next one continues it, and nothing is left of it.
func TestUse_ContinuesWhatAFailedOpeningHasBegun(t *testing.T) {
	for _, again := range []bool{false, true} {
		virtual(t, func(w *world) {
			p := w.process(0)
			w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "UpdateItem"})
			ctx, cancel := context.WithTimeout(w.Context(), time.Second)
			defer cancel()
			_, err := p.Use(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			w.engine.ClearFaults()
			if again {
				w.use(p)
			}
			w.close(p)
			items, err := w.engine.Client().Scan(w.Context(), &dynamodb.ScanInput{TableName: aws.String("app")})
			require.NoError(t, err)
			assert.Empty(t, items.Items)
		})
	}
}

func TestClose_MeetsASessionThatIsBeingOpened(t *testing.T) {
	virtual(t, func(w *world) {
		p := w.process(0)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Second, Operation: "UpdateItem", Times: 1})
		done := make(chan error)
		go func() {
			_, err := p.Use(w.Context())
			done <- err
		}()
		time.Sleep(100 * time.Millisecond)
		w.close(p)
		require.ErrorIs(t, <-done, session.ErrClosed)
		assert.Nil(t, p.Current())
	})
}

// The rows are what they are on both engines.
func TestSession_OnBothEngines(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		tbl, err := table.Open(e.Client(), table.Schema{Name: e.TableName(t)})
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(t.Context()))
		p := (&process{}).over(clock.Clock{Skew: skew}, tbl)
		s, err := p.Use(t.Context())
		require.NoError(t, err)
		dead, err := p.others.MarkDead(t.Context(), s.ID())
		require.NoError(t, err)
		assert.False(t, dead)
		require.NoError(t, p.others.Ask(t.Context(), s.ID(), session.Question{Kind: session.Claim, Ticket: "T", Key: keyOf("a")}))
		require.NoError(t, p.others.Ask(t.Context(), s.ID(), session.Question{Kind: session.Claim, Ticket: "T", Key: keyOf("a")}))
		alive, err := s.Confirm(t.Context())
		require.NoError(t, err)
		assert.True(t, alive)
		require.NoError(t, p.Close(t.Context()))
		dead, err = p.others.MarkDead(t.Context(), s.ID())
		require.NoError(t, err)
		assert.True(t, dead, "a missing row is marked, too")
		item, err := tbl.Get(t.Context(), keyOf(s.ID()), true)
		require.NoError(t, err)
		row, err := session.NamesOf(tbl.Scheme(), "").Parse(item)
		require.NoError(t, err)
		assert.True(t, row.Dead)
	})
}
