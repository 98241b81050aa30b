package table_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/engines/faulty"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// changes are the requests that change a table, also those that were refused.
func changes(f *faulty.Client) []string { return changesIn(f.Sent()) }

// changesMade are the requests that have changed a table.
func changesMade(f *faulty.Client) []string { return changesIn(f.Accepted()) }

func changesIn(sent []string) (list []string) {
	for _, op := range sent {
		if !strings.HasPrefix(op, "Describe") && !strings.HasPrefix(op, "List") {
			list = append(list, op)
		}
	}
	return list
}

func fullSchema(name string) table.Schema {
	return table.Schema{
		Name: name, Keys: keys.Scheme{PK: "PK", SK: "SK", TTL: "expiresAt"},
		Indexes: []table.Index{
			{Name: "gsi1", PK: "GSI1PK", SK: "GSI1SK"},
			{Name: "gsi2", PK: "GSI2PK", Include: []string{"b", "a"}},
			{Name: "numbers", PK: "GSI1PK", SK: "score", SKType: table.Number, Include: []string{}},
			{Name: "inverted", PK: "SK", SK: "PK"},
			{Name: "lsi1", SK: "LSI1SK", Local: true},
		},
		Stream: table.StreamBoth,
	}
}

func open(t *testing.T, e *engines.Engine, s table.Schema) (*table.Table, *faulty.Client) {
	t.Helper()
	f := &faulty.Client{}
	tbl, err := table.Open(e.Client(f.Options), s, eager(3))
	require.NoError(t, err)
	return tbl, f
}

func kinds(p table.Plan) (list []table.StepKind) {
	for _, s := range p.Steps {
		list = append(list, s.Kind)
	}
	return list
}

func TestEnsure_CreatesOnceAndThenChangesNothing(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		s := fullSchema(e.TableName(t))
		tbl, f := open(t, e, s)
		p, err := tbl.Plan(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "table "+s.Name+`
  + table with keys PK, SK
  + index gsi1 (GSI1PK:S, GSI1SK:S; all)
  + index gsi2 (GSI2PK:S; keys a b)
  + index numbers (GSI1PK:S, score:N; keys)
  + index inverted (SK:S, PK:S; all)
  + index local lsi1 (PK:S, LSI1SK:S; all)
  + stream of NEW_AND_OLD_IMAGES
  + time to live on attribute expiresAt
`, p.String())
		err = tbl.Verify(t.Context())
		require.ErrorIs(t, err, table.ErrSchema)
		var differs *table.SchemaError
		require.ErrorAs(t, err, &differs)
		assert.Len(t, differs.Differences, 8)
		assert.EqualError(t, err, "table: "+s.Name+" "+table.ErrSchema.Error()+": "+strings.Join(differs.Differences, "; "))
		assert.Empty(t, changes(f), "looking changes nothing")

		require.NoError(t, tbl.Ensure(t.Context()))
		assert.Equal(t, []string{"CreateTable", "UpdateTimeToLive"}, changesMade(f))
		require.NoError(t, tbl.Verify(t.Context()))

		f.Script()
		require.NoError(t, tbl.Ensure(t.Context()))
		assert.Empty(t, changes(f))
		p, err = tbl.Plan(t.Context())
		require.NoError(t, err)
		assert.True(t, p.IsEmpty())
		assert.Equal(t, "table "+s.Name+": nothing to do\n"+
			"  = keys PK:S, SK:S; index gsi1; index gsi2; index numbers; index inverted; index lsi1; "+
			"capacity on demand; stream of NEW_AND_OLD_IMAGES; time to live on attribute expiresAt\n", p.String())
	})
}

