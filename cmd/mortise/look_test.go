package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/cli/clitest"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// asJSON is the document that a command has written.
func asJSON[T any](t *testing.T, o outcome) (document T) {
	t.Helper()
	require.Zero(t, o.code, o.stderr)
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &document), o.stdout)
	return document
}

// behind has another process wait for a lock.
func (b *bench) behind(target lock.Target, owner string) {
	b.Helper()
	c, err := lock.New(b.table, lock.Config{Owner: owner})
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	before, err := b.rival.Inspect(ctx, target)
	require.NoError(b, err)
	go func() {
		defer close(done)
		_, err := c.Acquire(ctx, target)
		assert.Error(b, err)
	}()
	b.waits(target, len(before.Line)+1)
	b.Cleanup(func() {
		cancel()
		<-done
		assert.NoError(b, c.Close(context.Background()))
	})
}

func TestLook_ShowsWhoHoldsAndWhoWaits(t *testing.T) {
	onEngines(t, keys.Scheme{PK: "PK", SK: "SK", Prefix: "shop/"}, func(b *bench) {
		names := []string{envKeys + "PK=PK", envKeys + "SK=SK", envKeys + "PREFIX=shop/"}
		assert.Equal(b, outcome{0, "no locks are held\n", ""}, b.run("ls", names...))
		held := b.acquire(report)
		b.acquire(lock.Beside(keys.NewKey("TENANT#acme", "ORDER#1")))
		require.NoError(b, b.acquire(lock.Name("free")).Release(b.Context()))
		b.behind(report, "second")
		b.behind(report, "third")

		ls := b.run("ls", names...)
		assert.Regexp(b, `(?m)^beside TENANT#acme ORDER#1 +rival +\S+ +\d+ +0$`, ls.stdout)
		assert.Regexp(b, `(?m)^report +rival +\S+ +\d+ +2$`, ls.stdout)
		assert.NotContains(b, ls.stdout, "free")
		list := asJSON[struct{ Locks []lockDocument }](b.T, b.run("ls --all --json", names...)).Locks
		require.Len(b, list, 3)
		assert.Equal(b, &keyText{"TENANT#acme", "ORDER#1"}, list[0].Beside)
		assert.Equal(b, []any{"free", false}, []any{list[1].Name, list[1].Held})
		assert.Equal(b, "report", list[2].Name)
		require.Len(b, list[2].Line, 3)
		assert.Equal(b, []string{"rival", "second", "third"}, []string{list[2].Line[0].Owner, list[2].Line[1].Owner, list[2].Line[2].Owner})
		assert.Equal(b, held.Fence(), list[2].Fence)
		list = asJSON[struct{ Locks []lockDocument }](b.T, b.run("ls --json --in TENANT#acme", names...)).Locks
		require.Len(b, list, 1)

		show := b.run("show report", names...)
		for _, text := range []string{"held by", "rival", held.Ticket(), "unless renewed", "1. second, for", "2. third, for"} {
			assert.Contains(b, show.stdout, text)
		}
		assert.Contains(b, b.run("show free", names...).stdout, "nobody, for")
		assert.Contains(b, b.run("show never", names...).stdout, "nobody has acquired it")
		assert.Regexp(b, `(?m)^lock +beside T never\n.*nobody has acquired it.*\nno row +T LOCK#never$`, b.run("show --beside T never", names...).stdout)
		assert.Equal(b, lockDocument{Beside: &keyText{"T", "never"}}, asJSON[lockDocument](b.T, b.run("show --json --beside T never", names...)))
		longest := b.acquire(lock.Beside(keys.NewKey("T", strings.Repeat("x", 600)))) // no lock has such a name
		assert.Contains(b, b.run("ls --in T", names...).stdout, "beside T xxx")
		require.NoError(b, longest.Release(b.Context()))
		require.NoError(b, b.table.Write(b.Context(), table.Delete(keys.NewKey("T", "LOCK#"+strings.Repeat("x", 600)))))
		one := asJSON[lockDocument](b.T, b.run("show --json --beside TENANT#acme ORDER#1", names...))
		assert.True(b, one.Held)
		assert.NotNil(b, one.Until)

		sessions := asJSON[struct{ Sessions []sessionDocument }](b.T, b.run("sessions --json", names...)).Sessions
		require.Len(b, sessions, 3)
		assert.Equal(b, []any{"rival", []string{"beside TENANT#acme ORDER#1", "report"}, "live"}, []any{sessions[0].Owner, sessions[0].Holds, sessions[0].State})
		assert.Equal(b, []string{"report"}, sessions[1].Waits)
		assert.Regexp(b, `(?m)^second +live +\S+ +report +\S+$`, b.run("sessions", names...).stdout)

		require.NoError(b, b.table.Write(b.Context(), table.Update(keys.NewKey("TENANT#acme", "ORDER#1"), table.Attr("type").Set("Order"), table.Attr("total").Set(5), table.Attr("tags").Set([]string{"a"}))))
		collection := b.run("collection TENANT#acme", names...).stdout
		assert.Regexp(b, `(?m)^LOCK#ORDER\$01 +mortise.Lock +.* +held by rival for \S+, 0 waiting, fence \d+$`, collection)
		assert.Regexp(b, `(?m)^ORDER#1 +Order +.*tags=.* total=5$`, collection)
		rows := asJSON[struct{ Rows []json.RawMessage }](b.T, b.run("collection TENANT#acme --json", names...)).Rows
		require.Len(b, rows, 2)
		_, err := table.ItemFromJSON(rows[0])
		require.NoError(b, err)
		assert.Equal(b, "no rows\n", b.run("collection none", names...).stdout)

		about := asJSON[tableDocument](b.T, b.run("table --json", names...))
		assert.True(b, about.Agrees)
		assert.Contains(b, b.run("table", names...).stdout, "the table and its description agree")
		wrong := b.run("table", envKeys+"PK=other")
		assert.Equal(b, exitDiffers, wrong.code)
		assert.Empty(b, wrong.stderr)
		assert.Contains(b, wrong.stdout, "differs")
		assert.Contains(b, wrong.stdout, "PK")
	})
}

