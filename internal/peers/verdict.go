package peers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Goals of acquire and release without contention. The first two are multiples of the minimal lock's results.
const (
	goalP50         = 1.25
	goalAllocations = 1.15
	goalBody        = 1000 // bytes
	goalRequests    = 2    // per pair
)

// Verdict is a goal, and whether it is met.
type Verdict struct {
	Goal string
	Got  string
	Met  bool
}

func (v Verdict) String() string {
	verdict := "**missed**"
	if v.Met {
		verdict = "met"
	}
	return fmt.Sprintf("%s: %s. Measured: %s.", v.Goal, verdict, v.Got)
}

// Verdicts compares the results of the pairs with the goals.
func (p *PairResult) Verdicts() []Verdict {
	ours, base, peer := slices.Index(p.Names, mortiseName), slices.Index(p.Names, minimalName), slices.Index(p.Names, cirelloName)
	var toBase, toPeer, allocations []float64
	below, requests := 0, 0.0
	for _, round := range p.Rounds {
		toBase = append(toBase, ratio(round.P50[ours], round.P50[base]))
		toPeer = append(toPeer, ratio(round.P50[ours], round.P50[peer]))
		allocations = append(allocations, ratio(round.Allocations[ours], round.Allocations[base]))
		requests = max(requests, round.Requests[ours])
		if round.P50[ours] < round.P50[peer] {
			below++
		}
	}
	body := max(p.Acquire[ours].Largest, p.Release[ours].Largest)
	return []Verdict{
		{
			fmt.Sprintf("p50 at most %.2f × the minimal lock, in each round", goalP50),
			ratios(toBase), len(toBase) > 0 && slices.Max(toBase) <= goalP50,
		},
		{
			"p50 below cirello dynamolock, in each round",
			fmt.Sprintf("in %d of %d; %s", below, len(p.Rounds), ratios(toPeer)), len(p.Rounds) > 0 && below == len(p.Rounds),
		},
		{
			fmt.Sprintf("allocations at most %.2f × the minimal lock, in the middle round", goalAllocations),
			ratios(allocations), len(allocations) > 0 && median(allocations) <= goalAllocations,
		},
		{
			fmt.Sprintf("%d requests per pair", goalRequests), // a renewal can happen meanwhile, hence the tolerance
			fmt.Sprintf("%.2f at most", requests), len(p.Rounds) > 0 && requests < goalRequests+0.1,
		},
		{
			fmt.Sprintf("largest body of a request at most %d bytes", goalBody),
			strconv.FormatInt(body, 10), body <= goalBody,
		},
	}
}

func ratios(values []float64) string {
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = fmt.Sprintf("%.2f", v)
	}
	return strings.Join(parts, ", ") + " ×"
}
