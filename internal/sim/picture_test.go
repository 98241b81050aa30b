package sim_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/sim"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

var update = flag.Bool("update", false, "write the pictures in testdata anew")

// golden holds a picture against testdata.
func golden(t *testing.T, name, got string) {
	file := "testdata/" + name + ".txt"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, "go test ./internal/sim -run %s -update writes it anew", t.Name())
}

// smallWorld is a world of three clients in which all happens that has a sign.
func smallWorld(t *testing.T) sim.Result {
	key := keys.NewKey("ROW", "ROW")
	return sim.Run(t, sim.Options{Seed: 3, Profile: sim.Profile{Latency: sim.Range{Least: 2 * time.Millisecond, Most: 2 * time.Millisecond}}, History: true}, func(w *sim.World) {
		begin := time.Now()
		names := []string{"anna", "bert", "cleo"}
		for i, name := range names {
			lives := 0
			w.Supervise(name, func(p *sim.Process) {
				lives++
				locks := p.Locks(lock.Config{Lease: 5 * time.Second, HomeRegion: tabletest.Region})
				p.Go("w", func(ctx context.Context, x *sim.Worker) {
					for round := range 3 {
						x.Sleep(time.Duration(i+1) * 40 * time.Millisecond)
						lockName := []string{"door", "gate"}[round%2]
						x.Waits(lockName)
						bounded, cancel := x.Within(ctx, 20*time.Second)
						l, err := locks.Acquire(bounded, lock.Name(lockName))
						cancel()
						if err != nil {
							x.GivesUp(lockName, err)
							continue
						}
						x.Holds(lockName, l)
						x.Sleep(100 * time.Millisecond)
						if i == 1 && round == 0 {
							x.Pause(9*time.Second, true)
						}
						x.Writes(l.Write(ctx, table.Update(key, table.Attr("n").Set(i))), "sets %d", i)
						x.Sleep(30 * time.Millisecond)
						x.Releases(lockName, l.Release(ctx))
					}
					x.Note("is done for the %d. time", lives)
				})
				if name == "anna" && lives == 1 {
					w.At(begin.Add(1500*time.Millisecond), p.Crash)
				}
				if name == "cleo" {
					w.At(begin.Add(3*time.Second), func() { p.Cut(true) })
					w.At(begin.Add(4*time.Second), func() { p.Cut(false); p.Jump(-time.Hour) })
					w.At(begin.Add(5*time.Second), func() { p.Stop(false) })
					w.At(begin.Add(6*time.Second), p.Resume)
				}
			})
		}
		require.True(t, w.Wait(time.Hour))
		w.Violation("a violation, to be seen")
	})
}

func TestPicture(t *testing.T) {
	r := smallWorld(t)
	p := sim.Picture{Events: r.Events, Width: 100}
	golden(t, "picture", p.Legend()+"\n"+p.String())
	for line := range strings.Lines(p.String()) {
		assert.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), 100)
	}

	p.From, p.To = 7*time.Second, 12*time.Second
	golden(t, "window", p.String())
	assert.Less(t, len(p.String()), len(sim.Picture{Events: r.Events, Width: 100}.String()))
	assert.Empty(t, sim.Picture{}.String())
}

// signs draws events that come 10 ms after each other, of one worker unless they say otherwise.
func signs(events ...sim.Event) string {
	for i := range events {
		events[i].At = time.Duration(i) * 10 * time.Millisecond
		if events[i].Client == "" {
			events[i].Process, events[i].Client = 1, "c"
		}
		if events[i].Kind < sim.Booted {
			events[i].Worker = "w"
		}
	}
	lines := strings.Split(sim.Picture{Events: events}.String(), "\n")
	return strings.TrimPrefix(lines[1], "c        ")
}

// Every sign means one thing.
func TestSigns(t *testing.T) {
	boots, waits := sim.Event{Kind: sim.Booted}, sim.Event{Kind: sim.Waiting, Lock: "a"}
	holds := sim.Event{Kind: sim.Holding, Lock: "a", Fence: 7}
	of := func(kind sim.Kind) sim.Event { return sim.Event{Kind: kind, Lock: "a"} }
	for _, tc := range []struct {
		name   string
		events []sim.Event
		want   string
	}{
		{"released", []sim.Event{boots, waits, holds, of(sim.Acknowledged), of(sim.Released)}, "^-..[7+=]"},
		{"lost, refused, and given back for nothing", []sim.Event{boots, waits, holds, of(sim.Lost), of(sim.Refused), of(sim.Released)}, "^.[7!#"},
		{"no answer", []sim.Event{boots, waits, holds, of(sim.Unanswered), of(sim.Abandoned)}, "^-..[7?=)"},
		{"given up", []sim.Event{boots, waits, of(sim.GaveUp), of(sim.Jumped)}, "^.-*"},
		{"paused as a holder", []sim.Event{boots, waits, holds, of(sim.Paused), of(sim.Resumed), of(sim.Released)}, "^.[7Z=]"},
		{"suspended while waiting", []sim.Event{boots, waits, of(sim.Suspended), of(sim.Resumed), of(sim.GaveUp)}, "^.s.-"},
		{"cut off", []sim.Event{boots, of(sim.CutOff), waits, holds, of(sim.Joined), of(sim.Released)}, "^-~~::[7==]"},
		{"crashed and back", []sim.Event{boots, waits, holds, of(sim.Crashed), boots, waits}, "^.[7X^."},
	} {
		t.Run(tc.name, func(t *testing.T) { assert.Equal(t, tc.want, signs(tc.events...)) })
	}
}

// What a worker tells of itself becomes an event of its kind.
func TestWorkersTell(t *testing.T) {
	boom := errors.New("boom")
	r := sim.Run(t, sim.Options{History: true}, func(w *sim.World) {
		w.Boot("c").Go("w", func(_ context.Context, x *sim.Worker) {
			x.Writes(nil, "adds %d", 1)
			x.Writes(lock.ErrStolen, "adds %d", 2)
			x.Writes(boom, "adds %d", 3)
			x.Releases("a", nil)
			x.Releases("a", lock.ErrExpired)
			x.Releases("a", boom)
			x.GivesUp("a", boom)
			x.Note("says %s", "something")
		})
		require.True(t, w.Wait(time.Hour))
	})
	var kinds []sim.Kind
	var texts []string
	for _, e := range r.Events {
		if e.Worker == "w" {
			kinds, texts = append(kinds, e.Kind), append(texts, e.Text)
		}
	}
	assert.Equal(t, []sim.Kind{sim.Acknowledged, sim.Refused, sim.Unanswered, sim.Released, sim.Released, sim.Abandoned, sim.GaveUp, sim.Noted}, kinds)
	assert.Equal(t, []string{
		"adds 1: acknowledged", "adds 2: refused: " + lock.ErrStolen.Error(), "adds 3: no answer: boom", "releases a",
		"releases a: " + lock.ErrExpired.Error(), "leaves a: boom", "does not acquire a: boom", "says something",
	}, texts)
}

func TestProfileInWords(t *testing.T) {
	assert.Equal(t, []string{"every way takes 1ms to 10ms"}, sim.Profile{}.Words())
	words := strings.Join(sim.Profile{Lost: .021, Crashes: 90 * time.Second, Rate: .2, Offset: time.Hour}.Words(), "\n")
	assert.Equal(t, strings.Join([]string{
		"every way takes 1ms to 10ms", "2.1 % of requests are lost", "each process crashes, every 1m30s or so",
		"wall clocks are off by up to 1h0m0s", "clocks are too fast or too slow by up to 20 %",
	}, "\n"), words)
}
