package contract_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
)

func TestOperations_OutsideTheScopeAreUnknown(t *testing.T) {
	onTable(t, func(tb table) {
		engines.Only(tb.T, engines.InProcess, "other engines know these operations")
		_, statement := tb.ExecuteStatement(tb.ctx(), &dynamodb.ExecuteStatementInput{Statement: aws.String(`SELECT * FROM "` + *tb.name + `"`)})
		_, backup := tb.CreateBackup(tb.ctx(), &dynamodb.CreateBackupInput{TableName: tb.name, BackupName: aws.String("b")})
		_, global := tb.ListGlobalTables(tb.ctx(), &dynamodb.ListGlobalTablesInput{})
		for _, err := range []error{statement, backup, global} {
			var api smithy.APIError
			require.ErrorAs(tb, err, &api)
			assert.Equal(tb, "UnknownOperationException", api.ErrorCode())
		}
	})
}

// The service answers an operation that it does not have with a type and no
// message.
func TestOperations_AnswerToAnUnknownOneHasNoMessage(t *testing.T) {
	onTable(t, func(tb table) {
		engines.Only(tb.T, engines.InProcess, "other engines know some of these operations and word the answer differently")
		for _, target := range []string{
			"DynamoDB_20120810.NoSuchOperation",
			"DynamoDB_20120810.ExecuteStatement",
			"DynamoDB_20120810.",
			"DynamoDB_20111205.GetItem",
			"DynamoDBStreams_20120810.ListStreams",
			"DynamoDBStreams_20120810.DescribeStream",
			"DynamoDBStreams_20120810.GetShardIterator",
			"DynamoDBStreams_20120810.GetRecords",
			"",
		} {
			resp, body := tb.post(target, "{}")
			assert.Equal(tb, http.StatusBadRequest, resp.StatusCode, target)
			assert.JSONEq(tb, `{"__type":"com.amazon.coral.service#UnknownOperationException"}`, body, target)
			assert.Equal(tb, "1368724161", resp.Header.Get("X-Amz-Crc32"), target)
		}
	})
}

// post sends a request to the in-process engine without the SDK.
func (tb table) post(target, body string) (*http.Response, string) {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.ctx(), http.MethodPost, "http://dynamodb.invalid/", strings.NewReader(body))
	require.NoError(tb, err)
	req.Header.Set("X-Amz-Target", target)
	resp, err := tb.engine.InProcess().HTTPClient().Do(req)
	require.NoError(tb, err)
	answer, err := io.ReadAll(resp.Body)
	require.NoError(tb, err)
	require.NoError(tb, resp.Body.Close())
	return resp, string(answer)
}
