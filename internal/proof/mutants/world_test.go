package mutants

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"golang.org/x/sync/errgroup"

	"github.com/mortise-go/mortise/internal/testkit"
)

// few is the largest number of listed worlds. Each mistake has to be compiled.
const few = 6

// Mistakes show in the worlds in which they were seen once. Without a mistake, nothing is wrong there. After a change
// of the source, a seed is another world: then this test fails if the mistake does not show any more.
func TestWorlds_ShowTheirMistakes(t *testing.T) {
	if testkit.Small() {
		t.Skip("compiles the library once for each mistake: make proof does")
	}
	without, err := NewPlayer(t.Context(), root, t.TempDir(), nil)
	require.NoError(t, err)
	var group errgroup.Group
	group.SetLimit(2)
	var mu sync.Mutex
	listed, seen := 0, map[string][]Sighting{}
	for _, m := range All() {
		if len(m.Seen) == 0 {
			continue
		}
		listed++
		dir := t.TempDir()
		group.Go(func() error {
			with, err := NewPlayer(t.Context(), root, dir, &m)
			if err != nil {
				return err
			}
			list := Look(t.Context(), without, with, m.Seen)
			mu.Lock()
			defer mu.Unlock()
			seen[m.Name] = list
			return nil
		})
	}
	require.NoError(t, group.Wait())
	for name, list := range seen {
		for _, s := range list {
			t.Log(name, s)
			assert.NoError(t, s.Err, "%s in %v; mutants -search finds other worlds", name, s.World)
		}
	}
	assert.LessOrEqual(t, listed, few)
	assert.NotEmpty(t, seen)
}

// simulated is a module whose worlds sum up numbers. Those of an odd seed end at two. The workload broken panics, and
// stuck never ends.
func simulated() map[string]string {
	module := files()
	module["internal/proof/sim/cmd/replay/main.go"] = `package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"example.com/m/sum"
)

func main() {
	load := flag.String("workload", "", "")
	seed := flag.Int("seed", 0, "")
	flag.Int("width", 0, "")
	flag.Parse()
	want, got := 1, sum.Of([]int{1})
	switch {
	case *load == "broken":
		panic("this world is broken")
	case *load == "stuck":
		time.Sleep(time.Hour)
	case *load == "wrong":
		want = 7
	case *seed%2 == 1:
		want, got = 3, sum.Of([]int{1, 2})
	default:
		want, got = 0, sum.Of(nil)
	}
	fmt.Println("seed", *seed)
	if want == got {
		fmt.Println("No violations.")
		return
	}
	fmt.Printf("2 violations:\n  %d is not %d\n  it is wrong\n", got, want)
	os.Exit(1)
}
`
	return module
}

// late is a mistake that shows in the worlds of odd seeds.
var late = Mutant{Name: "begins-late", File: "sum/sum.go", Old: "i := 0", New: "i := 1"}

func TestPlay_TellsViolations(t *testing.T) {
	dir := write(t, simulated())
	without, err := NewPlayer(t.Context(), dir, t.TempDir(), nil)
	require.NoError(t, err)
	with, err := NewPlayer(t.Context(), dir, t.TempDir(), &late)
	require.NoError(t, err)
	violations, err := with.Play(t.Context(), World{"w", 3})
	require.NoError(t, err)
	assert.Equal(t, []string{"2 is not 3", "it is wrong"}, violations)
	violations, err = with.Play(t.Context(), World{"w", 4})
	require.NoError(t, err)
	assert.Empty(t, violations)

	var broken *BreakdownError
	_, err = with.Play(t.Context(), World{"broken", 4})
	require.ErrorAs(t, err, &broken)
	assert.Equal(t, World{"broken", 4}, broken.World)
	assert.Contains(t, broken.How, "this world is broken")
	assert.NotContains(t, broken.How, "goroutine")

	hasty := *with
	hasty.patience = 100 * time.Millisecond
	_, err = hasty.Play(t.Context(), World{"stuck", 4})
	require.ErrorAs(t, err, &broken)
	assert.Equal(t, "it took more than 100ms", broken.How)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = with.Play(ctx, World{"w", 4})
	require.ErrorIs(t, err, context.Canceled)

	list := Look(t.Context(), without, with, []World{{"w", 1}, {"w", 2}, {"wrong", 1}, {"broken", 1}})
	require.Len(t, list, 4)
	require.NoError(t, list[0].Err)
	assert.Equal(t, "seen in w 1: 2 is not 3, and 1 more", list[0].String())
	require.ErrorIs(t, list[1].Err, ErrUnseen)
	assert.Equal(t, "NOT SEEN in w 2: the mistake shows no violation", list[1].String())
	require.ErrorIs(t, list[2].Err, ErrAnyway)
	require.ErrorAs(t, list[3].Err, &broken)
}

