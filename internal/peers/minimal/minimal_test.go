package minimal_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/peers/minimal"
)

func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }

func newTable(t *testing.T, e *engines.Engine) (*dynamodb.Client, string) {
	t.Helper()
	client, name := e.Client(), e.TableName(t)
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:   aws.String(name),
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("sk"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange},
		},
	})
	require.NoError(t, err)
	return client, name
}

func TestTry_OneHoldsTheLockAtATime(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		locks := minimal.New(newTable(t, e))
		first, err := locks.Try(t.Context(), "a")
		require.NoError(t, err)

		_, err = locks.Try(t.Context(), "a")
		require.ErrorIs(t, err, minimal.ErrHeld)
		other, err := locks.Try(t.Context(), "b")
		require.NoError(t, err, "another lock")
		assert.Equal(t, int64(1), other.Fence)

		require.NoError(t, first.Release(t.Context()))
		second, err := locks.Acquire(t.Context(), "a")
		require.NoError(t, err)
		assert.Equal(t, first.Fence+1, second.Fence)

		require.ErrorIs(t, first.Release(t.Context()), minimal.ErrNotHeld, "of an earlier holder")
		require.NoError(t, second.Release(t.Context()))
		require.ErrorIs(t, second.Release(t.Context()), minimal.ErrNotHeld, "twice")
	})
}

func TestPoll_TriesAgainUntilTheLockIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries, begun := 0, time.Now()
		got, err := minimal.Poll(t.Context(), func(context.Context) (string, error) {
			if tries++; tries < 20 {
				return "", minimal.ErrHeld
			}
			return "held", nil
		})
		require.NoError(t, err)
		assert.Equal(t, "held", got)
		assert.Less(t, time.Since(begun), 20*time.Second, "a pause is a second at most")
		assert.Greater(t, time.Since(begun), time.Second, "and they grow")
	})
}

func TestPoll_EndsWithItsContextAndWithOtherErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := minimal.Poll(ctx, func(context.Context) (int, error) { return 0, minimal.ErrHeld })
		require.ErrorIs(t, err, context.DeadlineExceeded)

		broken := errors.New("broken")
		_, err = minimal.Poll(t.Context(), func(context.Context) (int, error) { return 0, broken })
		require.ErrorIs(t, err, broken)
	})
}
