package soak

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Tally counts the operations of a workload.
type Tally struct {
	Workload     string
	Operations   int // writes under a lock that were about to be sent
	Acknowledged int
	Refused      int // by the guard: not applied
	Unknown      int // without an answer, or of a process that died: applied or not
	Idle         int // rounds that failed before they had anything to write

	// Twice is how many acknowledged writes have written what another had: the same number of the counter, or an element in the same
	// place of a set. One of the two is lost then. The guard makes that impossible.
	Twice int
}

// Count is how often something has happened.
type Count struct {
	What string
	N    int64
}

// Violation is something that must not happen.
type Violation struct {
	Workload string // or "locks", "workers"
	Text     string
}

// Report is the result of a run.
type Report struct {
	Seed      uint64
	Unguarded bool
	Elapsed   time.Duration // since the start
	Duration  time.Duration // as asked for

	Workloads []Tally
	Requests  int64   // requests to the proxies, with or without faults
	Faults    []Count // by kind
	Troubles  []Count // by kind: what was done to processes

	// Lost is how many acknowledged elements are in no set.
	Lost int

	Violations []Violation
}

// report returns what there is so far.
func (r *run) report() *Report {
	names := []string{setWorkload, counterWorkload, bankWorkload, fencesWorkload, everyWorkload}
	if r.Unguarded {
		names = names[:len(names)-1]
	}
	out := &Report{
		Seed: r.Seed, Unguarded: r.Unguarded, Elapsed: time.Since(r.began), Duration: r.Duration,
		Workloads: r.ledger.tallies(names), Violations: r.ledger.found(),
	}
	for f := pass + 1; f < faults; f++ {
		c := Count{What: f.String()}
		for _, k := range r.keepers {
			c.N += k.proxy.met[f].Load()
		}
		out.Faults = append(out.Faults, c)
		if f != skew { // an answer with a skewed date may have had another fault as well
			out.Requests += c.N
		}
	}
	for _, k := range r.keepers {
		out.Requests += k.proxy.passed.Load()
	}
	for t := range troubles {
		c := Count{What: [troubles]string{"kills", "pauses", "partitions", "restarts"}[t]}
		for _, k := range r.keepers {
			c.N += k.made[t].Load()
		}
		out.Troubles = append(out.Troubles, c)
	}
	return out
}

// Total adds up the workloads.
func (r *Report) Total() Tally {
	sum := Tally{Workload: "all"}
	for _, t := range r.Workloads {
		sum.Operations += t.Operations
		sum.Acknowledged += t.Acknowledged
		sum.Refused += t.Refused
		sum.Unknown += t.Unknown
		sum.Idle += t.Idle
		sum.Twice += t.Twice
	}
	return sum
}

func (r *Report) acknowledged() int { return r.Total().Acknowledged }

// Injected adds up the faults.
func (r *Report) Injected() (n int64) {
	for _, c := range r.Faults {
		n += c.N
	}
	return n
}

// Line is the report in short, for the progress.
func (r *Report) Line() string {
	t := r.Total()
	troubles := make([]string, len(r.Troubles))
	for i, c := range r.Troubles {
		troubles[i] = fmt.Sprint(c.What, " ", c.N)
	}
	return fmt.Sprintf("%s of %s: %d operations, %d acknowledged, %d refused, %d unknown; %d faults; %s; %d violations",
		clock(r.Elapsed), clock(r.Duration), t.Operations, t.Acknowledged, t.Refused, t.Unknown, r.Injected(), strings.Join(troubles, ", "), len(r.Violations))
}

// clock writes a duration as minutes and seconds.
func clock(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// shownViolations is how many are written out. The control has thousands.
const shownViolations = 50

// WriteTo writes the report for people to read.
func (r *Report) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, r.text())
	return int64(n), err
}

func (r *Report) text() string {
	var b strings.Builder // it never fails
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	say := func(to io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(to, format, args...) }
	say(t, "workload\toperations\tacknowledged\trefused\tunknown\twithout a lock\n")
	for _, l := range append(slices.Clone(r.Workloads), r.Total()) {
		say(t, "%s\t%d\t%d\t%d\t%d\t%d\n", l.Workload, l.Operations, l.Acknowledged, l.Refused, l.Unknown, l.Idle)
	}
	say(t, "\nfault\trequests\tof %d\n", r.Requests)
	for _, c := range r.Faults {
		say(t, "%s\t%d\n", c.What, c.N)
	}
	say(t, "\nprocesses\ttimes\n")
	for _, c := range r.Troubles {
		say(t, "%s\t%d\n", c.What, c.N)
	}
	_ = t.Flush()
	if r.Unguarded {
		say(&b, "\ncontrol without the guard: %d of %d acknowledged updates of sets lost\n", r.Lost, r.Workloads[0].Acknowledged)
	}
	say(&b, "\n%d violations in %s, seed %d\n", len(r.Violations), clock(r.Elapsed), r.Seed)
	for i, v := range r.Violations {
		if i == shownViolations {
			say(&b, "  and %d more\n", len(r.Violations)-i)
			break
		}
		say(&b, "  %s: %s\n", v.Workload, v.Text)
	}
	return b.String()
}
