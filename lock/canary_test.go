package lock_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// journal is a log for concurrent writers.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// B4: names, keys and rows of an application appear in no error, and in no log record above debug level.
func TestErrors_AndLogsHaveNoNamesKeysOrPayloads(t *testing.T) {
	texts, hits := 0, 0
	for _, target := range []lock.Target{lock.Name(canary), lock.Beside(keys.NewKey("T#"+canary, "O#"+canary))} {
		virtual(t, func(ctx context.Context, w *world) {
			log := &journal{}
			logger := slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelInfo}))
			check := func(err error) {
				t.Helper()
				require.Error(t, err)
				for _, verb := range []string{"%v", "%+v", "%q"} {
					hits += strings.Count(fmt.Sprintf(verb, err), canary)
				}
				logger.Error("failed", "error", err, "target", target)
				texts++
			}
			lost := make(chan error, 10)
			c := w.client(lock.Config{Logger: logger, OnLost: func(_ *lock.Lease, cause error) { lost <- cause }})
			other := w.client(lock.Config{Logger: logger}, at(time.Hour))
			op := table.Put(table.Item{"pk": text("R#" + canary), "sk": text(canary), "data": text(canary)}).If(table.Attr("nope").Equal(canary))

			l, err := c.Acquire(ctx, target, lock.WithData(canary))
			require.NoError(t, err)
			_, err = other.TryAcquire(ctx, target)
			check(err)
			held, err := json.Marshal(err)
			require.NoError(t, err)
			hits += strings.Count(string(held), canary)
			bounded, cancel := context.WithTimeout(ctx, time.Minute)
			_, err = other.Acquire(bounded, target)
			cancel()
			check(err)
			check(l.Write(ctx, op))
			check(l.Commit(ctx, op))
			check(l.Write(ctx, table.Put(table.Item{"pk": text(canary), "sk": text("a"), "n": &types.AttributeValueMemberN{Value: canary}})))
			check(l.Write(ctx, table.Put(table.Item{"pk": text(canary), "sk": text("a"), "n": &types.AttributeValueMemberSS{Value: []string{canary, canary}}})))
			check(l.Write(ctx, table.Delete(l.Key())))
			check(l.SetData(ctx, canary+"\xff"))
			check(l.SetData(ctx, map[string]any{canary: canary + "\xff"}))
			check(l.SetData(ctx, map[string]any{canary: func() {}}))
			check(l.Data().Decode(new(int)))
			check(other.ForceRelease(ctx, target, canary+"/1"))
			check(other.ForceRelease(ctx, target, canary, canary+"\xff"))
			check(other.Revoke(ctx, lock.Name("no "+canary)))
			fixed, err := c.Acquire(ctx, lock.Name("fixed "+canary), lock.Fixed(time.Hour), lock.WithData([]string{canary}))
			require.NoError(t, err)
			for _, kind := range []tabletest.FaultKind{
				tabletest.DropRequest, tabletest.DropReply, tabletest.CutReply, tabletest.Throttle, tabletest.InternalError, tabletest.TransactionConflict,
			} {
				w.engine.Inject(tabletest.Fault{Kind: kind})
				bounded, cancel := context.WithTimeout(ctx, time.Second)
				check(l.Write(bounded, op))
				check(fixed.Renew(bounded))
				check(l.SetData(bounded, canary))
				check(other.ForceRelease(bounded, target, canary, canary))
				check(other.Revoke(bounded, target))
				for _, err := range other.List(ownHand(bounded), lock.WholeTable()) {
					check(err)
				}
				_, err = other.Acquire(bounded, target)
				check(err)
				cancel()
				w.engine.ClearFaults()
			}
			item, err := w.table.Get(ctx, l.Key(), true)
			require.NoError(t, err)
			for _, bad := range []table.Item{
				{"type": text(canary)},
				{"fence": text(canary)},
				{"line": text(canary)},
				{"line": listOf(text(canary))},
				{"since": text(canary)},
				{"hold": text(canary)},
				{"ttl": text(canary)},
				{"forced": listOf(text(canary))},
				{"edits": text(canary)},
			} {
				row := table.Item{"data": text(canary)}
				maps.Copy(row, item)
				maps.Copy(row, bad)
				require.NoError(t, w.table.Write(ctx, table.Put(row)))
				_, err = other.Inspect(ctx, target)
				check(err)
				check(other.ForceRelease(ctx, target, canary+"/1"))
				check(other.Revoke(ctx, target))
				found := 0
				for _, err := range other.List(ownHand(ctx), lock.WholeTable()) {
					if err != nil {
						check(err)
						found++
					}
				}
				_, foreign := bad["type"]
				assert.Equal(t, !foreign, found == 1, "a row of another type is no lock")
				bounded, cancel := context.WithTimeout(ctx, time.Minute) // the enter mends the time to live
				_, err = other.Acquire(bounded, target)
				cancel()
				check(err)
			}
			require.NoError(t, w.table.Write(ctx, table.Delete(l.Key())))
			check(<-lost)
			check(l.Write(ctx, op))
			check(l.Release(ctx))
			check(c.Do(ctx, target, func(ctx context.Context, l *lock.Lease) error { return l.Commit(ctx, op) }))
			_, err = c.Acquire(ctx, lock.Name(canary+"\xff"))
			check(err)
			assert.Contains(t, log.String(), "lock: lost", "the log was written to")
			assert.Contains(t, log.String(), "the clock is off")
			hits += strings.Count(log.String(), canary)
		})
	}
	testkit.Check(t, "B4", testkit.AtLeast(texts, "error texts with a canary behind them", 50), testkit.Exactly(hits, "hits in texts and logs", 0))
}
