package peers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cirello.io/dynamolock/v2"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Cirello is cirello.io/dynamolock with its default settings: a table that it creates itself, a heartbeat every quarter of the lease, and
// one second between two reads of a lock that is held.
func Cirello() Candidate { return cirelloWith(cirelloName) }

// CirelloRefreshing is Cirello with another time between two reads.
func CirelloRefreshing(every time.Duration) Candidate {
	return cirelloWith(fmt.Sprintf("%s, refresh %v", cirelloName, every), dynamolock.WithRefreshPeriod(every))
}

func cirelloWith(name string, opts ...dynamolock.AcquireLockOption) Candidate {
	// The context limits the wait.
	opts = append(opts, dynamolock.WithAdditionalTimeToWaitForLock(time.Hour))
	return Candidate{
		Name:   name,
		Leases: true,
		Create: func(ctx context.Context, client *dynamodb.Client, table string) error {
			locks, err := dynamolock.New(client, table, dynamolock.DisableHeartbeat())
			if err != nil {
				return err
			}
			_, err = locks.CreateTableWithContext(ctx, table)
			return errors.Join(err, locks.CloseWithContext(ctx))
		},
		Open: func(client *dynamodb.Client, table string, lease time.Duration) (Locker, error) {
			locks, err := dynamolock.New(client, table,
				dynamolock.WithLeaseDuration(lease), dynamolock.WithHeartbeatPeriod(lease/4))
			if err != nil {
				return nil, err
			}
			return &cirello{locks: locks, wait: opts, try: append([]dynamolock.AcquireLockOption{dynamolock.FailIfLocked()}, opts...)}, nil
		},
	}
}

type cirello struct {
	locks     *dynamolock.Client
	wait, try []dynamolock.AcquireLockOption
}

func (c *cirello) Acquire(ctx context.Context, name string) (Held, error) {
	held, err := c.locks.AcquireLockWithContext(ctx, name, c.wait...)
	if err != nil {
		return nil, err
	}
	return held, nil
}

func (c *cirello) Try(ctx context.Context, name string) (Held, error) {
	held, err := c.locks.AcquireLockWithContext(ctx, name, c.try...)
	if refused := (*dynamolock.LockNotGrantedError)(nil); errors.As(err, &refused) {
		return nil, fmt.Errorf("%w: %w", errHeld, err)
	}
	if err != nil {
		return nil, err
	}
	return held, nil
}

func (c *cirello) Release(ctx context.Context, held Held) error {
	_, err := c.locks.ReleaseLockWithContext(ctx, held.(*dynamolock.Lock))
	return err
}

func (c *cirello) Lost(held Held) bool { return held.(*dynamolock.Lock).IsExpired() }

func (c *cirello) Close(ctx context.Context) error { return c.locks.CloseWithContext(ctx) }
