package contract_test

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
)

const (
	noWarmth = "DynamoDB Local has no warm throughput"
	noLimits = "DynamoDB Local does not take limits of on-demand throughput"
	noRule   = "DynamoDB Local does not check this, or words it differently"
)

// withoutIndexes leaves one key and no index.
func withoutIndexes(in *dynamodb.CreateTableInput) {
	in.AttributeDefinitions, in.KeySchema = in.AttributeDefinitions[:1], in.KeySchema[:1]
	in.GlobalSecondaryIndexes, in.LocalSecondaryIndexes = nil, nil
}

func provisioned(in *dynamodb.CreateTableInput) {
	withoutIndexes(in)
	in.BillingMode, in.ProvisionedThroughput = types.BillingModeProvisioned, units(5, 6)
}

func changeIndex(name string, p *types.ProvisionedThroughput) types.GlobalSecondaryIndexUpdate {
	return types.GlobalSecondaryIndexUpdate{Update: &types.UpdateGlobalSecondaryIndexAction{IndexName: &name, ProvisionedThroughput: p}}
}

func TestBillingMode_IsDescribedOnceATableWasOnDemand(t *testing.T) {
	creating(t, provisioned, func(c created) {
		assert.Nil(c, c.describe().BillingModeSummary)
		c.update(&dynamodb.UpdateTableInput{BillingMode: types.BillingModePayPerRequest})
		d := c.describe()
		assert.Equal(c, types.BillingModePayPerRequest, d.BillingModeSummary.BillingMode)
		since := d.BillingModeSummary.LastUpdateToPayPerRequestDateTime
		assert.WithinDuration(c, time.Now(), *since, time.Minute)
		assert.EqualValues(c, 0, *d.ProvisionedThroughput.ReadCapacityUnits)
		assert.EqualValues(c, 0, *d.ProvisionedThroughput.WriteCapacityUnits)
		c.update(&dynamodb.UpdateTableInput{BillingMode: types.BillingModeProvisioned, ProvisionedThroughput: units(7, 8)})
		d = c.describe()
		assert.Equal(c, &types.BillingModeSummary{BillingMode: types.BillingModeProvisioned, LastUpdateToPayPerRequestDateTime: since}, d.BillingModeSummary)
		assert.EqualValues(c, 7, *d.ProvisionedThroughput.ReadCapacityUnits)
	})
}

func TestThroughput_ChangesAreDated(t *testing.T) {
	inProcess(t, "DynamoDB Local notes no changes", provisioned, func(c created) {
		var increased, decreased *time.Time
		for _, change := range []struct {
			read, write int64
			up, down    bool
			decreases   int64
		}{
			{6, 6, true, false, 0}, {6, 7, true, false, 0}, {5, 5, false, true, 1}, {6, 4, true, true, 2}, {6, 5, true, false, 2}, {1, 5, false, true, 3},
		} {
			time.Sleep(time.Second) // each change has a date of its own
			now := time.Now().UTC()
			if change.up {
				increased = &now
			}
			if change.down {
				decreased = &now
			}
			c.update(&dynamodb.UpdateTableInput{ProvisionedThroughput: units(change.read, change.write)})
			assert.Equal(c, &types.ProvisionedThroughputDescription{
				LastIncreaseDateTime: increased, LastDecreaseDateTime: decreased, NumberOfDecreasesToday: &change.decreases,
				ReadCapacityUnits: &change.read, WriteCapacityUnits: &change.write,
			}, c.describe().ProvisionedThroughput, change)
		}
		c.update(&dynamodb.UpdateTableInput{BillingMode: types.BillingModePayPerRequest})
		p := c.describe().ProvisionedThroughput
		assert.Equal(c, decreased, p.LastDecreaseDateTime, "a table's change to on demand is no decrease")
		assert.EqualValues(c, 3, *p.NumberOfDecreasesToday)
	})
}