func TestPlayer_NeedsAMistakeThatFits(t *testing.T) {
	dir := write(t, simulated())
	misfit, wrong := late, late
	misfit.Old, wrong.New = "nonsense", "i := nonsense"
	var fit *FitError
	_, err := NewPlayer(t.Context(), dir, t.TempDir(), &misfit)
	require.ErrorAs(t, err, &fit)
	_, err = NewPlayer(t.Context(), dir, t.TempDir(), &wrong)
	require.ErrorContains(t, err, "undefined: nonsense")
}

// The worlds of a mutant are reported with its verdict, and do not change it.
func TestRun_LooksAtWorlds(t *testing.T) {
	m := late
	m.Seen = []World{{"w", 1}, {"w", 2}}
	var out strings.Builder
	report := &Report{Out: &out, Total: 1}
	results, err := Run(t.Context(), Config{Root: write(t, simulated()), Mutants: []Mutant{m}, Packages: []string{"twice"}, Done: report.Done})
	require.NoError(t, err)
	assert.Equal(t, Survived, results[0].Verdict, results[0].Err)
	require.Len(t, results[0].Sightings, 2)
	survived, broken, unseen := report.Sum()
	assert.Equal(t, []int{1, 0, 1}, []int{survived, broken, unseen})
	assert.Contains(t, out.String(), " seen in w 1: 2 is not 3, and 1 more\n")
	assert.Contains(t, out.String(), " NOT SEEN in w 2: ")
	assert.Contains(t, out.String(), "it shows in 1 of 2\n")
}

func TestSearch_FindsWorlds(t *testing.T) {
	never := Mutant{Name: "seen-by-none", File: "sum/sum.go", Old: "return 1", New: "return 2"}
	var found, done []string
	s := Search{
		Root: write(t, simulated()), Mutants: []Mutant{late, never}, Workloads: []string{"w", "wrong", "broken"}, First: 2, Last: 5, Parallel: 3,
		Seen: func(m Mutant, one Sighting) {
			how := "shows"
			if one.Err != nil {
				how = one.Err.Error()
			}
			found = append(found, strings.Join([]string{m.Name, one.World.String(), how[:5]}, " "))
		},
		Done: func(m Mutant, workload string, played, seen int) {
			done = append(done, strings.Join([]string{m.Name, workload, strings.Repeat("+", seen) + strings.Repeat("-", played-seen)}, " "))
		},
	}
	require.NoError(t, s.Run(t.Context()))
	assert.Equal(t, []string{
		"begins-late w ++--", "begins-late wrong ----", "begins-late broken ----",
		"seen-by-none w ----", "seen-by-none wrong ----", "seen-by-none broken ----",
	}, done)
	var want []string
	for _, name := range []string{"begins-late", "seen-by-none"} {
		if name == late.Name {
			want = append(want, "begins-late w 3 shows", "begins-late w 5 shows")
		}
		for _, seed := range []string{"2", "3", "4", "5"} {
			want = append(want, name+" wrong "+seed+" there", name+" broken "+seed+" mutan")
		}
	}
	assert.ElementsMatch(t, want, found)

	ctx, cancel := context.WithCancel(t.Context())
	s.Seen = func(Mutant, Sighting) { cancel() }
	s.Done = func(Mutant, string, int, int) { t.Error("it has not ended") }
	require.ErrorIs(t, s.Run(ctx), context.Canceled)
	s.Mutants[0].Old = "nonsense"
	require.ErrorContains(t, s.Run(t.Context()), "does not fit")
}
