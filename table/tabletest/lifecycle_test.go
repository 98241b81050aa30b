package tabletest_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mortise-go/mortise/table/tabletest"
)

func serverTime(m middleware.Metadata) (time.Time, bool) { return awsmiddleware.GetServerTime(m) }

func TestSweepDeletesWhatHasExpired(t *testing.T) {
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

func TestTokenIsForgottenAfterTenMinutes(t *testing.T) {
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
func TestTokensUnderAClockThatIsSet(t *testing.T) {
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

func TestRestoreBringsBackTheSnapshot(t *testing.T) {
	e, c := setup(t)
	require.NoError(t, add(t.Context(), c, "a"))
	snap := e.Snapshot()
	for range 2 {
		require.NoError(t, add(t.Context(), c, "a"))
		require.NoError(t, add(t.Context(), c, "b"))
		e.Restore(snap)
		assert.Equal(t, "1", count(t, c, "a", true))
		assert.Equal(t, "absent", count(t, c, "b", true))
	}
}

func TestRequestsAreLogged(t *testing.T) {
	e, c := setup(t)
	require.NoError(t, add(t.Context(), c, "a"))
	_, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: aws.String("app"), Item: key("a", "n"), ConditionExpression: aws.String("attribute_not_exists(pk)"),
	})
	require.Error(t, err)
	_, err = c.TransactGetItems(t.Context(), &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{
		{Get: &types.Get{TableName: aws.String("app"), Key: key("a", "n")}},
	}})
	require.NoError(t, err)
	log := e.Requests()
	require.Len(t, log, 3)
	assert.Equal(t, 1, log[0].Index)
	assert.Equal(t, "UpdateItem", log[0].Operation)
	assert.Equal(t, []string{"app"}, log[0].Tables)
	assert.Equal(t, []tabletest.Key{{Table: "app", Attrs: key("a", "n")}}, log[0].Keys)
	assert.InDelta(t, 1, log[0].Consumed, 0)
	assert.Equal(t, "ConditionalCheckFailedException", log[1].Code)
	assert.InDelta(t, 1, log[1].Consumed, 0, "a refused write costs as much as one that is not")
	assert.InDelta(t, 2, log[2].Consumed, 0)
	e.ResetRequests()
	assert.Empty(t, e.Requests())
}

func TestListenServesOtherProcesses(t *testing.T) {
	before := goleak.IgnoreCurrent()
	defer func() { goleak.VerifyNone(t, before) }()
	e := tabletest.NewEngine()
	url, err := e.Listen("127.0.0.1:0")
	require.NoError(t, err)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	cfg := e.Config()
	cfg.HTTPClient = &http.Client{Transport: transport}
	cfg.BaseEndpoint = aws.String(url)
	c := dynamodb.NewFromConfig(cfg, oneAttempt)
	createTable(t, c)
	require.NoError(t, add(t.Context(), c, "a"))
	e.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "UpdateItem", Times: 1})
	require.Error(t, add(t.Context(), c, "a"), "the connection is closed without an answer")
	assert.Equal(t, "2", count(t, c, "a", true))
	require.NoError(t, e.Close())
	require.NoError(t, e.Close())
	require.Error(t, add(t.Context(), c, "a"))
	_, err = e.Listen("127.0.0.1:0")
	require.Error(t, err)
}

func TestConcurrentUpdatesAreAtomic(t *testing.T) {
	_, c := setup(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 25 {
				assert.NoError(t, add(t.Context(), c, "a"))
			}
		})
	}
	wg.Wait()
	assert.Equal(t, "200", count(t, c, "a", true))
}

func TestUnknownOperation(t *testing.T) {
	_, c := setup(t)
	_, err := c.ListBackups(t.Context(), &dynamodb.ListBackupsInput{})
	require.ErrorContains(t, err, "UnknownOperationException")
}

func TestUpdateTableAddsAFilledIndex(t *testing.T) {
	_, c := setup(t)
	for _, pk := range []string{"a", "b"} {
		_, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("app"), Item: item{"pk": s(pk), "sk": s("x"), "h": n(1)}})
		require.NoError(t, err)
	}
	require.NoError(t, add(t.Context(), c, "c"))
	update := func(u types.GlobalSecondaryIndexUpdate) error {
		_, err := c.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
			TableName:                   aws.String("app"),
			AttributeDefinitions:        []types.AttributeDefinition{{AttributeName: aws.String("h"), AttributeType: types.ScalarAttributeTypeN}},
			GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{u},
		})
		return err
	}
	require.NoError(t, update(types.GlobalSecondaryIndexUpdate{Create: &types.CreateGlobalSecondaryIndexAction{
		IndexName: aws.String("gsi2"), KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("h"), KeyType: types.KeyTypeHash}},
		Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
	}}))
	d, err := c.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("app")})
	require.NoError(t, err)
	require.Len(t, d.Table.GlobalSecondaryIndexes, 2)
	assert.Equal(t, types.IndexStatusActive, d.Table.GlobalSecondaryIndexes[1].IndexStatus)
	assert.EqualValues(t, 2, *d.Table.GlobalSecondaryIndexes[1].ItemCount, "items without the key are not in it")
	require.NoError(t, update(types.GlobalSecondaryIndexUpdate{Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: aws.String("gsi2")}}))
	_, err = c.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("app"), IndexName: aws.String("gsi2")})
	require.ErrorContains(t, err, "does not have the specified index")
}

func TestTagsAndRecoverySettings(t *testing.T) {
	_, c := setup(t)
	d, err := c.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("app")})
	require.NoError(t, err)
	_, err = c.TagResource(t.Context(), &dynamodb.TagResourceInput{ResourceArn: d.Table.TableArn, Tags: []types.Tag{
		{Key: aws.String("a"), Value: aws.String("1")}, {Key: aws.String("b"), Value: aws.String("2")},
	}})
	require.NoError(t, err)
	_, err = c.UntagResource(t.Context(), &dynamodb.UntagResourceInput{ResourceArn: d.Table.TableArn, TagKeys: []string{"a"}})
	require.NoError(t, err)
	tags, err := c.ListTagsOfResource(t.Context(), &dynamodb.ListTagsOfResourceInput{ResourceArn: d.Table.TableArn})
	require.NoError(t, err)
	assert.Equal(t, []types.Tag{{Key: aws.String("b"), Value: aws.String("2")}}, tags.Tags)
	for arn, code := range map[string]string{
		*d.Table.TableArn + "x": "ResourceNotFoundException",
		"arn:aws:dynamodb:" + tabletest.Region + ":210987654321:table/app": "AccessDeniedException",
	} {
		_, err = c.ListTagsOfResource(t.Context(), &dynamodb.ListTagsOfResourceInput{ResourceArn: &arn})
		var refused smithy.APIError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, code, refused.ErrorCode())
	}
	_, err = c.UpdateContinuousBackups(t.Context(), &dynamodb.UpdateContinuousBackupsInput{
		TableName:                        aws.String("app"),
		PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)},
	})
	require.NoError(t, err)
	b, err := c.DescribeContinuousBackups(t.Context(), &dynamodb.DescribeContinuousBackupsInput{TableName: aws.String("app")})
	require.NoError(t, err)
	assert.Equal(t, types.PointInTimeRecoveryStatusEnabled, b.ContinuousBackupsDescription.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus)
}
