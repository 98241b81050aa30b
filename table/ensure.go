package table

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/internal/machine"
)

// Ensure creates the table, or adds what the live table lacks, and waits until all of it is active. A second run
// changes nothing. Several instances can run it at the same time.
//
// It never drops or replaces anything. If that would be necessary, it returns a *[SchemaError] and changes nothing.
// With [Schema.MustExist], a missing table is [ErrNoTable].
//
// Creating a table takes seconds, its recovery can be enabled only some time after that, and adding an index to a large
// table takes hours; ctx bounds the wait. DynamoDB allows one change of the time to live per hour, and refuses a second
// one.
//
// Cost: no units. If nothing is missing, one request more than [Table.Plan]. Otherwise some requests for each step, and one every 0.1
// to 10 s until the step is done.
func (t *Table) Ensure(ctx context.Context) error {
	var last Step
	var lastErr error
	var wait backoff.BackOff
	for repeats := 0; ; {
		d, err := t.describeTable(ctx)
		if err == nil && d != nil && !hasSettings(d) {
			d, err = t.settle(ctx)
		}
		if err != nil {
			return err
		}
		l, err := t.describe(ctx, d)
		if err != nil {
			return err
		}
		p := t.compare(l)
		if len(p.Refused) > 0 {
			return &SchemaError{Table: t.schema.Name, Differences: p.Refused}
		}
		if len(p.Steps) == 0 {
			_, err := t.settle(ctx)
			return err
		}
		// Apply one step, then compare again: steps depend on each other, and other instances may apply them too.
		step := p.Steps[0]
		if step == last {
			switch {
			case backupsPending(lastErr):
			case lastErr != nil && !inUse(lastErr):
				return lastErr // no other instance has applied the step either, since it is still in the plan
			case repeats == 10:
				if lastErr == nil {
					lastErr = errors.New("no effect")
				}
				return fmt.Errorf("table: ensure: %w: %s: %w", ErrSchema, step.Kind, lastErr)
			default:
				repeats++
			}
			if err := t.retry.pause(ctx, wait); err != nil {
				return fmt.Errorf("table: ensure: %s: %w", step.Kind, errs.Join(err, lastErr))
			}
			if lastErr == nil {
				continue // DynamoDB has accepted the step, but can describe the table, and most of all its tags, as before for some seconds
			}
		} else {
			last, repeats, wait = step, 0, t.patience()
		}
		settled, err := t.settle(ctx)
		if err != nil {
			return err
		}
		if settled != nil {
			l.table = settled // an index that was there before may be deleted by now
		}
		if lastErr = t.apply(ctx, step, l); ctx.Err() != nil && lastErr != nil {
			return lastErr
		}
		if _, err := t.settle(ctx); err != nil {
			return err
		}
	}
}

// inUse reports whether DynamoDB refused a change because another one is under way.
func inUse(err error) bool {
	var busy *types.ResourceInUseException
	var limit *types.LimitExceededException
	return errors.As(err, &busy) || errors.As(err, &limit) && errors.Is(err, ErrThrottled)
}

// backupsPending reports whether DynamoDB refused recovery since it still sets up the backups of a new table. It does so for some time
// after the table is active.
func backupsPending(err error) bool {
	var pending *types.ContinuousBackupsUnavailableException
	return errors.As(err, &pending)
}

// patience returns waiting times without an end, for what takes as long as ctx allows: filling an index can take hours.
func (t *Table) patience() backoff.BackOff {
	return machine.Backoff(t.machine,
		backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(10*time.Second),
		backoff.WithMaxElapsedTime(0),
	)
}

// settle waits until the table and all its indexes are active, and returns the table. A table that does not exist, for which it returns
// nil, is settled.
func (t *Table) settle(ctx context.Context) (*types.TableDescription, error) {
	wait := t.patience()
	for {
		d, err := t.describeTable(ctx)
		if err != nil || d == nil || isActive(d) {
			return d, err
		}
		switch d.TableStatus {
		case types.TableStatusArchiving, types.TableStatusArchived, types.TableStatusInaccessibleEncryptionCredentials:
			return nil, fmt.Errorf("table: ensure: %w: table %s is %s", ErrSchema, t.schema.Name, d.TableStatus)
		}
		if err := t.retry.pause(ctx, wait); err != nil {
			return nil, fmt.Errorf("table: ensure: wait until %s is active: %w", t.schema.Name, err)
		}
	}
}

