package lock_test

import (
	"bytes"
	"context"
	"encoding/json"
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

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// busy is a table with one row that cannot be read, since its partition is throttled: batches return its key unprocessed.
type busy struct {
	to   aws.HTTPClient
	pk   string
	over atomic.Bool // it can be read again
}

func (b *busy) Do(r *http.Request) (*http.Response, error) {
	if b.over.Load() || !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".BatchGetItem") {
		return b.to.Do(r)
	}
	var in struct {
		RequestItems           map[string]batchOf
		ReturnConsumedCapacity string `json:",omitempty"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return nil, err
	}
	left := map[string]batchOf{}
	for name, batch := range in.RequestItems {
		var rest []map[string]map[string]string
		for _, key := range batch.Keys {
			if key["pk"]["S"] == b.pk {
				left[name] = batchOf{Keys: []map[string]map[string]string{key}}
			} else {
				rest = append(rest, key)
			}
		}
		if batch.Keys = rest; len(rest) == 0 {
			delete(in.RequestItems, name)
		} else {
			in.RequestItems[name] = batch
		}
	}
	out := map[string]any{"Responses": map[string]any{}}
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}, "X-Amzn-Requestid": {"busy"}}, Request: r}
	if len(in.RequestItems) > 0 {
		text, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		if answer, err = b.to.Do(r); err != nil {
			return nil, err
		}
		if err := json.NewDecoder(answer.Body).Decode(&out); err != nil {
			return nil, err
		}
	}
	if len(left) > 0 {
		out["UnprocessedKeys"] = left
	}
	text, err := json.Marshal(out)
	answer.Header.Del("X-Amz-Crc32")
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return answer, err
}

type batchOf struct {
	Keys           []map[string]map[string]string
	ConsistentRead bool
}

// A row that cannot be read for now delays nobody who waits for other locks. Waiting for its own lock goes on for as long as
// the caller wants.
func TestThrottledRow_DelaysNoOtherLock(t *testing.T) {
	for name, c := range map[string]struct {
		lasts time.Duration
		want  error
	}{
		"for a while": {5 * time.Second, nil},
		"for long":    {time.Hour, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				to := &busy{to: w.engine.HTTPClient(), pk: "LOCK#busy"}
				waiter, err := lock.New(w.openOver(to, table.Schema{Name: "app"}), lock.Config{})
				require.NoError(t, err)
				defer func() { require.NoError(t, waiter.Close(ctx)) }()
				holder := w.client(lock.Config{})
				held := map[string]*lock.Lease{}
				for _, name := range []string{"another", "busy", "dead"} { // before and behind it in a request
					held[name], err = holder.Acquire(ctx, lock.Name(name))
					require.NoError(t, err)
				}
				way := &line{to: w.engine.HTTPClient()}
				_, err = w.clientOver(way, lock.Config{}).Acquire(ctx, lock.Name("taken over"))
				require.NoError(t, err)
				way.cut(refused)

				w.engine.ResetRequests()
				start := time.Now()
				waits := func(name string) <-chan time.Duration {
					done := make(chan time.Duration, 1)
					go func() {
						waiting, cancel := context.WithTimeout(ctx, time.Minute)
						defer cancel()
						l, err := waiter.Acquire(waiting, lock.Name(name))
						if name == "busy" && c.want != nil {
							assert.ErrorIs(t, err, c.want)
							assert.ErrorIs(t, err, lock.ErrHeld)
						} else if assert.NoError(t, err) {
							assert.NoError(t, l.Release(ctx))
						}
						done <- time.Since(start)
					}()
					return done
				}
				another, hot, dead, died := waits("another"), waits("busy"), waits("dead"), waits("taken over")
				time.AfterFunc(c.lasts, func() { to.over.Store(true) })
				time.Sleep(4 * time.Second)
				require.NoError(t, held["another"].Release(ctx))
				require.NoError(t, held["dead"].Release(ctx))
				assert.Less(t, <-another, 6*time.Second)
				assert.Less(t, <-dead, 6*time.Second)
				tries := 0
				for _, r := range w.engine.Requests() {
					if r.Operation == "UpdateItem" && r.Keys[0].Attrs["pk"].(*types.AttributeValueMemberS).Value == to.pk {
						tries++
					}
				}
				assert.Equal(t, 1, tries, "what cannot be read is not written to instead")
				if c.want == nil {
					time.Sleep(10 * time.Second)
					require.NoError(t, held["busy"].Release(ctx))
				}
				assert.Greater(t, <-hot, 9*time.Second)
				assert.LessOrEqual(t, <-died, 21*time.Second)
				if c.want != nil {
					require.NoError(t, held["busy"].Release(ctx))
				}
			})
		})
	}
}

// A session that cannot be read for now is read with the next look, and not again at once: until it is read, nothing tells
// when its lock can be taken.
func TestThrottledRow_OfASessionIsReadWithTheNextLook(t *testing.T) {
	const latency = 5 * time.Millisecond
	for name, rows := range map[string]string{"of all rows": "", "of the session": "session"} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				wire := &line{to: w.engine.HTTPClient()}
				holder := w.clientOver(wire, lock.Config{})
				_, err := holder.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				to := &busy{to: w.engine.HTTPClient(), pk: sessionKey(holder).PK}
				if rows == "" {
					w.engine.Inject(tabletest.Fault{Kind: tabletest.Throttle, Operation: "BatchGetItem"})
				}
				c, err := lock.New(w.openOver(to, table.Schema{Name: "app"}), lock.Config{})
				require.NoError(t, err)
				w.latency(latency)
				got := acquireAsync(ctx, c, lock.Name("report"))
				looks := times("BatchGetItem", w.requests(func() { time.Sleep(8 * time.Second) }))
				assert.Positive(t, looks)
				assert.Less(t, looks, 40)
				w.engine.ClearFaults()
				to.over.Store(true)
				start := time.Now()
				wire.cut(refused)
				l := <-got
				require.NotNil(t, l)
				assert.Less(t, time.Since(start), 30*time.Second)
				require.NoError(t, l.Release(ctx))
				require.NoError(t, c.Close(ctx))
			})
		})
	}
}

// AcquireAll has lost its place in the line of a row that cannot be read for now.
func TestThrottledRow_OfALockThatWasTakenAway(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		list := names(2)
		holder, err := w.client(quiet).Acquire(ctx, list[1])
		require.NoError(t, err)
		c := w.client(quiet)
		got := make(chan *lock.Bundle, 1)
		go func() {
			b, err := c.AcquireAll(ctx, list, lock.Fixed(30*time.Second))
			assert.NoError(t, err)
			got <- b
		}()
		time.Sleep(time.Second)
		row, err := w.table.Get(ctx, holder.Key(), true)
		require.NoError(t, err)
		row["line"], row["fence"] = listOf(), numeral(holder.Fence()+2)
		require.NoError(t, w.table.Write(ctx, table.Put(row)))
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Throttle, Operation: "GetItem", Key: w.table.KeyItem(holder.Key())})
		time.Sleep(25 * time.Second) // the other one, which it has, is renewed meanwhile
		w.engine.ClearFaults()
		b := <-got
		require.NoError(t, b.Write(ctx, w.put("x")))
		require.NoError(t, b.Release(ctx))
	})
}

// A row that cannot be read for now does not fail the AcquireAll that has acquired its lock.
func TestThrottledRow_OfAcquireAllIsReadAgain(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		to := &busy{to: w.engine.HTTPClient(), pk: "LOCK#n01"}
		c, err := lock.New(w.openOver(to, table.Schema{Name: "app"}), lock.Config{})
		require.NoError(t, err)
		time.AfterFunc(time.Second, func() { to.over.Store(true) })
		b, err := c.AcquireAll(ctx, names(3))
		require.NoError(t, err)
		require.NoError(t, b.Release(ctx))
		require.NoError(t, c.Close(ctx))
	})
}

// Close tries to release a lock whose row is throttled for as long as requests are repeated, however short the lease.
func TestClose_OfAThrottledRowEndsWithTheRetries(t *testing.T) {
	for _, lease := range []time.Duration{20 * time.Second, 3 * time.Second} {
		virtual(t, func(ctx context.Context, w *world) {
			config := quiet
			config.Lease = lease
			c := w.client(config)
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			w.engine.Inject(tabletest.Fault{Kind: tabletest.Throttle, Key: w.table.KeyItem(l.Key())})
			bounded, cancel := context.WithTimeout(ctx, 10*time.Minute)
			defer cancel()
			start := time.Now()
			require.ErrorIs(t, c.Close(bounded), table.ErrThrottled)
			assert.Less(t, time.Since(start), time.Minute, "lease %v", lease)
			w.engine.ClearFaults()
		})
	}
}

// Releases that have failed are repeated together. Those whose rows are throttled delay no other.
func TestThrottledRow_OfAFailedReleaseDelaysNoOther(t *testing.T) {
	for _, n := range []int{4, 20} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				way, targets := &line{to: w.engine.HTTPClient()}, names(n+1)
				c := w.clientOver(way, quiet)
				var list []*lock.Lease
				for _, target := range targets {
					l, err := c.Acquire(ctx, target)
					require.NoError(t, err)
					list = append(list, l)
				}
				w.throttle(targets[:n])
				way.cut(refused)
				for _, l := range list {
					w.releaseInVainFor(ctx, 10*time.Millisecond, l)
				}
				way.cut(open)
				start := time.Now()
				next := <-acquireFor(ctx, 10*time.Minute, w.client(quiet), targets[n])
				w.engine.ClearFaults()
				require.NotNil(t, next)
				assert.Less(t, time.Since(start), time.Minute)
				require.NoError(t, next.Release(ctx))
			})
		})
	}
}

// throttle throttles all writes to some locks.
func (w *world) throttle(targets []lock.Target) {
	for _, target := range targets {
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Throttle, Operation: "UpdateItem", Key: w.table.KeyItem(w.lockKey(target.Name()))})
	}
}

// AcquireAll gives up. Lines that it cannot leave for now keep it in no other.
func TestThrottledRow_OfAcquireAllDelaysNoOtherLine(t *testing.T) {
	for _, n := range []int{4, 16} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c, other, targets := w.client(quiet), w.client(quiet), names(n+2)
				require.NoError(t, errOf(w.client(quiet).Acquire(ctx, targets[n+1])))
				waiting, leave := context.WithCancel(ctx)
				ended := make(chan error, 1)
				go func() { ended <- errOf(c.AcquireAll(waiting, targets)) }()
				time.Sleep(time.Second)
				w.throttle(targets[:n])
				leave()
				require.ErrorIs(t, <-ended, context.Canceled)
				start := time.Now()
				l := <-acquireFor(ctx, 10*time.Minute, other, targets[n])
				w.engine.ClearFaults()
				require.NotNil(t, l)
				assert.Less(t, time.Since(start), time.Minute)
				require.NoError(t, l.Release(ctx))
				time.Sleep(time.Minute)
			})
		})
	}
}
