//go:build unix

package lock_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// F10: real processes are stopped for longer than two leases, while others take their locks. They need an engine that they
// can reach: the in-process one is served over loopback.
func TestPauseProcess(t *testing.T) {
	const processes, pause = 10, 2200 * time.Millisecond
	cycles := testkit.IfSmall(1, 5)
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		endpoint := ""
		if in := e.InProcess(); in != nil {
			url, err := in.Listen("127.0.0.1:0")
			require.NoError(t, err)
			endpoint = url
		} else if base := e.Client().Options().BaseEndpoint; base != nil {
			endpoint = *base
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		tbl, err := table.Open(e.Client(), table.Schema{Name: e.TableName(t)})
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(ctx))
		rival, err := lock.New(tbl, lock.Config{Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		defer func() { assert.NoError(t, rival.Close(context.Background())) }()

		var mu sync.Mutex
		var all pauses
		var wait sync.WaitGroup
		for i := range processes {
			wait.Go(func() {
				got, err := pauseOne(ctx, rival, holderConfig{Endpoint: endpoint, Table: tbl.Name(), Lock: fmt.Sprint("paused ", i)}, cycles, pause)
				assert.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				all.add(got)
			})
		}
		wait.Wait()
		var guarded, unguarded, committed int
		for i := range processes {
			name := fmt.Sprint("paused ", i)
			row, err := tbl.Get(ctx, guardedHistory(name), true)
			require.NoError(t, err)
			n, of, err := stale(row)
			require.NoError(t, err)
			guarded, committed = guarded+n, committed+of
			row, err = tbl.Get(ctx, openHistory(name), true)
			require.NoError(t, err)
			n, _, err = stale(row)
			require.NoError(t, err)
			unguarded += n
		}
		testkit.Check(t, fmt.Sprintf("F10, lease %v, stopped for %v", holderLease, pause),
			testkit.Exactly(all.cycles, "cycles", processes*cycles),
			testkit.Exactly(guarded, fmt.Sprintf("stale writes of %d committed", committed), 0),
			testkit.AtLeast(all.refused, "stale writes refused", 3*processes*cycles),
			testkit.AtMost(all.delay, " from running again to cancellation at most", 100*time.Millisecond))
		t.Logf("from SIGCONT to cancellation: at most %v, where the machine let the process run again after %v", all.since, all.noticed)
		t.Logf("control: %d stale unguarded writes after %d pauses; causes %v; cycles repeated because the machine was too slow: %d",
			unguarded, all.cycles, all.causes, all.repeated)
		assert.GreaterOrEqual(t, unguarded, all.cycles, "the histories must show a stale write")
		assert.LessOrEqual(t, unguarded, all.cycles+all.repeated, "a pause has one, and a cycle that was repeated may have")
	})
}

// pauses is the outcome of pauses.
type pauses struct {
	cycles, refused, repeated int
	delay                     time.Duration // the longest from the process's running again to its cancellation
	since, noticed            time.Duration // the longest from SIGCONT to cancellation; then to running again
	causes                    map[string]int
}

func (p *pauses) add(q pauses) {
	p.cycles, p.refused, p.repeated = p.cycles+q.cycles, p.refused+q.refused, p.repeated+q.repeated
	p.delay = max(p.delay, q.delay)
	if q.since > p.since {
		p.since, p.noticed = q.since, q.noticed
	}
	if p.causes == nil {
		p.causes = map[string]int{}
	}
	for cause, n := range q.causes {
		p.causes[cause] += n
	}
}

// pauseOne starts a process and stops it again and again.
func pauseOne(ctx context.Context, rival *lock.Client, config holderConfig, cycles int, pause time.Duration) (all pauses, err error) {
	h, err := startHolder(ctx, config)
	if err != nil {
		return all, err
	}
	defer func() { err = errors.Join(err, h.end()) }()
	for all.cycles < cycles {
		if all.repeated > 3*cycles {
			return all, errors.New("the machine is too slow to hold a lock for a lease")
		}
		one, err := h.pause(ctx, rival, pause)
		if err != nil {
			return all, err
		}
		all.add(one)
	}
	return all, nil
}

