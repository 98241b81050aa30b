package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/tty"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

func TestWatch_ShowsEachChange(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		ctx, cancel := context.WithCancel(b.Context())
		out, w := io.Pipe()
		ended := make(chan int)
		go func() {
			code := run(ctx, strings.Fields("watch report --every 500ms --json"), b.environ(), strings.NewReader(""), w, io.Discard)
			_ = w.Close()
			ended <- code
		}()
		docs := json.NewDecoder(out)
		until := func(want func(d lockDocument) bool) {
			for {
				var d struct{ Locks []lockDocument }
				require.NoError(b, docs.Decode(&d))
				require.Len(b, d.Locks, 1)
				if want(d.Locks[0]) {
					return
				}
			}
		}
		until(func(d lockDocument) bool { return !d.Held })
		held := b.acquire(report)
		until(func(d lockDocument) bool { return d.Held && d.Line[0].Owner == "rival" })
		require.NoError(b, held.Release(b.Context()))
		until(func(d lockDocument) bool { return !d.Held && d.Fence == held.Fence()+1 })
		cancel()
		go func() { _, _ = io.Copy(io.Discard, out) }()
		assert.Zero(b, <-ended, "an interrupt is how it ends")

		// For people: again only when a line has changed.
		again, cancel := context.WithCancel(b.Context())
		text, page := io.Pipe()
		go func() {
			ended <- run(again, strings.Fields("watch --every 500ms"), b.environ(), strings.NewReader(""), page, io.Discard)
		}()
		lines := bufio.NewScanner(text)
		next := func() string {
			require.True(b, lines.Scan())
			return lines.Text()
		}
		assert.Contains(b, next(), b.table.Name())
		assert.Equal(b, "no locks are held", next())
		b.acquire(report)
		assert.Contains(b, next(), b.table.Name())
		assert.Regexp(b, "LOCK +PLACE +FOR +WHO", next())
		assert.Regexp(b, "report +holds +.* +rival", next())
		cancel()
		go func() { _, _ = io.Copy(io.Discard, text) }()
		assert.Zero(b, <-ended)
	})
}

// An outage is when somebody watches.
func TestWatch_GoesOnAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, s := newStore(t)
		begin := func(ctx context.Context) (stdout, stderr *strings.Builder, ended chan error) {
			stdout, stderr, ended = &strings.Builder{}, &strings.Builder{}, make(chan error, 1)
			c := &call{command: find("watch"), every: time.Second, stdout: stdout, stderr: stderr, width: func(any) (int, bool) { return 0, false }}
			go func() { ended <- c.watch(ctx, s) }()
			time.Sleep(5 * time.Second)
			synctest.Wait()
			return stdout, stderr, ended
		}
		ctx, cancel := context.WithCancel(t.Context())
		stdout, stderr, ended := begin(ctx)
		assert.Contains(t, stdout.String(), "no locks are held")
		for _, kind := range []tabletest.FaultKind{tabletest.Throttle, tabletest.DropRequest} {
			engine.Inject(tabletest.Fault{Kind: kind})
			time.Sleep(time.Minute)
			_, _, failed := begin(t.Context())
			time.Sleep(time.Minute)
			require.Error(t, <-failed, "the first look has failed")
			engine.ClearFaults()
			time.Sleep(time.Minute)
		}
		_, err := s.locks.Acquire(ctx, report)
		require.NoError(t, err)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.Contains(t, stdout.String(), "report")
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		require.Len(t, lines, 4, "one when each outage begins, and one when it ends")
		assert.Contains(t, lines[0], "not enough capacity")
		assert.Contains(t, lines[2], "endpoint unreachable")
		for _, i := range []int{1, 3} {
			assert.Regexp(t, `^mortise watch: DynamoDB answers again, after [12]m\d+s$`, lines[i])
		}
		cancel()
		require.NoError(t, <-ended)
	})
}

// A metadata service that does not answer for a while is an outage, too.
func TestWatch_GoesOnWhileCredentialsDoNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hung atomic.Bool
		_, s := newStore(t, func(o *dynamodb.Options) {
			o.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
				if hung.Load() {
					<-ctx.Done()
				}
				return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, ctx.Err()
			})
		})
		var stderr strings.Builder
		c := &call{command: find("watch"), every: time.Second, stdout: io.Discard, stderr: &stderr, width: func(any) (int, bool) { return 0, false }}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.watch(ctx, s) }()
		time.Sleep(5 * time.Second)
		hung.Store(true)
		time.Sleep(time.Minute)
		hung.Store(false)
		time.Sleep(time.Minute)
		cancel()
		require.NoError(t, <-ended)
		assert.Contains(t, stderr.String(), "no credentials within")
		assert.Contains(t, stderr.String(), "DynamoDB answers again")
	})
}