func TestEnsure_AddsWhatIsMissingToAnExistingTable(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		small := table.Schema{Name: e.TableName(t), Keys: keys.Scheme{PK: "PK", SK: "SK", TTL: "expiresAt"}, NoTTL: true}
		before, _ := open(t, e, small)
		require.NoError(t, before.Ensure(t.Context()))
		item := table.Item{"PK": str("p"), "SK": str("s"), "GSI1PK": str("g"), "GSI1SK": str("h")}
		require.NoError(t, before.Write(t.Context(), table.Put(item)))

		full := fullSchema(small.Name)
		full.Indexes = full.Indexes[:2]
		full.DeletionProtection = true
		after, f := open(t, e, full)
		t.Cleanup(func() { unprotect(t, e, full.Name) })
		p, err := after.Plan(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []table.StepKind{table.AddIndex, table.AddIndex, table.EnableStream, table.EnableDeletionProtection, table.EnableTTL}, kinds(p))
		assert.Empty(t, p.Refused)
		require.NoError(t, after.Ensure(t.Context()))
		assert.Equal(t, []string{"UpdateTable", "UpdateTable", "UpdateTable", "UpdateTable", "UpdateTimeToLive"}, changesMade(f), "one at a time")
		require.NoError(t, after.Verify(t.Context()))
		assert.Equal(t, []string{"s"}, sortKeys(t, after.Query(t.Context(), table.Query{Index: "gsi1", PK: "g"}), "SK"), "the new index is filled")

		require.NoError(t, before.Verify(t.Context()), "what a schema does not mention is none of its business")
	})
}

func unprotect(t *testing.T, e *engines.Engine, name string) {
	_, err := e.Client().UpdateTable(context.Background(), &dynamodb.UpdateTableInput{TableName: &name, DeletionProtectionEnabled: aws.Bool(false)})
	require.NoError(t, err)
}

func TestEnsure_RefusesWhatWouldDestroy(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		s := fullSchema(e.TableName(t))
		tbl, _ := open(t, e, s)
		require.NoError(t, tbl.Ensure(t.Context()))

		other := fullSchema(s.Name)
		other.Keys = keys.Scheme{PK: "pk", SK: "SK", TTL: "ttl"}
		other.Stream = table.StreamKeysOnly
		other.Indexes = []table.Index{
			{Name: "gsi1", PK: "GSI1PK", SK: "other"},
			{Name: "gsi2", PK: "GSI2PK"},
			{Name: "numbers", PK: "GSI1PK", SK: "score", Include: []string{}},
			{Name: "gsi3", PK: "GSI3PK"},
			{Name: "lsi2", SK: "LSI2SK", Local: true},
		}
		wrong, f := open(t, e, other)
		err := wrong.Ensure(t.Context())
		require.ErrorIs(t, err, table.ErrSchema)
		var differs *table.SchemaError
		require.ErrorAs(t, err, &differs)
		assert.Equal(t, []string{
			"keys are PK:S, SK:S, the schema wants pk:S, SK:S: a table's keys cannot be changed",
			"index is gsi1 (GSI1PK:S, GSI1SK:S; all), the schema wants gsi1 (GSI1PK:S, other:S; all): an index cannot be changed, only dropped and made anew",
			"index is gsi2 (GSI2PK:S; keys a b), the schema wants gsi2 (GSI2PK:S; all): an index cannot be changed, only dropped and made anew",
			"index is numbers (GSI1PK:S, score:N; keys), the schema wants numbers (GSI1PK:S, score:S; keys): an index cannot be changed, only dropped and made anew",
			"index local lsi2 (pk:S, LSI2SK:S; all) is missing: a local index can only be made with the table",
			"stream is of NEW_AND_OLD_IMAGES, the schema wants KEYS_ONLY: its readers would lose their place",
			"time to live is on attribute expiresAt, the schema wants ttl: rows that count on it would stay for good",
		}, differs.Differences)
		assert.Empty(t, changes(f), "not even the index that could be added")

		err = wrong.Verify(t.Context())
		require.ErrorAs(t, err, &differs)
		assert.Len(t, differs.Differences, 8)
		assert.Contains(t, differs.Differences, "missing: index gsi3 (GSI3PK:S; all)")
		p, err := wrong.Plan(t.Context())
		require.NoError(t, err)
		assert.Contains(t, p.String(), "  ! keys are PK:S")
		assert.Contains(t, p.String(), "  + index gsi3")
	})
}

