package migrations_test

import (
	"context"
	"flag"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

var backfillItems = flag.Int("backfill.items", 20_000, "items of the largest table in BenchmarkBackfill and TestBackfill_KeepsMemoryBounded")

const (
	benchSegments = 4
	benchWriters  = 8
	benchPage     = 500
)

// stocked is an engine with a table of small items.
func stocked(t testing.TB, items int) (*tabletest.Engine, *table.Table) {
	engine := tabletest.NewEngine()
	tbl, err := table.Open(engine.Client(), table.Schema{Name: "app"})
	require.NoError(t, err)
	require.NoError(t, tbl.Ensure(t.Context()))
	var group sync.WaitGroup
	for part := range 2 {
		group.Go(func() {
			for from := part * 50; from < items; from += 100 {
				ops := make([]table.Op, 0, 50)
				for i := from; i < min(items, from+50); i++ {
					item := tbl.KeyItem(itemKey(i))
					item["n"], item["status"], item["name"] = num(int64(i)), text("open"), text("small")
					ops = append(ops, table.Put(item))
				}
				if len(ops) > 0 {
					assert.NoError(t, tbl.Write(context.Background(), ops...))
				}
			}
		})
	}
	group.Wait()
	engine.ResetRequests()
	return engine, tbl
}

// byHand is the same writes in a loop that somebody writes for one purpose: constant
// expressions, no checkpoints, no lock.
func byHand(ctx context.Context, client *dynamodb.Client) error {
	errs := make(chan error, benchSegments*(benchWriters+1))
	var group sync.WaitGroup
	for segment := range benchSegments {
		group.Go(func() {
			work := make(chan map[string]types.AttributeValue)
			var writers sync.WaitGroup
			for range benchWriters {
				writers.Go(func() {
					for item := range work {
						_, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
							TableName:                aws.String("app"),
							Key:                      map[string]types.AttributeValue{"pk": item["pk"], "sk": item["sk"]},
							UpdateExpression:         aws.String("SET #m = :m"),
							ConditionExpression:      aws.String("attribute_exists(pk) AND n = :n AND #s = :s AND #name = :name AND attribute_not_exists(#m)"),
							ExpressionAttributeNames: map[string]string{"#m": "m", "#s": "status", "#name": "name"},
							ExpressionAttributeValues: map[string]types.AttributeValue{
								":m": num(1), ":n": item["n"], ":s": item["status"], ":name": item["name"],
							},
							ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
						})
						if err != nil {
							errs <- err
							return
						}
					}
				})
			}
			defer writers.Wait()
			defer close(work)
			var start map[string]types.AttributeValue
			for {
				page, err := client.Scan(ctx, &dynamodb.ScanInput{
					TableName: aws.String("app"), Segment: aws.Int32(int32(segment)), TotalSegments: aws.Int32(benchSegments), Limit: aws.Int32(benchPage),
					ConsistentRead: aws.Bool(true), ExclusiveStartKey: start, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
				})
				if err != nil {
					errs <- err
					return
				}
				for _, item := range page.Items {
					work <- item
				}
				if start = page.LastEvaluatedKey; start == nil {
					return
				}
			}
		})
	}
	group.Wait()
	close(errs)
	return <-errs
}

// fillOnce runs a backfill over a table in a process of its own.
func fillOnce(t testing.TB, engine *tabletest.Engine, opts ...migrations.Option) {
	tbl, err := table.Open(engine.Client(), table.Schema{Name: "app"})
	require.NoError(t, err)
	locks, err := lock.New(tbl, lock.Config{})
	require.NoError(t, err)
	m, err := migrations.New(tbl, locks, []migrations.Migration{{ID: "1_fill", Up: func(ctx context.Context, run *migrations.Run) error {
		_, err := run.Backfill(ctx, migrations.Backfill{
			Name: "fill", Transform: increment, Segments: benchSegments, Writers: benchWriters, PageSize: benchPage,
		})
		return err
	}}}, append(opts, migrations.WithLogger(discard))...)
	require.NoError(t, err)
	_, err = m.Up(t.Context())
	require.NoError(t, err)
	require.NoError(t, locks.Close(t.Context()))
}

