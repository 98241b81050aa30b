// Package minimal is the lock that an application writes with the SDK when it needs only exclusion: one conditional update acquires the
// lock, and another one releases it.
//
// It is the baseline of the comparison, and was written from the sentence above and not from the code of a library. It has no lease: the
// lock of a process that died stays held for ever. It does not handle lost answers: if an answer is lost and the SDK sends the request
// again, the second request is refused because the first one was applied.
package minimal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var (
	// ErrHeld means that the lock is held.
	ErrHeld = errors.New("lock is held")

	// ErrNotHeld means that the lock is not held under the nonce of this acquisition.
	ErrNotHeld = errors.New("lock is not held")
)

// Limits of the pauses between two tries of [Locker.Acquire]. Each pause is random below a limit, which doubles from the first one to the
// longest.
const (
	firstPause   = 25 * time.Millisecond
	longestPause = time.Second
)

// Locker acquires locks in one table, whose keys are the strings pk and sk.
type Locker struct {
	client *dynamodb.Client
	table  string
}

// New returns a Locker. It sends nothing.
func New(client *dynamodb.Client, table string) *Locker {
	return &Locker{client: client, table: table}
}

// Lock is a lock that was acquired.
type Lock struct {
	locker *Locker
	name   string
	nonce  string

	// Fence is greater than the fence of every earlier holder.
	Fence int64
}

// Try acquires the lock if nobody holds it. Otherwise it returns ErrHeld.
//
// Cost: one conditional write.
func (l *Locker) Try(ctx context.Context, name string) (*Lock, error) {
	nonce := rand.Text()
	out, err := l.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:           aws.String(l.table),
		Key:                 key(name),
		UpdateExpression:    aws.String("SET nonce = :nonce ADD fence :one"),
		ConditionExpression: aws.String("attribute_not_exists(nonce)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":nonce": &types.AttributeValueMemberS{Value: nonce},
			":one":   &types.AttributeValueMemberN{Value: "1"},
		},
		ReturnValues: types.ReturnValueUpdatedNew,
	})
	if refused(err) {
		return nil, ErrHeld
	}
	if err != nil {
		return nil, fmt.Errorf("acquire: %w", err)
	}
	number, ok := out.Attributes["fence"].(*types.AttributeValueMemberN)
	if !ok {
		return nil, errors.New("acquire: the answer has no fence")
	}
	fence, err := strconv.ParseInt(number.Value, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("acquire: fence: %w", err)
	}
	return &Lock{locker: l, name: name, nonce: nonce, Fence: fence}, nil
}

// Acquire acquires the lock. While it is held, Acquire tries again after a pause, until ctx ends.
//
// Cost: one conditional write for each try.
func (l *Locker) Acquire(ctx context.Context, name string) (*Lock, error) {
	return Poll(ctx, func(ctx context.Context) (*Lock, error) { return l.Try(ctx, name) })
}

// Release releases the lock. It returns ErrNotHeld if the row has another nonce, or none.
//
// Cost: one conditional write.
func (k *Lock) Release(ctx context.Context) error {
	_, err := k.locker.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:           aws.String(k.locker.table),
		Key:                 key(k.name),
		UpdateExpression:    aws.String("REMOVE nonce"),
		ConditionExpression: aws.String("nonce = :nonce"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":nonce": &types.AttributeValueMemberS{Value: k.nonce},
		},
	})
	if refused(err) {
		return ErrNotHeld
	}
	if err != nil {
		return fmt.Errorf("release: %w", err)
	}
	return nil
}

// Poll calls try until it returns anything but ErrHeld. The pauses between the calls are random: up to 25 ms at first, and up to 1 s
// later. It returns ctx.Err() if ctx ends during a pause.
func Poll[T any](ctx context.Context, try func(context.Context) (T, error)) (T, error) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		got, err := try(ctx)
		if !errors.Is(err, ErrHeld) {
			return got, err
		}
		timer := time.NewTimer(mrand.N(pause))
		select {
		case <-ctx.Done():
			timer.Stop()
			return got, ctx.Err()
		case <-timer.C:
		}
	}
}

func key(name string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "LOCK#" + name},
		"sk": &types.AttributeValueMemberS{Value: "LOCK"},
	}
}

func refused(err error) bool {
	var failed *types.ConditionalCheckFailedException
	return errors.As(err, &failed)
}
