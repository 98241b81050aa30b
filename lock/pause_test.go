package lock_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// holderEnv makes this binary a process that holds a lock and is paused. Its value is a holderConfig, as JSON.
const holderEnv = "MORTISE_TEST_HOLDER"

// holderLease is short, so that pauses can be short.
const holderLease = lock.MinLease

// holderConfig is the configuration of such a process.
type holderConfig struct {
	Endpoint string `json:"endpoint"` // empty for the service itself
	Table    string `json:"table"`
	Lock     string `json:"lock"`
}

// holderEvent is a line that such a process prints.
type holderEvent struct {
	Kind    string    `json:"kind"` // held, lost or failed
	Error   string    `json:"error,omitempty"`
	Fence   int64     `json:"fence,omitempty"`
	Ended   time.Time `json:"ended,omitzero"` // when the lease's context ended
	Resumed time.Time `json:"resumed,omitzero"`
	Cause   string    `json:"cause,omitempty"`
	Written int       `json:"written,omitempty"` // guarded writes that went through
	Refused int       `json:"refused,omitempty"` // guarded writes that were ErrLost
}

// holderMain is the main function of such a process. For each line that it reads, it acquires its lock and writes under it
// until the lock is lost. It ends with its input.
func holderMain(text string) int {
	h, err := newHolder(text)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go h.watch(ctx)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if err := h.cycle(ctx); err != nil {
			h.report(holderEvent{Kind: "failed", Error: err.Error()})
		}
	}
	return 0
}

type holder struct {
	holderConfig
	locks *lock.Client
	table *table.Table
	out   io.Writer

	resumed atomic.Int64 // epoch nanoseconds at which this process found out that it had been stopped
}

func newHolder(text string) (*holder, error) {
	h := &holder{out: os.Stdout}
	if err := json.Unmarshal([]byte(text), &h.holderConfig); err != nil {
		return nil, err
	}
	sdk := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("mortise", "mortise", ""), BaseEndpoint: &h.Endpoint}
	var err error
	if h.Endpoint == "" {
		if sdk, err = config.LoadDefaultConfig(context.Background()); err != nil {
			return nil, err
		}
	}
	if h.table, err = table.Open(dynamodb.NewFromConfig(sdk), table.Schema{Name: h.Table}); err != nil {
		return nil, err
	}
	h.locks, err = lock.New(h.table, lock.Config{Lease: holderLease, Logger: slog.New(slog.DiscardHandler)})
	return h, err
}

func (h *holder) report(e holderEvent) {
	if err := json.NewEncoder(h.out).Encode(e); err != nil {
		os.Exit(1) // the reader is gone
	}
}

// watch notes when the process goes on after it was stopped.
func (h *holder) watch(ctx context.Context) {
	const tick = 2 * time.Millisecond
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for last := time.Now(); ctx.Err() == nil; {
		<-ticks.C
		now := time.Now()
		if now.Sub(last) > holderLease {
			h.resumed.Store(now.UnixNano())
		}
		last = now
	}
}

// cycle holds the lock until it is lost.
func (h *holder) cycle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	l, err := h.locks.Acquire(ctx, lock.Name(h.Lock))
	if err != nil {
		return err
	}
	ended := make(chan time.Time, 1)
	context.AfterFunc(l.Context(), func() { ended <- time.Now() })
	h.report(holderEvent{Kind: "held", Fence: l.Fence()})
	result := holderEvent{Kind: "lost", Fence: l.Fence()}
	for {
		switch err := l.Write(ctx, appendTo(guardedHistory(h.Lock), l.Fence())); {
		case err == nil:
			result.Written++
		case errors.Is(err, lock.ErrLost):
			result.Refused++
		case ctx.Err() != nil:
			return err
		}
		if result.Refused == 3 {
			break
		}
		if result.Refused == 0 {
			time.Sleep(50 * time.Millisecond)
		}
	}
	if err := l.Commit(ctx, appendTo(guardedHistory(h.Lock), l.Fence())); !errors.Is(err, lock.ErrLost) {
		return fmt.Errorf("commit of a stale holder: %w", err)
	}
	// The same without the guard. It is applied, or the histories would show nothing.
	if err := h.table.Write(ctx, appendTo(openHistory(h.Lock), l.Fence())); err != nil {
		return err
	}
	select {
	case result.Ended = <-ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	result.Resumed, result.Cause = time.Unix(0, h.resumed.Load()), context.Cause(l.Context()).Error()
	h.report(result)
	return nil
}

// The rows that a lock's holders write to: with the guard, and without it.
func guardedHistory(name string) keys.Key { return keys.NewKey("HISTORY#"+name, "GUARDED") }

func openHistory(name string) keys.Key { return keys.NewKey("HISTORY#"+name, "OPEN") }

// appendTo adds a fence to a history, which keeps the order in which writes committed.
func appendTo(history keys.Key, fence int64) table.Op {
	fences := table.Attr("fences")
	return table.Update(history, fences.Set(fences.OrElse([]int64{}).Append([]int64{fence})))
}

// stale counts the writes of a history that came after one under a greater fence.
func stale(row table.Item) (stale, all int, err error) {
	list, ok := row["fences"].(*types.AttributeValueMemberL)
	if !ok {
		return 0, 0, fmt.Errorf("no history: %T", row["fences"])
	}
	last := int64(0)
	for _, av := range list.Value {
		n, ok := av.(*types.AttributeValueMemberN)
		if !ok {
			return 0, 0, fmt.Errorf("no number in a history: %T", av)
		}
		var fence int64
		if _, err := fmt.Sscan(n.Value, &fence); err != nil {
			return 0, 0, err
		}
		if fence < last {
			stale++
		}
		last = max(last, fence)
	}
	return stale, len(list.Value), nil
}

// The holder of a lease of an hour is told within a second after its machine resumes.
func TestPause_SuspendedHolderOfALongLeaseIsToldAtOnce(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wall := &wallClock{}
		config := quiet
		config.Lease = time.Hour
		c := w.client(config, table.WithClock(wall.now))
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		wall.jump(2 * time.Hour)
		resumed := time.Now()
		<-l.Context().Done()
		assert.LessOrEqual(t, time.Since(resumed), time.Second)
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrExpired)
	})
}