func TestEnsure_ChangesCapacity(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		s := table.Schema{Name: e.TableName(t), NoTTL: true, Indexes: []table.Index{{Name: "gsi1", PK: "g"}}}
		onDemand, _ := open(t, e, s)
		require.NoError(t, onDemand.Ensure(t.Context()))
		s.Capacity = &table.Capacity{Read: 7, Write: 3}
		s.Indexes = append(s.Indexes, table.Index{Name: "gsi2", PK: "g2"})
		provisioned, f := open(t, e, s)
		p, err := provisioned.Plan(t.Context())
		require.NoError(t, err)
		assert.Contains(t, p.String(), "  ~ capacity: 7 read and 3 write units, now on demand")
		require.NoError(t, provisioned.Ensure(t.Context()))
		require.NoError(t, provisioned.Verify(t.Context()))
		f.Script()
		require.NoError(t, provisioned.Ensure(t.Context()))
		assert.Empty(t, changes(f))
		require.NoError(t, onDemand.Verify(t.Context()), "no capacity in the schema leaves it as it is")
		d, err := e.Client().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &s.Name})
		require.NoError(t, err)
		for _, g := range d.Table.GlobalSecondaryIndexes {
			assert.Positive(t, aws.ToInt64(g.ProvisionedThroughput.ReadCapacityUnits), "%s", aws.ToString(g.IndexName))
		}
		s.Capacity = &table.Capacity{Read: 8, Write: 3}
		more, _ := open(t, e, s)
		require.NoError(t, more.Ensure(t.Context()))
		require.NoError(t, more.Verify(t.Context()))
		d, err = e.Client().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &s.Name})
		require.NoError(t, err)
		for _, g := range d.Table.GlobalSecondaryIndexes {
			assert.EqualValues(t, 8, aws.ToInt64(g.ProvisionedThroughput.ReadCapacityUnits), "%s", aws.ToString(g.IndexName))
		}
	})
}

func TestEnsure_SetsTagsAndRecovery(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		engines.Only(t, engines.InProcess, "DynamoDB Local has neither continuous backups nor tags at creation")
		s := table.Schema{Name: e.TableName(t), NoTTL: true, PointInTimeRecovery: true, Tags: map[string]string{"team": "a", "cost": "b"}}
		tbl, f := open(t, e, s)
		require.NoError(t, tbl.Ensure(t.Context()))
		require.NoError(t, tbl.Verify(t.Context()))
		assert.Equal(t, []string{"CreateTable", "UpdateContinuousBackups"}, changesMade(f))
		s.Tags["cost"], s.Tags["new"] = "c", "d"
		require.NoError(t, tbl.Verify(t.Context()), "a schema is copied")
		changed, f := open(t, e, s)
		p, err := changed.Plan(t.Context())
		require.NoError(t, err)
		assert.Contains(t, p.String(), "  + tags cost, new\n")
		require.NoError(t, changed.Ensure(t.Context()))
		assert.Equal(t, []string{"TagResource"}, changesMade(f))
		require.NoError(t, changed.Verify(t.Context()))
	})
}

func TestEnsure_ConcurrentCallsAgree(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		s := fullSchema(e.TableName(t))
		small := table.Schema{Name: s.Name, Keys: s.Keys, NoTTL: true}
		for _, schema := range []table.Schema{small, {Name: s.Name, Keys: s.Keys, Indexes: s.Indexes[:3], Stream: s.Stream}} {
			var group sync.WaitGroup
			errs := make([]error, 6)
			for i := range errs {
				tbl, _ := open(t, e, schema)
				group.Go(func() { errs[i] = tbl.Ensure(t.Context()) })
			}
			group.Wait()
			for _, err := range errs {
				assert.NoError(t, err)
			}
		}
	})
}