// holderProcess is a holder from its parent's side.
type holderProcess struct {
	config holderConfig
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner
	stderr bytes.Buffer
}

func startHolder(ctx context.Context, config holderConfig) (*holderProcess, error) {
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	h := &holderProcess{config: config, cmd: exec.CommandContext(ctx, program)}
	h.cmd.Env = append(os.Environ(), holderEnv+"="+string(text))
	h.cmd.Stderr = &h.stderr
	// In its own process group. When this process dies, the system continues that group and hangs it up. Otherwise a
	// stopped process would stay for ever.
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if h.in, err = h.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	h.out = bufio.NewScanner(out)
	return h, h.cmd.Start()
}

func (h *holderProcess) end() error {
	_ = h.in.Close() // asks it to end
	kill := time.AfterFunc(5*time.Second, func() { _ = h.cmd.Process.Kill() })
	defer kill.Stop()
	if err := h.cmd.Wait(); err != nil {
		return fmt.Errorf("process with a lock: %w: %s", err, h.stderr.String())
	}
	return nil
}

// next is the next event that the process prints.
func (h *holderProcess) next(kind string) (e holderEvent, err error) {
	if !h.out.Scan() {
		return e, fmt.Errorf("process with a lock: no %s: %w", kind, errors.Join(h.out.Err(), io.ErrUnexpectedEOF))
	}
	if err = json.Unmarshal(h.out.Bytes(), &e); err == nil && e.Kind != kind {
		err = fmt.Errorf("process with a lock: %s instead of %s: %s", e.Kind, kind, e.Error)
	}
	return e, err
}

// pause lets the process acquire its lock, stops it, takes the lock, and lets it go on.
func (h *holderProcess) pause(ctx context.Context, rival *lock.Client, pause time.Duration) (p pauses, err error) {
	if _, err = io.WriteString(h.in, "go\n"); err != nil {
		return p, err
	}
	held, err := h.next("held")
	if err != nil {
		return p, err
	}
	time.Sleep(100*time.Millisecond + rand.N(300*time.Millisecond)) // anywhere in its writing
	stopped := time.Now()
	if err = h.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return p, err
	}
	taken, err := h.takeOver(ctx, rival)
	time.Sleep(time.Until(stopped.Add(pause)))
	resumed := time.Now()
	if err = errors.Join(err, h.cmd.Process.Signal(syscall.SIGCONT)); err != nil {
		return p, err
	}
	lost, err := h.next("lost")
	if err != nil {
		return p, err
	}
	// Once more, now that the other process has gone on.
	name := h.config.Lock
	if err = taken.Commit(ctx, appendTo(guardedHistory(name), taken.Fence())); err != nil {
		return p, err
	}
	if lost.Ended.Before(stopped) {
		return pauses{repeated: 1}, nil // its lease had ended by itself
	}
	if taken.Fence() <= held.Fence {
		return p, fmt.Errorf("fence %d after %d", taken.Fence(), held.Fence)
	}
	since, noticed := lost.Ended.Sub(resumed), max(lost.Resumed.Sub(resumed), 0)
	return pauses{
		cycles: 1, refused: lost.Refused, causes: map[string]int{lost.Cause: 1},
		// A busy machine lets a process wait. That delay does not count.
		delay: max(since-noticed, 0), since: since, noticed: noticed,
	}, nil
}

// takeOver acquires the lock of the stopped process, and writes.
func (h *holderProcess) takeOver(ctx context.Context, rival *lock.Client) (*lock.Lease, error) {
	name := h.config.Lock
	l, err := rival.Acquire(ctx, lock.Name(name))
	if err != nil {
		return nil, err
	}
	if err := l.Write(ctx, appendTo(guardedHistory(name), l.Fence())); err != nil {
		return nil, err
	}
	return l, l.Write(ctx, appendTo(openHistory(name), l.Fence()))
}
