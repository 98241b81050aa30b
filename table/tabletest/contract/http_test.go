package contract_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
)

// checksums compares the checksum in the header of every answer with its body.
type checksums struct {
	t       testing.TB
	inner   dynamodb.HTTPClient
	answers int
}

func (c *checksums) Do(r *http.Request) (*http.Response, error) {
	resp, err := c.inner.Do(r)
	if err != nil {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	require.NoError(c.t, err)
	require.NoError(c.t, resp.Body.Close())
	resp.Body = io.NopCloser(bytes.NewReader(body))
	c.answers++
	assert.Equal(c.t, fmt.Sprint(crc32.ChecksumIEEE(body)), resp.Header.Get("X-Amz-Crc32"), "%d: %s", resp.StatusCode, body)
	return resp, nil
}

// checked returns a client that compares checksums, and a function that
// checks that the client has logged nothing.
func checked(tb table, answers int) (client *dynamodb.Client, quiet func()) {
	var mu sync.Mutex
	var logged []string
	check := &checksums{t: tb}
	client = tb.engine.Client(func(o *dynamodb.Options) {
		require.False(tb, o.DisableValidateResponseChecksum)
		o.Logger = logging.LoggerFunc(func(_ logging.Classification, format string, v ...any) {
			mu.Lock()
			defer mu.Unlock()
			logged = append(logged, fmt.Sprintf(format, v...))
		})
		check.inner, o.HTTPClient = o.HTTPClient, check
	})
	return client, func() {
		tb.Helper()
		assert.Equal(tb, answers, check.answers)
		assert.Empty(tb, logged)
	}
}

func TestAnswers_CarryTheirChecksum(t *testing.T) {
	onTable(t, func(tb table) {
		client, quiet := checked(tb, 3)
		_, err := client.PutItem(tb.ctx(), &dynamodb.PutItemInput{TableName: tb.name, Item: keyed("a", document{"x": "é"})})
		require.NoError(tb, err)
		_, err = client.GetItem(tb.ctx(), &dynamodb.GetItemInput{TableName: tb.name, Key: key("a")})
		require.NoError(tb, err)
		_, err = client.ListTables(tb.ctx(), &dynamodb.ListTablesInput{Limit: aws.Int32(1)})
		require.NoError(tb, err)
		quiet()
	})
}

func TestErrors_CarryTheirChecksum(t *testing.T) {
	onTable(t, func(tb table) {
		engines.Only(tb.T, engines.InProcess, "DynamoDB Local sends no checksum with an error, the service does")
		client, quiet := checked(tb, 3)
		tb.put("a", nil)
		_, err := client.GetItem(tb.ctx(), &dynamodb.GetItemInput{TableName: tb.name, Key: item(document{"pk": "p"})})
		require.Error(tb, err)
		_, err = client.PutItem(tb.ctx(), &dynamodb.PutItemInput{TableName: tb.name, Item: key("a"), ConditionExpression: aws.String("attribute_not_exists(pk)")})
		_ = conditionFailed(tb, err)
		_, err = client.ListGlobalTables(tb.ctx(), &dynamodb.ListGlobalTablesInput{})
		require.ErrorContains(tb, err, "UnknownOperationException")
		quiet()
	})
}
