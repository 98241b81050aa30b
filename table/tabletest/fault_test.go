package tabletest_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// oneAttempt switches the SDK's retries off.
func oneAttempt(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

func add(ctx context.Context, c *dynamodb.Client, pk string, opts ...func(*dynamodb.Options)) error {
	_, err := c.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 aws.String("app"),
		Key:                       key(pk, "n"),
		UpdateExpression:          aws.String("ADD n :one"),
		ExpressionAttributeValues: item{":one": n(1)},
	}, opts...)
	return err
}

func count(tb testing.TB, c *dynamodb.Client, pk string, consistent bool) string {
	tb.Helper()
	out, err := c.GetItem(tb.Context(), &dynamodb.GetItemInput{TableName: aws.String("app"), Key: key(pk, "n"), ConsistentRead: aws.Bool(consistent)})
	require.NoError(tb, err)
	v, ok := out.Item["n"].(*types.AttributeValueMemberN)
	if !ok {
		return "absent"
	}
	return v.Value
}

func setup(tb testing.TB) (*tabletest.Engine, *dynamodb.Client) {
	tb.Helper()
	e := tabletest.New(tb)
	c := e.Client()
	createTable(tb, c)
	e.ResetRequests()
	return e, c
}

func TestDropRequest_AppliesNothing(t *testing.T) {
	e, c := setup(t)
	e.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "UpdateItem", Times: 1})
	err := add(t.Context(), c, "a", oneAttempt)
	require.ErrorIs(t, err, syscall.ECONNRESET)
	assert.Equal(t, "absent", count(t, c, "a", true))
	assert.Equal(t, []tabletest.FaultKind{tabletest.DropRequest}, e.Requests()[0].Faults)
}

func TestDropReply_AppliesAndIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, c := setup(t)
		e.Inject(tabletest.Fault{Kind: tabletest.DropReply, Call: 1})
		require.NoError(t, add(t.Context(), c, "a"))
		assert.Equal(t, "2", count(t, c, "a", true), "the first attempt was applied, too")
		assert.Len(t, e.Requests(), 3)
	})
}

func TestCutReply_AppliesAndIsNotRetried(t *testing.T) {
	e, c := setup(t)
	e.Inject(tabletest.Fault{Kind: tabletest.CutReply, Call: 1})
	require.ErrorIs(t, add(t.Context(), c, "a"), io.ErrUnexpectedEOF)
	assert.Equal(t, "1", count(t, c, "a", true))
	assert.Len(t, e.Requests(), 2)
}

func TestDelay_TakesVirtualTimeAndEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, c := setup(t)
		e.Inject(tabletest.Fault{Kind: tabletest.Delay, Operation: "UpdateItem", For: time.Hour})
		start := time.Now()
		require.NoError(t, add(t.Context(), c, "a"))
		assert.Equal(t, time.Hour, time.Since(start))

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := add(ctx, c, "a", oneAttempt)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		log := e.Requests()
		require.Len(t, log, 2, "it was sent all the same")
		assert.Equal(t, 2, log[1].Index)
		assert.Equal(t, []tabletest.Key{{Table: "app", Attrs: key("a", "n")}}, log[1].Keys)
		assert.Equal(t, []tabletest.FaultKind{tabletest.Delay}, log[1].Faults)
		assert.Equal(t, start.Add(time.Hour+time.Minute), log[1].Time)
		assert.Equal(t, "1", count(t, c, "a", true), "a request that is cancelled before it is applied does nothing")

		e.ClearFaults()
		e.Inject(tabletest.Fault{Kind: tabletest.Delay, Operation: "UpdateItem", For: time.Hour, After: true})
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, add(ctx, c, "a", oneAttempt), context.DeadlineExceeded)
		assert.Equal(t, "2", count(t, c, "a", true), "one that is cancelled while the answer is held was applied")
	})
}

