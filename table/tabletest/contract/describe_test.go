package contract_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
)

const fewerDescriptions = "DynamoDB Local leaves out some members of descriptions"

// created is a table that a test makes as it likes.
type created struct {
	table
	description *types.TableDescription // as CreateTable answered
}

// creating makes a table on every engine, after change has had the request.
func creating(t *testing.T, change func(in *dynamodb.CreateTableInput), f func(c created)) {
	t.Helper()
	engines.Run(t, func(t *testing.T, e *engines.Engine) { f(newTable(t, e).createAs(change)) })
}

// inProcess is creating on the in-process engine only, for the reason why. It is midnight UTC there, in virtual time, and so the day does
// not end during a test.
func inProcess(t *testing.T, why string, change func(in *dynamodb.CreateTableInput), f func(c created)) {
	t.Helper()
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		engines.Only(t, engines.InProcess, why)
		synctest.Test(t, func(t *testing.T) { f(newTable(t, e).createAs(change)) })
	})
}

func (tb table) createAs(change func(in *dynamodb.CreateTableInput)) created {
	tb.Helper()
	in := createInput(*tb.name)
	change(in)
	return created{table: tb, description: tb.create(in)}
}

func (tb table) describe() *types.TableDescription {
	tb.Helper()
	out, err := tb.DescribeTable(tb.ctx(), &dynamodb.DescribeTableInput{TableName: tb.name})
	require.NoError(tb, err)
	return out.Table
}

// update changes the table and waits until it and its indexes are active.
func (tb table) update(in *dynamodb.UpdateTableInput) *types.TableDescription {
	tb.Helper()
	in.TableName = tb.name
	out, err := tb.UpdateTable(tb.ctx(), in)
	require.NoError(tb, err)
	require.Eventually(tb, func() bool {
		d := tb.describe()
		return d.TableStatus == types.TableStatusActive && !slices.ContainsFunc(d.GlobalSecondaryIndexes, func(g types.GlobalSecondaryIndexDescription) bool {
			return g.IndexStatus != types.IndexStatusActive
		})
	}, time.Minute, 20*time.Millisecond)
	return out.TableDescription
}

func (tb table) updateRefused(in *dynamodb.UpdateTableInput, text string) {
	tb.Helper()
	before := tb.describe()
	in.TableName = tb.name
	_, err := tb.UpdateTable(tb.ctx(), in)
	tb.refused(err, text)
	assert.Equal(tb, before, tb.describe(), "a request that is refused changes nothing")
}

func units(read, write int64) *types.ProvisionedThroughput {
	return &types.ProvisionedThroughput{ReadCapacityUnits: &read, WriteCapacityUnits: &write}
}

// provisionedIndexes gives a CreateTable and its global indexes a throughput.
func provisionedIndexes(in *dynamodb.CreateTableInput) {
	in.BillingMode, in.ProvisionedThroughput = types.BillingModeProvisioned, units(5, 6)
	for i := range in.GlobalSecondaryIndexes {
		in.GlobalSecondaryIndexes[i].ProvisionedThroughput = units(2, 3)
	}
}

func described(read, write int64) *types.ProvisionedThroughputDescription {
	return &types.ProvisionedThroughputDescription{NumberOfDecreasesToday: aws.Int64(0), ReadCapacityUnits: &read, WriteCapacityUnits: &write}
}

func warm(read, write int64) *types.TableWarmThroughputDescription {
	return &types.TableWarmThroughputDescription{ReadUnitsPerSecond: &read, WriteUnitsPerSecond: &write, Status: types.TableStatusActive}
}

func indexWarm(read, write int64) *types.GlobalSecondaryIndexWarmThroughputDescription {
	return &types.GlobalSecondaryIndexWarmThroughputDescription{ReadUnitsPerSecond: &read, WriteUnitsPerSecond: &write, Status: types.IndexStatusActive}
}

