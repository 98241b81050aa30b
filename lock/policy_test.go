package lock_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

const (
	account = "123456789012"
	arn     = "arn:aws:dynamodb:" + tabletest.Region + ":" + account + ":table/"
)

// applicationPartitions are the partitions of the rows that this suite protects.
func applicationPartitions() []string {
	return []string{"TENANT#*", "ROW", "ROW#*", "T#*", "R#*", "a", "a#a", "A", canary}
}

// checked counts the accesses that were checked in all tests of this binary. TestMain prints it.
var checked = &tally{counts: map[string]int{}}

// tally counts actions.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (t *tally) add(action string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[action]++
}

func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	all := 0
	for _, action := range slices.Sorted(maps.Keys(t.counts)) {
		fmt.Fprintf(&b, ", %d %s", t.counts[action], strings.TrimPrefix(action, "dynamodb:"))
		all += t.counts[action]
	}
	return fmt.Sprintf("%d accesses%s", all, b.String())
}

// guardian stands between clients and the engine, and fails the test for every request that policy.json does not cover. It
// still sends the request.
type guardian struct {
	t      testing.TB
	pk     string // name of the partition key
	policy *policy
	tally  *tally
	most   int64 // how many requests are checked: those after it repeat what others have sent
	sent   atomic.Int64
}

// newGuardian checks the requests for locks in a table with the given scheme. more are further partitions of the
// application.
func newGuardian(t testing.TB, name string, scheme keys.Scheme, more ...string) *guardian {
	t.Helper()
	p, err := readPolicy("policy.json")
	require.NoError(t, err)
	ours := func(prefix string) []string { return []string{scheme.Prefix + prefix + string(rune(scheme.Delimiter))} }
	most := int64(testkit.IfSmall(100, math.MaxInt))
	return &guardian{t: t, pk: scheme.PK, most: most, tally: &tally{counts: map[string]int{}}, policy: p.fill(map[string][]string{
		"REGION": {tabletest.Region}, "ACCOUNT": {account}, "TABLE": {name},
		"LOCK#": ours("LOCK"), "LOCKS#": ours("LOCKS"), "SESSION#": ours("SESSION"), "APPLICATION#*": append(applicationPartitions(), more...),
	})}
}

// over checks what is sent to a client.
func (g *guardian) over(to aws.HTTPClient) aws.HTTPClient { return guarded{g, to} }

type guarded struct {
	guardian *guardian
	to       aws.HTTPClient
}

func (c guarded) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Context().Value(handKey{}) == nil && c.guardian.sent.Add(1) <= c.guardian.most {
		body, err := peek(r)
		if err != nil {
			return nil, err
		}
		_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		c.guardian.check(operation, body)
	}
	return c.to.Do(r)
}

func (g *guardian) check(operation string, body []byte) {
	list, err := accesses(operation, body, g.pk, arn)
	if err != nil {
		g.t.Errorf("%s is not understood: %v", operation, err)
	}
	for _, a := range list {
		checked.add(a.action)
		g.tally.add(a.action)
		if !g.policy.allows(a) {
			g.t.Errorf("policy.json does not allow %s on %s, leading keys %q", a.action, a.resource, a.leading)
		}
	}
}

// ownHand marks requests of the test itself that a client's table sends. They are not checked.
func ownHand(ctx context.Context) context.Context { return context.WithValue(ctx, handKey{}, true) }

type handKey struct{}

// B5: each call is made once, under the permissions that it needs. The requests of all other tests are checked on the
// in-process engine as they run; with -short, the first hundred of each.
func TestPolicy_CoversEveryRequest(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		w.guardian.most = math.MaxInt
		schema := w.indexed(byTime).Schema()
		c, other := w.coldClient(lock.Config{}), w.client(lock.Config{})
		own, beside := lock.Name("report"), lock.Beside(w.row("beside"))
		for _, target := range []lock.Target{own, beside} {
			l, err := c.Acquire(ctx, target)
			require.NoError(t, err)
			waiter := acquireAsync(ctx, other, target)
			time.Sleep(time.Minute) // questions, looks and renewals
			require.NoError(t, l.Write(ctx, w.put("a"), w.count("b"), table.Delete(w.row("c")), table.Check(w.row("d"), table.Attr("pk").NotExists())))
			require.NoError(t, l.Commit(ctx, w.put("a")))
			next := <-waiter
			require.NotNil(t, next)
			_, err = other.Inspect(ctx, target)
			require.NoError(t, err)
			require.NoError(t, next.Release(ctx))
			fixed, err := c.TryAcquire(ctx, target, lock.Fixed(time.Minute))
			require.NoError(t, err)
			require.NoError(t, fixed.Renew(ctx))
			require.NoError(t, fixed.Release(ctx))
		}
		// AcquireAll, and a run of an interval.
		b, err := c.AcquireAll(ctx, []lock.Target{own, beside}, lock.WithData("x"))
		require.NoError(t, err)
		require.NoError(t, b.Commit(ctx, w.put("a")))
		over, stop := context.WithCancel(ctx)
		require.ErrorIs(t, c.Every(over, beside, time.Hour, func(context.Context, *lock.Lease, time.Time) error {
			stop()
			return nil
		}), context.Canceled)
		// Calls of operators.
		listing, err := lock.New(w.openOver(w.engine.HTTPClient(), schema), lock.Config{Index: "gsi1"})
		require.NoError(t, err)
		for _, target := range []lock.Target{own, beside} {
			held, err := listing.Acquire(ctx, target)
			require.NoError(t, err)
			require.NoError(t, held.SetData(ctx, "x"))
			for _, from := range []lock.Source{lock.In(held.Key().PK), lock.Index()} {
				found := 0
				for r, err := range listing.List(ctx, from) {
					require.NoError(t, err)
					assert.True(t, r.Held())
					found++
				}
				assert.Equal(t, 1, found, "%v", from)
			}
			require.NoError(t, other.Revoke(ctx, target))
			w.force(ctx, other, target)
		}
		require.NoError(t, listing.Close(ctx))
		// A takeover, and the end of a session.
		wire := &line{to: w.engine.HTTPClient()}
		_, err = w.clientOver(wire, lock.Config{}).Acquire(ctx, own)
		require.NoError(t, err)
		wire.cut(refused)
		time.Sleep(time.Hour)
		l, err := c.TryAcquire(ctx, own)
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		time.Sleep(time.Minute)
		// The first client, which does not know whether the table has replicas.
		l, err = w.cold(lock.Config{}).Acquire(ctx, own)
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		unused := 0
		for _, s := range w.guardian.policy.Statement {
			for _, action := range s.Action {
				if w.guardian.tally.counts[action] == 0 {
					unused++
					t.Errorf("nothing needs %s", action)
				}
			}
		}
		t.Logf("checked: %v", w.guardian.tally)
		testkit.Check(t, "B5", testkit.Exactly(unused, "actions in the policy that nothing uses", 0))
	})
}