func TestDuplicateLate_ArrivesAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, c := setup(t)
		e.Inject(tabletest.Fault{Kind: tabletest.DuplicateLate, Operation: "UpdateItem", For: time.Minute, Times: 1})
		require.NoError(t, add(t.Context(), c, "a"))
		assert.Equal(t, "1", count(t, c, "a", true))
		time.Sleep(time.Minute - 1)
		assert.Equal(t, "1", count(t, c, "a", true))
		time.Sleep(time.Nanosecond)
		assert.Equal(t, "2", count(t, c, "a", true))
		time.Sleep(time.Hour)
		assert.Equal(t, "2", count(t, c, "a", true), "it comes once")
	})
}

func TestDuplicateLate_ArrivesAfterCalls(t *testing.T) {
	e, c := setup(t)
	e.Inject(tabletest.Fault{Kind: tabletest.DuplicateLate, Operation: "UpdateItem", AfterCalls: 3, Times: 1})
	require.NoError(t, add(t.Context(), c, "a"))
	assert.Equal(t, "1", count(t, c, "a", true))
	assert.Equal(t, "1", count(t, c, "a", true))
	assert.Equal(t, "2", count(t, c, "a", true), "before the third call")
	var late []tabletest.Request
	for _, r := range e.Requests() {
		if r.Late {
			late = append(late, r)
		}
	}
	require.Len(t, late, 1)
	assert.Equal(t, 1, late[0].Index)
}

func TestDropRequest_CanArriveLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, c := setup(t)
		e.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "UpdateItem", For: time.Second, Times: 1})
		require.Error(t, add(t.Context(), c, "a", oneAttempt))
		assert.Equal(t, "absent", count(t, c, "a", true))
		time.Sleep(time.Second)
		assert.Equal(t, "1", count(t, c, "a", true))
	})
}

func TestFault_ErrorsAreThoseOfDynamoDB(t *testing.T) {
	for _, tt := range []struct {
		kind    tabletest.FaultKind
		check   func(error) bool
		applied string
	}{
		{tabletest.Throttle, is[*types.ProvisionedThroughputExceededException], "absent"},
		{tabletest.InternalError, is[*types.InternalServerError], "absent"},
		{tabletest.InternalErrorAfter, is[*types.InternalServerError], "1"},
		{tabletest.TransactionConflict, is[*types.TransactionConflictException], "absent"},
	} {
		t.Run(tt.kind.String(), func(t *testing.T) {
			e, c := setup(t)
			e.Inject(tabletest.Fault{Kind: tt.kind, Operation: "UpdateItem"})
			err := add(t.Context(), c, "a", oneAttempt)
			assert.True(t, tt.check(err), "%v", err)
			e.ClearFaults()
			assert.Equal(t, tt.applied, count(t, c, "a", true))
		})
	}
}

func is[E error](err error) bool {
	var want E
	return errors.As(err, &want)
}

// Both are refusals of the one request that they hit, which is not applied.
func TestFault_RefusalsThatAreNoAnswer(t *testing.T) {
	for kind, code := range map[tabletest.FaultKind]string{
		tabletest.ExpiredCredentials:    "ExpiredTokenException",
		tabletest.TransactionInProgress: "TransactionInProgressException",
	} {
		t.Run(kind.String(), func(t *testing.T) {
			e, c := setup(t)
			e.Inject(tabletest.Fault{Kind: kind, Times: 1})
			put := func() error {
				_, err := c.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
					{Update: &types.Update{
						TableName: aws.String("app"), Key: key("a", "n"), UpdateExpression: aws.String("ADD n :one"),
						ExpressionAttributeValues: item{":one": n(1)},
					}},
				}}, oneAttempt)
				return err
			}
			err := put()
			var api smithy.APIError
			require.ErrorAs(t, err, &api)
			assert.Equal(t, code, api.ErrorCode())
			assert.Equal(t, kind == tabletest.TransactionInProgress, is[*types.TransactionInProgressException](err))
			var response *smithyhttp.ResponseError
			require.ErrorAs(t, err, &response)
			assert.Equal(t, 400, response.HTTPStatusCode())
			assert.False(t, table.RequestMayBeApplied(err))
			assert.Equal(t, kind == tabletest.TransactionInProgress, table.Retryable(err), "credentials that have expired stay so")
			assert.Equal(t, "absent", count(t, c, "a", true))
			require.NoError(t, put())
			assert.Equal(t, "1", count(t, c, "a", true))
		})
	}
}