// wholeDescription is what the service answers about a new on-demand table of createInput, apart from what it makes up.
func wholeDescription(d *types.TableDescription) *types.TableDescription {
	in := createInput(*d.TableName)
	attributes := in.AttributeDefinitions
	slices.SortFunc(attributes, func(a, b types.AttributeDefinition) int {
		if *a.AttributeName < *b.AttributeName {
			return -1
		}
		return 1
	})
	want := &types.TableDescription{
		AttributeDefinitions: attributes, TableName: in.TableName, TableStatus: types.TableStatusActive, KeySchema: in.KeySchema,
		CreationDateTime: d.CreationDateTime, TableArn: d.TableArn, TableId: d.TableId,
		ItemCount: aws.Int64(0), TableSizeBytes: aws.Int64(0), DeletionProtectionEnabled: aws.Bool(false),
		BillingModeSummary: &types.BillingModeSummary{
			BillingMode: types.BillingModePayPerRequest, LastUpdateToPayPerRequestDateTime: d.CreationDateTime,
		},
		ProvisionedThroughput: described(0, 0), WarmThroughput: warm(12000, 4000),
	}
	for _, g := range in.GlobalSecondaryIndexes {
		want.GlobalSecondaryIndexes = append(want.GlobalSecondaryIndexes, types.GlobalSecondaryIndexDescription{
			IndexName: g.IndexName, KeySchema: g.KeySchema, Projection: g.Projection, IndexStatus: types.IndexStatusActive,
			IndexArn: aws.String(*d.TableArn + "/index/" + *g.IndexName), IndexSizeBytes: aws.Int64(0), ItemCount: aws.Int64(0),
			ProvisionedThroughput: described(0, 0), WarmThroughput: indexWarm(12000, 4000),
		})
	}
	for _, l := range in.LocalSecondaryIndexes {
		want.LocalSecondaryIndexes = append(want.LocalSecondaryIndexes, types.LocalSecondaryIndexDescription{
			IndexName: l.IndexName, KeySchema: l.KeySchema, Projection: l.Projection,
			IndexArn: aws.String(*d.TableArn + "/index/" + *l.IndexName), IndexSizeBytes: aws.Int64(0), ItemCount: aws.Int64(0),
		})
	}
	return want
}

func TestDescription_ShowsAnOnDemandTable(t *testing.T) {
	inProcess(t, fewerDescriptions, func(*dynamodb.CreateTableInput) {}, func(c created) {
		d := c.describe()
		want := wholeDescription(d)
		assert.Equal(c, want, d)
		assert.WithinDuration(c, time.Now(), *d.CreationDateTime, time.Minute)

		want.TableStatus, want.WarmThroughput = types.TableStatusCreating, nil
		want.BillingModeSummary.LastUpdateToPayPerRequestDateTime = nil
		for i := range want.GlobalSecondaryIndexes {
			g := &want.GlobalSecondaryIndexes[i]
			g.IndexStatus, g.WarmThroughput = types.IndexStatusCreating, nil
		}
		assert.Equal(c, want, c.description, "answer to CreateTable")
	})
}

func TestDescription_ShowsAProvisionedTable(t *testing.T) {
	inProcess(t, fewerDescriptions, provisionedIndexes, func(c created) {
		d := c.describe()
		want := wholeDescription(d)
		want.BillingModeSummary, want.ProvisionedThroughput, want.WarmThroughput = nil, described(5, 6), warm(5, 6)
		for i := range want.GlobalSecondaryIndexes {
			g := &want.GlobalSecondaryIndexes[i]
			g.ProvisionedThroughput, g.WarmThroughput = described(2, 3), indexWarm(2, 3)
		}
		assert.Equal(c, want, d)
	})
}

func TestDescription_ShowsLittleOfADeletedTable(t *testing.T) {
	inProcess(t, "DynamoDB Local describes the whole table", func(*dynamodb.CreateTableInput) {}, func(c created) {
		whole := wholeDescription(c.describe())
		out, err := c.DeleteTable(c.ctx(), &dynamodb.DeleteTableInput{TableName: c.name})
		require.NoError(c, err)
		assert.Equal(c, &types.TableDescription{
			TableName: whole.TableName, TableId: whole.TableId, TableArn: whole.TableArn, TableStatus: types.TableStatusDeleting,
			ItemCount: whole.ItemCount, TableSizeBytes: whole.TableSizeBytes, ProvisionedThroughput: whole.ProvisionedThroughput,
			BillingModeSummary: whole.BillingModeSummary, DeletionProtectionEnabled: whole.DeletionProtectionEnabled,
		}, out.TableDescription)
	})
}