// A table that was adopted without time to live (Schema.NoTTL) does not lack it if the description says so.
func TestTable_WithoutTimeToLive(t *testing.T) {
	engine := tabletest.New(t)
	url, err := engine.Listen("127.0.0.1:0")
	require.NoError(t, err)
	tbl, err := table.Open(engine.Client(), table.Schema{Name: "app", NoTTL: true})
	require.NoError(t, err)
	require.NoError(t, tbl.Ensure(t.Context()))
	scheme := filepath.Join(t.TempDir(), "scheme.json")
	for text, code := range map[string]int{`{"table": "app"}`: exitDiffers, `{"table": "app", "no_ttl": true}`: 0} {
		require.NoError(t, os.WriteFile(scheme, []byte(text), 0o600))
		o := invoke(t.Context(), "table", []string{envEngine + "=" + url, envScheme + "=" + scheme}, "")
		assert.Equal(t, code, o.code, "%s: %s%s", text, o.stdout, o.stderr)
	}
}

// Without the key prefix of the application, its locks are not those that are looked for. What is printed shows that.
func TestLook_WithoutTheKeyPrefix(t *testing.T) {
	engine := tabletest.New(t)
	url, err := engine.Listen("127.0.0.1:0")
	require.NoError(t, err)
	tbl, err := table.Open(engine.Client(), table.Schema{
		Name: "app", Keys: keys.Scheme{Prefix: "shop/"}, Indexes: []table.Index{{Name: "locks", PK: "lpk", SK: "lsk"}},
	})
	require.NoError(t, err)
	require.NoError(t, tbl.Ensure(t.Context()))
	locks, err := lock.New(tbl, lock.Config{Index: "locks"})
	require.NoError(t, err)
	defer func() { assert.NoError(t, locks.Close(context.Background())) }()
	_, err = locks.Acquire(t.Context(), report)
	require.NoError(t, err)
	scheme := filepath.Join(t.TempDir(), "scheme.json")
	require.NoError(t, os.WriteFile(scheme, []byte(`{"table": "app", "lock": {"index": "locks"}, "indexes": [{"name": "locks", "pk": "lpk", "sk": "lsk"}]}`), 0o600))
	environ := []string{envEngine + "=" + url, envScheme + "=" + scheme}
	for args, want := range map[string]string{
		"ls":             `no locks are held (in index locks, with the key prefix "")`,
		"sessions":       `no session holds a lock or waits for one (in index locks, with the key prefix "")`,
		"ls --in LOCK#a": "no locks are held\n",
		"ls --all":       `the lock report with the key prefix "shop/"`,
		"show report":    "no row  LOCK#report LOCK#report",
		"revoke report":  "",
	} {
		o := invoke(t.Context(), args, environ, "")
		assert.Contains(t, o.stdout, want, args)
		o = invoke(t.Context(), args, append(environ, envKeys+"PREFIX=shop/"), "")
		assert.Zero(t, o.code, "%s: %s", args, o.stderr)
		assert.NotContains(t, o.stdout, "prefix", args)
		assert.NotContains(t, o.stdout, "no row", args)
	}
}

// Several holders: each has a lease of its own, and the process of one may have died long ago.
func TestShow_TellsWhetherEachHolderLives(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		other, err := lock.New(b.table, lock.Config{Owner: "other", Logger: slog.New(slog.DiscardHandler)})
		require.NoError(b, err)
		defer func() { assert.NoError(b, other.Close(context.Background())) }()
		for _, c := range []*lock.Client{b.rival, other} {
			_, err := c.Acquire(b.Context(), report, lock.Shared())
			require.NoError(b, err)
		}
		_, err = other.Acquire(b.Context(), lock.Name("fixed"), lock.Fixed(time.Minute))
		require.NoError(b, err)
		states := func(name string) (list []string) {
			for _, p := range asJSON[lockDocument](b.T, b.run("show --json "+name)).Line {
				list = append(list, fmt.Sprint(p.Owner, " ", p.Shared, " ", p.State, " ", p.Until != nil))
			}
			return list
		}
		assert.Equal(b, []string{"rival true live true", "other true live true"}, states("report"))
		assert.Equal(b, []string{"other false  true"}, states("fixed"))
		assert.Regexp(b, `(?m)^report +rival and 1 more +\S+ +\d+ +0$`, b.run("ls").stdout)
		assert.Equal(b, outcome{0, "asked rival and 1 more to give up report\n", ""}, b.run("revoke report"))
		assert.Contains(b, b.run("revoke fixed").stderr, "the holder cannot be asked")
		assert.Equal(b, "the holder", (&lockDocument{}).holder(), "it came after the look")
		assert.Regexp(b, `(?s)held by +rival, a reader, for \S+\nticket.*\nlease +lasts until .*held by +other, a reader, for \S+\nticket.*\nlease +lasts`, b.run("show report").stdout)
		r, err := b.rival.Inspect(b.Context(), report)
		require.NoError(b, err)
		session := "SESSION#" + r.Line[1].Session
		change := func(op table.Op) { require.NoError(b, b.table.Write(b.Context(), op)) }
		change(table.Update(keys.NewKey(session, session), table.Attr("dead").Set(1)))
		assert.Equal(b, []string{"rival true live true", "other true dead true"}, states("report"))
		assert.Contains(b, b.run("show report").stdout, "ended, and others have noticed that: the next one who asks gets the lock")
		change(table.Update(keys.NewKey(session, session), table.Attr("owner").Remove())) // as if the mark had made the row anew
		assert.Regexp(b, `(?m)^other +dead +report`, b.run("sessions").stdout)
		change(table.Delete(keys.NewKey(session, session)))
		assert.Equal(b, []string{"rival true live true", "other true gone false"}, states("report"))
		assert.Contains(b, b.run("show report").stdout, "ended, and the row of its session was deleted: the next one who asks gets the lock")
	})
}