func TestThroughput_ChangesOfAnIndexAreDated(t *testing.T) {
	inProcess(t, "DynamoDB Local notes no changes", provisionedIndexes, func(c created) {
		c.update(&dynamodb.UpdateTableInput{GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{changeIndex("gsi", units(3, 3))}})
		g := c.describe().GlobalSecondaryIndexes
		assert.NotNil(c, g[0].ProvisionedThroughput.LastIncreaseDateTime)
		assert.EqualValues(c, 3, *g[0].ProvisionedThroughput.ReadCapacityUnits)
		assert.Equal(c, described(2, 3), g[1].ProvisionedThroughput)
		c.update(&dynamodb.UpdateTableInput{BillingMode: types.BillingModePayPerRequest})
		for _, g := range c.describe().GlobalSecondaryIndexes {
			assert.EqualValues(c, 1, *g.ProvisionedThroughput.NumberOfDecreasesToday, "an index's change to on demand is a decrease")
			assert.EqualValues(c, 0, *g.ProvisionedThroughput.ReadCapacityUnits)
		}
	})
}

// Recorded from the service: the answer to a change has the old units and numbers of decreases, but the time of the change.
func TestUpdateTable_AnswersWithTheValuesThatItChanges(t *testing.T) {
	index := func(name string, d *types.TableDescription) types.GlobalSecondaryIndexDescription {
		all := d.GlobalSecondaryIndexes
		return all[slices.IndexFunc(all, func(g types.GlobalSecondaryIndexDescription) bool { return *g.IndexName == name })]
	}
	had := func(p *types.ProvisionedThroughputDescription, read, write, decreases int64) *types.ProvisionedThroughputDescription {
		return &types.ProvisionedThroughputDescription{
			LastIncreaseDateTime: p.LastIncreaseDateTime, LastDecreaseDateTime: p.LastDecreaseDateTime,
			NumberOfDecreasesToday: &decreases, ReadCapacityUnits: &read, WriteCapacityUnits: &write,
		}
	}
	inProcess(t, "DynamoDB Local answers with the new values", provisionedIndexes, func(c created) {
		d := c.update(&dynamodb.UpdateTableInput{
			ProvisionedThroughput:       units(7, 6),
			GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{changeIndex("gsi", units(1, 4))},
		})
		now := c.describe()
		assert.Equal(c, had(now.ProvisionedThroughput, 5, 6, 0), d.ProvisionedThroughput)
		assert.NotNil(c, d.ProvisionedThroughput.LastIncreaseDateTime)
		assert.Equal(c, warm(5, 6), d.WarmThroughput)
		assert.Equal(c, had(index("gsi", now).ProvisionedThroughput, 2, 3, 0), index("gsi", d).ProvisionedThroughput)
		assert.NotNil(c, index("gsi", d).ProvisionedThroughput.LastDecreaseDateTime)
		assert.Equal(c, indexWarm(2, 3), index("gsi", d).WarmThroughput)
		assert.Equal(c, types.IndexStatusUpdating, index("gsi", d).IndexStatus)
		assert.Equal(c, index("keys", now), index("keys", d))
		steps := []int64{7, 5, 4, 3}
		for i, to := range steps[1:] {
			d = c.update(&dynamodb.UpdateTableInput{ProvisionedThroughput: units(to, 6)})
			assert.Equal(c, had(c.describe().ProvisionedThroughput, steps[i], 6, int64(i)), d.ProvisionedThroughput)
		}

		d = c.update(&dynamodb.UpdateTableInput{BillingMode: types.BillingModePayPerRequest})
		assert.Equal(c, &types.BillingModeSummary{BillingMode: types.BillingModePayPerRequest}, d.BillingModeSummary, "a new mode has no time yet")
		assert.EqualValues(c, 0, *d.ProvisionedThroughput.ReadCapacityUnits, "it has its units")
		assert.Equal(c, warm(7, 6), d.WarmThroughput)
		d = c.update(&dynamodb.UpdateTableInput{BillingMode: types.BillingModePayPerRequest})
		assert.NotNil(c, d.BillingModeSummary.LastUpdateToPayPerRequestDateTime)

		more := &types.WarmThroughput{ReadUnitsPerSecond: aws.Int64(13000)}
		updating := warm(12000, 4000)
		updating.Status = types.TableStatusUpdating
		d = c.update(&dynamodb.UpdateTableInput{WarmThroughput: more})
		assert.Equal(c, updating, d.WarmThroughput)
		assert.Equal(c, types.TableStatusActive, d.TableStatus)
		assert.Equal(c, indexWarm(12000, 4000), index("gsi", d).WarmThroughput)
		d = c.update(&dynamodb.UpdateTableInput{GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{
			{Update: &types.UpdateGlobalSecondaryIndexAction{IndexName: ptr("gsi"), WarmThroughput: more}},
		}})
		updatingIndex := indexWarm(12000, 4000)
		updatingIndex.Status = types.IndexStatusUpdating
		assert.Equal(c, updatingIndex, index("gsi", d).WarmThroughput)
		assert.Equal(c, types.IndexStatusActive, index("gsi", d).IndexStatus)
		assert.Equal(c, warm(13000, 4000), d.WarmThroughput)
		assert.Equal(c, indexWarm(13000, 4000), index("gsi", c.describe()).WarmThroughput)

		d = c.update(&dynamodb.UpdateTableInput{
			BillingMode: types.BillingModeProvisioned, ProvisionedThroughput: units(8, 9),
			GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{changeIndex("gsi", units(2, 2)), changeIndex("keys", units(2, 2))},
		})
		assert.EqualValues(c, 8, *d.ProvisionedThroughput.ReadCapacityUnits)
		assert.EqualValues(c, 2, *index("gsi", d).ProvisionedThroughput.ReadCapacityUnits)
	})
}