func TestTransactionConflict_NamesTheItemsOfATransaction(t *testing.T) {
	e, c := setup(t)
	e.Inject(tabletest.Fault{Kind: tabletest.TransactionConflict, Key: item{"pk": s("b")}})
	_, err := c.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Put: &types.Put{TableName: aws.String("app"), Item: key("a", "n")}},
		{Put: &types.Put{TableName: aws.String("app"), Item: key("b", "n")}},
	}}, oneAttempt)
	var canceled *types.TransactionCanceledException
	require.ErrorAs(t, err, &canceled)
	require.Len(t, canceled.CancellationReasons, 2)
	assert.Equal(t, "None", *canceled.CancellationReasons[0].Code)
	assert.Equal(t, "TransactionConflict", *canceled.CancellationReasons[1].Code)

	_, err = c.TransactGetItems(t.Context(), &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{
		{Get: &types.Get{TableName: aws.String("app"), Key: key("a", "n")}},
		{Get: &types.Get{TableName: aws.String("app"), Key: key("b", "n")}},
	}}, oneAttempt)
	canceled = nil
	require.ErrorAs(t, err, &canceled)
	require.Len(t, canceled.CancellationReasons, 2)
	assert.Equal(t, "None", *canceled.CancellationReasons[0].Code)
	assert.Equal(t, "TransactionConflict", *canceled.CancellationReasons[1].Code)
}

func TestFault_KeysOfEveryTypeAreCompared(t *testing.T) {
	e := tabletest.New(t)
	c := e.Client()
	for _, kind := range []types.ScalarAttributeType{"N", "B"} {
		_, err := c.CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName: aws.String("of-" + string(kind)), BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: kind}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
		})
		require.NoError(t, err)
	}
	put := func(table string, pk types.AttributeValue) error {
		_, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item{"pk": pk}}, oneAttempt)
		return err
	}
	one, bin := &types.AttributeValueMemberN{Value: "1.0"}, &types.AttributeValueMemberB{Value: []byte{1}}
	e.Inject(tabletest.Fault{Kind: tabletest.Throttle, Key: item{"pk": n(1)}}, tabletest.Fault{Kind: tabletest.Throttle, Table: "of-B", Key: item{"pk": bin}},
		tabletest.Fault{Kind: tabletest.InternalError, Table: "of-N", Key: item{"pk": bin}}, tabletest.Fault{Kind: tabletest.InternalError, Key: item{"pk": &types.AttributeValueMemberN{Value: "none"}}})
	require.True(t, is[*types.ProvisionedThroughputExceededException](put("of-N", one)))
	require.True(t, is[*types.ProvisionedThroughputExceededException](put("of-B", bin)))
	require.NoError(t, put("of-N", n(2)))
	require.NoError(t, put("of-B", &types.AttributeValueMemberB{Value: []byte{2}}))
	log := e.Requests()
	assert.Equal(t, n(1), log[2].Keys[0].Attrs["pk"])
	assert.Equal(t, bin, log[3].Keys[0].Attrs["pk"])

	e.ClearFaults()
	e.Inject(tabletest.Fault{Kind: tabletest.TransactionConflict, Table: "of-N"})
	_, err := c.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Put: &types.Put{TableName: aws.String("of-B"), Item: item{"pk": bin}}}, {Put: &types.Put{TableName: aws.String("of-N"), Item: item{"pk": one}}},
	}}, oneAttempt)
	var canceled *types.TransactionCanceledException
	require.ErrorAs(t, err, &canceled)
	assert.Equal(t, "None", *canceled.CancellationReasons[0].Code, "an item of another table")
	assert.Equal(t, "TransactionConflict", *canceled.CancellationReasons[1].Code)
}

