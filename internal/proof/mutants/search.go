package mutants

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sync/errgroup"
)

// Search looks for worlds in which mistakes show.
type Search struct {
	// Root is the module's directory.
	Root string

	// Mutants are the mistakes.
	Mutants []Mutant

	// Workloads are the workloads to play.
	Workloads []string

	// First and Last are the seeds that are played of each workload.
	First, Last uint64

	// Parallel is how many worlds are played at once. Defaults to 1.
	Parallel int

	// Seen is called with each world in which a mistake shows. It is also called with each world that broke down
	// (Sighting.Err is a *BreakdownError) or that has violations without the mistake, too (ErrAnyway).
	Seen func(m Mutant, s Sighting)

	// Done is called when all worlds of a workload were played with a mistake: with how many there were, and in how
	// many the mistake shows.
	Done func(m Mutant, workload string, played, seen int)
}

// Run searches, one mistake after the other. An error means that a mistake could not be tried or that ctx has ended.
func (s Search) Run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return fmt.Errorf("mutants: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // files that are left there do no harm
	without, err := NewPlayer(ctx, s.Root, dir, nil)
	if err != nil {
		return err
	}
	for i := range s.Mutants {
		m := s.Mutants[i]
		to := filepath.Join(dir, strconv.Itoa(i))
		if err := os.Mkdir(to, 0o700); err != nil {
			return fmt.Errorf("mutants: %w", err)
		}
		with, err := NewPlayer(ctx, s.Root, to, &m)
		if err != nil {
			return err
		}
		for _, load := range s.Workloads {
			if err := s.load(ctx, &m, load, without, with); err != nil {
				return err
			}
		}
		if err := os.RemoveAll(to); err != nil {
			return fmt.Errorf("mutants: %w", err)
		}
	}
	return nil
}

// load plays all seeds of a workload with one mistake, several at once.
func (s Search) load(ctx context.Context, m *Mutant, load string, without, with *Player) error {
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(max(s.Parallel, 1) + 1)
	found := make(chan Sighting)
	group.Go(func() error {
		for seed := s.First; inner.Err() == nil; seed++ {
			group.Go(func() error { return look(inner, without, with, World{load, seed}, found) })
			if seed == s.Last {
				break
			}
		}
		return nil
	})
	var err error
	go func() {
		err = group.Wait()
		close(found)
	}()
	played, seen := 0, 0
	for one := range found {
		played++
		if one.Err == nil {
			seen++
		}
		if !errors.Is(one.Err, ErrUnseen) && s.Seen != nil {
			s.Seen(*m, one)
		}
	}
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("mutants: %w", ctx.Err())
	}
	if err == nil && s.Done != nil {
		s.Done(*m, load, played, seen)
	}
	return err
}

// look plays a world for a search. The search continues unless the world could not be played at all.
func look(ctx context.Context, without, with *Player, w World, found chan<- Sighting) error {
	one := Look(ctx, without, with, []World{w})[0]
	var broken *BreakdownError
	if one.Err != nil && !errors.Is(one.Err, ErrUnseen) && !errors.Is(one.Err, ErrAnyway) && !errors.As(one.Err, &broken) {
		return one.Err
	}
	found <- one // load reads all of them
	return nil
}