func TestWarmThroughput_NeverFalls(t *testing.T) {
	inProcess(t, noWarmth, provisionedIndexes, func(c created) {
		c.update(&dynamodb.UpdateTableInput{ProvisionedThroughput: units(9, 1), GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{changeIndex("gsi", units(1, 8))}})
		d := c.describe()
		assert.Equal(c, warm(9, 6), d.WarmThroughput)
		assert.Equal(c, indexWarm(2, 8), d.GlobalSecondaryIndexes[0].WarmThroughput)
		assert.Equal(c, indexWarm(2, 3), d.GlobalSecondaryIndexes[1].WarmThroughput)
		c.update(&dynamodb.UpdateTableInput{WarmThroughput: &types.WarmThroughput{WriteUnitsPerSecond: aws.Int64(5000)}})
		assert.Equal(c, warm(9, 5000), c.describe().WarmThroughput)
		c.update(&dynamodb.UpdateTableInput{BillingMode: types.BillingModePayPerRequest})
		d = c.describe()
		assert.Equal(c, warm(12000, 5000), d.WarmThroughput)
		assert.Equal(c, indexWarm(12000, 4000), d.GlobalSecondaryIndexes[0].WarmThroughput)
		c.update(&dynamodb.UpdateTableInput{BillingMode: types.BillingModeProvisioned, ProvisionedThroughput: units(1, 1), GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{
			changeIndex("gsi", units(1, 1)), changeIndex("keys", units(1, 1)),
		}})
		d = c.describe()
		assert.Equal(c, warm(12000, 5000), d.WarmThroughput)
		assert.Equal(c, indexWarm(12000, 4000), d.GlobalSecondaryIndexes[1].WarmThroughput)
		c.updateRefused(&dynamodb.UpdateTableInput{WarmThroughput: &types.WarmThroughput{ReadUnitsPerSecond: aws.Int64(11999)}},
			"One or more parameter values were invalid: Requested ReadUnitsPerSecond for WarmThroughput for table is lower than current WarmThroughput, decreasing WarmThroughput is not supported")
		c.updateRefused(&dynamodb.UpdateTableInput{GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Update: &types.UpdateGlobalSecondaryIndexAction{
			IndexName: ptr("gsi"), WarmThroughput: &types.WarmThroughput{ReadUnitsPerSecond: aws.Int64(12000), WriteUnitsPerSecond: aws.Int64(3999)},
		}}}}, "One or more parameter values were invalid: Requested WriteUnitsPerSecond for WarmThroughput for index gsi is lower than current WarmThroughput, decreasing WarmThroughput is not supported")
		c.update(&dynamodb.UpdateTableInput{WarmThroughput: &types.WarmThroughput{ReadUnitsPerSecond: aws.Int64(12000), WriteUnitsPerSecond: aws.Int64(5000)}})
	})
}

