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

	"github.com/mortise-go/mortise/internal/proof/sim"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

var update = flag.Bool("update", false, "write the pictures in testdata anew")

// golden compares a picture with testdata.
func golden(t *testing.T, name, got string) {
	file := "testdata/" + name + ".txt"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, "go test ./internal/proof/sim -run %s -update writes it anew", t.Name())
}

// smallWorld is a world of three clients in which every event happens that has a sign.
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

func TestPicture_ShowsEverySign(t *testing.T) {
	r := smallWorld(t)
	p := sim.Picture{Events: r.Events, Width: 100}
	golden(t, "picture", p.Legend()+p.String())
	for _, p.Width = range []int{120, 116, 100, 70, 50} {
		for line := range strings.Lines(p.Legend() + p.String()) {
			assert.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), max(p.Width, 60)) // the meaning of a sign needs 60 columns
		}
	}
	p.Width = 100

	p.From, p.To = 7*time.Second, 12*time.Second
	golden(t, "window", p.String())
	assert.Less(t, len(p.String()), len(sim.Picture{Events: r.Events, Width: 100}.String()))
}

// boot is the event of a client that starts.
func boot(client string) sim.Event {
	return sim.Event{Process: 1, Client: client, Kind: sim.Booted}
}

// by is an event of a client's worker.
func by(client string, at time.Duration, kind sim.Kind, lockName string, fence int64) sim.Event {
	return sim.Event{Process: 1, Client: client, Worker: "w", At: at, Kind: kind, Lock: lockName, Fence: fence}
}

// If nothing is drawn, the picture tells why, and explains no signs.
func TestPicture_TellsWhyNothingIsDrawn(t *testing.T) {
	p := sim.Picture{Events: []sim.Event{boot("c"), by("c", time.Second, sim.Noted, "", 0)}}
	assert.Contains(t, p.String(), "this workload tells of no locks, and nothing happens")
	assert.Empty(t, p.Legend())

	p.Events = append(p.Events, sim.Event{Process: 1, Client: "c", At: 2 * time.Second, Kind: sim.Crashed})
	assert.Contains(t, p.Legend(), "This workload tells of no locks. What is drawn")
	assert.Contains(t, p.String(), "X")
	p.From = 100 * time.Hour
	assert.Equal(t, "Nothing to draw: what happened last was at 2.00 s, before 100h0m0s.\n", p.String())
	assert.Empty(t, p.Legend())
}

// The fences of each lock are counted from a number of its own, since locks may begin far apart.
func TestPicture_CountsFencesByLock(t *testing.T) {
	p := sim.Picture{Events: []sim.Event{
		boot("c"), by("c", time.Second, sim.Holding, "gate", 947_000_000_012), by("c", 2*time.Second, sim.Holding, "door", 946_684_800_003),
		by("c", 3*time.Second, sim.Holding, "gate", 947_000_001_013),
	}}
	for _, fence := range []string{"[b12", "[a3", "[b1013"} {
		assert.Contains(t, p.String(), fence)
	}
	assert.Contains(t, p.Legend(), "Locks, [a17==]: a door, fences from 946684800000; b gate, fences from 947000000000.\n")
	p.Events = p.Events[:2]
	assert.Contains(t, p.Legend(), "Fences are counted from 947000000000.\n")
	assert.NotContains(t, p.Legend(), "Locks")
}

// Violations of one moment share one mark.
func TestPicture_ViolationsOfOneMomentAreOneMark(t *testing.T) {
	events := []sim.Event{boot("c")}
	for _, at := range []int{1, 2, 2, 2, 3} {
		events = append(events, sim.Event{At: time.Duration(at) * time.Second, Kind: sim.Violation})
	}
	for range 9 {
		events = append(events, sim.Event{At: 3 * time.Second, Kind: sim.Violation})
	}
	assert.Regexp(t, `(?m)^world +V *V3 *V10$`, sim.Picture{Events: events}.String())
}

// The world has a line only in panels in which something happens to it.
func TestPicture_QuietWorldHasNoLine(t *testing.T) {
	var events []sim.Event
	for i, client := range []string{"a", "b"} {
		events = append(events, boot(client), by(client, time.Duration(i)*time.Minute, sim.Waiting, "door", 0))
	}
	for at := range 20 {
		events = append(events, by("a", time.Duration(at)*time.Minute, sim.Acknowledged, "", 0))
	}
	events = append(events, sim.Event{At: time.Hour, Kind: sim.Swept})
	panels := strings.Split(sim.Picture{Events: events, Width: 60}.String(), "\n\n")
	require.Greater(t, len(panels), 2)
	for i, panel := range panels {
		assert.Equal(t, i == len(panels)-1, strings.Contains(panel, "world "), panel)
	}
}

