package peers

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Report is the result of a run. What was not measured is nil.
type Report struct {
	Config  Config
	Machine Machine
	Engine  string
	Begun   time.Time
	Took    time.Duration // 0 if the run was not completed

	Pairs       *PairResult
	Herds       []CrowdResult
	Contentions []Contention
	Lost        []LostResult
	Held        []HeldResult
}

// WriteTo writes the report as Markdown.
func (r *Report) WriteTo(w io.Writer) (int64, error) {
	var m markdown
	m.line("## Mortise beside its peers")
	m.line("")
	m.line("%s, %s, %s.", r.Begun.UTC().Format("2006-01-02 15:04 UTC"), r.Machine, r.Engine)
	m.line("%s.", r.versions())
	if r.Pairs != nil {
		r.pairs(&m)
	}
	if len(r.Herds) > 0 {
		r.herds(&m)
	}
	for _, c := range r.Contentions {
		r.contention(&m, c)
	}
	if len(r.Lost) > 0 {
		r.lost(&m)
	}
	if len(r.Held) > 0 {
		r.held(&m)
	}
	if r.Pairs != nil {
		m.line("\n### Goals\n")
		for _, v := range r.Pairs.Verdicts() {
			m.line("- %s", v)
		}
	}
	if r.Took > 0 {
		m.line("\nThe run took %v.", r.Took.Round(time.Second))
	}
	n, err := io.WriteString(w, m.String())
	return int64(n), err
}

func (r *Report) versions() string {
	ours := "Mortise as in this tree"
	if r.Machine.Commit != "" {
		ours = "Mortise at commit " + r.Machine.Commit
	}
	parts := []string{ours}
	for _, module := range []string{"cirello.io/dynamolock/v2", "github.com/guregu/dynamo/v2", "github.com/aws/aws-sdk-go-v2/service/dynamodb"} {
		parts = append(parts, module+" "+cmp.Or(r.Machine.Modules[module], "of unknown version"))
	}
	return strings.Join(parts, ", ")
}

func (r *Report) pairs(m *markdown) {
	p := r.Pairs
	base := slices.Index(p.Names, minimalName)
	m.line("\n### Acquire and release, nobody else there\n")
	m.line("%d rounds of %d pairs each; the candidates' pairs alternate in random order.\n", len(p.Rounds), r.Config.Pairs)
	m.row("", "p50", "p95", "p50 ÷ minimal", "requests", "allocations", "÷ minimal", "largest body: acquire", "release")
	m.rule(8)
	for i, name := range p.Names {
		allocations, requests := p.middle(i)
		baseline, _ := p.middle(base)
		m.row(name, ms(p.P50[i]), ms(p.P95[i]), times(ratio(p.P50[i], p.P50[base])),
			fmt.Sprintf("%.2f", requests), fmt.Sprintf("%.0f", allocations), times(ratio(allocations, baseline)),
			thousands(p.Acquire[i].Largest)+" B", thousands(p.Release[i].Largest)+" B")
	}
	m.line("\nRequests of %d pairs: %s.\n", sizedPairs, p.operations())

	m.line("Each round: p50, and in brackets the ratio to the minimal lock's.\n")
	m.row(append([]string{"round"}, p.Names...)...)
	m.rule(len(p.Names))
	for n, round := range p.Rounds {
		cells := []string{strconv.Itoa(n + 1)}
		for i := range p.Names {
			cells = append(cells, fmt.Sprintf("%s (%.2f)", ms(round.P50[i]), ratio(round.P50[i], round.P50[base])))
		}
		m.row(cells...)
	}
}

// middle returns the medians of a candidate's rounds, per pair.
func (p *PairResult) middle(i int) (allocations, requests float64) {
	var all, sent []float64
	for _, round := range p.Rounds {
		all, sent = append(all, round.Allocations[i]), append(sent, round.Requests[i])
	}
	return median(all), median(sent)
}

func (p *PairResult) operations() string {
	list := make([]string, len(p.Names))
	for i, name := range p.Names {
		list[i] = fmt.Sprintf("%s %s, then %s", name, operations(p.Acquire[i]), operations(p.Release[i]))
	}
	return strings.Join(list, "; ")
}

func operations(c Counts) string {
	var parts []string
	for _, op := range slices.Sorted(maps.Keys(c.ByOp)) {
		parts = append(parts, fmt.Sprintf("%d %s", c.ByOp[op], op))
	}
	return strings.Join(parts, " + ")
}

func (r *Report) herds(m *markdown) {
	m.line("\n### %d waiters on one lock\n", r.Config.Clients*r.Config.Goroutines)
	m.line("%d processes of %s each; every goroutine wants the lock once and holds it for %v. Given up after %v.\n",
		r.Config.Clients, plural(r.Config.Goroutines, "goroutine"), r.Config.Hold, r.Config.Limit)
	m.row("", "served", "total time", "held of it", "requests per grant", "longest wait", "overlaps", "errors")
	m.rule(7)
	for _, c := range r.Herds {
		m.row(c.Name, fmt.Sprintf("%d of %d", c.Grants, c.Wanted), seconds(c.Took), percent(c.Held, c.Took),
			perGrant(c), seconds(c.Longest), strconv.Itoa(c.Overlaps), strconv.Itoa(c.Errors))
	}
}