// The interleaving that concurrency produces by luck: somebody else does the step between
// our look and our request.
func TestEnsure_GoesOnWhenAnotherInstanceWasFaster(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		s := fullSchema(e.TableName(t))
		s.Indexes = s.Indexes[:1]
		small := table.Schema{Name: s.Name, Keys: s.Keys, NoTTL: true}
		for _, schema := range []table.Schema{small, s} {
			slow, f := open(t, e, schema)
			quick, _ := open(t, e, schema)
			f.Before(func(op string) {
				if op == "CreateTable" || op == "UpdateTable" || op == "UpdateTimeToLive" {
					require.NoError(t, quick.Ensure(t.Context()))
				}
			})
			require.NoError(t, slow.Ensure(t.Context()))
			assert.Len(t, changes(f), 1, "the first step of the slow one meets a table that is ready")
			assert.Empty(t, changesMade(f))
			require.NoError(t, slow.Verify(t.Context()))
		}
	})
}

func TestEnsure_ReportsWhyAStepFails(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		s := table.Schema{Name: e.TableName(t), NoTTL: true}
		tbl, f := open(t, e, s)
		f.Script(faulty.Pass, faulty.Pass, faulty.Refuse(400, "AccessDeniedException"))
		err := tbl.Ensure(t.Context())
		require.ErrorIs(t, err, table.ErrDenied)
		assert.ErrorContains(t, err, "CreateTable")
	})
	onVirtualTime(t, table.Schema{Name: "app", NoTTL: true}, func(t *testing.T, tbl *table.Table, f *faulty.Client) {
		always := faulty.Refuse(400, "LimitExceededException")
		script := make([]faulty.Outcome, 0, 200)
		for range 12 { // look, settle, then the step with its three repeats, settle
			script = append(script, faulty.Pass, faulty.Pass, always, always, always, always, faulty.Pass)
		}
		f.Script(script...)
		err := tbl.Ensure(t.Context())
		require.ErrorIs(t, err, table.ErrSchema)
		var limit *types.LimitExceededException
		require.ErrorAs(t, err, &limit, "the cause stays visible")
		assert.ErrorContains(t, err, "create table")
	})
}

// DynamoDB has one code for a change that has to wait and for one that is never possible.
func TestEnsure_DoesNotWaitForRoomForOneMoreIndex(t *testing.T) {
	index := func(n int) table.Index { return table.Index{Name: fmt.Sprint("index", n), PK: fmt.Sprint("pk", n)} }
	s := table.Schema{Name: "app", NoTTL: true}
	for n := range 20 {
		s.Indexes = append(s.Indexes, index(n))
	}
	synctest.Test(t, func(t *testing.T) {
		engine := tabletest.New(t)
		ensure := func() error {
			tbl, err := table.Open(engine.Client(), s)
			require.NoError(t, err)
			return tbl.Ensure(t.Context())
		}
		require.NoError(t, ensure())
		s.Indexes = append(s.Indexes, index(20))
		began := time.Now()
		err := ensure()
		require.ErrorIs(t, err, table.ErrInvalid)
		require.ErrorContains(t, err, "exceeds per-table limit of 20")
		assert.Less(t, time.Since(began), time.Second)
	})
}

// onVirtualTime runs f on an engine of its own, in which waiting takes no time.
func onVirtualTime(t *testing.T, s table.Schema, test func(*testing.T, *table.Table, *faulty.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &faulty.Client{}
		tbl, err := table.Open(tabletest.New(t).Client(f.Options), s, eager(3))
		require.NoError(t, err)
		test(t, tbl, f)
	})
}