func TestDescription_SortsNames(t *testing.T) {
	change := func(in *dynamodb.CreateTableInput) {
		in.LocalSecondaryIndexes[0].Projection.NonKeyAttributes = []string{"zz", "aa", "mm"}
		slices.Reverse(in.GlobalSecondaryIndexes)
	}
	inProcess(t, "DynamoDB Local leaves names in the order of the request", change, func(c created) {
		for _, d := range []*types.TableDescription{c.description, c.describe()} {
			var attributes, indexes []string
			for _, a := range d.AttributeDefinitions {
				attributes = append(attributes, *a.AttributeName)
			}
			for _, g := range d.GlobalSecondaryIndexes {
				indexes = append(indexes, *g.IndexName)
			}
			assert.Equal(c, []string{"gpk", "gsk", "lsk", "pk", "sk"}, attributes)
			assert.Equal(c, []string{"aa", "mm", "zz"}, d.LocalSecondaryIndexes[0].Projection.NonKeyAttributes)
			assert.Equal(c, []string{"keys", "gsi"}, indexes, "indexes are in the order of the request")
		}
	})
}

func TestTableID_IsEachTablesOwn(t *testing.T) {
	inProcess(t, fewerDescriptions, func(*dynamodb.CreateTableInput) {}, func(c created) {
		d := c.describe()
		assert.Regexp(c, `^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, *d.TableId)
		c.update(&dynamodb.UpdateTableInput{BillingMode: types.BillingModeProvisioned, ProvisionedThroughput: units(1, 1), GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{
			{Update: &types.UpdateGlobalSecondaryIndexAction{IndexName: ptr("gsi"), ProvisionedThroughput: units(1, 1)}},
			{Update: &types.UpdateGlobalSecondaryIndexAction{IndexName: ptr("keys"), ProvisionedThroughput: units(1, 1)}},
		}})
		assert.Equal(c, *d.TableId, *c.describe().TableId)
		_, err := c.DeleteTable(c.ctx(), &dynamodb.DeleteTableInput{TableName: c.name})
		require.NoError(c, err)
		require.NoError(c, dynamodb.NewTableNotExistsWaiter(c).Wait(c.ctx(), &dynamodb.DescribeTableInput{TableName: c.name}, time.Minute))
		again := c.createAs(func(*dynamodb.CreateTableInput) {}).description
		assert.NotEqual(c, *d.TableId, *again.TableId)
		assert.Equal(c, *d.TableArn, *again.TableArn)
	})
}

func TestDescription_CountsItems(t *testing.T) {
	inProcess(t, "DynamoDB Local counts the bytes of an index differently, the service counts every few hours", func(*dynamodb.CreateTableInput) {}, func(c created) {
		c.put("a", document{"gpk": "g", "gsk": 1})
		c.put("b", document{"lsk": "l"})
		d := c.describe()
		assert.EqualValues(c, 2, *d.ItemCount)
		assert.EqualValues(c, (3+3+4+5)+(3+3+4), *d.TableSizeBytes)
		assert.EqualValues(c, 1, *d.GlobalSecondaryIndexes[0].ItemCount)
		assert.EqualValues(c, 1, *d.LocalSecondaryIndexes[0].ItemCount)
		assert.EqualValues(c, 3+3+4, *d.LocalSecondaryIndexes[0].IndexSizeBytes)
	})
}

func TestStreams_LeaveTheirLabel(t *testing.T) {
	creating(t, func(*dynamodb.CreateTableInput) {}, func(c created) {
		d := c.describe()
		assert.Nil(c, d.StreamSpecification)
		assert.Nil(c, d.LatestStreamArn)
		disable := func() *dynamodb.UpdateTableInput {
			return &dynamodb.UpdateTableInput{StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(false)}}
		}
		c.updateRefused(disable(), "Table has no stream to disable")
		on := &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewImage}
		c.update(&dynamodb.UpdateTableInput{StreamSpecification: on})
		enabled := c.describe()
		assert.Equal(c, on, enabled.StreamSpecification)
		assert.Equal(c, *enabled.TableArn+"/stream/"+*enabled.LatestStreamLabel, *enabled.LatestStreamArn)
		c.update(disable())
		disabled := c.describe()
		assert.Nil(c, disabled.StreamSpecification)
		assert.Equal(c, enabled.LatestStreamArn, disabled.LatestStreamArn)
		assert.Equal(c, enabled.LatestStreamLabel, disabled.LatestStreamLabel)
		c.updateRefused(disable(), "Table has no stream to disable")
	})
}

func TestTableClass_IsDescribedOnceItWasSet(t *testing.T) {
	inProcess(t, "DynamoDB Local has no table classes", func(*dynamodb.CreateTableInput) {}, func(c created) {
		c.update(&dynamodb.UpdateTableInput{TableClass: types.TableClassStandard})
		assert.Nil(c, c.describe().TableClassSummary, "what it is anyway")
		for _, class := range []types.TableClass{types.TableClassStandardInfrequentAccess, types.TableClassStandard} {
			before := c.describe().TableClassSummary
			assert.Equal(c, before, c.update(&dynamodb.UpdateTableInput{TableClass: class}).TableClassSummary, "the answer has the old class")
			s := c.describe().TableClassSummary
			assert.Equal(c, class, s.TableClass)
			assert.WithinDuration(c, time.Now(), *s.LastUpdateDateTime, time.Minute)
		}
	})
	inProcess(t, "DynamoDB Local has no table classes", func(in *dynamodb.CreateTableInput) { in.TableClass = types.TableClassStandardInfrequentAccess }, func(c created) {
		assert.Equal(c, &types.TableClassSummary{TableClass: types.TableClassStandardInfrequentAccess}, c.describe().TableClassSummary)
	})
}

func TestEncryption_IsDescribedByTheARNOfItsKey(t *testing.T) {
	inProcess(t, "DynamoDB Local has no encryption", func(*dynamodb.CreateTableInput) {}, func(c created) {
		assert.Nil(c, c.describe().SSEDescription)
		arn := func(key string) string {
			spec := &types.SSESpecification{Enabled: aws.Bool(true), SSEType: types.SSETypeKms}
			if key != "" {
				spec.KMSMasterKeyId = &key
			}
			c.update(&dynamodb.UpdateTableInput{SSESpecification: spec})
			d := c.describe().SSEDescription
			assert.Equal(c, types.SSEStatusEnabled, d.Status)
			assert.Equal(c, types.SSETypeKms, d.SSEType)
			assert.Regexp(c, `^arn:aws:kms:[a-z0-9-]+:\d{12}:key/[0-9a-z-]+$`, *d.KMSMasterKeyArn)
			return *d.KMSMasterKeyArn
		}
		const id = "1234abcd-12ab-34cd-56ef-1234567890ab"
		assert.Equal(c, arn(""), arn("alias/aws/dynamodb"), "the key of the account is the default")
		byID := arn(id)
		assert.Contains(c, byID, ":key/"+id)
		arn("alias/a")
		assert.Equal(c, byID, arn(byID))
		assert.Equal(c, arn("alias/a"), arn("arn:aws:kms:us-east-1:000000000000:alias/a"))
		assert.NotEqual(c, arn("alias/a"), arn("alias/b"))
		c.update(&dynamodb.UpdateTableInput{SSESpecification: &types.SSESpecification{Enabled: aws.Bool(false)}})
		assert.Nil(c, c.describe().SSEDescription)
		c.update(&dynamodb.UpdateTableInput{SSESpecification: &types.SSESpecification{SSEType: types.SSETypeKms}})
		assert.NotNil(c, c.describe().SSEDescription, "the type alone enables it")
	})
}

// Recorded from the service: the answer to a change has the key that the table had, and only a status if it had none. A request for
// what the table has is refused, if it names the key by its ARN.
func TestEncryption_IsUpdatingInTheAnswer(t *testing.T) {
	inProcess(t, "DynamoDB Local has no encryption", func(*dynamodb.CreateTableInput) {}, func(c created) {
		updating := func(key *string) *types.SSEDescription {
			d := &types.SSEDescription{Status: types.SSEStatusUpdating}
			if key != nil {
				d.SSEType, d.KMSMasterKeyArn = types.SSETypeKms, key
			}
			return d
		}
		kms := func(key string) *types.SSESpecification {
			return &types.SSESpecification{Enabled: aws.Bool(true), SSEType: types.SSETypeKms, KMSMasterKeyId: &key}
		}
		var none *string
		had := none
		for _, spec := range []*types.SSESpecification{
			{Enabled: aws.Bool(true)},
			{Enabled: aws.Bool(true)},
			{SSEType: types.SSETypeKms},
			kms("alias/a"),
			kms("alias/a"),
			kms("alias/aws/dynamodb"),
			{Enabled: aws.Bool(false)},
			kms("alias/a"),
			{},
		} {
			d := c.update(&dynamodb.UpdateTableInput{SSESpecification: spec})
			assert.Equal(c, types.TableStatusActive, d.TableStatus)
			assert.Equal(c, updating(had), d.SSEDescription)
			had = none
			if s := c.describe().SSEDescription; s != nil {
				assert.Equal(c, types.SSEStatusEnabled, s.Status)
				had = s.KMSMasterKeyArn
				c.updateRefused(&dynamodb.UpdateTableInput{SSESpecification: kms(*had)},
					invalidParameter+"Table is already encrypted with given KMSMasterKeyId. Use KMSMasterKeyId parameter if you want to change Master Key")
			}
		}
		assert.Nil(c, had)
		for _, spec := range []*types.SSESpecification{{Enabled: aws.Bool(false)}, {}} {
			c.updateRefused(&dynamodb.UpdateTableInput{SSESpecification: spec}, invalidParameter+"Table is already encrypted by default")
		}
	})
}

func TestEncryption_RefusesWhatDoesNotFitTogether(t *testing.T) {
	onTable(t, func(tb table) {
		engines.Only(tb.T, engines.InProcess, "DynamoDB Local has no encryption")
		for specification, text := range map[string]string{
			`{"Enabled":false,"SSEType":"KMS"}`:                            "SSEType can not be specified if Enabled is false",
			`{"Enabled":false,"SSEType":"AES256"}`:                         "SSEType can not be specified if Enabled is false",
			`{"Enabled":false,"SSEType":"KMS","KMSMasterKeyId":"alias/a"}`: "SSEType can not be specified if Enabled is false",
			`{"Enabled":false,"KMSMasterKeyId":"alias/a"}`:                 "KMSMasterKeyId can not be specified if Enabled is false",
			`{"Enabled":true,"SSEType":"AES256"}`:                          "SSEType AES256 is not supported",
			`{"Enabled":true,"KMSMasterKeyId":"alias/a"}`:                  "SSEType KMS is required if KMSMasterKeyId is specified",
		} {
			create := `{"TableName":"TABLE-2","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"a","AttributeType":"S"}],"KeySchema":[{"AttributeName":"a","KeyType":"HASH"}]`
			for op, begin := range map[string]string{"CreateTable": create, "UpdateTable": `{"TableName":"TABLE"`} {
				err := tb.raw(op, begin+`,"SSESpecification":`+specification+`}`)
				tb.exactly(err, "ValidationException", invalidParameter+text, "")
			}
		}
	})
}

func TestUpdateTable_TellsWhatIsUnderWay(t *testing.T) {
	status := func(d *types.TableDescription, name string) (types.IndexStatus, *bool) {
		for _, g := range d.GlobalSecondaryIndexes {
			if *g.IndexName == name {
				return g.IndexStatus, g.Backfilling
			}
		}
		return "", nil
	}
	creating(t, func(*dynamodb.CreateTableInput) {}, func(c created) {
		d := c.update(&dynamodb.UpdateTableInput{
			AttributeDefinitions: createInput(*c.name).AttributeDefinitions,
			GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Create: &types.CreateGlobalSecondaryIndexAction{
				IndexName: ptr("new"), KeySchema: []types.KeySchemaElement{{AttributeName: ptr("lsk"), KeyType: types.KeyTypeHash}},
				Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
			}}},
		})
		is, backfilling := status(d, "new")
		assert.Equal(c, types.IndexStatusCreating, is)
		assert.Equal(c, aws.Bool(false), backfilling)
		is, backfilling = status(c.describe(), "new")
		assert.Equal(c, types.IndexStatusActive, is)
		assert.Nil(c, backfilling)

		d = c.update(&dynamodb.UpdateTableInput{GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{
			{Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: ptr("new")}},
		}})
		is, _ = status(d, "new")
		assert.Equal(c, types.IndexStatusDeleting, is)
		c.awaitIndex("new", false)
	})
}

func TestUpdateTable_AnswersThatTheTableIsUpdating(t *testing.T) {
	inProcess(t, "DynamoDB Local answers that the table is active", func(*dynamodb.CreateTableInput) {}, func(c created) {
		assert.Equal(c, types.TableStatusUpdating, c.update(&dynamodb.UpdateTableInput{BillingMode: types.BillingModePayPerRequest}).TableStatus)
		assert.Equal(c, types.TableStatusActive, c.update(&dynamodb.UpdateTableInput{DeletionProtectionEnabled: aws.Bool(false)}).TableStatus)
	})
}
