package mutants

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// World is a world of the simulation: a workload and a seed. The replay command plays it.
type World struct {
	Workload string
	Seed     uint64
}

func (w World) String() string { return fmt.Sprintf("%s %d", w.Workload, w.Seed) }

// replay is the package of the command that plays a world, relative to the module's root.
const replay = "./internal/proof/sim/cmd/replay"

// patience is how long a world may take. Most take a tenth of a second. With some mistakes, a client waits for ever.
const patience = 2 * time.Minute

// Player plays worlds, with a mistake or without.
type Player struct {
	path     string
	patience time.Duration
}

// NewPlayer compiles the simulation with a mistake, or without if m is nil, into a directory of its own. The caller
// removes the directory.
func NewPlayer(ctx context.Context, root, dir string, m *Mutant) (*Player, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("mutants: %w", err)
	}
	p := &Player{path: filepath.Join(dir, "replay.exe"), patience: patience}
	args := []string{"build", "-ldflags=-s -w", "-o", p.path}
	if m != nil {
		overlay, err := m.overlay(root, dir)
		if err != nil {
			return nil, err
		}
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, replay)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mutants: compile the simulation: %w: %s", err, bytes.TrimSpace(out))
	}
	return p, nil
}

// BreakdownError means that a world did not end, or that it could not be played.
type BreakdownError struct {
	World World
	How   string // the end of what was printed, or that it took too long
}

func (e *BreakdownError) Error() string {
	return fmt.Sprintf("mutants: %v broke down: %s", e.World, e.How)
}

// Parts of what the replay command prints.
var (
	none  = []byte("\nNo violations.\n")
	found = regexp.MustCompile(`(?m)^\d+ violations:\n((?:  .*\n)+)`)
)

// Play plays a world and returns its violations. If the world does not end, the error is a *BreakdownError.
func (p *Player) Play(ctx context.Context, w World) ([]string, error) {
	inner, stop := context.WithTimeout(ctx, p.patience)
	defer stop()
	var out, complaints bytes.Buffer
	cmd := exec.CommandContext(inner, p.path, "-workload", w.Workload, "-seed", fmt.Sprint(w.Seed), "-width", "120")
	cmd.Stdout, cmd.Stderr, cmd.Env = &out, &complaints, environment()
	err := cmd.Run()
	list := found.FindSubmatch(out.Bytes())
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("mutants: %w", ctx.Err())
	case inner.Err() != nil:
		return nil, &BreakdownError{World: w, How: fmt.Sprintf("it took more than %v", p.patience)}
	case err == nil && bytes.Contains(out.Bytes(), none):
		return nil, nil
	case errors.As(err, &exit) && exit.ExitCode() == 1 && list != nil:
		var violations []string
		for line := range strings.Lines(string(list[1])) {
			violations = append(violations, strings.TrimSpace(line))
		}
		return violations, nil
	case err != nil && exit == nil:
		return nil, fmt.Errorf("mutants: play %v: %w", w, err)
	}
	how := strings.TrimSpace(complaints.String() + out.String())
	how, _, _ = strings.Cut(how, "\n\n") // of a panic, its message without the goroutines
	return nil, &BreakdownError{World: w, How: how}
}

// Sighting is whether a mistake shows in a world.
type Sighting struct {
	World      World
	Violations []string // with the mistake
	Err        error    // why it does not show; nil if it does
}

// Errors of a Sighting, apart from those of Play.
var (
	ErrUnseen = errors.New("the mistake shows no violation")
	ErrAnyway = errors.New("there are violations without the mistake, too")
)

func (s Sighting) String() string {
	if s.Err != nil {
		return fmt.Sprintf("NOT SEEN in %v: %v", s.World, s.Err)
	}
	more := ""
	if n := len(s.Violations); n > 1 {
		more = fmt.Sprintf(", and %d more", n-1)
	}
	return fmt.Sprintf("seen in %v: %s%s", s.World, s.Violations[0], more)
}

// Look plays worlds with a mistake, each of which has to have violations, and without it, when there may be none.
func Look(ctx context.Context, without, with *Player, worlds []World) []Sighting {
	list := make([]Sighting, 0, len(worlds))
	for _, w := range worlds {
		s := Sighting{World: w}
		s.Violations, s.Err = with.Play(ctx, w)
		if s.Err == nil && len(s.Violations) == 0 {
			s.Err = ErrUnseen
		}
		if s.Err == nil {
			var anyway []string
			anyway, s.Err = without.Play(ctx, w)
			if s.Err == nil && len(anyway) > 0 {
				s.Err = ErrAnyway
			}
		}
		list = append(list, s)
	}
	return list
}
