package tabletest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSweep_DeletesWhatHasExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, c := setup(t)
		put := func(pk string, expires time.Time) {
			_, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("app"), Item: item{
				"pk": s(pk), "sk": s("n"), "gpk": s("g"), "exp": n(int(expires.Unix())),
			}})
			require.NoError(t, err)
		}
		put("soon", time.Now().Add(time.Minute))
		put("later", time.Now().Add(time.Hour))
		put("ancient", time.Now().AddDate(-6, 0, 0))
		for pk, expires := range map[string]types.AttributeValue{"never": nil, "text": s("1")} {
			other := item{"pk": s(pk), "sk": s("n")}
			if expires != nil {
				other["exp"] = expires
			}
			_, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("app"), Item: other})
			require.NoError(t, err)
		}
		time.Sleep(2 * time.Minute)
		assert.Zero(t, e.Sweep(), "time to live is not enabled yet")
		_, err := c.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
			TableName:               aws.String("app"),
			TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("exp"), Enabled: aws.Bool(true)},
		})
		require.NoError(t, err)
		out, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("app"), Key: key("soon", "n")})
		require.NoError(t, err)
		assert.NotEmpty(t, out.Item, "an expired item is visible until the sweep")
		assert.Equal(t, 1, e.Sweep())
		scan, err := c.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("app"), IndexName: aws.String("gsi1")})
		require.NoError(t, err)
		assert.EqualValues(t, 2, scan.Count, "the index has lost it, too")
	})
}
