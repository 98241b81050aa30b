package contract_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
)

// Most changes of a table have to be made one at a time.
func TestUpdateTable_MakesMostChangesOneAtATime(t *testing.T) {
	type input = dynamodb.UpdateTableInput
	parts := map[string]func(in *input){
		"SSE":         func(in *input) { in.SSESpecification = &types.SSESpecification{Enabled: aws.Bool(true)} },
		"class":       func(in *input) { in.TableClass = types.TableClassStandardInfrequentAccess },
		"protection":  func(in *input) { in.DeletionProtectionEnabled = aws.Bool(false) },
		"limit":       func(in *input) { in.OnDemandThroughput = limit(5, 5) },
		"warmth":      func(in *input) { in.WarmThroughput = &types.WarmThroughput{ReadUnitsPerSecond: aws.Int64(15000)} },
		"on demand":   func(in *input) { in.BillingMode = types.BillingModePayPerRequest },
		"provisioned": func(in *input) { in.BillingMode, in.ProvisionedThroughput = types.BillingModeProvisioned, units(1, 1) },
		"throughput":  func(in *input) { in.ProvisionedThroughput = units(1, 1) },
		"stream": func(in *input) {
			in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeKeysOnly}
		},
		"change index": func(in *input) {
			in.GlobalSecondaryIndexUpdates = []types.GlobalSecondaryIndexUpdate{{Update: &types.UpdateGlobalSecondaryIndexAction{IndexName: ptr("gsi"), OnDemandThroughput: limit(5, 5)}}}
		},
		"delete index": func(in *input) {
			in.GlobalSecondaryIndexUpdates = []types.GlobalSecondaryIndexUpdate{{Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: ptr("keys")}}}
		},
		"create index": func(in *input) {
			in.AttributeDefinitions = createInput("any").AttributeDefinitions
			in.GlobalSecondaryIndexUpdates = []types.GlobalSecondaryIndexUpdate{{Create: &types.CreateGlobalSecondaryIndexAction{
				IndexName: ptr("new"), KeySchema: []types.KeySchemaElement{{AttributeName: ptr("lsk"), KeyType: types.KeyTypeHash}},
				Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
			}}}
		},
		"no limit":  func(in *input) { in.OnDemandThroughput = &types.OnDemandThroughput{} },
		"no warmth": func(in *input) { in.WarmThroughput = &types.WarmThroughput{} },
	}
	wrong := map[string][][]string{
		"Server-Side Encryption modification must be the only operation in the request": {
			{"SSE", "class"},
			{"SSE", "protection"},
			{"SSE", "limit"},
			{"SSE", "warmth"},
			{"SSE", "on demand"},
			{"SSE", "throughput"},
			{"SSE", "stream"},
			{"SSE", "create index"},
			{"SSE", "class", "protection", "warmth"},
		},
		"TableClass modification must be the only operation in the request": {
			{"class", "protection"}, {"class", "limit"}, {"class", "warmth"}, {"class", "provisioned"}, {"class", "stream"}, {"class", "delete index"},
		},
		"DeletionProtection modification must be the only operation in the request": {
			{"protection", "limit"},
			{"protection", "warmth"},
			{"protection", "on demand"},
			{"protection", "throughput"},
			{"protection", "stream"},
			{"protection", "create index"},
			{"protection", "change index"},
		},
		"OnDemandThroughput can only be combined with BillingMode in an UpdateTable request": {{"limit", "stream"}, {"limit", "warmth"}},
		"WarmThroughput must be the only operation in the request":                           {{"warmth", "on demand"}, {"warmth", "throughput"}, {"warmth", "stream"}},
		"Create global secondary index cannot be specified when updating WarmThroughput":     {{"warmth", "create index"}},
		"You cannot modify stream status while updating table IOPS":                          {{"stream", "throughput"}, {"stream", "provisioned"}},
		"You cannot create or delete index while updating table IOPS":                        {{"throughput", "create index"}, {"throughput", "delete index"}},
		"You cannot create or delete index while changing stream status":                     {{"stream", "create index"}, {"stream", "delete index"}},
	}
	right := [][]string{
		{"on demand", "limit"},
		{"on demand", "stream"},
		{"on demand", "create index"},
		{"on demand", "change index"},
		{"no warmth", "protection"},
		{"no limit", "on demand"},
	}
	request := func(names []string) *input {
		in := &input{}
		for _, name := range names {
			parts[name](in)
		}
		return in
	}
	onTable(t, func(tb table) {
		engines.Only(tb.T, engines.InProcess, "DynamoDB Local takes most changes together")
		for text, combinations := range wrong {
			for _, names := range combinations {
				tb.updateRefused(request(names), "One or more parameter values were invalid: "+text)
			}
		}
		for _, names := range right {
			tb := tb
			tb.name = aws.String(tb.engine.TableName(tb.T))
			tb.createAs(func(*dynamodb.CreateTableInput) {}).update(request(names))
		}
	})
}

// The service fails on these requests, each time, if there is the table.
func TestUpdateTable_FailsWithNothingInIt(t *testing.T) {
	onTable(t, func(tb table) {
		engines.Only(tb.T, engines.InProcess, noLimits)
		for _, in := range []*dynamodb.UpdateTableInput{
			{OnDemandThroughput: &types.OnDemandThroughput{}},
			{WarmThroughput: &types.WarmThroughput{}},
			{GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Update: &types.UpdateGlobalSecondaryIndexAction{
				IndexName: ptr("ghost"), WarmThroughput: &types.WarmThroughput{ReadUnitsPerSecond: aws.Int64(13000)},
			}}}},
		} {
			in.TableName = ptr("missing")
			_, err := tb.UpdateTable(tb.ctx(), in)
			require.ErrorContains(tb, err, "ResourceNotFoundException: Requested resource not found: Table: missing not found")
			in.TableName = tb.name
			_, err = tb.UpdateTable(tb.ctx(), in, func(o *dynamodb.Options) { o.RetryMaxAttempts = 1 })
			require.ErrorContains(tb, err, "InternalFailure")
		}
	})
}