// A function on AWS Lambda holds the lock, without a session.
func TestSessions_DoNotDenyAHolderWithoutOne(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		_, err := b.rival.Acquire(b.Context(), report, lock.Fixed(time.Minute))
		require.NoError(b, err)
		assert.Equal(b, outcome{0, "no session holds a lock or waits for one\n", ""}, b.run("sessions"))
	})
}

func TestBytesText_HasOneUnit(t *testing.T) {
	for text, n := range map[string]int64{"10239 bytes": 10<<10 - 1, "10 KB": 10 << 10, "16 MB": 16 << 20, "10 GB": 10 << 30, "5000 GB": 5000 << 30} {
		assert.Equal(t, text, bytesText(n))
	}
}

func TestSpan_HasTwoUnitsAtMost(t *testing.T) {
	for text, d := range map[string]time.Duration{
		"0s": -time.Second, "12ms": 12*time.Millisecond + 300*time.Microsecond, "59s": time.Minute - 1, "1m0s": time.Minute, "1m40s": 100 * time.Second,
		"59m59s": time.Hour - 1, "1h0m": time.Hour, "23h59m": 24*time.Hour - 1, "10d0h": 240 * time.Hour,
	} {
		assert.Equal(t, text, span(d))
	}
}

// Names can look like flags.
func TestParse_AllIsAnOperandBehindTwoDashes(t *testing.T) {
	c := &call{}
	require.NoError(t, c.parse(strings.Fields("watch --json a -- -b --beside c --json -- -d")))
	assert.Equal(t, []string{"a", "-b", "--beside", "c", "--json", "--", "-d"}, c.operands)
	assert.True(t, c.json)
	c = &call{}
	require.NoError(t, c.parse(strings.Fields("exec a -- b -c --beside d e -- f")))
	assert.Equal(t, []string{"b", "-c", "--beside", "d", "e", "--", "f"}, c.argv)
	assert.Equal(t, []string{"a"}, c.operands)
}

// Variables that are not set must not make a call another one, least of all one that takes a lock away.
func TestParse_RefusesEmptyValues(t *testing.T) {
	for want, args := range map[string][]string{
		"want two values: --beside PK SK":                 {"force", "a", "--beside", "", ""},
		`invalid value "" for flag -beside`:               {"show", "--beside", "", "x"},
		"invalid value \"x\" for flag -beside":            {"show", "--beside", "x", ""},
		"an empty argument":                               {"watch", "a", ""},
		"--reason: empty":                                 {"force", "a", "--reason", ""},
		`unexpected argument "b": the command stands`:     {"exec", "a", "b", "--", "c"},
		`for flag -permits: want a whole number`:          {"exec", "a", "--permits", "", "--", "c"},
		`for flag -wait: want a duration with its unit`:   {"exec", "a", "--wait", "", "--", "c"},
		`for flag -lease: want a duration with its unit,`: {"exec", "a", "--lease", "-1s", "--", "c"},
	} {
		require.ErrorIs(t, (&call{}).parse(args), errUsage, want)
		require.ErrorContains(t, (&call{}).parse(args), want)
	}
	c := &call{}
	require.NoError(t, c.parse(strings.Fields("exec a --permits 3 --wait 0 --grace 1s -- c")))
	assert.Equal(t, []any{3, time.Duration(0), time.Second}, []any{*c.permits, *c.maxWait, *c.graceLength})
}

// A time without its zone would be read as one of the reader's.
func TestExpiry_HasItsZone(t *testing.T) {
	assert.Equal(t, "2026-12-05T11:07:47Z", expiry(&types.AttributeValueMemberN{Value: "1796468867"}))
}

// Times that no clock has do not hide a lock, nor those beside it.
func TestLook_ShowsLocksWithTimesThatNoClockHas(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		const latest = int64(1 << 50) // that a lock's row can have, in milliseconds
		put := func(name, ticket string, since int64) {
			change := []table.Change{table.Attr("type").Set("mortise.Lock"), table.Attr("fence").Set(7), table.Attr("since").Set(since), table.Attr("ran").Set(since)}
			if ticket != "" {
				change = append(change, table.Attr("line").Set([]string{ticket}))
			}
			require.NoError(b, b.table.Write(b.Context(), table.Update(keys.NewKey("LOCK#"+name, "LOCK#"+name), change...)))
		}
		put("early", "s/1@0000000000000 early", 0)
		put("late", fmt.Sprintf("s/2@%d late", latest), latest)
		put("past", "", latest)
		for _, args := range []string{"ls", "watch"} {
			list := b.briefly(args + " --all --json")
			for _, name := range []string{"early", "late", "past"} {
				assert.Contains(b, list, `"`+name+`"`, args)
			}
		}
		for name, text := range map[string]string{"early": "held by  early", "late": "held by  late", "past": "held by  nobody"} {
			show := b.run("show " + name)
			assert.Zero(b, show.code, show.stderr)
			assert.Contains(b, show.stdout, text)
			one := asJSON[lockDocument](b.T, b.run("show --json "+name))
			assert.Equal(b, name == "early", one.Since == nil)
			assert.Equal(b, name != "past", one.Held)
		}
		for _, at := range []int64{math.MinInt64, math.MaxInt64} {
			require.NoError(b, b.table.Write(b.Context(), table.Update(keys.NewKey("SESSION#s", "SESSION#s"),
				table.Attr("type").Set("mortise.LockSession"), table.Attr("owner").Set("s"), table.Attr("lease").Set(at), table.Attr("beat").Set(at),
				table.Attr("expires").Set(at), table.Attr("dead").Set(at))))
			assert.Len(b, asJSON[struct{ Sessions []sessionDocument }](b.T, b.run("sessions --json")).Sessions, 1)
			assert.NotNil(b, asJSON[lockDocument](b.T, b.run("show early --json")).Until)
		}
	})
}

// briefly runs the program until it has written something, and returns that.
func (b *bench) briefly(args string) string {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	out, w := io.Pipe()
	go func() {
		run(ctx, strings.Fields(args), b.environ(), strings.NewReader(""), w, io.Discard)
		_ = w.Close()
	}()
	first := make([]byte, 1<<16)
	n, err := out.Read(first)
	require.NoError(b, err, args)
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return string(first[:n])
}

