package table

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// live is DynamoDB's description of a table.
type live struct {
	table    *types.TableDescription      // nil if the table does not exist
	ttl      *types.TimeToLiveDescription // nil with Schema.NoTTL
	recovery bool                         // false unless the schema asks for recovery
	tags     map[string]string            // nil unless the schema has tags
}

// describe adds the settings that are not in DynamoDB's description of a table.
func (t *Table) describe(ctx context.Context, d *types.TableDescription) (l live, err error) {
	l.table = d
	if l.table == nil || l.table.TableStatus == types.TableStatusDeleting {
		if t.schema.MustExist {
			return l, t.missing()
		}
		return l, nil
	}
	if !t.schema.NoTTL {
		if l.ttl, err = t.describeTTL(ctx); err != nil {
			return l, err
		}
	}
	if t.schema.PointInTimeRecovery {
		in := &dynamodb.DescribeContinuousBackupsInput{TableName: &t.schema.Name}
		err = call(ctx, t, "DescribeContinuousBackups", false, Client.DescribeContinuousBackups, in, func(out *dynamodb.DescribeContinuousBackupsOutput) (answer, error) {
			if d := out.ContinuousBackupsDescription; d != nil && d.PointInTimeRecoveryDescription != nil {
				l.recovery = d.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus == types.PointInTimeRecoveryStatusEnabled
			}
			return answer{metadata: out.ResultMetadata}, nil
		})
		if err != nil {
			return l, err
		}
	}
	if len(t.schema.Tags) > 0 {
		l.tags, err = t.describeTags(ctx, l.table.TableArn)
	}
	return l, err
}

// describeTable returns nil, nil if the table does not exist.
func (t *Table) describeTable(ctx context.Context) (table *types.TableDescription, err error) {
	in := &dynamodb.DescribeTableInput{TableName: &t.schema.Name}
	err = call(ctx, t, "DescribeTable", false, Client.DescribeTable, in, func(out *dynamodb.DescribeTableOutput) (answer, error) {
		table = out.Table
		return answer{metadata: out.ResultMetadata}, nil
	})
	switch {
	case errors.Is(err, ErrNoTable):
		return nil, nil
	case err == nil && table != nil:
		t.sawReplicas(table)
	}
	return table, err
}

// present returns l without global indexes that are being deleted. If the table itself is being deleted, nothing is left.
func (l live) present() live {
	if l.table == nil || l.table.TableStatus == types.TableStatusDeleting {
		return live{}
	}
	table := *l.table
	table.GlobalSecondaryIndexes = slices.DeleteFunc(slices.Clone(table.GlobalSecondaryIndexes), func(g types.GlobalSecondaryIndexDescription) bool {
		return g.IndexStatus == types.IndexStatusDeleting
	})
	l.table = &table
	return l
}

func (t *Table) describeTTL(ctx context.Context) (ttl *types.TimeToLiveDescription, err error) {
	in := &dynamodb.DescribeTimeToLiveInput{TableName: &t.schema.Name}
	err = call(ctx, t, "DescribeTimeToLive", false, Client.DescribeTimeToLive, in, func(out *dynamodb.DescribeTimeToLiveOutput) (answer, error) {
		ttl = out.TimeToLiveDescription
		return answer{metadata: out.ResultMetadata}, nil
	})
	return ttl, err
}

func (t *Table) describeTags(ctx context.Context, arn *string) (map[string]string, error) {
	tags := map[string]string{}
	in := &dynamodb.ListTagsOfResourceInput{ResourceArn: arn}
	for {
		err := call(ctx, t, "ListTagsOfResource", false, Client.ListTagsOfResource, in, func(out *dynamodb.ListTagsOfResourceOutput) (answer, error) {
			for _, tag := range out.Tags {
				tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
			}
			in.NextToken = out.NextToken
			return answer{metadata: out.ResultMetadata}, nil
		})
		if err != nil || in.NextToken == nil {
			return tags, err
		}
	}
}

func ttlState(d *types.TimeToLiveDescription) (on bool, name string) {
	if d == nil {
		return false, ""
	}
	on = d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling
	return on, aws.ToString(d.AttributeName)
}

// provisioned returns nil if the table and its indexes are on demand.
func provisioned(p *types.ProvisionedThroughputDescription) *Capacity {
	if p == nil || aws.ToInt64(p.ReadCapacityUnits) == 0 {
		return nil
	}
	return &Capacity{Read: aws.ToInt64(p.ReadCapacityUnits), Write: aws.ToInt64(p.WriteCapacityUnits)}
}

func liveCapacity(d *types.TableDescription) *Capacity {
	if d.BillingModeSummary != nil && d.BillingModeSummary.BillingMode == types.BillingModePayPerRequest {
		return nil
	}
	return provisioned(d.ProvisionedThroughput)
}

func attributeTypes(defs []types.AttributeDefinition) map[string]AttributeType {
	m := make(map[string]AttributeType, len(defs))
	for _, d := range defs {
		m[aws.ToString(d.AttributeName)] = AttributeType(d.AttributeType)
	}
	return m
}

func liveKeys(schema []types.KeySchemaElement) (pk, sk string) {
	for _, k := range schema {
		if k.KeyType == types.KeyTypeHash {
			pk = aws.ToString(k.AttributeName)
		} else {
			sk = aws.ToString(k.AttributeName)
		}
	}
	return pk, sk
}

// liveKeyText lists all key attributes. In DynamoDB, the partition key and the sort key of a global index can each consist of several
// attributes, which [Index] cannot describe.
func liveKeyText(schema []types.KeySchemaElement, kinds map[string]AttributeType) string {
	role := map[types.KeyType][]string{}
	for _, k := range schema {
		name := aws.ToString(k.AttributeName)
		role[k.KeyType] = append(role[k.KeyType], keyText(name, kinds[name], "", ""))
	}
	text := strings.Join(role[types.KeyTypeHash], " + ")
	if sk := role[types.KeyTypeRange]; len(sk) > 0 {
		text += ", " + strings.Join(sk, " + ")
	}
	return text
}

func liveIndex(name *string, local bool, schema []types.KeySchemaElement, p *types.Projection, kinds map[string]AttributeType) string {
	var include []string
	if p != nil && p.ProjectionType != types.ProjectionTypeAll {
		include = append([]string{}, p.NonKeyAttributes...)
	}
	return indexText(aws.ToString(name), local, liveKeyText(schema, kinds), include)
}
