package tabletest_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/table/tabletest"
)

func TestToken_IsForgottenAfterTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := setup(t)
		send := func(pk string) error {
			_, err := c.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
				ClientRequestToken: aws.String("token"),
				TransactItems: []types.TransactWriteItem{{Update: &types.Update{
					TableName: aws.String("app"), Key: key(pk, "n"), UpdateExpression: aws.String("ADD n :one"),
					ExpressionAttributeValues: item{":one": n(1)},
				}}},
			}, oneAttempt)
			return err
		}
		require.NoError(t, send("a"))
		time.Sleep(10*time.Minute - 1)
		require.NoError(t, send("a"))
		assert.Equal(t, "1", count(t, c, "a", true))
		err := send("b")
		assert.True(t, is[*types.IdempotentParameterMismatchException](err), "%v", err)
		time.Sleep(time.Nanosecond)
		require.NoError(t, send("a"))
		assert.Equal(t, "2", count(t, c, "a", true))
	})
}

// A token is forgotten as soon as the clock has shown ten minutes more than when it was used, also where
// that goes back and forth.
func TestToken_UnderAClockThatIsSet(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 0))
		now := time.Unix(1_700_000_000, 0)
		e := tabletest.NewEngine(tabletest.WithClock(func() time.Time { return now }))
		c := e.Client()
		createTable(t, c)
		used, times := map[string]time.Time{}, map[string]int{}
		for range 60 {
			now = now.Add(time.Duration(rng.IntN(1200)-500) * time.Second)
			token := fmt.Sprint("token", rng.IntN(6))
			_, err := c.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
				ClientRequestToken: aws.String(token),
				TransactItems: []types.TransactWriteItem{{Update: &types.Update{
					TableName: aws.String("app"), Key: key(token, "n"), UpdateExpression: aws.String("ADD n :one"),
					ExpressionAttributeValues: item{":one": n(1)},
				}}},
			}, oneAttempt)
			require.NoError(t, err)
			maps.DeleteFunc(used, func(_ string, at time.Time) bool { return now.Sub(at) >= 10*time.Minute })
			if _, known := used[token]; !known {
				used[token] = now
				times[token]++
			}
			require.Equal(t, strconv.Itoa(times[token]), count(t, c, token, true), "seed %d", seed)
		}
	}
}
