package peers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// Mortise is package lock with its default settings.
func Mortise() Candidate {
	return Candidate{
		Name:   mortiseName,
		Leases: true,
		Create: func(ctx context.Context, client *dynamodb.Client, name string) error {
			tbl, err := table.Open(client, table.Schema{Name: name})
			if err != nil {
				return err
			}
			return tbl.Ensure(ctx)
		},
		Open: func(client *dynamodb.Client, name string, lease time.Duration) (Locker, error) {
			tbl, err := table.Open(client, table.Schema{Name: name})
			if err != nil {
				return nil, err
			}
			locks, err := lock.New(tbl, lock.Config{Lease: lease, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				return nil, err
			}
			return mortise{locks}, nil
		},
	}
}

type mortise struct{ locks *lock.Client }

func (m mortise) Acquire(ctx context.Context, name string) (Held, error) {
	lease, err := m.locks.Acquire(ctx, lock.Name(name))
	if err != nil {
		return nil, err
	}
	return lease, nil
}

func (m mortise) Try(ctx context.Context, name string) (Held, error) {
	lease, err := m.locks.TryAcquire(ctx, lock.Name(name))
	if errors.Is(err, lock.ErrHeld) {
		return nil, fmt.Errorf("%w: %w", errHeld, err)
	}
	if err != nil {
		return nil, err
	}
	return lease, nil
}

func (m mortise) Release(ctx context.Context, held Held) error {
	return held.(*lock.Lease).Release(ctx)
}

func (m mortise) Lost(held Held) bool { return held.(*lock.Lease).Context().Err() != nil }

func (m mortise) Close(ctx context.Context) error { return m.locks.Close(ctx) }