// DynamoDB accepts a change, and describes the table as before for some seconds. Source: "CreateTable" and "TagResource", API reference.
func TestEnsure_WaitsUntilDynamoDBShowsWhatItHasAccepted(t *testing.T) {
	onVirtualTime(t, table.Schema{Name: "app", NoTTL: true}, func(t *testing.T, tbl *table.Table, f *faulty.Client) {
		none := faulty.Refuse(400, "ResourceNotFoundException")
		f.Script(faulty.Pass, faulty.Pass, faulty.Pass, none, none, none, none, none, none, none)
		start := time.Now()
		require.NoError(t, tbl.Ensure(t.Context()))
		assert.Equal(t, []string{"CreateTable"}, changes(f))
		assert.WithinRange(t, time.Now(), start.Add(time.Second/2), start.Add(10*time.Second))
	})
	tagged := table.Schema{Name: "app", NoTTL: true, Tags: map[string]string{"team": "a"}}
	onVirtualTime(t, tagged, func(t *testing.T, tbl *table.Table, f *faulty.Client) {
		none := faulty.Reply(`{"Tags":[]}`)
		f.Spare("DescribeTable", "CreateTable", "TagResource")
		f.Script(none, none, none, none, none, none, none, none)
		start := time.Now()
		require.NoError(t, tbl.Ensure(t.Context()))
		assert.Equal(t, []string{"CreateTable", "TagResource"}, changes(f))
		assert.WithinRange(t, time.Now(), start.Add(time.Second), start.Add(10*time.Second))

		script := make([]faulty.Outcome, 20)
		for i := range script {
			script[i] = none
		}
		f.Script(script...)
		err := tbl.Ensure(t.Context())
		require.ErrorIs(t, err, table.ErrSchema, "it does not wait for good")
		assert.ErrorContains(t, err, "add tags: no effect")
	})
}

// The backups of a new table are set up some time after it is active.
func TestEnsure_WaitsForTheBackupsOfANewTable(t *testing.T) {
	onVirtualTime(t, table.Schema{Name: "app", NoTTL: true, PointInTimeRecovery: true}, func(t *testing.T, tbl *table.Table, f *faulty.Client) {
		pending := make([]faulty.Outcome, 50)
		for i := range pending {
			pending[i] = faulty.Refuse(400, "ContinuousBackupsUnavailableException")
		}
		f.Spare("CreateTable", "DescribeTable", "DescribeContinuousBackups")
		f.Script(pending...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := tbl.Ensure(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var unavailable *types.ContinuousBackupsUnavailableException
		require.ErrorAs(t, err, &unavailable)
		require.NoError(t, tbl.Ensure(t.Context()))
		require.NoError(t, tbl.Verify(t.Context()))
	})
}

func TestEnsure_AnIndexCanGoAwayMeanwhile(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		s := table.Schema{Name: e.TableName(t), NoTTL: true, Indexes: []table.Index{{Name: "old", PK: "g"}}}
		before, _ := open(t, e, s)
		require.NoError(t, before.Ensure(t.Context()))
		after, f := open(t, e, table.Schema{Name: s.Name, NoTTL: true, Capacity: &table.Capacity{Read: 1, Write: 1}})
		f.Before(func(string) {
			if len(f.Sent()) == 2 {
				_, err := e.Client().UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: &s.Name, GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{
					{Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: aws.String("old")}},
				}})
				require.NoError(t, err)
			}
		})
		require.NoError(t, after.Ensure(t.Context()))
		require.NoError(t, after.Verify(t.Context()))
		assert.Empty(t, describe(t, e, s.Name).GlobalSecondaryIndexes)
	})
}

func TestEnsure_WaitsForTablesInTransition(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		s := table.Schema{Name: e.TableName(t), NoTTL: true, Indexes: []table.Index{{Name: "gsi1", PK: "g"}}}
		tbl, f := open(t, e, s)
		describe := func(status, index string) faulty.Outcome {
			return faulty.Reply(`{"Table":{"TableName":"` + s.Name + `","TableStatus":"` + status + `",
				"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"},{"AttributeName":"g","AttributeType":"S"}],
				"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
				"GlobalSecondaryIndexes":[{"IndexName":"gsi1","IndexStatus":"` + index + `","KeySchema":[{"AttributeName":"g","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}]}}`)
		}
		f.Script(describe("DELETING", "ACTIVE"), describe("DELETING", "ACTIVE"))
		require.NoError(t, tbl.Ensure(t.Context()))
		assert.Equal(t, []string{"CreateTable"}, changesMade(f), "a table that is going away is made anew")

		f.Script(describe("UPDATING", "CREATING"), describe("UPDATING", "CREATING"), describe("ACTIVE", "CREATING"), describe("ACTIVE", "ACTIVE"))
		require.NoError(t, tbl.Ensure(t.Context()))
		assert.Empty(t, changes(f), "what is being made already is waited for")
		assert.Len(t, f.Sent(), 4)

		f.Script(describe("ACTIVE", "DELETING"))
		p, err := tbl.Plan(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []table.StepKind{table.AddIndex}, kinds(p), "an index that is going away is missing")

		f.Script(describe("ARCHIVED", "ACTIVE"), describe("ARCHIVED", "ACTIVE"))
		err = tbl.Ensure(t.Context())
		require.ErrorIs(t, err, table.ErrSchema)
		assert.ErrorContains(t, err, "ARCHIVED")

		ctx, cancel := context.WithCancel(t.Context())
		f.Script(describe("ACTIVE", "ACTIVE"), describe("UPDATING", "ACTIVE"))
		f.Before(func(string) {
			if len(f.Sent()) == 2 {
				cancel()
			}
		})
		require.ErrorIs(t, tbl.Ensure(ctx), context.Canceled)
	})
}