// The line of a worker that has nothing more to do ends, whatever happens to its process. The line of a worker that
// still waits continues.
func TestPicture_LinesEndWithTheirWork(t *testing.T) {
	of := func(client string, at int, kind sim.Kind) sim.Event {
		return sim.Event{Process: 1, Client: client, At: time.Duration(at) * time.Millisecond, Kind: kind}
	}
	events := []sim.Event{
		boot("anna"), boot("bert"), by("anna", 0, sim.Acknowledged, "", 0), by("bert", 0, sim.Waiting, "door", 0),
		of("anna", 10, sim.Paused), of("anna", 20, sim.Resumed), of("anna", 30, sim.Crashed), of("anna", 40, sim.Booted), of("", 50, sim.Swept),
	}
	picture := sim.Picture{Events: events}.String()
	assert.Regexp(t, `(?m)^anna +\^\+ +X *\^$`, picture)
	assert.Regexp(t, `(?m)^bert +\^-*\.+$`, picture)
	events = append(events, by("anna", 60*time.Millisecond, sim.Unanswered, "", 0))
	assert.Regexp(t, `(?m)^anna +\^\+z-X *\^-*\?$`, sim.Picture{Events: events}.String())
}

// signs draws events that follow each other by 10 ms. They are of one worker unless they name another one.
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

// Every sign has one meaning.
func TestSigns_HaveOneMeaningEach(t *testing.T) {
	boots, waits := sim.Event{Kind: sim.Booted}, sim.Event{Kind: sim.Waiting, Lock: "a"}
	holds, loses := sim.Event{Kind: sim.Holding, Lock: "a", Fence: 7}, sim.Event{Kind: sim.Lost, Lock: "a", Fence: 7}
	next := sim.Event{Kind: sim.Holding, Lock: "a", Fence: 8}
	of := func(kind sim.Kind) sim.Event { return sim.Event{Kind: kind, Lock: "a"} }
	for _, tc := range []struct {
		name   string
		events []sim.Event
		want   string
	}{
		{"released", []sim.Event{boots, waits, holds, of(sim.Acknowledged), of(sim.Released)}, "^-..[7+=]"},
		{"lost, refused, and given back for nothing", []sim.Event{boots, waits, holds, loses, of(sim.Refused), of(sim.Released)}, "^.[7!#"},
		{"the end of a lease that was left before", []sim.Event{boots, holds, of(sim.Abandoned), next, loses, of(sim.Acknowledged)}, "^---[7==)---[8======+"},
		{"no answer", []sim.Event{boots, waits, holds, of(sim.Unanswered), of(sim.Abandoned)}, "^-..[7?=)"},
		{"given up", []sim.Event{boots, waits, of(sim.GaveUp), of(sim.Jumped), of(sim.Acknowledged)}, "^.-*+"},
		{"nothing more to do", []sim.Event{boots, waits, of(sim.GaveUp), of(sim.Jumped)}, "^. *"},
		{"paused as a holder", []sim.Event{boots, waits, holds, of(sim.Paused), of(sim.Resumed), of(sim.Released)}, "^.[7Z=]"},
		{"suspended while waiting", []sim.Event{boots, waits, of(sim.Suspended), of(sim.Resumed), of(sim.GaveUp), of(sim.Acknowledged)}, "^.s.-+"},
		{"cut off", []sim.Event{boots, of(sim.CutOff), waits, holds, of(sim.Joined), of(sim.Released)}, "^-~~::[7==]"},
		{"crashed and back", []sim.Event{boots, waits, holds, of(sim.Crashed), boots, waits}, "^.[7X^."},
	} {
		t.Run(tc.name, func(t *testing.T) { assert.Equal(t, tc.want, signs(tc.events...)) })
	}
}

// Each report of a worker becomes an event of its kind.
func TestWorker_TellsEvents(t *testing.T) {
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

func TestProfile_IsToldInWords(t *testing.T) {
	assert.Equal(t, []string{"every way takes 1ms to 10ms"}, sim.Profile{}.Words())
	words := strings.Join(sim.Profile{Lost: .021, Crashes: 90 * time.Second, Rate: .2, Offset: time.Hour}.Words(), "\n")
	assert.Equal(t, strings.Join([]string{
		"every way takes 1ms to 10ms", "2.1 % of requests are lost", "each process crashes, every 1m30s or so",
		"wall clocks are off by up to 1h0m0s", "clocks are too fast or too slow by up to 20 %",
	}, "\n"), words)
}