// The requests after which a late one arrives are those of the client, whatever the log counts.
func TestDropRequest_ArrivesAfterItsCallsWhenTheLogIsEmptied(t *testing.T) {
	e, c := setup(t)
	e.Inject(tabletest.Fault{Kind: tabletest.DropRequest, AfterCalls: 3, Times: 1})
	require.Error(t, add(t.Context(), c, "a", oneAttempt))
	assert.Equal(t, "absent", count(t, c, "a", true))
	e.ResetRequests()
	assert.Equal(t, "absent", count(t, c, "a", true))
	assert.Equal(t, "1", count(t, c, "a", true))
}

func TestDelay_AHeldTransactionConflictsWithOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, c := setup(t)
		e.Inject(tabletest.Fault{Kind: tabletest.Delay, Operation: "TransactWriteItems", For: time.Minute, Hold: true})
		done := make(chan error, 1)
		go func() {
			_, err := c.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
				{Put: &types.Put{TableName: aws.String("app"), Item: key("a", "n")}},
			}})
			done <- err
		}()
		synctest.Wait()
		err := add(t.Context(), c, "a", oneAttempt)
		assert.True(t, is[*types.TransactionConflictException](err), "%v", err)
		require.NoError(t, add(t.Context(), c, "b", oneAttempt), "other items are free")
		require.NoError(t, <-done)
		require.NoError(t, add(t.Context(), c, "a", oneAttempt))
	})
}

func TestStaleRead_MissesTheLatestWrites(t *testing.T) {
	e, c := setup(t)
	for range 3 {
		require.NoError(t, add(t.Context(), c, "a"))
	}
	e.Inject(tabletest.Fault{Kind: tabletest.StaleRead, Writes: 2})
	assert.Equal(t, "1", count(t, c, "a", false))
	assert.Equal(t, "3", count(t, c, "a", true), "consistent reads are not touched")
	out, err := c.Query(t.Context(), &dynamodb.QueryInput{
		TableName: aws.String("app"), KeyConditionExpression: aws.String("pk = :p"), ExpressionAttributeValues: item{":p": s("a")},
	})
	require.NoError(t, err)
	require.Len(t, out.Items, 1)
	assert.Equal(t, n(1), out.Items[0]["n"])

	_, err = c.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("app"), Key: key("a", "n")})
	require.NoError(t, err)
	require.NoError(t, add(t.Context(), c, "b"))
	scan, err := c.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("app")})
	require.NoError(t, err)
	require.Len(t, scan.Items, 1)
	assert.Equal(t, s("a"), scan.Items[0]["pk"], "what was deleted is there, and what was made is not")
}

func TestStaleRead_MissesNoMoreThanTheLimit(t *testing.T) {
	e, c := setup(t)
	for range 2050 {
		require.NoError(t, add(t.Context(), c, "a"))
	}
	e.Inject(tabletest.Fault{Kind: tabletest.StaleRead, Writes: 5000})
	assert.Equal(t, "1026", count(t, c, "a", false))
}

func TestStaleRead_IsNotUsedUpByConsistentReads(t *testing.T) {
	e, c := setup(t)
	require.NoError(t, add(t.Context(), c, "a"))
	batch := func(consistent bool) {
		_, err := c.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
			"app": {Keys: []item{key("a", "n")}, ConsistentRead: &consistent},
		}})
		require.NoError(t, err)
	}
	e.Inject(tabletest.Fault{Kind: tabletest.StaleRead, Times: 2})
	assert.Equal(t, "1", count(t, c, "a", true))
	batch(true)
	batch(false)
	assert.Equal(t, "absent", count(t, c, "a", false))
	assert.Equal(t, "1", count(t, c, "a", false), "it is over")
	for i, r := range e.Requests() {
		assert.Equal(t, i == 3 || i == 4, len(r.Faults) > 0, "request %d", r.Index)
	}
}

