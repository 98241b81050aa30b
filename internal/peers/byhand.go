package peers

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/guregu/dynamo/v2"

	"github.com/mortise-go/mortise/internal/peers/minimal"
)

// Minimal is the lock of package minimal, the baseline.
func Minimal() Candidate { return minimalAs(minimalName) }

// MinimalAgain is the baseline under another name. Its ratio should be 1, so the difference from 1 shows how exact the other ratios
// are.
func MinimalAgain() Candidate { return minimalAs("the same once more") }

func minimalAs(name string) Candidate {
	return Candidate{
		Name:   name,
		Create: createTable,
		Open: func(client *dynamodb.Client, table string, _ time.Duration) (Locker, error) {
			return byHand{minimal.New(client, table)}, nil
		},
	}
}

type byHand struct{ locks *minimal.Locker }

func (b byHand) Acquire(ctx context.Context, name string) (Held, error) {
	held, err := b.locks.Acquire(ctx, name)
	if err != nil {
		return nil, err
	}
	return held, nil
}

func (b byHand) Try(ctx context.Context, name string) (Held, error) {
	held, err := b.locks.Try(ctx, name)
	if err != nil {
		return nil, err
	}
	return held, nil
}

func (byHand) Release(ctx context.Context, held Held) error { return held.(*minimal.Lock).Release(ctx) }
func (byHand) Lost(Held) bool                               { return false }
func (byHand) Close(context.Context) error                  { return nil }

// Guregu is the minimal lock with the same two requests, built with guregu/dynamo instead of the SDK. It shows the
// cost of a convenient library.
func Guregu() Candidate {
	return Candidate{
		Name:   "the same with guregu/dynamo",
		Create: createTable,
		Open: func(client *dynamodb.Client, table string, _ time.Duration) (Locker, error) {
			return guregu{dynamo.NewFromIface(client).Table(table)}, nil
		},
	}
}

type guregu struct{ table dynamo.Table }

type gureguLock struct{ name, nonce string }

func (g guregu) update(name string) *dynamo.Update {
	return g.table.Update("pk", "LOCK#"+name).Range("sk", "LOCK")
}

func (g guregu) Try(ctx context.Context, name string) (Held, error) {
	held := &gureguLock{name: name, nonce: rand.Text()}
	var row struct {
		Fence int64 `dynamo:"fence"`
	}
	err := g.update(name).Set("nonce", held.nonce).Add("fence", 1).If("attribute_not_exists(nonce)").OnlyUpdatedValue(ctx, &row)
	if dynamo.IsCondCheckFailed(err) {
		return nil, errHeld
	}
	if err != nil {
		return nil, err
	}
	return held, nil
}

func (g guregu) Acquire(ctx context.Context, name string) (Held, error) {
	return minimal.Poll(ctx, func(ctx context.Context) (Held, error) { return g.Try(ctx, name) })
}

func (g guregu) Release(ctx context.Context, held Held) error {
	k := held.(*gureguLock)
	err := g.update(k.name).Remove("nonce").If("nonce = ?", k.nonce).Run(ctx)
	if dynamo.IsCondCheckFailed(err) {
		return minimal.ErrNotHeld
	}
	return err
}

func (guregu) Lost(Held) bool              { return false }
func (guregu) Close(context.Context) error { return nil }