// Requests that the policy must refuse, and that the evaluator must not overlook.
func TestPolicy_IsMinimal(t *testing.T) {
	g := newGuardian(t, "app", keys.Scheme{PK: "pk", Delimiter: '#'})
	app := arn + "app"
	for _, a := range []access{
		{"dynamodb:PutItem", app, []string{"LOCK#report"}},
		{"dynamodb:PutItem", app, []string{"SESSION#1"}},
		{"dynamodb:DeleteItem", app, []string{"LOCK#report"}},
		{"dynamodb:UpdateItem", app, []string{"OTHER#1"}},
		{"dynamodb:UpdateItem", app, []string{"XLOCK#1"}},
		{"dynamodb:UpdateItem", app, []string{"lock#1"}},
		{"dynamodb:UpdateItem", arn + "other", []string{"LOCK#1"}},
		{"dynamodb:BatchGetItem", app, []string{"LOCK#1", "SESSION#1", "OTHER#1"}},
		{"dynamodb:Scan", app, nil},
		{"dynamodb:Query", app, []string{"SESSION#1"}},
		{"dynamodb:Query", app, []string{"LOCKS#00"}},
		{"dynamodb:Query", app + "/index/gsi1", []string{"LOCK#1"}},
		{"dynamodb:Query", app + "/index/gsi1", []string{"TENANT#acme"}},
		{"dynamodb:DeleteTable", app, nil},
		{"dynamodb:UpdateTable", app, nil},
	} {
		assert.False(t, g.policy.allows(a), "%+v", a)
	}
	for _, a := range []access{
		{"dynamodb:UpdateItem", app, []string{"LOCK#report"}},
		{"dynamodb:BatchGetItem", app, []string{"LOCK#1", "SESSION#1", "TENANT#1"}},
		{"dynamodb:DeleteItem", app, []string{"SESSION#1"}},
		{"dynamodb:DeleteItem", app, []string{"TENANT#acme"}},
		{"dynamodb:Query", app, []string{"TENANT#acme"}},
		{"dynamodb:Query", app + "/index/gsi1", []string{"LOCKS#15"}},
		{"dynamodb:DescribeTable", app, nil},
	} {
		assert.True(t, g.policy.allows(a), "%+v", a)
	}
	for pattern, text := range map[string]string{"LOCK#*": "LOCK#", "*": "", "a*b*c": "a-b-b-c", "a?c*": "abc", "*#*": "##"} {
		assert.True(t, matches(pattern, text), "%s %s", pattern, text)
	}
	for pattern, text := range map[string]string{"LOCK#*": "LOCK", "": "a", "a*b*c": "a-b-b", "a?c": "ac", "*#": "#a", "?": ""} {
		assert.False(t, matches(pattern, text), "%s %s", pattern, text)
	}
	_, err := readPolicy(filepath.Join("testdata", "no-such-file.json"))
	require.Error(t, err)
}

// No client of the tests avoids the check of permissions: clients are opened only on tables that make it.
func TestPolicy_GuardsEveryClientOfTheTests(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	require.Greater(t, len(files), 10)
	// Examples, benchmarks, and tests whose engine is another program.
	apart := []string{"example_test.go", "example_operator_test.go", "readme_test.go", "bench_test.go", "pause_test.go", "pause_unix_test.go"}
	made := 0
	for _, file := range files {
		if slices.Contains(apart, file) {
			continue
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			switch {
			case !ok:
			case f.Sel.Name == "New" && fmt.Sprint(f.X) == "lock":
				made++
				if s, ok := call.Args[0].(*ast.SelectorExpr); ok {
					assert.NotEqual(t, "table", s.Sel.Name, "%v: the test's own table goes around the policy: open another", fset.Position(call.Pos()))
				}
			case f.Sel.Name == "Open" && fmt.Sprint(f.X) == "table":
				ast.Inspect(call.Args[0], func(n ast.Node) bool {
					if c, ok := n.(*ast.CallExpr); ok {
						if f, ok := c.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "sdk" {
							return false
						}
					}
					s, ok := n.(*ast.SelectorExpr)
					own := ok && s.Sel.Name == "engine" && file != "harness_test.go"
					assert.False(t, own, "%v: an SDK client that goes around the policy: use sdk", fset.Position(call.Pos()))
					return true
				})
			}
			return true
		})
	}
	require.Positive(t, made)
}
