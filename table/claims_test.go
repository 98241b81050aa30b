package table_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines/faulty"
	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// claim is a write, and what shows in the table that it was applied.
type claim struct {
	name    string
	start   []table.Item // the rows before the write
	write   func(ctx context.Context, tbl *table.Table) error
	applied func(rows []table.Item) int // how often; of a write that cannot be counted, 1
	once    bool                        // nil means that it was applied once, not more
	partly  bool                        // the engine leaves a part of some batches undone
}

func claims() []claim {
	row := func(sk string, n int) table.Item {
		return table.Item{"pk": str("p"), "sk": str(sk), "n": num(fmt.Sprint(n)), "v": str("start")}
	}
	n, v := table.Attr("n"), table.Attr("v")
	add := func(sk string) table.Op { return table.Update(key("p", sk), n.Set(n.OrElse(0).Plus(1))) }
	one := func(op table.Op) func(context.Context, *table.Table) error {
		return func(ctx context.Context, tbl *table.Table) error { return tbl.Write(ctx, op) }
	}
	all := func(ops ...table.Op) func(context.Context, *table.Table) error {
		return func(ctx context.Context, tbl *table.Table) error { return tbl.Write(ctx, ops...) }
	}
	sum := func(rows []table.Item) (total int) {
		for _, r := range rows {
			if av, ok := r["n"].(*types.AttributeValueMemberN); ok {
				var i int
				_, _ = fmt.Sscan(av.Value, &i)
				total += i
			}
		}
		return total
	}
	half := func(rows []table.Item) int { // two rows are counted up by one transaction
		if sum(rows)%2 != 0 {
			return -1
		}
		return sum(rows) / 2
	}
	missing := func(rows []table.Item) int { return 1 - len(rows) }
	exists := func(rows []table.Item) int { return min(len(rows), 1) }
	start := []table.Item{row("a", 0)}
	many := make([]table.Op, 30)
	for i := range many {
		many[i] = table.Put(row(fmt.Sprintf("m%02d", i), 1))
	}
	batch := func(ctx context.Context, tbl *table.Table) error { return tbl.BatchWrite(ctx, many) }
	whole := func(rows []table.Item) int {
		if len(rows) > 0 && len(rows) < len(many) {
			return -1
		}
		return len(rows) / len(many)
	}
	return []claim{
		{"put", nil, one(table.Put(row("a", 1))), exists, false, false},
		{"put of a new row", nil, one(table.Put(row("a", 1)).If(table.Attr("pk").NotExists())), exists, false, false},
		{"update", start, one(add("a")), sum, false, false},
		{"conditional update", start, one(add("a").If(v.Equal("start"))), sum, false, false},
		{"update under its count", start, one(add("a").If(n.Equal(0))), sum, true, false},
		{"delete", start, one(table.Delete(key("p", "a"))), missing, false, false},
		{"conditional delete", start, one(table.Delete(key("p", "a")).If(v.Equal("start"))), missing, false, false},
		{"returning", start, func(ctx context.Context, tbl *table.Table) error {
			_, err := tbl.Apply(ctx, add("a").If(v.Equal("start")), table.ReturnNew)
			return err
		}, sum, false, false},
		{"transaction", start, all(add("a"), add("b")), half, true, false},
		{"conditional transaction", start, all(add("a").If(v.Equal("start")), add("b")), half, true, false},
		{"check", start, all(table.Check(key("p", "a"), v.Equal("start")), add("b")), sum, true, false},
		{"once", start, func(ctx context.Context, tbl *table.Table) error { return tbl.WriteOnce(ctx, "token", add("a")) }, sum, true, false},
		{"batch", nil, batch, whole, false, false},
		{"batch, partly", nil, batch, whole, false, true},
	}
}

// Whatever happens to its requests, the error of a write tells whether the write can have been applied, or can still be.
func TestClaims(t *testing.T) {
	share := testkit.IfSmall(1009, 211)
	for _, c := range claims() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := 0
			var violations []string
			for sequence := range faulty.Sequences(3) {
				for _, conflict := range []bool{false, true} {
					if n++; len(sequence) < 2 || n%share == 0 {
						synctest.Test(t, func(t *testing.T) { violations = append(violations, c.check(t, sequence, conflict, n)...) })
					}
				}
			}
			for _, v := range violations[:min(len(violations), 10)] {
				t.Error(v)
			}
		})
	}
}

