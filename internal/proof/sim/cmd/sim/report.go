package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mortise-go/mortise/internal/proof/sim"
)

// report is the result of a plan so far.
type report struct {
	out      io.Writer
	plan     plan
	terminal bool
	begin    time.Time

	mu       sync.Mutex
	lines    []string // violations that are to be printed
	loads    map[string]*score
	requests int
	virtual  time.Duration
	faults   map[string]int
}

// score is the result of a workload.
type score struct {
	seeds, violated int // violated: how many seeds had a violation
	tally           sim.Tally
}

func newReport(out io.Writer, p plan, terminal bool) *report {
	r := &report{out: out, plan: p, terminal: terminal, begin: time.Now(), loads: map[string]*score{}, faults: map[string]int{}}
	for _, l := range p.loads {
		r.loads[l.Name] = &score{}
	}
	return r
}

// add adds the result of a seed.
func (r *report) add(load sim.Workload, got sim.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.loads[load.Name]
	s.seeds++
	s.tally.Add(got.Tally)
	r.requests += got.Requests
	r.virtual += got.Virtual
	for name, n := range got.Faults {
		r.faults[name] += n
	}
	if len(got.Violations) == 0 {
		return
	}
	s.violated++
	for _, v := range got.Violations {
		r.lines = append(r.lines, fmt.Sprintf("VIOLATION: %s, seed %d: %s", load.Name, got.Seed, v))
	}
	rounds := ""
	if r.plan.rounds != 1 {
		rounds = fmt.Sprintf(" -rounds %g", r.plan.rounds)
	}
	r.lines = append(r.lines, "  "+load.Replay(got.Seed)+rounds)
}

// show shows the progress and the violations until ctx ends.
func (r *report) show(ctx context.Context) {
	tick := time.NewTicker(every(r.terminal))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.print(r.progress(time.Since(r.begin)))
		case <-ctx.Done():
			r.print("")
			return
		}
	}
}

// print prints new violations and a line of progress. On a terminal, the next line of progress replaces it.
func (r *report) print(progress string) {
	r.mu.Lock()
	lines := r.lines
	r.lines = nil
	r.mu.Unlock()
	var b strings.Builder
	if r.terminal {
		b.WriteString("\r\x1b[K")
	}
	for _, l := range lines {
		b.WriteString(l + "\n")
	}
	b.WriteString(progress)
	if !r.terminal && progress != "" {
		b.WriteByte('\n')
	}
	_, _ = io.WriteString(r.out, b.String()) // there is nobody to report an error to
}

// progress describes how far it is.
func (r *report) progress(elapsed time.Duration) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	done, violated := 0, 0
	for _, s := range r.loads {
		done += s.seeds
		violated += s.violated
	}
	all := r.plan.seeds * uint64(len(r.plan.loads))
	rest := "?"
	if done > 0 {
		rest = time.Duration(float64(elapsed) * (float64(all)/float64(done) - 1)).Round(time.Second).String()
	}
	return fmt.Sprintf("%d of %d worlds, %.1f %%, %s left; %s requests, %s of virtual time, %d with violations",
		done, all, 100*float64(done)/float64(all), rest, short(r.requests), days(r.virtual), violated)
}

// summary prints the result and returns how many worlds had a violation.
func (r *report) summary() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	done, violated := 0, 0
	fmt.Fprintf(r.out, "%-14s %8s %12s %9s %10s %6s %10s  %s\n", "workload", "worlds", "acknowledged", "refused", "unanswered", "lost", "violations", "of")
	for _, l := range r.plan.loads {
		s := r.loads[l.Name]
		done += s.seeds
		violated += s.violated
		fmt.Fprintf(r.out, "%-14s %8d %12d %9d %10d %6d %10d  %s\n",
			l.Name, s.seeds, s.tally.Acknowledged, s.tally.Refused, s.tally.Unknown, s.tally.Lost, s.violated, l.Counts())
	}
	fmt.Fprintf(r.out, "%d worlds from seed %d on, %s requests, %s of virtual time, in %v\n",
		done, r.plan.from, short(r.requests), days(r.virtual), time.Since(r.begin).Round(time.Second))
	faults := make([]string, 0, len(r.faults))
	for _, name := range slices.Sorted(maps.Keys(r.faults)) {
		faults = append(faults, fmt.Sprintf("%s %s", short(r.faults[name]), name))
	}
	fmt.Fprintf(r.out, "faults: %s\n", strings.Join(faults, ", "))
	return violated
}

// short writes large numbers with few digits.
func short(n int) string {
	switch {
	case n >= 10_000_000:
		return fmt.Sprintf("%.1f million", float64(n)/1e6)
	case n >= 10_000:
		return fmt.Sprintf("%.0f thousand", float64(n)/1e3)
	}
	return strconv.Itoa(n)
}

func days(d time.Duration) string {
	if d >= 24*time.Hour {
		return fmt.Sprintf("%.1f days", d.Hours()/24)
	}
	return d.Round(time.Second).String()
}
