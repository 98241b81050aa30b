package lock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// byHand acquires and releases a lock as an application does that needs only exclusion: one update sets a nonce and counts
// the fence, another one removes the nonce. Like the baseline of `make peers`, it owes nothing to the library's requests.
func byHand(ctx context.Context, client *dynamodb.Client) error {
	nonce := &types.AttributeValueMemberS{Value: rand.Text()}
	key := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "BYHAND#report"}, "sk": &types.AttributeValueMemberS{Value: "LOCK"}}
	out, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String("app"), Key: key,
		UpdateExpression: aws.String("SET nonce = :nonce ADD fence :one"), ConditionExpression: aws.String("attribute_not_exists(nonce)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":nonce": nonce, ":one": &types.AttributeValueMemberN{Value: "1"}},
		ReturnValues:              types.ReturnValueUpdatedNew,
	})
	if err != nil {
		return err
	}
	if _, ok := out.Attributes["fence"].(*types.AttributeValueMemberN); !ok {
		return errors.New("the answer has no fence")
	}
	_, err = client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String("app"), Key: key,
		UpdateExpression: aws.String("REMOVE nonce"), ConditionExpression: aws.String("nonce = :nonce"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":nonce": nonce},
	})
	return err
}

// P8 without a network: an acquire and a release beside a minimal lock, in turn, so that both see the same machine. The
// engine's work is included. `make peers` measures the same on DynamoDB Local, where the ratio is smaller.
func BenchmarkAcquireRelease(b *testing.B) {
	ctx := b.Context()
	client := tabletest.NewEngine().Client()
	tbl, err := table.Open(client, table.Schema{Name: "app"})
	require.NoError(b, err)
	require.NoError(b, tbl.Ensure(ctx))
	locks, err := lock.New(tbl, lock.Config{})
	require.NoError(b, err)
	pair := func() error {
		l, err := locks.Acquire(ctx, lock.Name("report"))
		if err != nil {
			return err
		}
		return l.Release(ctx)
	}
	raw := func() error { return byHand(ctx, client) }
	check := func(f func() error) {
		if err := f(); err != nil {
			b.Fatal(err)
		}
	}
	check(pair)
	check(raw)
	ourAllocs := testing.AllocsPerRun(200, func() { check(pair) })
	theirAllocs := testing.AllocsPerRun(200, func() { check(raw) })

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