func TestUnprocessed_HandsBackTheRest(t *testing.T) {
	e, c := setup(t)
	e.Inject(tabletest.Fault{Kind: tabletest.Unprocessed, Take: 2, Times: 1})
	var writes []types.WriteRequest
	for _, pk := range []string{"a", "b", "c"} {
		writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: key(pk, "n")}})
	}
	out, err := c.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"app": writes}})
	require.NoError(t, err)
	require.Equal(t, map[string][]types.WriteRequest{"app": writes[2:]}, out.UnprocessedItems)
	out, err = c.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: out.UnprocessedItems})
	require.NoError(t, err)
	require.Empty(t, out.UnprocessedItems)

	e.Inject(tabletest.Fault{Kind: tabletest.Unprocessed, Take: 2, Times: 1})
	keys := types.KeysAndAttributes{Keys: []item{key("a", "n"), key("missing", "n"), key("c", "n")}, ConsistentRead: aws.Bool(true), ProjectionExpression: aws.String("pk")}
	got, err := c.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{"app": keys}})
	require.NoError(t, err)
	assert.Equal(t, []item{{"pk": s("a")}}, got.Responses["app"])
	keys.Keys = keys.Keys[2:]
	require.Equal(t, map[string]types.KeysAndAttributes{"app": keys}, got.UnprocessedKeys)
	got, err = c.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: got.UnprocessedKeys})
	require.NoError(t, err)
	assert.Equal(t, []item{{"pk": s("c")}}, got.Responses["app"])
}

func TestSkewDate_ChangesTheDateOfAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, c := setup(t)
		e.Inject(tabletest.Fault{Kind: tabletest.SkewDate, For: -time.Hour})
		out, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("app"), Key: key("a", "n")})
		require.NoError(t, err)
		at, ok := serverTime(out.ResultMetadata)
		require.True(t, ok)
		assert.True(t, at.Equal(time.Now().Add(-time.Hour)), "%v", at)
	})
}

func TestFault_ASeededScheduleRepeats(t *testing.T) {
	run := func(seed uint64) (hit []int) {
		e, c := setup(t)
		e.Inject(tabletest.Fault{Kind: tabletest.InternalError, Operation: "UpdateItem", Probability: 0.3, Seed: seed})
		for i := range 100 {
			if add(t.Context(), c, "a", oneAttempt) != nil {
				hit = append(hit, i)
			}
		}
		return hit
	}
	first := run(7)
	assert.Equal(t, first, run(7))
	assert.NotEqual(t, first, run(8))
	assert.InDelta(t, 30, len(first), 20)
}

func TestFault_EveryAndWhen(t *testing.T) {
	e, c := setup(t)
	e.Inject(tabletest.Fault{
		Kind:  tabletest.InternalError,
		Every: 2,
		When: func(r tabletest.Request) bool {
			return len(r.Keys) == 1 && r.Keys[0].Attrs["pk"].(*types.AttributeValueMemberS).Value == "a"
		},
	})
	var failed []bool
	for range 4 {
		failed = append(failed, add(t.Context(), c, "a", oneAttempt) != nil)
		require.NoError(t, add(t.Context(), c, "b", oneAttempt))
	}
	assert.Equal(t, []bool{false, true, false, true}, failed)
}

func serverTime(m middleware.Metadata) (time.Time, bool) { return awsmiddleware.GetServerTime(m) }