func TestWarmThroughput_OfANewTableIsNoLowerThanTheInitial(t *testing.T) {
	ask := func(read, write int64) *types.WarmThroughput {
		return &types.WarmThroughput{ReadUnitsPerSecond: &read, WriteUnitsPerSecond: &write}
	}
	onTable(t, func(tb table) {
		engines.Only(tb.T, engines.InProcess, noWarmth)
		const prefix = "One or more parameter values were invalid: Requested "
		const initial = "lower than initial throughput for OnDemand. See: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html#on-demand-capacity-mode-initial"
		other := table{T: tb.T, Client: tb.Client, engine: tb.engine, name: aws.String(*tb.name + "-2")}
		for text, change := range map[string]func(in *dynamodb.CreateTableInput){
			prefix + "ReadUnitsPerSecond for WarmThroughput for table is " + initial: func(in *dynamodb.CreateTableInput) { in.WarmThroughput = ask(11999, 4000) },
			prefix + "WriteUnitsPerSecond for WarmThroughput for index keys is " + initial: func(in *dynamodb.CreateTableInput) {
				in.GlobalSecondaryIndexes[1].WarmThroughput = &types.WarmThroughput{WriteUnitsPerSecond: aws.Int64(1)}
			},
			prefix + "ReadUnitsPerSecond for WarmThroughput for table is lower than ReadCapacityUnits of ProvisionedThroughput": func(in *dynamodb.CreateTableInput) {
				provisioned(in)
				in.WarmThroughput = ask(4, 6)
			},
			prefix + "WriteUnitsPerSecond for WarmThroughput for index gsi is lower than WriteCapacityUnits of ProvisionedThroughput": func(in *dynamodb.CreateTableInput) {
				provisionedIndexes(in)
				in.GlobalSecondaryIndexes[0].WarmThroughput = ask(2, 2)
			},
		} {
			in := createInput(*other.name)
			change(in)
			_, err := tb.CreateTable(tb.ctx(), in)
			tb.refused(err, text)
		}
		c := other.createAs(func(in *dynamodb.CreateTableInput) {
			in.WarmThroughput = &types.WarmThroughput{ReadUnitsPerSecond: aws.Int64(13000)}
			in.GlobalSecondaryIndexes[0].WarmThroughput = ask(14000, 5000)
		})
		answered := warm(13000, 4000)
		answered.Status = types.TableStatusUpdating
		assert.Equal(tb, answered, c.description.WarmThroughput)
		d := c.describe()
		assert.Equal(tb, warm(13000, 4000), d.WarmThroughput)
		assert.Equal(tb, indexWarm(14000, 5000), d.GlobalSecondaryIndexes[0].WarmThroughput)
		assert.Equal(tb, indexWarm(12000, 4000), d.GlobalSecondaryIndexes[1].WarmThroughput)
		_, err := tb.DeleteTable(tb.ctx(), &dynamodb.DeleteTableInput{TableName: other.name})
		require.NoError(tb, err)
	})
}

func limit(read, write int64) *types.OnDemandThroughput {
	o := &types.OnDemandThroughput{}
	if read != 0 {
		o.MaxReadRequestUnits = &read
	}
	if write != 0 {
		o.MaxWriteRequestUnits = &write
	}
	return o
}

