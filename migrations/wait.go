package migrations

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mortise-go/mortise/internal/nilctx"
	"github.com/mortise-go/mortise/lock"
)

// Intervals at which the records are read while another instance holds the lock.
const (
	firstLook = time.Second
	lookAgain = 5 * time.Second // the longest interval
)

// exclusively runs f under the lock. While it waits for the lock, it reads the records at intervals. It stops waiting if left
// reports that nothing is pending any more, since another instance has run it, or that records and program disagree. With a
// nil left it waits until it has the lock, and reads the records at most once, for the log.
func (m *Migrator) exclusively(ctx context.Context, left func(*snapshot) (bool, error), f func(ctx context.Context, lease *lock.Lease) error) error {
	ctx = nilctx.Checked(ctx, ErrInvalid)
	waiting, end := context.WithCancelCause(ctx)
	defer end(nil)
	stop := m.watch(waiting, left, end)
	defer stop()
	done := false
	err := m.locks.Do(waiting, m.target, func(ctx context.Context, lease *lock.Lease) error {
		stop()
		if waiting.Err() != nil {
			return context.Cause(waiting)
		}
		err := f(ctx, lease)
		done = err == nil
		return err
	})
	var over *overError
	switch {
	case errors.As(err, &over):
		return over.err
	case done: // all results of f are recorded, so losing the lock afterwards is no error
		return nil
	}
	return err
}

// overError ends the wait for the lock: with err or, if that is nil, because nothing is pending.
type overError struct{ err error }

func (*overError) Error() string { return "no need to wait any longer" }

// watch reads the records until it is stopped, or until left ends the wait. It logs once what the wait is for.
func (m *Migrator) watch(ctx context.Context, left func(*snapshot) (bool, error), end context.CancelCauseFunc) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() {
		said := false
		for pause := firstLook; ; pause = min(pause*3/2, lookAgain) {
			if sleep(ctx, pause) != nil {
				return
			}
			s, err := m.read(ctx)
			if err != nil {
				continue // the requests for the lock fail, too, and report the error
			}
			if left != nil {
				if more, err := left(s); err != nil || !more {
					end(&overError{err})
					return
				}
			}
			if !said {
				said = true
				m.logger.Info("migrations: waiting for the lock, which another instance holds", m.runs(s)...)
			}
			if left == nil {
				return
			}
		}
	})
	return func() {
		cancel()
		group.Wait()
	}
}

// runs describes, for the log, the migration that another instance runs.
func (m *Migrator) runs(s *snapshot) []any {
	for _, r := range s.records {
		if r.State == Running {
			return []any{"id", r.ID, "owner", r.Owner, "since", r.Started}
		}
	}
	return nil
}