// Other names than the table's are an error that tells what to do, and nothing is written.
func TestLook_ATableOfAnotherScheme(t *testing.T) {
	onEngines(t, keys.Scheme{PK: "PK", SK: "SK"}, func(b *bench) {
		require.NoError(b, b.acquire(report).Release(b.Context()))
		for _, args := range []string{"ls", "sessions", "watch", "show report", "exec report -- true", "collection a", "force report --yes", "revoke report"} {
			o := b.run(args)
			assert.Contains(b, o.stderr, "other keys or indexes than it was described with: name its attributes with --scheme", args)
			assert.Empty(b, o.stdout, args)
			assert.NotZero(b, o.code, args)
		}
		require.NoError(b, b.table.Write(b.Context(), table.Update(keys.NewKey("LOCK#mine", "LOCK#mine"), table.Attr("n").Set(1))))
		o := b.run("exec mine -- true", envKeys+"PK=PK", envKeys+"SK=SK")
		assert.Equal(b, exitExec, o.code)
		assert.Contains(b, o.stderr, "not one that these settings write")
	})
}

// The line of a lock in a collection tells what show tells.
func TestCollection_ShowsTheStatesOfLocks(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		target := func(name string) lock.Target { return lock.Beside(keys.NewKey("T", name)) }
		permit := func(name string) *lock.Lease {
			l, err := b.rival.Acquire(b.Context(), target(name), lock.Permits(3))
			require.NoError(b, err)
			return l
		}
		permit("some")
		require.NoError(b, permit("none").Release(b.Context()))
		free := b.acquire(target("free"))
		require.NoError(b, free.Release(b.Context()))
		for name, change := range map[string]table.Change{"line": table.Attr("line").Set([]int{5}), "fence": table.Attr("fence").Set(-5)} {
			b.acquire(target(name))
			require.NoError(b, b.table.Write(b.Context(), table.Update(keys.NewKey("T", "LOCK#"+name), change)))
		}
		o := b.run("collection T")
		assert.Zero(b, o.code, o.stderr)
		for name, text := range map[string]string{
			"some": `held by rival for \S+, 0 waiting`, "none": `free for \S+`, "free": `free for \S+, fence \d+`,
			"line": `malformed: .*line.*`, "fence": `malformed: .*fence is not an integer, or is negative`,
		} {
			assert.Regexp(b, `(?m)^LOCK#`+name+` +mortise.Lock +\S+ +`+text+`$`, o.stdout)
		}
	})
}

// A table without sort key has no collections: that is no empty one.
func TestCollection_OfATableWithoutSortKey(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		name := b.table.Name() + "-flat"
		_, err := b.client.CreateTable(b.Context(), &dynamodb.CreateTableInput{
			TableName: &name, BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
		})
		require.NoError(b, err)
		defer func() {
			_, err := b.client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name})
			assert.NoError(b, err)
		}()
		require.NoError(b, dynamodb.NewTableExistsWaiter(b.client).Wait(b.Context(), &dynamodb.DescribeTableInput{TableName: &name}, time.Minute))
		_, err = b.client.PutItem(b.Context(), &dynamodb.PutItemInput{TableName: &name, Item: table.Item{"pk": &types.AttributeValueMemberS{Value: "a"}}})
		require.NoError(b, err)
		for _, pk := range []string{"a", "none"} {
			o := b.run("collection "+pk, envTable+"="+name)
			assert.Equal(b, exitFailure, o.code, pk)
			assert.Contains(b, o.stderr, "other keys or indexes than it was described with", pk)
			if pk == "none" {
				assert.Contains(b, o.stderr, "a table without a sort key", pk)
			}
			assert.Empty(b, o.stdout, pk)
		}
	})
}

func TestForce_TakesWhatWasShown(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		assert.Equal(b, outcome{1, "", "mortise force: nobody holds report\n"}, b.run("force report --yes"))
		assert.Equal(b, outcome{1, "", "mortise revoke: nobody holds report\n"}, b.run("revoke report"))
		held := b.acquire(report)
		o := b.run("force report")
		assert.Equal(b, 1, o.code)
		assert.Contains(b, o.stderr, "held by")
		assert.Contains(b, o.stderr, "say --yes where nobody can be asked")

		// On a terminal it asks. The answer comes when another holds the lock: that one keeps it.
		answer := func(text string, meanwhile func()) outcome {
			var stdout, stderr strings.Builder
			c := &call{
				environ: b.environ(), stdin: &clitest.SlowReader{Text: text, Before: meanwhile}, stdout: &stdout, stderr: &stderr,
				width: func(any) (int, bool) { return 120, true },
			}
			err := c.parse([]string{"force", "report", "--reason", strings.Repeat("test", 64)}) // the longest one
			if err == nil {
				err = c.command.run(b.Context(), c)
			}
			code, text := c.verdict(b.Context(), err)
			return outcome{code, stdout.String(), stderr.String() + text}
		}
		o = answer("n\n", func() {})
		assert.Equal(b, 1, o.code)
		assert.Contains(b, o.stderr, "Take it away? [y/N] nothing was done")
		var next *lock.Lease
		o = answer("y\n", func() {
			require.NoError(b, held.Release(b.Context()))
			next = b.acquire(report)
		})
		assert.Equal(b, 1, o.code)
		assert.Contains(b, o.stderr, "another holds it by now, rival: nothing was done")
		o = answer("y\n", func() {})
		assert.Equal(b, 0, o.code, o.stderr)
		assert.Equal(b, "took report from rival\n", o.stdout)
		require.ErrorIs(b, next.Write(b.Context(), table.Update(keys.NewKey("a", "b"), table.Attr("n").Set(1))), lock.ErrLost)
		assert.Contains(b, b.run("show report").stdout, "taken by force from the previous holder: test")

		held = b.acquire(report)
		o = answer("y\n", func() { require.NoError(b, held.Release(b.Context())) })
		assert.Equal(b, 1, o.code)
		assert.Contains(b, o.stderr, "the holder has given it up meanwhile: nothing was done")

		// A ticket from a variable that is not set must not mean any holder.
		held = b.acquire(report)
		o = b.run("force report --yes --ticket=")
		assert.Equal(b, outcome{2, "", "mortise force: --ticket: empty (mortise help force explains)\n"}, o)
		require.NoError(b, held.Write(b.Context(), table.Update(keys.NewKey("a", "b"), table.Attr("n").Set(1))))

		// A row that is not in order.
		for i, line := range []any{[]string{"no ticket"}, []string{""}, []int{5}, 5, "", map[string]any{}} {
			name := fmt.Sprint("broken", i)
			broken := b.acquire(lock.Name(name))
			require.NoError(b, b.table.Write(b.Context(), table.Update(keys.NewKey("LOCK#"+name, "LOCK#"+name), table.Attr("line").Set(line))))
			assert.Contains(b, b.run("ls").stdout, "malformed lock row")
			assert.Contains(b, b.run("show "+name).stdout, "mortise force resets the row")
			assert.Contains(b, b.briefly("watch "+name), "malformed lock row")
			o := b.run("force " + name + " --yes --ticket " + broken.Ticket())
			assert.Contains(b, o.stderr, "the row of "+name+" is malformed, so force would reset all of it: to do that, leave out --ticket")
			assert.Equal(b, outcome{0, "reset " + name + ": its row was malformed\n", ""}, b.run("force "+name+" --yes"))
			r, err := b.rival.Inspect(b.Context(), lock.Name(name))
			require.NoError(b, err)
			assert.False(b, r.Held())
			assert.Greater(b, r.Fence, broken.Fence())
		}
	})
}

