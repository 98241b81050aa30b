package tabletest_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/table/tabletest"
)

func TestRequests_AreLogged(t *testing.T) {
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

// The log has the keys of a request. It does not keep the rest of the request, which can have megabytes.
func TestRequests_TheLogOfLargeRequestsIsSmall(t *testing.T) {
	e, c := setup(t)
	large := key("a", "n")
	large["text"] = &types.AttributeValueMemberS{Value: strings.Repeat("x", 300_000)}
	refused := func() {
		_, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{
			TableName: aws.String("app"), Item: large, ConditionExpression: aws.String("attribute_exists(pk)"),
		})
		require.Error(t, err)
	}
	heap := func() int64 {
		for range 3 { // pools are emptied by the second
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	refused() // buffers have grown
	before := heap()
	const many = 100
	for range many {
		refused()
	}
	assert.Less(t, heap()-before, int64(many*10_000), "bytes")
	require.Len(t, e.Requests(), many+1)
}

// The log says what a request was about and whether it was refused, also for a request that a fault hits.
func TestRequests_OfFaults(t *testing.T) {
	for kind, code := range map[tabletest.FaultKind]string{
		tabletest.DropRequest:        "",
		tabletest.DropReply:          "",
		tabletest.Throttle:           "ProvisionedThroughputExceededException",
		tabletest.InternalError:      "InternalServerError",
		tabletest.InternalErrorAfter: "",
		tabletest.ExpiredCredentials: "ExpiredTokenException",
	} {
		t.Run(kind.String(), func(t *testing.T) {
			e, c := setup(t)
			e.Inject(tabletest.Fault{Kind: kind})
			require.Error(t, add(t.Context(), c, "a", oneAttempt))
			log := e.Requests()
			require.Len(t, log, 1)
			assert.Equal(t, []string{"app"}, log[0].Tables)
			assert.Equal(t, []tabletest.Key{{Table: "app", Attrs: key("a", "n")}}, log[0].Keys)
			assert.Equal(t, code, log[0].Code)
		})
	}
}

// What Requests returns belongs to the caller.
func TestRequests_ReturnsACopy(t *testing.T) {
	e, c := setup(t)
	e.Inject(tabletest.Fault{Kind: tabletest.SkewDate})
	require.NoError(t, add(t.Context(), c, "a"))
	r := e.Requests()[0]
	r.Tables[0], r.Faults[0] = "other", tabletest.Delay
	again := e.Requests()[0]
	assert.Equal(t, []string{"app"}, again.Tables)
	assert.Equal(t, []tabletest.FaultKind{tabletest.SkewDate}, again.Faults)
}

// A batch can name a table by its name and by its ARN. Its keys cost the same.
func TestRequests_ABatchThatNamesATableTwice(t *testing.T) {
	e, c := setup(t)
	_, err := c.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
		"app": {Keys: []item{key("a", "n"), key("b", "n"), key("c", "n")}},
		"arn:aws:dynamodb:" + tabletest.Region + ":123456789012:table/app": {Keys: []item{key("d", "n")}},
	}})
	require.NoError(t, err)
	assert.InDelta(t, 4*0.5, e.Requests()[0].Consumed, 0)
}