func TestOnDemandThroughput_LimitsAreMerged(t *testing.T) {
	change := func(in *dynamodb.CreateTableInput) {
		in.OnDemandThroughput, in.GlobalSecondaryIndexes[0].OnDemandThroughput = limit(100, 0), limit(10, 20)
	}
	inProcess(t, noLimits, change, func(c created) {
		d := c.describe()
		assert.Equal(c, limit(100, 0), d.OnDemandThroughput)
		assert.Equal(c, limit(10, 20), d.GlobalSecondaryIndexes[0].OnDemandThroughput)
		assert.Nil(c, d.GlobalSecondaryIndexes[1].OnDemandThroughput)
		for _, step := range []struct{ set, answered, then *types.OnDemandThroughput }{
			{limit(0, 50), limit(100, 50), limit(100, 50)},
			{limit(200, 0), limit(200, 50), limit(200, 50)},
			{limit(-1, 0), limit(-1, 50), limit(0, 50)},
			{limit(0, -1), limit(0, -1), nil},
			{limit(-1, -1), limit(-1, -1), nil},
			{limit(7, 8), limit(7, 8), limit(7, 8)},
		} {
			assert.Equal(c, step.answered, c.update(&dynamodb.UpdateTableInput{OnDemandThroughput: step.set}).OnDemandThroughput)
			assert.Equal(c, step.then, c.describe().OnDemandThroughput)
		}
		c.update(&dynamodb.UpdateTableInput{GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Update: &types.UpdateGlobalSecondaryIndexAction{
			IndexName: ptr("gsi"), OnDemandThroughput: limit(0, -1),
		}}}})
		assert.Equal(c, limit(10, 0), c.describe().GlobalSecondaryIndexes[0].OnDemandThroughput)
		c.update(&dynamodb.UpdateTableInput{BillingMode: types.BillingModeProvisioned, ProvisionedThroughput: units(1, 1), GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{
			changeIndex("gsi", units(1, 1)), changeIndex("keys", units(1, 1)),
		}})
		d = c.describe()
		assert.Nil(c, d.OnDemandThroughput, "provisioned tables have no limits")
		assert.Nil(c, d.GlobalSecondaryIndexes[0].OnDemandThroughput)
		c.update(&dynamodb.UpdateTableInput{BillingMode: types.BillingModePayPerRequest, OnDemandThroughput: limit(9, 0)})
		assert.Equal(c, limit(9, 0), c.describe().OnDemandThroughput)
	})
}

func TestOnDemandThroughput_WrongLimitsAreRefused(t *testing.T) {
	const prefix = "One or more parameter values were invalid: "
	onTable(t, func(tb table) {
		engines.Only(tb.T, engines.InProcess, noLimits)
		for _, wrong := range []int64{-2, -1} {
			in := createInput(*tb.name + "-2")
			in.OnDemandThroughput = limit(wrong, 0)
			_, err := tb.CreateTable(tb.ctx(), in)
			tb.refused(err, prefix+"Requested MaxReadRequestUnits for OnDemandThroughput for table is outside of valid range")
			in.OnDemandThroughput, in.GlobalSecondaryIndexes[0].OnDemandThroughput = nil, limit(1, wrong)
			_, err = tb.CreateTable(tb.ctx(), in)
			tb.refused(err, prefix+"Requested MaxWriteRequestUnits for OnDemandThroughput for index : gsi is outside of valid range")
		}
		in := createInput(*tb.name + "-2")
		provisionedIndexes(in)
		in.OnDemandThroughput = limit(1, 1)
		_, err := tb.CreateTable(tb.ctx(), in)
		tb.refused(err, prefix+"MaxReadRequestUnits for OnDemandThroughput cannot be specified when table BillingMode is PROVISIONED.")
		in.OnDemandThroughput, in.GlobalSecondaryIndexes[0].OnDemandThroughput = nil, limit(0, 1)
		_, err = tb.CreateTable(tb.ctx(), in)
		tb.refused(err, prefix+"MaxWriteRequestUnits for OnDemandThroughput for index: gsi cannot be specified when table BillingMode is PROVISIONED.")

		tb.updateRefused(&dynamodb.UpdateTableInput{OnDemandThroughput: &types.OnDemandThroughput{MaxWriteRequestUnits: aws.Int64(0)}},
			prefix+"Requested MaxWriteRequestUnits for OnDemandThroughput for table is outside of valid range")
		tb.updateRefused(&dynamodb.UpdateTableInput{OnDemandThroughput: limit(-2, 0)},
			prefix+"Requested MaxReadRequestUnits for OnDemandThroughput for table is outside of valid range")
	})
	inProcess(t, noLimits, provisioned, func(c created) {
		c.updateRefused(&dynamodb.UpdateTableInput{OnDemandThroughput: limit(1, 0)},
			prefix+"MaxReadRequestUnits for OnDemandThroughput cannot be specified when the table BillingMode is PROVISIONED")
	})
}

