package waitqueue_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/waitqueue"
	"github.com/mortise-go/mortise/table"
)

var errDenied = errors.New("denied")

// reader stands in for a table: its rows say which key they have, and it keeps what it was asked.
type reader struct {
	t       *testing.T
	latency time.Duration

	mu       sync.Mutex
	requests []request
	answer   func(ctx context.Context, list []keys.Key) error // nil while all is well
}

type request struct {
	at   time.Time
	list []keys.Key
}

func (r *reader) Read(ctx context.Context, list []keys.Key) ([]table.Item, error) {
	r.mu.Lock()
	answer := r.answer
	r.requests = append(r.requests, request{time.Now(), list})
	r.mu.Unlock()
	assert.LessOrEqual(r.t, len(list), 100)
	seen := map[keys.Key]bool{}
	for _, key := range list {
		assert.False(r.t, seen[key], "a key is read twice by one request")
		seen[key] = true
	}
	select {
	case <-time.After(r.latency):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	items := make([]table.Item, len(list))
	for i, key := range list {
		items[i] = table.Item{"pk": &types.AttributeValueMemberS{Value: key.PK}}
	}
	if answer == nil {
		return items, nil
	}
	err := answer(ctx, list)
	var part *table.UnprocessedError
	switch {
	case errors.As(err, &part):
		for i, key := range list {
			for _, missing := range part.Keys {
				if key == missing {
					items[i] = nil
				}
			}
		}
	case err != nil:
		return nil, err
	}
	return items, err
}

// answers has requests answered with errors; nil ends that.
func (r *reader) answers(f func(ctx context.Context, list []keys.Key) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = f
}

// sent is what was requested since the last call.
func (r *reader) sent() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.requests
	r.requests = nil
	return list
}

func rowsOf(list []request) (n int) {
	for _, r := range list {
		n += len(r.list)
	}
	return n
}

// bounded checks that no window of time has more rows than the rate allows: a burst, and what comes in meanwhile.
func bounded(t *testing.T, list []request) {
	t.Helper()
	for i := range list {
		n := 0
		for _, r := range list[i:] {
			n += len(r.list)
			most := waitqueue.Rate*0.3 + r.at.Sub(list[i].at).Seconds()*waitqueue.Rate + 1
			if float64(n) > most {
				require.LessOrEqual(t, float64(n), most, "from %v to %v", list[i].at, r.at)
			}
		}
	}
}

// never takes no error for one that repeating cannot help against.
func never(error) bool { return false }

// inTime runs f in virtual time with a poller that ends with it.
func inTime(t *testing.T, config waitqueue.PollerConfig, f func(r *reader, p *waitqueue.Poller)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &reader{t: t, latency: time.Millisecond}
		config.Machine = machine.Real{}
		config.Read = r.Read
		config.Fatal = func(err error) bool { return errors.Is(err, errDenied) }
		config.Timeout = cmp.Or(config.Timeout, 5*time.Second)
		p := waitqueue.NewPoller(config)
		defer p.Close()
		f(r, p)
	})
}

// watching looks at a row again and again, as one does that waits in a line.
type watching struct {
	p    *waitqueue.Poller
	key  keys.Key
	seen func(waitqueue.Look) (next time.Duration) // a negative duration ends it

	mu    sync.Mutex
	w     *waitqueue.Watch
	ended bool
}

func watch(p *waitqueue.Poller, key keys.Key, first time.Duration, seen func(waitqueue.Look) (next time.Duration)) *watching {
	w := &watching{p: p, key: key, seen: seen}
	w.look(first)
	return w
}

func (w *watching) look(in time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if in < 0 || w.ended {
		return
	}
	w.w = w.p.Watch(w.key, in, func(look waitqueue.Look) func() {
		if next := w.seen(look); next >= 0 {
			w.look(max(next, ms))
		}
		return nil
	})
}

func (w *watching) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.w.Stop()
}

// log keeps the looks of one watcher.
type log struct {
	t     *testing.T
	key   keys.Key
	start time.Time

	mu   sync.Mutex
	list []waitqueue.Look
	at   []time.Duration // when they came
}

func (l *log) looks() []waitqueue.Look {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

func (l *log) times() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.at)
}

func newLog(t *testing.T, key keys.Key) *log { return &log{t: t, key: key, start: time.Now()} }

// each looks again and again after d.
func (l *log) each(d time.Duration) func(waitqueue.Look) time.Duration {
	return func(look waitqueue.Look) time.Duration {
		l.mu.Lock()
		l.list, l.at = append(l.list, look), append(l.at, time.Since(l.start))
		l.mu.Unlock()
		if look.Err == nil {
			assert.Equal(l.t, l.key.PK, look.Item["pk"].(*types.AttributeValueMemberS).Value, "the row of another key")
		}
		return d
	}
}

func (l *log) String() string { return fmt.Sprint(l.times()) }

// pause lets time pass, until all others have nothing to do any more: what they have written can be read.
func pause(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