// hasSettings reports whether DynamoDB tells the time to live, the backups and the tags of a table. To a request for those of a table that
// is still being made, or is archived, it can answer that there is no such table.
func hasSettings(d *types.TableDescription) bool {
	switch d.TableStatus {
	case types.TableStatusCreating, types.TableStatusArchiving, types.TableStatusArchived:
		return false
	}
	return true
}

func isActive(d *types.TableDescription) bool {
	if d.TableStatus != types.TableStatusActive {
		return false
	}
	for _, g := range d.GlobalSecondaryIndexes {
		if g.IndexStatus != types.IndexStatusActive {
			return false
		}
	}
	return true
}

func (t *Table) apply(ctx context.Context, step Step, l live) error {
	s := t.schema
	switch step.Kind {
	case CreateTable:
		return t.create(ctx)
	case AddIndex:
		x, _ := s.Index(step.name)
		capacity := liveCapacity(l.table)
		if capacity != nil && s.Capacity != nil { // create the index with the new capacity
			capacity = s.Capacity
		}
		return t.update(ctx, &dynamodb.UpdateTableInput{
			AttributeDefinitions: s.definitions(x),
			GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Create: &types.CreateGlobalSecondaryIndexAction{
				IndexName: &x.Name, KeySchema: x.keySchema(), Projection: x.projection(), ProvisionedThroughput: throughput(capacity),
			}}},
		})
	case ChangeCapacity:
		return t.changeCapacity(ctx, l.table, step.name)
	case EnableStream:
		return t.update(ctx, &dynamodb.UpdateTableInput{StreamSpecification: s.stream()})
	case EnableDeletionProtection:
		return t.update(ctx, &dynamodb.UpdateTableInput{DeletionProtectionEnabled: aws.Bool(true)})
	case EnableTTL:
		return t.enableTTL(ctx)
	case EnableRecovery:
		in := &dynamodb.UpdateContinuousBackupsInput{
			TableName:                        &s.Name,
			PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)},
		}
		return call(ctx, t, "UpdateContinuousBackups", true, Client.UpdateContinuousBackups, in, func(out *dynamodb.UpdateContinuousBackupsOutput) (answer, error) {
			return answer{metadata: out.ResultMetadata}, nil
		})
	case AddTags:
		in := &dynamodb.TagResourceInput{ResourceArn: l.table.TableArn, Tags: s.tags(s.missingTags(l.tags))}
		return call(ctx, t, "TagResource", true, Client.TagResource, in, func(out *dynamodb.TagResourceOutput) (answer, error) {
			return answer{metadata: out.ResultMetadata}, nil
		})
	}
	return fmt.Errorf("table: ensure: %w: unknown step %q", ErrInvalid, step.Kind)
}

func (t *Table) create(ctx context.Context) error {
	s := t.schema
	in := &dynamodb.CreateTableInput{
		TableName:             &s.Name,
		AttributeDefinitions:  s.definitions(s.Indexes...),
		KeySchema:             Index{PK: s.Keys.PK, SK: s.Keys.SK}.keySchema(),
		BillingMode:           types.BillingMode(s.billing()),
		ProvisionedThroughput: throughput(s.Capacity),
		StreamSpecification:   s.stream(),
		Tags:                  s.tags(s.missingTags(nil)),
	}
	if s.DeletionProtection {
		in.DeletionProtectionEnabled = aws.Bool(true)
	}
	for _, x := range s.Indexes {
		if x.Local {
			in.LocalSecondaryIndexes = append(in.LocalSecondaryIndexes, types.LocalSecondaryIndex{
				IndexName: aws.String(x.Name), KeySchema: x.keySchema(), Projection: x.projection(),
			})
			continue
		}
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: aws.String(x.Name), KeySchema: x.keySchema(), Projection: x.projection(), ProvisionedThroughput: throughput(s.Capacity),
		})
	}
	return call(ctx, t, "CreateTable", true, Client.CreateTable, in, func(out *dynamodb.CreateTableOutput) (answer, error) {
		return answer{metadata: out.ResultMetadata}, nil
	})
}