// DynamoDB says of the tags of a table that is being made that there is no such table, and of all settings of an archived one.
// Sources: issues 3361 of Cloud Custodian and 1369 of Cortex, and Terraform's resource of tables.
func TestEnsure_ReadsNoSettingsOfATableThatIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := tabletest.New(t)
		s := table.Schema{Name: "app", PointInTimeRecovery: true, Tags: map[string]string{"team": "a"}}
		other, err := table.Open(e.Client(), s)
		require.NoError(t, err)
		require.NoError(t, other.Ensure(t.Context()))

		ready, status := time.Now().Add(5*time.Second), types.TableStatusCreating
		f := &faulty.Client{}
		tbl, err := table.Open(e.Client(f.Options, answering(func(result any) error {
			if !time.Now().Before(ready) {
				return nil
			}
			if out, ok := result.(*dynamodb.DescribeTableOutput); ok {
				out.Table.TableStatus = status
				return nil
			}
			return &types.ResourceNotFoundException{}
		})), s)
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(t.Context()))
		assert.False(t, time.Now().Before(ready))
		assert.Empty(t, changes(f), "the other instance has made all of it")

		ready, status = time.Now().Add(time.Hour), types.TableStatusArchived
		err = tbl.Ensure(t.Context())
		require.ErrorIs(t, err, table.ErrSchema)
		assert.ErrorContains(t, err, "ARCHIVED")
	})
}

// answering is an option that lets change alter each answer, or replace it with an error.
func answering(change func(result any) error) func(*dynamodb.Options) {
	alter := middleware.InitializeMiddlewareFunc("answering", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		out, meta, err := next.HandleInitialize(ctx, in)
		if err == nil {
			err = change(out.Result)
		}
		return out, meta, err
	})
	return func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error { return s.Initialize.Add(alter, middleware.After) })
	}
}

// existing makes the table of an application that has never heard of Mortise: provisioned,
// with a global and a local index of its own.
func existing(t *testing.T, e *engines.Engine, change ...func(*dynamodb.CreateTableInput)) string {
	t.Helper()
	def := func(name string, kind types.ScalarAttributeType) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: &name, AttributeType: kind}
	}
	key := func(pk, sk string) []types.KeySchemaElement {
		return []types.KeySchemaElement{{AttributeName: &pk, KeyType: types.KeyTypeHash}, {AttributeName: &sk, KeyType: types.KeyTypeRange}}
	}
	capacity := &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(4), WriteCapacityUnits: aws.Int64(2)}
	in := &dynamodb.CreateTableInput{
		TableName: aws.String(e.TableName(t)),
		AttributeDefinitions: []types.AttributeDefinition{
			def("PartKey", "S"), def("SortKey", "S"), def("customer", "S"), def("score", "N"), def("placed", "S"),
		},
		KeySchema: key("PartKey", "SortKey"), ProvisionedThroughput: capacity,
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: aws.String("by-score"), KeySchema: key("customer", "score"), ProvisionedThroughput: capacity,
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}},
		LocalSecondaryIndexes: []types.LocalSecondaryIndex{{
			IndexName: aws.String("by-date"), KeySchema: key("PartKey", "placed"),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}},
	}
	for _, c := range change {
		c(in)
	}
	_, err := e.Client().CreateTable(t.Context(), in)
	require.NoError(t, err)
	return *in.TableName
}