func (r *Report) contention(m *markdown, c Contention) {
	m.line("\n### %d processes that ask again at once, from %s each\n", c.Clients, plural(c.Goroutines, "goroutine"))
	m.line("One lock, held for %v, for %v. Fairness is Jain's index of grants: 1 is equal shares, %.2g is one process that gets all.\n",
		r.Config.Hold, r.Config.Window, 1/float64(c.Clients))
	m.row("", "grants", "held", "requests per grant", "fairness: processes", "goroutines", "least and most served process", "longest wait", "overlaps", "errors")
	m.rule(9)
	for _, c := range c.Results {
		m.row(c.Name, strconv.Itoa(c.Grants), percent(c.Held, c.Took), perGrant(c),
			fmt.Sprintf("%.3f", jain(c.ByProcess)), fmt.Sprintf("%.3f", jain(c.ByGoroutine)),
			fmt.Sprintf("%d, %d", slices.Min(c.ByProcess), slices.Max(c.ByProcess)), seconds(c.Longest), strconv.Itoa(c.Overlaps), strconv.Itoa(c.Errors))
	}
}

func perGrant(c CrowdResult) string {
	if c.Grants == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f", ratio(c.Requests, c.Grants))
}

func (r *Report) lost(m *markdown) {
	m.line("\n### One lost answer\n")
	m.line("The server has applied a write, and the connection breaks before the answer. The worst of %d trials. Leases of %v; %v where a renewal's answer is lost.\n",
		r.Config.Trials, r.Config.Lease, r.Config.Renewed)
	m.row("", "acquire", "try", "release", "renewal")
	m.rule(4)
	for _, l := range r.Lost {
		renewal := "has no renewals"
		if l.Leases {
			renewal = worst(l.Renewal)
		}
		m.row(l.Name, worst(l.Acquire), worst(l.Try), worst(l.Release), renewal)
	}
}

// worst describes the trial with the worst fate. Of several such trials it is the longest one.
func worst(trials []Trial) string {
	t := slices.MaxFunc(trials, func(a, b Trial) int {
		return cmp.Or(cmp.Compare(a.Fate, b.Fate), cmp.Compare(a.Took, b.Took))
	})
	switch t.Fate {
	case Resolved:
		if t.Took == 0 {
			return "lock kept"
		}
		return fmt.Sprintf("resolved in %s, %d requests", seconds(t.Took), t.Requests)
	case FailedFree:
		return fmt.Sprintf("reports a failure after %s; the lock is free", seconds(t.Took))
	case LeftHeld:
		return fmt.Sprintf("**reports a failure after %s; the lock stays held for nobody**", seconds(t.Took))
	case SelfWait:
		return fmt.Sprintf("**waits for itself**: %s, %d requests", seconds(t.Took), t.Requests)
	case Lost:
		return "**lock lost** after " + seconds(t.Took)
	case Stuck:
		return fmt.Sprintf("**waits for itself**: given up after %s, %d requests", seconds(t.Took), t.Requests)
	}
	return "unknown"
}

func (r *Report) held(m *markdown) {
	m.line("\n### %s held locks\n", thousands(int64(r.Config.Locks)))
	m.line("One client acquires them and holds them for %g leases of %v more. Each request is delayed by %v. The minimal lock has no leases, and so nothing to renew.\n",
		r.Config.Leases, r.Config.Lease, r.Config.Latency)
	m.row("", fmt.Sprintf("requests per %v", r.Config.Lease/4), "locks lost while acquiring", "while holding")
	m.rule(3)
	for _, h := range r.Held {
		m.row(h.Name, fmt.Sprintf("%.1f", h.Renewals), strconv.Itoa(h.LostEarly), strconv.Itoa(h.LostLate))
	}
}

// markdown is a text under construction.
type markdown struct{ strings.Builder }

func (m *markdown) line(format string, args ...any) {
	_, _ = fmt.Fprintf(m, format+"\n", args...) // a builder never fails
}

func (m *markdown) row(cells ...string) { m.line("| %s |", strings.Join(cells, " | ")) }

// rule writes the line below a table's head: a column of names, and n columns of numbers.
func (m *markdown) rule(n int) { m.line("| --- %s|", strings.Repeat("| ---: ", n)) }

func ms(d time.Duration) string      { return fmt.Sprintf("%.2f ms", milliseconds(d)) }
func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
func times(f float64) string         { return fmt.Sprintf("%.2f ×", f) }

func percent(part, whole time.Duration) string {
	return fmt.Sprintf("%.0f %%", 100*ratio(part, whole))
}

// plural returns a number with its noun.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// thousands writes 4000 as 4,000.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
