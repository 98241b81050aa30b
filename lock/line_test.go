package lock_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// line is one process's way to the engine. Unlike a fault it can be cut for that one alone.
type line struct {
	to   aws.HTTPClient
	mode atomic.Int32
}

type cut int32

const (
	open       cut = iota
	refused        // fails at once
	hung           // never answers
	unanswered     // arrives, but the answer does not
)

func (l *line) cut(how cut) { l.mode.Store(int32(how)) }

func (l *line) Do(r *http.Request) (*http.Response, error) {
	switch cut(l.mode.Load()) {
	case refused:
		return nil, errors.New("connection refused")
	case hung:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case unanswered:
		if resp, err := l.to.Do(r); err == nil {
			err = resp.Body.Close()
			return nil, errors.Join(errors.New("connection reset"), err)
		}
	}
	return l.to.Do(r)
}

// clientOver is a client of a process that reaches the engine by a line of its own. It has
// held a lock before: its session is open.
func (w *world) clientOver(l *line, config lock.Config, opts ...table.Option) *lock.Client {
	w.Helper()
	c := w.coldClientOver(l, config, opts...)
	warm, err := c.Acquire(w.Context(), lock.Name("warm up "+rand.Text()))
	require.NoError(w, err)
	require.NoError(w, warm.Release(w.Context()))
	return c
}

func (w *world) coldClientOver(l *line, config lock.Config, opts ...table.Option) *lock.Client {
	w.Helper()
	c := w.unclosed(l, config, opts...)
	w.Cleanup(func() {
		l.cut(open)
		assert.NoError(w, c.Close(context.Background()))
	})
	return c
}

// unclosed is a client that nothing but the test refers to, or closes.
func (w *world) unclosed(l *line, config lock.Config, opts ...table.Option) *lock.Client {
	w.Helper()
	tbl := w.openOver(l, table.Schema{Name: "app"}, opts...)
	_, err := tbl.Plan(ownHand(w.Context()))
	require.NoError(w, err)
	c, err := lock.New(tbl, config)
	require.NoError(w, err)
	return c
}

// peek reads the body of a request, and leaves it to be read again.
func peek(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}

// repeating delivers every request twice and answers with what the second has met, as proxies do
// that repeat what they had no answer to.
type repeating struct{ to aws.HTTPClient }

func (t repeating) Do(r *http.Request) (*http.Response, error) {
	first := r.Clone(r.Context())
	if r.Body != nil {
		body, err := peek(r)
		if err != nil {
			return nil, err
		}
		first.Body = io.NopCloser(bytes.NewReader(body))
	}
	resp, err := t.to.Do(first)
	if err != nil {
		return nil, err
	}
	if err := resp.Body.Close(); err != nil {
		return nil, err
	}
	return t.to.Do(r)
}

// Every write of a lock's life knows its own effect.
func TestNetworkThatDeliversEverythingTwice(t *testing.T) {
	for kind, opts := range leases() {
		t.Run(kind, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.clientOver(&line{to: repeating{w.engine.HTTPClient()}}, lock.Config{})
				for range 3 {
					l, err := c.Acquire(ctx, lock.Name("report"), opts...)
					require.NoError(t, err)
					for range 12 {
						time.Sleep(5 * time.Second)
						require.NoError(t, l.Renew(ctx))
					}
					require.NoError(t, l.Write(ctx, w.count("n")))
					require.NoError(t, l.SetData(ctx, "x"))
					require.NoError(t, context.Cause(l.Context()))
					require.NoError(t, l.Release(ctx))
				}
				l, err := c.Acquire(ctx, lock.Name("report"), opts...)
				require.NoError(t, err)
				require.NoError(t, l.Commit(ctx, w.count("n")))
				assert.EqualValues(t, 4, w.counted("n"))
			})
		})
	}
}

// A goroutine that finds itself first by a pass whose answer was lost goes on counting: after Config.Handoffs in
// a row the lock is released, so that others get their turn.
func TestHandOversAreCountedThroughLostAnswers(t *testing.T) {
	const handoffs = 2
	virtual(t, func(ctx context.Context, w *world) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
		defer cancel()
		c, other := w.client(lock.Config{Handoffs: handoffs}), w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		theirs := acquireAsync(ctx, other, lock.Name("report"))
		heirs := make([]<-chan *lock.Lease, handoffs+1)
		for i := range heirs {
			heirs[i] = acquireAsync(ctx, c, lock.Name("report"))
		}
		for i, heir := range heirs {
			if i < handoffs {
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Key: w.table.KeyItem(l.Key()), Operation: "UpdateItem"})
				require.Error(t, l.Release(ctx))
				w.engine.ClearFaults()
			} else {
				require.NoError(t, l.Release(ctx))
			}
			r, err := c.Inspect(ctx, lock.Name("report"))
			require.NoError(t, err)
			require.Equal(t, i < handoffs, r.Holder().Session == lock.SessionID(c), "release %d", i+1)
			if i == handoffs {
				o := <-theirs
				require.NotNil(t, o)
				require.NoError(t, o.Release(ctx))
			}
			l = <-heir
			require.NotNil(t, l)
		}
		require.NoError(t, l.Release(ctx))
	})
}