// What a terminal shows is what was written since it was cleared.
func TestWatch_ATerminalShowsThatAnOutageIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, s := newStore(t)
		var screen strings.Builder
		c := &call{command: find("watch"), every: time.Minute, stdout: &screen, stderr: &screen, width: func(any) (int, bool) { return 80, true }}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.watch(ctx, s) }()
		time.Sleep(time.Second)
		engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest})
		time.Sleep(2 * time.Minute)
		engine.ClearFaults() // during a look, which succeeds, and long before the next one
		time.Sleep(30 * time.Second)
		synctest.Wait()
		drawn := strings.Split(screen.String(), "\x1b[2J")
		assert.Regexp(t, `(?s)no locks are held.*DynamoDB answers again`, drawn[len(drawn)-1])
		cancel()
		require.NoError(t, <-ended)
	})
}

// One permit more: the first that waits holds one, and the row has the same tickets as before.
func TestWatch_ShowsAgainWhoHoldsAPermitMore(t *testing.T) {
	_, s := newStore(t)
	var stdout strings.Builder
	c := &call{stdout: &stdout, width: func(any) (int, bool) { return 0, false }}
	d := lockDocument{Name: "exports", Held: true, Holders: 2, Permits: 2, Line: []placeText{{Ticket: "a"}, {Ticket: "b"}, {Ticket: "c"}}}
	last, err := c.draw(s, []lockDocument{d}, "")
	require.NoError(t, err)
	d.Holders, d.Permits = 3, 3
	_, err = c.draw(s, []lockDocument{d}, last)
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(stdout.String(), "waits"))
	assert.Equal(t, 5, strings.Count(stdout.String(), "holds"))
}

// Of a time without its zone, nobody can tell how long ago it was.
func TestWatch_TellsTheTimeAsShowDoes(t *testing.T) {
	at := time.Date(2026, time.November, 28, 23, 30, 0, 0, time.FixedZone("", -5*3600))
	tbl, err := table.Open(tabletest.New(t).Client(), table.Schema{Name: "app"}, table.WithClock(func() time.Time { return at }))
	require.NoError(t, err)
	var stdout strings.Builder
	c := &call{command: find("watch"), stdout: &stdout, width: func(any) (int, bool) { return 0, false }}
	_, err = c.draw(&store{table: tbl}, nil, "")
	require.NoError(t, err)
	assert.Equal(t, "app  2026-11-29T04:30:00Z\nno locks are held\n", stdout.String())
}

// A terminal is drawn over, in lines that fit. One without escape sequences gets each change, and none of these.
func TestWatch_OnATerminal(t *testing.T) {
	tbl, err := table.Open(tabletest.New(t).Client(), table.Schema{Name: strings.Repeat("long", 20)})
	require.NoError(t, err)
	s := &store{table: tbl}
	for name, tt := range map[string]struct {
		environ []string
		drawn   bool
	}{"xterm": {[]string{"TERM=xterm"}, true}, "none": {nil, true}, "dumb": {[]string{"TERM=dumb"}, false}} {
		var stdout strings.Builder
		c := &call{environ: tt.environ, stdout: &stdout, width: func(any) (int, bool) { return 20, true }}
		last := ""
		for _, list := range [][]lockDocument{{{Name: "report"}}, {{Name: "report"}}, {{Name: strings.Repeat("other", 20)}}} {
			last, err = c.draw(s, list, last)
			require.NoError(t, err)
		}
		const over = "\x1b[H\x1b[2J"
		assert.Equal(t, map[bool]int{true: 3}[tt.drawn], strings.Count(stdout.String(), over), name)
		text := strings.ReplaceAll(stdout.String(), over, "")
		assert.NotContains(t, text, "\x1b", name)
		assert.Equal(t, map[bool]int{true: 2, false: 1}[tt.drawn], strings.Count(text, "report"), name)
		for line := range strings.Lines(text) {
			assert.LessOrEqual(t, tty.Columns(strings.TrimSuffix(line, "\n")), 20, "%s: %q", name, line)
		}
	}
}
