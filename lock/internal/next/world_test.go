package next_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/next"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// world is an engine in virtual time.
type world struct {
	*testing.T
	engine *tabletest.Engine
}

func virtual(t *testing.T, f func(ctx context.Context, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, engine: tabletest.New(t)}
		tbl, err := table.Open(w.engine.Client(), table.Schema{Name: "app"})
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(t.Context()))
		f(t.Context(), w)
	})
}

// wire is a process's way to DynamoDB.
type wire struct {
	to    aws.HTTPClient
	cut   atomic.Bool
	calls atomic.Int64
}

func (w *wire) Do(r *http.Request) (*http.Response, error) {
	w.calls.Add(1)
	if w.cut.Load() {
		return nil, errors.New("cut off")
	}
	return w.to.Do(r)
}

type process struct {
	*next.Client
	wire  *wire
	table *table.Table
}

// process is a client of its own, which is closed when the test ends.
func (w *world) process(i int, change ...func(*next.Config)) *process {
	w.Helper()
	p := &process{wire: &wire{to: w.engine.HTTPClient()}}
	var err error
	p.table, err = table.Open(w.engine.Client(func(o *dynamodb.Options) { o.HTTPClient = p.wire }), table.Schema{Name: "app"})
	require.NoError(w, err)
	config := next.DefaultConfig(fmt.Sprintf("process/%d", i))
	for _, f := range change {
		f(&config)
	}
	p.Client, err = next.New(p.table, config)
	require.NoError(w, err)
	w.Cleanup(func() { _ = p.Close(context.WithoutCancel(w.Context())) })
	return p
}

func (w *world) latency(d time.Duration) {
	w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: d})
}

func key(name string) keys.Key { return keys.NewKey("LOCK#"+name, "LOCK#"+name) }

// contest has goroutines take one lock again and again for a time, and returns the grants of each, the
// longest wait, and for how long the lock was held.
func (w *world) contest(processes []*process, each int, hold, during time.Duration, once bool) (grants [][]int, longest, held time.Duration) {
	w.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	holders := 0
	ctx, cancel := context.WithTimeout(w.Context(), during)
	defer cancel()
	grants = make([][]int, len(processes))
	for i, p := range processes {
		grants[i] = make([]int, each)
		for j := range each {
			all.Go(func() {
				for ctx.Err() == nil {
					began := time.Now()
					l, err := p.Acquire(ctx, key("a"))
					if err != nil {
						if ctx.Err() == nil {
							w.Errorf("acquire: %v", err)
						}
						mu.Lock()
						longest = max(longest, time.Since(began))
						mu.Unlock()
						return
					}
					mu.Lock()
					if holders++; holders > 1 {
						w.Errorf("%d hold at once", holders)
					}
					grants[i][j]++
					longest = max(longest, time.Since(began))
					held += hold
					mu.Unlock()
					time.Sleep(hold)
					mu.Lock()
					holders--
					mu.Unlock()
					if err := l.Release(context.WithoutCancel(ctx)); err != nil {
						w.Errorf("release: %v", err)
					}
					if once {
						return
					}
				}
			})
		}
	}
	all.Wait()
	return grants, longest, held
}

func number(av types.AttributeValue) string {
	n, _ := av.(*types.AttributeValueMemberN)
	if n == nil {
		return ""
	}
	return n.Value
}

// jain is Jain's index of fairness: 1 where all have got the same.
func jain(list []int) float64 {
	sum, squares := 0.0, 0.0
	for _, n := range list {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	return sum * sum / (float64(len(list)) * squares)
}