// P11. For the million: go test ./migrations -run '^$' -bench Backfill -benchtime 1x -backfill.items 1000000
func BenchmarkBackfill(b *testing.B) {
	var loop, ours time.Duration
	timed := func(total *time.Duration, f func(engine *tabletest.Engine)) {
		b.StopTimer()
		engine, _ := stocked(b, *backfillItems)
		runtime.GC()
		b.StartTimer()
		start := time.Now()
		f(engine)
		*total += time.Since(start)
	}
	rounds := 0
	for b.Loop() {
		for i := range 2 { // in turns: what the machine does meanwhile meets both
			if (rounds+i)%2 == 0 {
				timed(&loop, func(engine *tabletest.Engine) { require.NoError(b, byHand(b.Context(), engine.Client())) })
			} else {
				timed(&ours, func(engine *tabletest.Engine) { fillOnce(b, engine) })
			}
		}
		rounds++
	}
	rate := func(d time.Duration) float64 { return float64(*backfillItems*rounds) / d.Seconds() }
	b.ReportMetric(rate(loop), "loop-items/s")
	b.ReportMetric(rate(ours), "items/s")
	b.ReportMetric(rate(ours)/rate(loop), "ratio")
	b.ReportMetric(0, "ns/op")
	b.Logf("P11 backfill of %d items: %.0f per second, a bare loop with the same writes %.0f: ratio %.2f (goal at least 0.9)", *backfillItems, rate(ours), rate(loop), rate(ours)/rate(loop))
}

// mill makes items as they are read and forgets what is written to them: whatever memory
// grows with their number is the backfill's own. All else goes to an engine.
type mill struct {
	*dynamodb.Client
	items int
}

func (m mill) Scan(_ context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	i, step := int(*in.Segment), int(*in.TotalSegments)
	if in.ExclusiveStartKey != nil {
		last, err := strconv.Atoi(strings.TrimPrefix(in.ExclusiveStartKey["pk"].(*types.AttributeValueMemberS).Value, "ITEM#"))
		if err != nil {
			return nil, err
		}
		i = last + step
	}
	out := &dynamodb.ScanOutput{}
	for ; i < m.items && len(out.Items) < int(*in.Limit); i += step {
		out.Items = append(out.Items, table.Item{
			"pk": text(itemKey(i).PK), "sk": text("ITEM"), "n": num(int64(i)), "status": text("open"), "name": text("small"),
		})
	}
	if i < m.items {
		last := out.Items[len(out.Items)-1]
		out.LastEvaluatedKey = table.Item{"pk": last["pk"], "sk": last["sk"]}
	}
	return out, nil
}

func (m mill) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if pk, ok := in.Key["pk"].(*types.AttributeValueMemberS); ok && strings.HasPrefix(pk.Value, "ITEM#") {
		return &dynamodb.UpdateItemOutput{}, nil
	}
	return m.Client.UpdateItem(ctx, in, opts...)
}

// TransactWriteItems drops positions, since the engine keeps the tokens of transactions for ten
// minutes.
func (m mill) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	if put := in.TransactItems[0].Put; put != nil {
		sk := put.Item["sk"].(*types.AttributeValueMemberS).Value
		if strings.HasPrefix(sk, "CHECKPOINT#") && !strings.HasSuffix(sk, "#000000") {
			return &dynamodb.TransactWriteItemsOutput{}, nil
		}
	}
	return m.Client.TransactWriteItems(ctx, in, opts...)
}

// P11: memory, independent of the number of items.
func TestBackfill_KeepsMemoryBounded(t *testing.T) {
	const allowance = 24 << 20 // for what happens to be under way: all items at once would take several times as much
	heap := func() int64 {
		least := int64(math.MaxInt64)
		for range 3 { // what others allocate during a collection counts as in use: on a busy machine that is much
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			least = min(least, int64(m.HeapAlloc))
		}
		return least
	}
	sizes := []int{10_000, 100_000}
	if *backfillItems > sizes[1] {
		sizes = append(sizes, *backfillItems)
	}
	var peaks []int64
	for _, items := range sizes {
		engine := tabletest.New(t)
		tbl, err := table.Open(mill{engine.Client(), items}, table.Schema{Name: "app"})
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(t.Context()))
		locks, err := lock.New(tbl, lock.Config{})
		require.NoError(t, err)
		before := heap()
		var peak, seen atomic.Int64
		transform := func(ctx context.Context, item table.Item) (table.Item, error) {
			if seen.Add(1)%int64(items/5) == 0 {
				if h := heap() - before; h > peak.Load() {
					peak.Store(h)
				}
			}
			return increment(ctx, item)
		}
		var p migrations.Progress
		m, err := migrations.New(tbl, locks, backfill(migrations.Backfill{Transform: transform}, &p), migrations.WithLogger(discard))
		require.NoError(t, err)
		_, err = m.Up(t.Context())
		require.NoError(t, err)
		require.NoError(t, locks.Close(t.Context()))
		require.EqualValues(t, items, p.Changed)
		require.EqualValues(t, items, seen.Load())
		peaks = append(peaks, peak.Load())
		t.Logf("P11 memory of a backfill over %d items: %.1f MB at most (goal: independent of their number)", items, float64(peak.Load())/1e6)
	}
	assert.Less(t, slices.Max(peaks), peaks[0]+allowance)
}
