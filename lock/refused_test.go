package lock_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// The answer of a release is lost, its second attempt meets a conflict, and meanwhile the process's session is
// taken for dead by another process, which enters. The row then shows that somebody else has the lock, and
// not whether the release was applied before: Release tells both.
func TestReleaseWithoutAnAnswerOfASessionTakenForDead(t *testing.T) {
	for name, applied := range map[string]bool{"applied": true, "lost": false} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				var attempts atomic.Int32
				var armed atomic.Bool
				other := w.client(quiet)
				var c *lock.Client
				way := w.passing(func(operation, body string, send func() (*http.Response, error)) (*http.Response, error) {
					if operation != "UpdateItem" || !armed.Load() || !strings.Contains(body, "LOCK#report") {
						return send()
					}
					switch attempts.Add(1) {
					case 1: // its answer is lost
						if applied {
							resp, err := send()
							require.NoError(t, err)
							require.NoError(t, resp.Body.Close())
						}
						return nil, errors.New("connection reset")
					case 2:
						w.engine.Inject(tabletest.Fault{Kind: tabletest.TransactionConflict, Operation: "UpdateItem", Times: 1, Key: w.table.KeyItem(w.lockKey("report"))})
						resp, err := send()
						w.takenForDead(ctx, c, other)
						return resp, err
					}
					return send()
				})
				c = w.clientOver(way, quiet)
				l, err := c.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				armed.Store(true)
				err = l.Release(ctx)
				require.ErrorIs(t, err, lock.ErrLost)
				assert.ErrorContains(t, err, "or was released")
				assert.GreaterOrEqual(t, attempts.Load(), int32(3))
				require.Error(t, context.Cause(l.Context()))
				require.ErrorIs(t, l.Release(ctx), lock.ErrLost)
				require.Error(t, l.Write(ctx, w.put("x")))
				r, err := other.Inspect(ctx, lock.Name("report"))
				require.NoError(t, err)
				require.True(t, r.Held())
				require.NotEqual(t, l.Ticket(), r.Holder().Ticket)
				require.Greater(t, r.Fence, l.Fence())
			})
		})
	}
}

func (w *world) lockKey(name string) keys.Key { return keys.NewKey("LOCK#"+name, "LOCK#"+name) }

// takenForDead marks the session of a client dead, as one does that has observed it for a whole lease, and has
// another one acquire.
func (w *world) takenForDead(ctx context.Context, c, other *lock.Client) {
	w.Helper()
	require.NoError(w, w.table.Write(ctx, table.Update(sessionKey(c), table.Attr("dead").Set(time.Now().UnixMilli()))))
	bounded, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, err := other.Acquire(bounded, lock.Name("report"))
	require.NoError(w, err)
}