var existingKeys = keys.Scheme{PK: "PartKey", SK: "SortKey", TTL: "expiresAt"}

func describe(t *testing.T, e *engines.Engine, name string) *types.TableDescription {
	t.Helper()
	d, err := e.Client().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &name})
	require.NoError(t, err)
	return d.Table
}

func TestEnsure_CompletesAnExistingApplicationsTable(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		s := table.Schema{
			Name: existing(t, e), Keys: existingKeys,
			Indexes: []table.Index{
				{Name: "by-score", PK: "customer", SK: "score", SKType: table.Number},
				{Name: "gsi1", PK: "GSI1PK", SK: "GSI1SK"},
				{Name: "by-rank", PK: "PartKey", SK: "score", SKType: table.Number, Include: []string{"note"}},
			},
			Capacity: &table.Capacity{Read: 5, Write: 2}, Stream: table.StreamBoth, DeletionProtection: true,
		}
		file, want := "plan-complete.txt", []string{"UpdateTable", "UpdateTable", "UpdateTable", "UpdateTable", "UpdateTable", "UpdateTable", "UpdateTimeToLive"}
		if e.Name == engines.InProcess { // DynamoDB Local has no continuous backups
			s.PointInTimeRecovery, s.Tags = true, map[string]string{"team": "orders", "stage": "test"}
			file, want = "plan-complete-all.txt", append(want, "UpdateContinuousBackups", "TagResource")
		}
		tbl, f := open(t, e, s)
		t.Cleanup(func() { unprotect(t, e, s.Name) })
		golden(t, file, planned(t, tbl))
		assert.Empty(t, changes(f), "looking changes nothing")

		require.NoError(t, tbl.Ensure(t.Context()))
		assert.Equal(t, want, changesMade(f), "one change at a time")
		require.NoError(t, tbl.Verify(t.Context()))

		d := describe(t, e, s.Name)
		kinds := map[string]types.ScalarAttributeType{}
		for _, a := range d.AttributeDefinitions {
			kinds[*a.AttributeName] = a.AttributeType
		}
		assert.Equal(t, map[string]types.ScalarAttributeType{
			"PartKey": "S", "SortKey": "S", "customer": "S", "score": "N", "placed": "S", "GSI1PK": "S", "GSI1SK": "S",
		}, kinds, "the definitions of the indexes that were there stay")
		assert.Len(t, d.LocalSecondaryIndexes, 1, "what the schema does not mention stays")
		assert.Len(t, d.GlobalSecondaryIndexes, 3)
		assert.NotEqual(t, types.BillingModePayPerRequest, billing(d))

		f.Script()
		require.NoError(t, tbl.Ensure(t.Context()))
		assert.Empty(t, changes(f), "a second run changes nothing")
		golden(t, strings.Replace(file, "complete", "nothing", 1), planned(t, tbl))
	})
}

func billing(d *types.TableDescription) types.BillingMode {
	if d.BillingModeSummary == nil {
		return ""
	}
	return d.BillingModeSummary.BillingMode
}

func TestEnsure_RefusesToRebuildAnExistingApplicationsTable(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		name := existing(t, e, func(in *dynamodb.CreateTableInput) {
			in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewImage}
		})
		_, err := e.Client().UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
			TableName: &name, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("deadline"), Enabled: aws.Bool(true)},
		})
		require.NoError(t, err)
		tbl, f := open(t, e, table.Schema{
			Name: name, Keys: existingKeys,
			Indexes: []table.Index{
				{Name: "by-score", PK: "customer", SK: "rank", SKType: table.Number},
				{Name: "gsi1", PK: "GSI1PK"},
				{Name: "by-text", PK: "PartKey", SK: "score"},
				{Name: "lsi1", SK: "LSI1SK", Local: true},
			},
			Stream: table.StreamBoth, DeletionProtection: true,
		})
		before := describe(t, e, name)
		golden(t, "plan-refused.txt", planned(t, tbl))
		err = tbl.Ensure(t.Context())
		var differs *table.SchemaError
		require.ErrorAs(t, err, &differs)
		assert.Len(t, differs.Differences, 5)
		assert.Empty(t, changes(f), "nothing is done by halves")
		assert.Equal(t, before.GlobalSecondaryIndexes, describe(t, e, name).GlobalSecondaryIndexes)
	})
}