// mortise force refuses to reset a lock of clients with another prefix, so no command advises it.
func TestLook_ALockOfAnotherPrefix(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		b.acquire(report)
		o := b.run("collection LOCK#report", envLock+"_ATTRIBUTE_PREFIX=lock_")
		assert.Contains(b, o.stdout, "malformed: lock: list: malformed lock row: a client with another Config.AttributePrefix wrote it", "it is not free")
		o = b.run("sessions", envLock+"_ATTRIBUTE_PREFIX=lock_")
		assert.Equal(b, exitFailure, o.code, "the list lacks the holder")
		assert.Empty(b, o.stdout)
		assert.Contains(b, o.stderr, "who holds 1 locks is not known, such as report: ")
		for _, args := range []string{"sessions", "show report", "exec report -- true", "force report --yes"} {
			o := b.run(args, envLock+"_ATTRIBUTE_PREFIX=lock_")
			assert.Contains(b, o.stdout+o.stderr, "set lock.attribute_prefix in --scheme", args)
			assert.NotContains(b, o.stdout+o.stderr, "resets the row", args)
		}
	})
}

// newStore is a table in virtual time, with its locks, for a command that is called without its flags.
func newStore(t *testing.T, options ...func(*dynamodb.Options)) (*tabletest.Engine, *store) {
	t.Helper()
	engine := tabletest.New(t)
	tbl, err := table.Open(engine.Client(options...), table.Schema{Name: "app"})
	require.NoError(t, err)
	require.NoError(t, tbl.Ensure(t.Context()))
	locks, err := lock.New(tbl, lock.Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, locks.Close(context.Background())) })
	return engine, &store{table: tbl, locks: locks}
}

// The network is cut while the lock is taken: the same call again could take it from the next holder.
func TestForce_TellsIfItMayHaveTakenTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, s := newStore(t)
		held, err := s.locks.Acquire(t.Context(), report)
		require.NoError(t, err)
		cut := false
		engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Hour, After: true, When: func(r tabletest.Request) bool {
			cut = cut || r.Operation == "UpdateItem"
			return cut
		}})
		var stderr strings.Builder
		c := &call{command: find("force"), operands: []string{"report"}, yes: true, stderr: &stderr, width: func(any) (int, bool) { return 0, false }}
		err = c.force(t.Context(), s)
		require.ErrorIs(t, err, table.ErrUnreachable)
		assert.Contains(t, stderr.String(), "may have been taken all the same")
		assert.Contains(t, stderr.String(), "--ticket "+held.Ticket())
		engine.ClearFaults()
	})
}

// noDescription may not describe tables.
type noDescription struct{ table.Client }

func (noDescription) DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return nil, &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "not allowed"}
}

// An operator whose role may not describe the table reads which variable stands in for that permission, and it does.
func TestForce_NamesTheVariableThatReplacesAPermission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, s := newStore(t)
		_, err := s.locks.Acquire(t.Context(), report)
		require.NoError(t, err)
		tbl, err := table.Open(&noDescription{engine.Client()}, table.Schema{Name: "app"})
		require.NoError(t, err)
		var stdout, stderr strings.Builder
		c := &call{command: find("force"), operands: []string{"report"}, yes: true, stdout: &stdout, stderr: &stderr, width: func(any) (int, bool) { return 0, false }}
		force := func(environ ...string) error {
			config, err := lock.ConfigFromEnviron(envLock, environ)
			require.NoError(t, err)
			config.Logger = slog.New(slog.DiscardHandler)
			locks, err := lock.New(tbl, config)
			require.NoError(t, err)
			defer func() { assert.NoError(t, locks.Close(context.Background())) }()
			return c.force(t.Context(), &store{table: tbl, locks: locks})
		}
		err = force()
		require.ErrorIs(t, err, table.ErrDenied)
		assert.Contains(t, c.explain(err), "DescribeTable")
		assert.Contains(t, c.explain(err), "unless MORTISE_LOCK_HOME_REGION is set")
		require.NoError(t, force("MORTISE_LOCK_HOME_REGION="+tabletest.Region))
		assert.Contains(t, stdout.String(), "took report from ")
		assert.Empty(t, stderr.String())
	})
}

