package lock_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// spy remembers the updates that a table sends.
type spy struct {
	*dynamodb.Client
	on      bool
	updates []*dynamodb.UpdateItemInput
}

func (s *spy) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if s.on {
		s.updates = append(s.updates, in)
	}
	return s.Client.UpdateItem(ctx, in, opts...)
}

// byHand sends an update like one of the library's, as one writes it by hand: constant expressions and names, and new
// values for each call. like was sent under the fence base, which is replaced by the fence of the call. It returns the
// row's fence.
func byHand(like *dynamodb.UpdateItemInput, base int64, client *dynamodb.Client) func(ctx context.Context, fence int64) (int64, error) {
	names := make([]string, 0, len(like.ExpressionAttributeValues))
	for name := range like.ExpressionAttributeValues {
		names = append(names, name)
	}
	return func(ctx context.Context, fence int64) (int64, error) {
		values := make(map[string]types.AttributeValue, len(names))
		for _, name := range names {
			switch v := like.ExpressionAttributeValues[name].(type) {
			case *types.AttributeValueMemberS:
				values[name] = &types.AttributeValueMemberS{Value: v.Value}
			case *types.AttributeValueMemberN:
				n, err := strconv.ParseInt(v.Value, 10, 64)
				if err != nil {
					return 0, err
				}
				if n == base || n == base+1 {
					n += fence - base
				}
				values[name] = &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
			case *types.AttributeValueMemberL:
				list := &types.AttributeValueMemberL{Value: make([]types.AttributeValue, len(v.Value))}
				for i, e := range v.Value {
					list.Value[i] = &types.AttributeValueMemberS{Value: e.(*types.AttributeValueMemberS).Value}
				}
				values[name] = list
			}
		}
		key := make(map[string]types.AttributeValue, len(like.Key))
		for name, v := range like.Key {
			key[name] = &types.AttributeValueMemberS{Value: v.(*types.AttributeValueMemberS).Value}
		}
		out, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: like.TableName, Key: key,
			ConditionExpression: like.ConditionExpression, UpdateExpression: like.UpdateExpression,
			ExpressionAttributeNames: like.ExpressionAttributeNames, ExpressionAttributeValues: values,
			ReturnValues:                        like.ReturnValues,
			ReturnValuesOnConditionCheckFailure: like.ReturnValuesOnConditionCheckFailure,
			ReturnConsumedCapacity:              like.ReturnConsumedCapacity,
		})
		if err != nil {
			return 0, err
		}
		f, ok := out.Attributes["fence"].(*types.AttributeValueMemberN)
		if !ok {
			return 0, nil // of a release
		}
		return strconv.ParseInt(f.Value, 10, 64)
	}
}

// P8: an acquire and a release against the same two updates sent by hand, in turn, so that
// both see the same machine.
func BenchmarkAcquireRelease(b *testing.B) {
	engine := tabletest.NewEngine()
	ctx := b.Context()
	client := &spy{Client: engine.Client(), on: true}
	tbl, err := table.Open(client, table.Schema{Name: "app"})
	require.NoError(b, err)
	require.NoError(b, tbl.Ensure(ctx))
	locks, err := lock.New(tbl, lock.Config{})
	require.NoError(b, err)
	var fence int64
	pair := func() error {
		l, err := locks.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
		if err != nil {
			return err
		}
		fence = l.Fence()
		return l.Release(ctx)
	}
	require.NoError(b, pair())
	require.NoError(b, pair())
	require.Len(b, client.updates, 4)
	// This row continues from the library's. Only its ticket repeats.
	acquire, release := byHand(client.updates[2], fence, client.Client), byHand(client.updates[3], fence, client.Client)
	raw := func() error {
		f, err := acquire(ctx, 0)
		if err != nil {
			return err
		}
		_, err = release(ctx, f)
		return err
	}
	client.on = false
	check := func(f func() error) {
		if err := f(); err != nil {
			b.Fatal(err)
		}
	}
	ourAllocs := testing.AllocsPerRun(200, func() { check(pair) })
	check(raw)
	theirAllocs := testing.AllocsPerRun(200, func() { check(pair); check(raw) }) - ourAllocs

	var ours, theirs []time.Duration
	for b.Loop() {
		start := time.Now()
		check(pair)
		middle := time.Now()
		check(raw)
		ours, theirs = append(ours, middle.Sub(start)), append(theirs, time.Since(middle))
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	n := len(ours)
	b.ReportMetric(float64(ours[n/2]), "p50-ns/pair")
	b.ReportMetric(float64(theirs[n/2]), "p50-ns/raw")
	b.ReportMetric(float64(ours[n/2])/float64(theirs[n/2]), "p50-ratio")
	b.ReportMetric(ourAllocs/theirAllocs, "allocs-ratio")
}