func TestThroughput_IsOfIndexesIfOfTheirTable(t *testing.T) {
	const prefix = "One or more parameter values were invalid: "
	add := func(p *types.ProvisionedThroughput) *dynamodb.UpdateTableInput {
		return &dynamodb.UpdateTableInput{
			AttributeDefinitions: createInput("any").AttributeDefinitions,
			GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Create: &types.CreateGlobalSecondaryIndexAction{
				IndexName: ptr("new"), KeySchema: []types.KeySchemaElement{{AttributeName: ptr("lsk"), KeyType: types.KeyTypeHash}},
				Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll}, ProvisionedThroughput: p,
			}}},
		}
	}
	change := func(p *types.ProvisionedThroughput) *dynamodb.UpdateTableInput {
		return &dynamodb.UpdateTableInput{GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{changeIndex("gsi", p)}}
	}
	inProcess(t, noRule, provisionedIndexes, func(c created) {
		in := createInput(*c.name + "-2")
		in.BillingMode, in.ProvisionedThroughput = types.BillingModeProvisioned, units(1, 1)
		_, err := c.CreateTable(c.ctx(), in)
		c.refused(err, prefix+"ProvisionedThroughput is not specified for index: gsi")
		c.updateRefused(add(nil), prefix+"Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: new")
		c.updateRefused(change(nil), prefix+"Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: gsi")
		c.updateRefused(change(units(2, 3)), "The provisioned throughput for the index gsi will not change. The requested value equals the current value. Current ReadCapacityUnits provisioned for the index: 2.")
	})
	onTable(t, func(tb table) {
		engines.Only(tb.T, engines.InProcess, noRule)
		in := createInput(*tb.name + "-2")
		in.GlobalSecondaryIndexes[1].ProvisionedThroughput = units(1, 1)
		_, err := tb.CreateTable(tb.ctx(), in)
		tb.refused(err, prefix+"ProvisionedThroughput should not be specified for index: keys when BillingMode is PAY_PER_REQUEST")
		tb.updateRefused(add(units(1, 1)), prefix+"Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index: new when BillingMode is PAY_PER_REQUEST")
		const only = prefix + "The only Updates for index: gsi when TableThroughputMode is PAY_PER_REQUEST can be to OnDemandThroughput, WarmThroughput"
		tb.updateRefused(change(units(1, 1)), only)
		tb.updateRefused(change(nil), only)
		tb.updateRefused(&dynamodb.UpdateTableInput{GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Update: &types.UpdateGlobalSecondaryIndexAction{
			IndexName: ptr("gsi"), WarmThroughput: &types.WarmThroughput{},
		}}}}, prefix+"WarmThroughput must have at least one of ReadUnitsPerSecond or WriteUnitsPerSecond specified for index: gsi")
		tb.updateRefused(&dynamodb.UpdateTableInput{
			BillingMode: types.BillingModeProvisioned, ProvisionedThroughput: units(1, 1),
			GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{changeIndex("gsi", units(1, 1))},
		}, prefix+"ProvisionedThroughput must be specified for index: keys")
	})
}