// A session's row that is not in order hides neither its lock nor other sessions, and the lock can be taken.
func TestForce_TakesALockWhoseSessionCannotBeRead(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		other, err := lock.New(b.table, lock.Config{Owner: "other", Logger: slog.New(slog.DiscardHandler)})
		require.NoError(b, err)
		b.Cleanup(func() { assert.NoError(b, other.Close(context.Background())) })
		held, err := other.Acquire(b.Context(), report)
		require.NoError(b, err)
		b.acquire(lock.Name("fine"))
		id, _, _ := strings.Cut(held.Ticket(), "/")
		session := "SESSION#" + id
		beat := table.Attr("beat")
		require.NoError(b, b.table.Write(b.Context(), table.Update(keys.NewKey(session, session), beat.Set("x"))))

		show := b.run("show report")
		assert.Equal(b, 0, show.code, show.stderr)
		assert.Regexp(b, `(?m)^held by +other, for `, show.stdout)
		assert.Regexp(b, `(?m)^session +cannot be read: .*beat`, show.stdout)
		sessions := b.run("sessions")
		assert.Equal(b, 1, sessions.code)
		assert.Contains(b, sessions.stderr, "beat")
		assert.Regexp(b, `(?m)^rival +live +.*fine`, sessions.stdout)
		assert.Regexp(b, `(?m)^other +unread +.*report`, sessions.stdout)

		assert.Equal(b, outcome{0, "took report from other\n", ""}, b.run("force report --yes"))
		assert.Contains(b, b.run("show report").stdout, "nobody")
		require.NoError(b, b.table.Write(b.Context(), table.Delete(keys.NewKey(session, session))))
	})
}