func (t *Table) update(ctx context.Context, in *dynamodb.UpdateTableInput) error {
	in.TableName = &t.schema.Name
	return call(ctx, t, "UpdateTable", true, Client.UpdateTable, in, func(out *dynamodb.UpdateTableOutput) (answer, error) {
		return answer{metadata: out.ResultMetadata}, nil
	})
}

// changeCapacity sets the throughput of one index or, if index is "", of the table. If the table was on demand, changeCapacity also sets
// the throughput of all global indexes, since each of them then needs one.
func (t *Table) changeCapacity(ctx context.Context, have *types.TableDescription, index string) error {
	if index != "" {
		return t.update(ctx, &dynamodb.UpdateTableInput{GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{
			Update: &types.UpdateGlobalSecondaryIndexAction{IndexName: &index, ProvisionedThroughput: throughput(t.schema.Capacity)},
		}}})
	}
	in := &dynamodb.UpdateTableInput{BillingMode: types.BillingModeProvisioned, ProvisionedThroughput: throughput(t.schema.Capacity)}
	if liveCapacity(have) == nil {
		for _, g := range have.GlobalSecondaryIndexes {
			in.GlobalSecondaryIndexUpdates = append(in.GlobalSecondaryIndexUpdates, types.GlobalSecondaryIndexUpdate{
				Update: &types.UpdateGlobalSecondaryIndexAction{IndexName: g.IndexName, ProvisionedThroughput: throughput(t.schema.Capacity)},
			})
		}
	}
	return t.update(ctx, in)
}

func (t *Table) enableTTL(ctx context.Context) error {
	in := &dynamodb.UpdateTimeToLiveInput{
		TableName:               &t.schema.Name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &t.scheme.TTL, Enabled: aws.Bool(true)},
	}
	return call(ctx, t, "UpdateTimeToLive", true, Client.UpdateTimeToLive, in, func(out *dynamodb.UpdateTimeToLiveOutput) (answer, error) {
		return answer{metadata: out.ResultMetadata}, nil
	})
}

func throughput(c *Capacity) *types.ProvisionedThroughput {
	if c == nil {
		return nil
	}
	return &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(c.Read), WriteCapacityUnits: aws.Int64(c.Write)}
}

func (s Schema) stream() *types.StreamSpecification {
	if s.Stream == "" {
		return nil
	}
	return &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewType(s.Stream)}
}

func (s Schema) tags(names []string) (list []types.Tag) {
	for _, name := range names {
		list = append(list, types.Tag{Key: aws.String(name), Value: aws.String(s.Tags[name])})
	}
	return list
}

// definitions lists the key attributes of the table and of indexes, without repetitions.
func (s Schema) definitions(indexes ...Index) []types.AttributeDefinition {
	var list []types.AttributeDefinition
	seen := map[string]bool{"": true}
	add := func(name string, kind AttributeType) {
		if !seen[name] {
			seen[name] = true
			list = append(list, types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: types.ScalarAttributeType(kind)})
		}
	}
	add(s.Keys.PK, String)
	add(s.Keys.SK, String)
	for _, x := range indexes {
		add(x.PK, x.PKType)
		add(x.SK, x.SKType)
	}
	return list
}

func (x Index) keySchema() []types.KeySchemaElement {
	list := []types.KeySchemaElement{{AttributeName: aws.String(x.PK), KeyType: types.KeyTypeHash}}
	if x.SK != "" {
		list = append(list, types.KeySchemaElement{AttributeName: aws.String(x.SK), KeyType: types.KeyTypeRange})
	}
	return list
}

func (x Index) projection() *types.Projection {
	switch {
	case x.Include == nil:
		return &types.Projection{ProjectionType: types.ProjectionTypeAll}
	case len(x.Include) == 0:
		return &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}
	}
	return &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: x.Include}
}
