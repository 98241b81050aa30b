package tabletest_test

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/table/tabletest"
)

func s(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func n(v int) types.AttributeValue    { return &types.AttributeValueMemberN{Value: strconv.Itoa(v)} }

type item = map[string]types.AttributeValue

func key(pk, sk string) item { return item{"pk": s(pk), "sk": s(sk)} }

// createTable makes the table that most tests use: a sort key, one global index and time to live.
func createTable(tb testing.TB, c *dynamodb.Client) {
	tb.Helper()
	_, err := c.CreateTable(tb.Context(), &dynamodb.CreateTableInput{
		TableName:   aws.String("app"),
		BillingMode: types.BillingModePayPerRequest,
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange},
		},
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("sk"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("gpk"), AttributeType: types.ScalarAttributeTypeS},
		},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName:  aws.String("gsi1"),
			KeySchema:  []types.KeySchemaElement{{AttributeName: aws.String("gpk"), KeyType: types.KeyTypeHash}},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}},
	})
	require.NoError(tb, err)
}

func TestEngine_ReadsBackWhatWasPut(t *testing.T) {
	c := tabletest.New(t).Client()
	createTable(t, c)
	want := item{"pk": s("a"), "sk": s("b"), "n": n(7)}
	_, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("app"), Item: want})
	require.NoError(t, err)
	out, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("app"), Key: key("a", "b")})
	require.NoError(t, err)
	require.Equal(t, want, out.Item)
}

// updateGoal is what a conditional update through the SDK may take.
const updateGoal = 100 * time.Microsecond

// BenchmarkConditionalUpdate measures one conditional update through the SDK, and the same request without the SDK. It
// reports the share of updateGoal that one update takes.
func BenchmarkConditionalUpdate(b *testing.B) {
	in := &dynamodb.UpdateItemInput{
		TableName:                 aws.String("app"),
		Key:                       key("a", "b"),
		UpdateExpression:          aws.String("SET #n = if_not_exists(#n, :zero) + :one, #o = :o"),
		ConditionExpression:       aws.String("attribute_not_exists(pk) OR #n < :max"),
		ExpressionAttributeNames:  map[string]string{"#n": "n", "#o": "owner"},
		ExpressionAttributeValues: item{":zero": n(0), ":one": n(1), ":max": n(1 << 30), ":o": s("worker-1")},
		ReturnValues:              types.ReturnValueAllNew,
	}
	report := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(updateGoal), "of-goal")
	}
	b.Run("sdk", func(b *testing.B) {
		c := tabletest.New(b).Client()
		createTable(b, c)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.UpdateItem(b.Context(), in); err != nil {
				b.Fatal(err)
			}
		}
		report(b)
	})
	b.Run("engine", func(b *testing.B) {
		e := tabletest.New(b)
		createTable(b, e.Client())
		recorded := &recorder{next: e.HTTPClient()}
		c := e.Client(func(o *dynamodb.Options) { o.HTTPClient = recorded })
		_, err := c.UpdateItem(b.Context(), in)
		require.NoError(b, err)
		b.ReportAllocs()
		for b.Loop() {
			r := recorded.request(b)
			res, err := e.HTTPClient().Do(r)
			if err != nil || res.StatusCode != http.StatusOK {
				b.Fatal(err, res)
			}
			_ = res.Body.Close()
		}
		report(b)
	})
}

// recorder keeps the last request, so that it can be sent again without the SDK.
type recorder struct {
	next   aws.HTTPClient
	header http.Header
	url    string
	body   []byte
}

func (r *recorder) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	r.header, r.url, r.body = req.Header, req.URL.String(), body
	req.Body = io.NopCloser(bytes.NewReader(body))
	return r.next.Do(req)
}

func (r *recorder) request(tb testing.TB) *http.Request {
	req, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, r.url, bytes.NewReader(r.body))
	if err != nil {
		tb.Fatal(err)
	}
	req.Header = r.header
	return req
}