// Names come from flags, then from the environment, then from the file.
func TestSettings_FlagsEnvironmentFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "scheme.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"table": "file", "keys": {"pk": "PK", "delimiter": "|"}, "lock": {"lease": "7s", "attribute_prefix": "lock_"},
		"indexes": [{"name": "locks", "pk": "GPK", "sk": "GSK", "include": []}]}`), 0o600))
	c := &call{scheme: file, environ: []string{envTable + "=environment", envKeys + "SK=SK", envKeys + "PREFIX=", envLock + "_LEASE=8s", envLock + "=a", envEngine + "=demo", "OTHER=x"}}
	s, err := c.settings()
	require.NoError(t, err)
	assert.Equal(t, []any{"environment", "demo", false}, []any{s.schema.Name, s.engine, s.schema.MustExist})
	assert.Equal(t, keys.Scheme{PK: "PK", SK: "SK", Delimiter: '|'}.WithDefaults(), s.schema.Keys)
	assert.Equal(t, []table.Index{{Name: "locks", PK: "GPK", SK: "GSK", Include: []string{}}}, s.schema.Indexes)
	assert.Equal(t, []any{"8s", "lock_"}, []any{s.locks.Lease.String(), s.locks.AttributePrefix})
	c.table, c.engine = "flag", "http://127.0.0.1:8000"
	s, err = c.settings()
	require.NoError(t, err)
	assert.Equal(t, []any{"flag", "http://127.0.0.1:8000", true}, []any{s.schema.Name, s.engine, s.schema.MustExist})

	bad := func(text string) string {
		name := filepath.Join(t.TempDir(), "bad.json")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		return envScheme + "=" + name
	}
	for _, tt := range []struct{ args, variable, want string }{
		{"ls", "", "no table: name it with --table"},
		{"ls --table x", "", "Name"},
		{"ls --table app --engine ftp://a", "", "want aws, demo, or a URL"},
		{"ls --scheme none.json", "", "none.json"},
		{"ls", bad("x"), "invalid character"},
		{"ls", bad(" \n"), "empty"},
		{"ls", bad(`{"table": 5}`), "bad.json: table: it cannot be of the type number"},
		{"ls", bad(`{"indexes": [{"pk": true}]}`), "bad.json: indexes.pk: it cannot be of the type bool"},
		{"ls", bad(`[]`), "bad.json: the whole: it cannot be of the type array"},
		{"ls", bad(strings.Repeat(" ", maxScheme+1)), "bad.json: more than 1024 KB"},
		{"ls --scheme /", "", "is a directory"},
		{"ls", bad("{} {}"), "text after"},
		{"ls", bad(`{"table": "app"}}`), "text after"},
		{"ls", bad(`{"table": "app"}], "keys": {}`), "text after"},
		{"ls", bad(`{"tabel": "app"}`), `unknown field "tabel"`},
		{"ls", bad(`{"table": "app", "table": "b"}`), `field "table" is set twice`},
		{"ls", bad(`{"table": "app", "Table": "b"}`), `unknown field "Table": names are in lower case`},
		{"ls", bad(`{"table": "app", "\u212Aeys": {}}`), "unknown field \"\u212aeys\""},
		{"ls", bad(`{"table": "app", "keys": {}, "keys": {"pk": "a"}}`), `field "keys" is set twice`},
		{"ls", bad(`{"table": "app", "indexes": [{"name": "abc", "pk": "a", "PK": "b"}]}`), `unknown field "PK": names`},
		{"ls", bad(`{"table": "app", "indexes": [{"name": "abc", "pk": "a", "pk": "b"}]}`), `field "pk" is set twice`},
		{"ls", bad(`{"keys": {"pk": 5}}`), "pk"},
		{"ls", bad(`{"keys": {"PK": "a"}}`), "PK"},
		{"ls", bad(`{"lock": {"leese": "5s"}}`), "leese"},
		{"ls", bad(`{"table": "app", "indexes": [{"name": "a"}]}`), "Indexes[0].Name"},
		{"ls --table app", envKeys + "PKK=a", "pkk"},
		{"ls --table app", envLock + "_LEESE=5s", "MORTISE_LOCK_LEESE"},
		{"ls --table app", envLock + "_LEASE=5", "MORTISE_LOCK_LEASE"},
		{"ls --scheme " + strings.TrimPrefix(bad(`{"table": "app", "lock": {"margin": "6s"}}`), envScheme+"="), envLock + "_LEASE=10s", `"margin": 6s: want 0 to half the lease`},
		{"ls --engine demo", envLock + "_INDEX=locks", `the schema has no index "locks"`},
		{"frobnicate", "", `no command "frobnicate"`},
		{"help frobnicate", "", `no command "frobnicate"`},
		{"ls more", "", `unexpected argument "more"`},
		{"show", "", "no lock: want a NAME"},
		{"show a --beside b c", "", "both a NAME and --beside"},
		{"show --beside b", "", "want two values"},
		{"ls --frobnicate", "", "frobnicate"},
		{"ls --engine demo --in=", "", "--in: empty"},
		{"ls --engine demo --table=", envTable + "=app", "--table: empty"},
		{"watch --every 1ms --engine demo", "", "want at least 500ms"},
		{"watch --every 5 --engine demo", "", "want a duration with its unit"},
		{"watch a --all --engine demo", "", "NAMES, or --in and --all"},
		{"watch a --in b --engine demo", "", "NAMES, or --in and --all"},
		{"show --engine demo " + strings.Repeat("x", 3000), "", "a name has 1 to 512 bytes"},
		{"watch --engine demo a " + strings.Repeat("x", 3000), "", "a name has 1 to 512 bytes"},
		{"revoke --engine demo " + strings.Repeat("x", 3000), "", "a name has 1 to 512 bytes"},
		{"force --engine demo a --reason " + strings.Repeat("x", 257), "", "--reason: want at most 256 bytes of UTF-8"},
		{"force --engine demo a --reason \xff", "", "--reason: want at most 256 bytes of UTF-8"},
		{"force --engine demo --yes a\xff", "", "a name has 1 to 512 bytes of UTF-8"},
		{"show --engine demo --beside a " + strings.Repeat("x", 1025), "", "too long"},
		{"collection --engine demo " + strings.Repeat("x", 2049), "", "too long"},
		{"ls --engine demo --in " + strings.Repeat("x", 2049), "", "too long"},
		{"sessions --engine demo --in " + strings.Repeat("x", 2049), "", "too long"},
		{"write", "", "want FILE.json"},
		{"write x.json", "", "no lock to write under"},
		{"write x.json --guard nonsense", "", "not a guard token"},
		{"", "", "no command"},
	} {
		o := invoke(t.Context(), tt.args, []string{tt.variable}, "")
		assert.Equal(t, exitUsage, o.code, "%s %s", tt.args, tt.variable)
		assert.Contains(t, o.stderr, tt.want, "%s %s", tt.args, tt.variable)
		assert.Contains(t, o.stderr, "explains)", tt.args)
		assert.Equal(t, 1, strings.Count(o.stderr, "\n"), "one line: %s", o.stderr)
		assert.Empty(t, o.stdout)
	}
}

// exec's times go by the lease. These are not called, since exec would start this program again.
func TestSettings_OfALease(t *testing.T) {
	d := func(text string) *time.Duration { d, _ := time.ParseDuration(text); return &d }
	for _, tt := range []struct {
		lease, grace *time.Duration
		want         string // the error; empty for none
	}{
		{nil, nil, ""},
		{d("1s"), d("100ms"), ""},
		{d("10s"), d("5s"), ""},
		{d("1h"), d("30m"), ""},
		{d("0s"), nil, "--lease 0s: want 1s to 1h"},
		{d("999ms"), nil, "--lease 999ms: want 1s to 1h"},
		{d("60m1ns"), nil, "--lease 1h0m0.000000001s: want 1s to 1h"},
		{d("10s"), d("999ms"), "--grace 999ms: want 1s to 5s with a lease of 10s"},
		{d("10s"), d("5001ms"), "--grace 5.001s: want 1s to 5s with a lease of 10s"},
		{nil, d("0s"), "--grace 0s: want 2s to 10s with a lease of 20s"},
	} {
		c := &call{command: find("exec"), engine: engineDemo, leaseLength: tt.lease, graceLength: tt.grace}
		s, err := c.settings()
		if err == nil {
			_, err = c.timing(s)
		}
		code, text := c.verdict(t.Context(), err)
		if tt.want == "" {
			assert.NoError(t, err)
			continue
		}
		assert.Equal(t, exitExec, code)
		assert.Contains(t, text, tt.want)
	}
	c := &call{command: find("exec"), engine: engineDemo, leaseLength: d("1s"), environ: []string{envLock + "_MARGIN=1s"}}
	_, err := c.settings()
	require.ErrorIs(t, err, errUsage)
	require.ErrorContains(t, err, "Config.Margin: 1s: want 0 to half the lease")
}

// An interrupt ends the question whether a lock is to be taken away, and takes nothing.
func TestForce_IsInterruptedWhileItAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := newStore(t)
		held, err := s.locks.Acquire(t.Context(), report)
		require.NoError(t, err)
		ctx, interrupt := context.WithCancel(t.Context())
		end := make(chan struct{})
		defer close(end)
		var stdout, stderr strings.Builder
		c := &call{
			command: find("force"), operands: []string{"report"}, stdin: endless{begun: interrupt, end: end}, stdout: &stdout, stderr: &stderr,
			width: func(any) (int, bool) { return 80, true },
		}
		code, text := c.verdict(ctx, c.force(ctx, s))
		assert.Equal(t, []any{exitSignal + int(syscall.SIGINT), "interrupted"}, []any{code, text})
		assert.Empty(t, stdout.String())
		assert.NoError(t, held.Context().Err())
	})
}

// A URL with a password is refused, and not repeated.
func TestSettings_AreNotRepeatedWithAPassword(t *testing.T) {
	for _, url := range []string{"http://ann:m4rker@127.0.0.1:8000", "http://ann:m4rker%zz@127.0.0.1", "ann:m4rker@127.0.0.1:8000", "http://127.0.0.1?key=m4rker"} {
		for _, args := range []string{"ls --table app --engine " + url, "ls --table app"} {
			o := invoke(t.Context(), args, []string{envEngine + "=" + url}, "")
			assert.Equal(t, exitUsage, o.code, args)
			assert.NotContains(t, o.stderr, "m4rker", args)
			assert.Contains(t, o.stderr, "without user and query")
		}
	}
}

// What a new user does wrong has a sentence that tells what to do.
func TestExplain_MistakesOfAFirstDay(t *testing.T) {
	engine := tabletest.New(t)
	url, err := engine.Listen("127.0.0.1:0")
	require.NoError(t, err)
	aws := []string{"AWS_EC2_METADATA_DISABLED=true", "HOME=" + t.TempDir()}
	for _, entry := range aws {
		name, value, _ := strings.Cut(entry, "=")
		t.Setenv(name, value) // the SDK reads the program's own
	}
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"} {
		t.Setenv(name, "")
	}
	o := invoke(t.Context(), "ls --table app", nil, "")
	assert.Equal(t, exitFailure, o.code)
	assert.Contains(t, o.stderr, "no AWS region: set AWS_REGION")
	t.Setenv("AWS_REGION", "eu-west-1")
	o = invoke(t.Context(), "ls --table app", nil, "")
	assert.Equal(t, exitFailure, o.code)
	assert.Contains(t, o.stderr, "no AWS credentials")
	for _, args := range []string{"ls", "ls --json", "show a", "watch", "watch a", "sessions", "revoke a", "force a --yes", "collection a", "table", "table --json"} {
		o = invoke(t.Context(), args+" --table app --engine "+url, nil, "")
		assert.Equal(t, exitFailure, o.code, args)
		assert.Contains(t, o.stderr, "no table app", args)
		assert.Equal(t, 1, strings.Count(o.stderr, "\n"), args)
		assert.Empty(t, o.stdout, args)
	}

	c := &call{command: find("ls"), environ: []string{envTable + "=app"}}
	for kind, want := range map[error]string{
		table.ErrDenied: "lack a permission", table.ErrThrottled: "not enough capacity", table.ErrUnreachable: "no answer from DynamoDB on AWS", lock.ErrNoSession: "cannot be asked", lock.ErrMultiRegion: "MORTISE_LOCK_HOME_REGION",
	} {
		assert.Contains(t, c.explain(fmt.Errorf("lock: list: %w", kind)), want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, text := c.verdict(ctx, ctx.Err())
	assert.Equal(t, []any{130, "interrupted"}, []any{code, text})
}

// A result that cannot be written is a failure, such as on a full disk.
func TestPrint_TellsThatTheOutputIsFull(t *testing.T) {
	for _, args := range []string{"help", "help ls", "ls", "ls --json", "show a", "sessions", "watch", "watch --json", "collection a", "table", "serve --addr 127.0.0.1:0"} {
		var stderr strings.Builder
		var more []string
		if !strings.HasPrefix(args, "help") {
			more = []string{"--engine", "demo"}
		}
		code := run(t.Context(), append(strings.Fields(args), more...), nil, strings.NewReader(""), full{}, &stderr)
		name, _, _ := strings.Cut(args, " ")
		assert.Equal(t, []any{exitFailure, "mortise " + name + ": standard output: no space left\n"}, []any{code, stderr.String()}, args)
	}
}

func TestHelp_ExplainsEachCommand(t *testing.T) {
	all := invoke(t.Context(), "help", nil, "")
	require.Zero(t, all.code)
	for _, x := range commands() {
		assert.Contains(t, all.stdout, "\n  "+x.name)
		for _, args := range []string{"help " + x.name, x.name + " --help"} {
			o := invoke(t.Context(), args, nil, "")
			assert.Zero(t, o.code, args)
			assert.Empty(t, o.stderr)
			assert.True(t, strings.HasPrefix(o.stdout, "usage: mortise "+x.name), o.stdout)
		}
	}
	for _, args := range []string{"-h", "--help"} {
		assert.Equal(t, all, invoke(t.Context(), args, nil, ""))
	}
	for _, name := range []string{envTable, envScheme, envEngine, envKeys, envLock, fmt.Sprint(exitLost), fmt.Sprint(exitNotAcquired), fmt.Sprint(exitRefused), fmt.Sprint(exitUnknown), fmt.Sprint(exitDiffers)} {
		assert.Contains(t, all.stdout, name)
	}
	for i, line := range strings.Split(all.stdout+invoke(t.Context(), "help exec", nil, "").stdout, "\n") {
		assert.LessOrEqual(t, len([]rune(line)), 130, "line %d: %s", i, line)
	}
}

// What became of a transaction decides what a script may do next.
func TestJudge_GoesByWhatBecameOfTheTransaction(t *testing.T) {
	refused := func(pending bool, indexes ...int) error {
		var all table.ConditionErrors
		for _, i := range indexes {
			all = append(all, &table.ConditionError{Index: i, Pending: pending, Item: table.Item{"n": &types.AttributeValueMemberN{Value: "1"}}})
		}
		return all
	}
	for name, tt := range map[string]struct {
		err  error
		code int
	}{
		"its own condition":                     {refused(false, 1), exitRefused},
		"the guard":                             {refused(false, 2), exitLost},
		"both":                                  {refused(false, 0, 2), exitLost},
		"the guard, after a lost answer":        {refused(true, 2), exitLost},
		"its own condition, after a lost one":   {refused(true, 0), exitUnknown},
		"no answer":                             {&table.Error{Kind: table.ErrUnreachable}, exitUnknown},
		"DynamoDB does not like the expression": {&table.Error{Kind: table.ErrInvalid}, exitFailure},
		"its own condition, without an item":    {table.ConditionErrors{{Index: 1}}, exitRefused},
	} {
		d, err := judge(t.Context(), tt.err, 2)
		var end *exit
		require.ErrorAs(t, err, &end, name)
		assert.Equal(t, tt.code, end.code, name)
		assert.Equal(t, tt.code == exitLost, d.Lost, name)
		assert.False(t, d.Written)
		for _, r := range d.Refused {
			if name == "its own condition, without an item" {
				assert.Nil(t, r.Found)
				continue
			}
			assert.JSONEq(t, `{"n":{"N":"1"}}`, string(r.Found))
		}
	}
	d, err := judge(t.Context(), nil, 2)
	require.NoError(t, err)
	assert.True(t, d.Written)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = judge(ctx, errors.New("cut short"), 1)
	code, _ := (&call{}).verdict(ctx, err)
	assert.Equal(t, exitUnknown, code)
}