// A long test injects many faults, each for one request. Those that can hit no more are not kept, and no later request looks at them.
func TestFault_ThatIsOverIsForgotten(t *testing.T) {
	e, c := setup(t)
	inject := func() weak.Pointer[tabletest.Fault] {
		f := &tabletest.Fault{Kind: tabletest.SkewDate, Times: 1}
		f.When = func(r tabletest.Request) bool { return f.Times == 1 && r.Operation == "UpdateItem" }
		e.Inject(*f)
		return weak.Make(f)
	}
	fault := inject()
	runtime.GC()
	require.NotNil(t, fault.Value(), "it has hit nothing yet")
	require.NoError(t, add(t.Context(), c, "a"))
	runtime.GC()
	assert.Nil(t, fault.Value())
	assert.Equal(t, []tabletest.FaultKind{tabletest.SkewDate}, e.Requests()[0].Faults)
}

// An assertion in a condition can end its goroutine. The engine is not locked then, so that the test's cleanups can still use it.
func TestFault_AConditionCanEndItsGoroutine(t *testing.T) {
	e, c := setup(t)
	e.Inject(tabletest.Fault{Kind: tabletest.InternalError, Times: 1, When: func(tabletest.Request) bool {
		runtime.Goexit()
		return true
	}})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = add(t.Context(), c, "a", oneAttempt)
	}()
	<-ended
	free := make(chan struct{})
	go func() {
		e.ClearFaults()
		close(free)
	}()
	select {
	case <-free:
	case <-time.After(10 * time.Second):
		require.FailNow(t, "the engine is locked")
	}
	require.NoError(t, add(t.Context(), c, "a", oneAttempt))
}

// Each of several faults of one kind has its effect, as the log says.
func TestFault_SeveralOfOneKind(t *testing.T) {
	t.Run("Delay", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e, c := setup(t)
			e.Inject(
				tabletest.Fault{Kind: tabletest.Delay, Operation: "UpdateItem", For: time.Minute},
				tabletest.Fault{Kind: tabletest.Delay, Operation: "UpdateItem", For: time.Hour, After: true},
				tabletest.Fault{Kind: tabletest.Delay, Operation: "UpdateItem", For: time.Second},
			)
			start := time.Now()
			require.NoError(t, add(t.Context(), c, "a"))
			assert.Equal(t, time.Hour+time.Minute+time.Second, time.Since(start))
			assert.Equal(t, time.Minute+time.Second, e.Requests()[0].Time.Sub(start))
		})
	})
	t.Run("DuplicateLate", func(t *testing.T) {
		e, c := setup(t)
		e.Inject(
			tabletest.Fault{Kind: tabletest.DuplicateLate, Call: 1},
			tabletest.Fault{Kind: tabletest.DuplicateLate, Call: 1, AfterCalls: 2},
		)
		require.NoError(t, add(t.Context(), c, "a"))
		assert.Equal(t, "2", count(t, c, "a", true))
		assert.Equal(t, "3", count(t, c, "a", true))
	})
	t.Run("TransactionConflict", func(t *testing.T) {
		e, c := setup(t)
		e.Inject(
			tabletest.Fault{Kind: tabletest.TransactionConflict, Key: item{"pk": s("a")}},
			tabletest.Fault{Kind: tabletest.TransactionConflict, Key: item{"pk": s("c")}},
		)
		var puts []types.TransactWriteItem
		for _, pk := range []string{"a", "b", "c"} {
			puts = append(puts, types.TransactWriteItem{Put: &types.Put{TableName: aws.String("app"), Item: key(pk, "n")}})
		}
		_, err := c.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: puts}, oneAttempt)
		var canceled *types.TransactionCanceledException
		require.ErrorAs(t, err, &canceled)
		var codes []string
		for _, r := range canceled.CancellationReasons {
			codes = append(codes, *r.Code)
		}
		assert.Equal(t, []string{"TransactionConflict", "None", "TransactionConflict"}, codes)
	})
	t.Run("StaleRead", func(t *testing.T) {
		e, c := setup(t)
		for range 3 {
			require.NoError(t, add(t.Context(), c, "a"))
		}
		e.Inject(tabletest.Fault{Kind: tabletest.StaleRead}, tabletest.Fault{Kind: tabletest.StaleRead, Writes: 2})
		assert.Equal(t, "1", count(t, c, "a", false))
	})
	t.Run("Unprocessed", func(t *testing.T) {
		e, c := setup(t)
		e.Inject(tabletest.Fault{Kind: tabletest.Unprocessed, Take: 2}, tabletest.Fault{Kind: tabletest.Unprocessed})
		var writes []types.WriteRequest
		for _, pk := range []string{"a", "b", "c"} {
			writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: key(pk, "n")}})
		}
		out, err := c.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"app": writes}})
		require.NoError(t, err)
		assert.Equal(t, writes[1:], out.UnprocessedItems["app"])
	})
	t.Run("SkewDate", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e, c := setup(t)
			e.Inject(tabletest.Fault{Kind: tabletest.SkewDate, For: time.Hour}, tabletest.Fault{Kind: tabletest.SkewDate, For: time.Minute})
			out, err := c.ListTables(t.Context(), &dynamodb.ListTablesInput{})
			require.NoError(t, err)
			at, ok := serverTime(out.ResultMetadata)
			require.True(t, ok)
			assert.True(t, at.Equal(time.Now().Add(time.Hour+time.Minute)), "%v", at)
		})
	})
}