// The billing mode of an existing table is nobody's business unless the schema asks for capacity.
func TestEnsure_LeavesTheBillingModeAlone(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		s := table.Schema{Name: existing(t, e), Keys: existingKeys, NoTTL: true, Indexes: []table.Index{{Name: "gsi1", PK: "GSI1PK"}}}
		tbl, _ := open(t, e, s)
		require.NoError(t, tbl.Ensure(t.Context()))
		d := describe(t, e, s.Name)
		assert.NotEqual(t, types.BillingModePayPerRequest, billing(d))
		assert.EqualValues(t, 4, *d.ProvisionedThroughput.ReadCapacityUnits)
		for _, g := range d.GlobalSecondaryIndexes {
			assert.EqualValues(t, 4, *g.ProvisionedThroughput.ReadCapacityUnits, "%s: a new index gets what the table has", *g.IndexName)
		}
	})
}

func TestEnsure_ConcurrentCallsCompleteAnExistingTable(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		s := table.Schema{
			Name: existing(t, e), Keys: existingKeys, Stream: table.StreamBoth,
			Indexes: []table.Index{{Name: "gsi1", PK: "GSI1PK"}, {Name: "gsi2", PK: "GSI2PK"}},
		}
		var group sync.WaitGroup
		errs := make([]error, 5)
		for i := range errs {
			tbl, _ := open(t, e, s)
			group.Go(func() { errs[i] = tbl.Ensure(t.Context()) })
		}
		group.Wait()
		for _, err := range errs {
			assert.NoError(t, err)
		}
		tbl, _ := open(t, e, s)
		require.NoError(t, tbl.Verify(t.Context()))
		assert.Len(t, describe(t, e, s.Name).GlobalSecondaryIndexes, 3)
	})
}

func TestEnsure_NeverCreatesATableThatMustExist(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		schema := table.Schema{Name: e.TableName(t), MustExist: true, Indexes: []table.Index{{Name: "gsi1", PK: "a"}}}
		tbl, f := open(t, e, schema)
		p, err := tbl.Plan(t.Context())
		require.ErrorIs(t, err, table.ErrNoTable)
		assert.Zero(t, p, "nothing is offered")
		for name, err := range map[string]error{"verify": tbl.Verify(t.Context()), "ensure": tbl.Ensure(t.Context())} {
			require.ErrorIs(t, err, table.ErrNoTable, name)
			assert.NotErrorIs(t, err, table.ErrSchema, name)
			assert.ErrorContains(t, err, schema.Name, name)
		}
		assert.Empty(t, changes(f))

		by, _ := open(t, e, table.Schema{Name: schema.Name, NoTTL: true}) // whoever creates it
		require.NoError(t, by.Ensure(t.Context()))
		p, err = tbl.Plan(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []table.StepKind{table.AddIndex, table.EnableTTL}, kinds(p))
		require.ErrorIs(t, tbl.Verify(t.Context()), table.ErrSchema)
		require.NoError(t, tbl.Ensure(t.Context()), "what is missing in it is added")
		assert.Equal(t, []string{"UpdateTable", "UpdateTimeToLive"}, changesMade(f))
		require.NoError(t, tbl.Verify(t.Context()))
	})
}

func TestEnsure_AMissingTableIsADifferenceOtherwise(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		tbl, _ := open(t, e, table.Schema{Name: e.TableName(t)})
		p, err := tbl.Plan(t.Context())
		require.NoError(t, err)
		assert.Contains(t, kinds(p), table.CreateTable)
		assert.ErrorIs(t, tbl.Verify(t.Context()), table.ErrSchema)
	})
}