// check plays one sequence. With conflict, another writer changes the row before the second attempt, and back after the call.
func (c *claim) check(t *testing.T, sequence []faulty.Kind, conflict bool, number int) (violations []string) {
	violated := func(format string, args ...any) { violations = append(violations, fmt.Sprintf(format, args...)) }
	engine := tabletest.New(t)
	direct := engine.Client()
	live, err := table.Open(direct, table.Schema{Name: "app", NoTTL: true})
	require.NoError(t, err)
	require.NoError(t, live.Ensure(t.Context()))
	set := func(v string) {
		for _, item := range c.start {
			_, err := direct.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{
				TableName: aws.String("app"), Key: live.KeyItem(keys.NewKey(text(item["pk"]), text(item["sk"]))),
				UpdateExpression: aws.String("SET v = :v, n = if_not_exists(n, :z)"), ExpressionAttributeValues: table.Item{":v": str(v), ":z": num("0")},
			})
			require.NoError(t, err)
		}
	}
	set("start")
	if c.partly {
		engine.Inject(tabletest.Fault{Kind: tabletest.Unprocessed, Take: 7, Times: 3})
	}
	rows := func() []table.Item {
		out, err := direct.Scan(context.Background(), &dynamodb.ScanInput{TableName: aws.String("app"), ConsistentRead: aws.Bool(true)})
		require.NoError(t, err)
		return out.Items
	}
	var faults faulty.Client
	tbl, err := table.Open(engine.Client(faults.Options, faulty.Retries()[number%len(faulty.Retries())]), table.Schema{Name: "app", NoTTL: true})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if number%5 == 0 { // the deadline passes between two attempts
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, 40*time.Millisecond)
		defer stop()
	}
	script, copies := faulty.ScriptOf(sequence, cancel)
	faults.Script(script...)
	if conflict {
		attempts := 0
		faults.Before(func(string) {
			if attempts++; attempts == 2 {
				set("other")
			}
		})
	}
	err = c.write(ctx, tbl)
	name := fmt.Sprintf("%s: %s (conflict %v, %d): %v", c.name, faulty.NameOf(sequence), conflict, number, err)
	before := c.applied(rows())
	definite := err != nil && !table.MayBeApplied(err)
	failed := table.Conditions(err)
	if len(failed) > 0 && definite == slices.ContainsFunc(failed, func(f *table.ConditionError) bool { return f.Repeated || f.Pending }) {
		violated("two claims: %s", name)
	}
	if conflict {
		set("start")
	}
	faults.Settle()
	after := c.applied(rows())
	switch {
	case definite && (before != 0 || after != 0) && !copies:
		violated("not applied, and found %d and then %d times: %s", before, after, name)
	case err == nil && !conflict && before < 1, err == nil && c.once && (before > 1 || after > 1):
		violated("applied, and found %d and then %d times: %s", before, after, name)
	}
	return violations
}

func text(av types.AttributeValue) string {
	s, _ := av.(*types.AttributeValueMemberS)
	return s.Value
}

// Whatever happens to the requests of Ensure from any of them on, nil means that the table agrees with its schema, and a refusal that it
// did not. Once requests pass again, Ensure succeeds.
func TestClaims_OfEnsure(t *testing.T) {
	const requests = 24 // more than Ensure sends
	share := testkit.IfSmall(997, 101)
	for _, exists := range []bool{false, true} {
		t.Run(fmt.Sprintf("exists %v", exists), func(t *testing.T) {
			t.Parallel()
			n := 0
			var violations []string
			for sequence := range faulty.Sequences(2) {
				for at := range requests {
					if n++; n%share == 0 || len(sequence) == 1 && n%11 == 0 {
						synctest.Test(t, func(t *testing.T) { violations = append(violations, ensured(t, exists, at, sequence, n)...) })
					}
				}
			}
			for _, v := range violations[:min(len(violations), 10)] {
				t.Error(v)
			}
		})
	}
}

// ensured plays one sequence from a request on. With exists, the table lacks an index, the stream, tags and more.
func ensured(t *testing.T, exists bool, at int, sequence []faulty.Kind, number int) (violations []string) {
	engine := tabletest.New(t)
	schema := fullSchema("app")
	schema.Tags, schema.PointInTimeRecovery, schema.DeletionProtection = map[string]string{"team": "a"}, true, true
	live, err := table.Open(engine.Client(), schema)
	require.NoError(t, err)
	if exists {
		small := schema
		small.Indexes = slices.Concat(small.Indexes[:1], small.Indexes[3:]) // a local index is created with the table
		small.Stream, small.NoTTL, small.Tags, small.PointInTimeRecovery, small.DeletionProtection = "", true, nil, false, false
		before, err := table.Open(engine.Client(), small)
		require.NoError(t, err)
		require.NoError(t, before.Ensure(t.Context()))
	}
	var faults faulty.Client
	tbl, err := table.Open(engine.Client(faults.Options, faulty.Retries()[number%len(faulty.Retries())]), schema)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	script, _ := faulty.ScriptOf(sequence, cancel)
	faults.Script(append(slices.Repeat([]faulty.Outcome{faulty.Pass}, at), script...)...)
	err = tbl.Ensure(ctx)
	name := fmt.Sprintf("%s, at request %d (exists %v, %d): %v", faulty.NameOf(sequence), at, exists, number, err)
	plan, planErr := live.Plan(t.Context())
	require.NoError(t, planErr)
	var refused *table.SchemaError
	switch {
	case err == nil && !plan.IsEmpty():
		violations = append(violations, fmt.Sprintf("nil, and the table differs: %v: %s", plan, name))
	case errors.As(err, &refused):
		violations = append(violations, "refused: "+name)
	}
	faults.Script()
	if err := tbl.Ensure(t.Context()); err != nil {
		violations = append(violations, fmt.Sprintf("then %v: %s", err, name))
	}
	faults.Settle()
	if err := live.Verify(t.Context()); err != nil {
		violations = append(violations, fmt.Sprintf("in the end %v: %s", err, name))
	}
	return violations
}