// The attributes that a local index does not project are read from the table, and are as old as those of the index.
func TestStaleRead_OfALocalIndexReadsAnOldItem(t *testing.T) {
	e := tabletest.New(t)
	c := e.Client()
	schema := func(names ...string) (out []types.KeySchemaElement) {
		for i, name := range names {
			out = append(out, types.KeySchemaElement{AttributeName: &name, KeyType: []types.KeyType{types.KeyTypeHash, types.KeyTypeRange}[i]})
		}
		return out
	}
	var defs []types.AttributeDefinition
	for _, name := range []string{"pk", "sk", "lsk"} {
		defs = append(defs, types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS})
	}
	_, err := c.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("app"), BillingMode: types.BillingModePayPerRequest, KeySchema: schema("pk", "sk"), AttributeDefinitions: defs,
		LocalSecondaryIndexes: []types.LocalSecondaryIndex{{
			IndexName: aws.String("lsi"), KeySchema: schema("pk", "lsk"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}},
	})
	require.NoError(t, err)
	version := func(v int) item { return item{"pk": s("a"), "sk": s("b"), "lsk": s("c"), "n": n(v)} }
	for v := range 2 {
		_, err = c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("app"), Item: version(v)})
		require.NoError(t, err)
	}
	e.Inject(tabletest.Fault{Kind: tabletest.StaleRead})
	for consistent, want := range map[bool]item{false: version(0), true: version(1)} {
		out, err := c.Query(t.Context(), &dynamodb.QueryInput{
			TableName: aws.String("app"), IndexName: aws.String("lsi"), Select: types.SelectAllAttributes, ConsistentRead: &consistent,
			KeyConditionExpression: aws.String("pk = :p"), ExpressionAttributeValues: item{":p": s("a")},
		})
		require.NoError(t, err)
		assert.Equal(t, []item{want}, out.Items)
	}
}

// Operations on tags name their table by its ARN. Other operations name no table.
func TestFault_TheTableOfAnARN(t *testing.T) {
	e, c := setup(t)
	e.Inject(tabletest.Fault{Kind: tabletest.InternalError, Table: "app"})
	_, err := c.ListTagsOfResource(t.Context(), &dynamodb.ListTagsOfResourceInput{
		ResourceArn: aws.String("arn:aws:dynamodb:" + tabletest.Region + ":123456789012:table/app"),
	}, oneAttempt)
	assert.True(t, is[*types.InternalServerError](err), "%v", err)
	e.Inject(tabletest.Fault{Kind: tabletest.InternalError, When: func(r tabletest.Request) bool { return len(r.Tables) > 0 }})
	_, err = c.ListTables(t.Context(), &dynamodb.ListTablesInput{}, oneAttempt)
	require.NoError(t, err)
}
