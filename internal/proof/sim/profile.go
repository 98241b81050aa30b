package sim

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Profile describes which faults occur, and how often. Shares are of requests, from 0 to 1, and apply to requests
// that have none of the faults listed before: a lost request is not throttled. Times between events are averages for
// each process, and 0 means never.
type Profile struct {
	Latency Range // one way; defaults to 1 to 10 ms

	Lost          float64 // never arrive
	LostLate      float64 // the client sees a reset, and the request arrives later, by LateBy
	LostReply     float64 // are applied, and the client sees a reset
	Duplicated    float64 // are applied again later, by LateBy
	Slow          float64 // arrive, or are answered, later than timeouts allow, by SlowBy
	Throttled     float64
	Internal      float64 // 500, not applied
	InternalAfter float64 // 500, applied
	Conflict      float64 // of transactions, and of writes that can conflict with one
	Stale         float64 // eventually consistent reads that miss up to 20 writes
	SkewedDate    float64 // answers whose date is off by up to Dates
	Expired       float64 // refused because credentials have expired

	LateBy Range         // defaults to 10 ms to 2 minutes
	SlowBy Range         // defaults to 1 s to 30 s
	Dates  time.Duration // defaults to 1 h

	Storms   time.Duration // between throttling storms, in which nine of ten requests are refused
	Pauses   time.Duration // between pauses of a process, of StopFor
	Suspends time.Duration // between suspensions of a machine, of StopFor
	Cuts     time.Duration // between partitions of a process, of StopFor
	Crashes  time.Duration // between crashes of a process
	Jumps    time.Duration // between jumps of a wall clock, by up to Jump
	Sweeps   time.Duration // between deletions by time to live, in the world

	StopFor Range         // defaults to 0.1 to 60 s
	Jump    time.Duration // defaults to 1 h

	Offset time.Duration // of wall clocks, at most, ahead or behind
	Rate   float64       // by how much clocks are too fast or too slow, at most

	Settings bool // of lock clients differ
}

// Range is from Least to Most.
type Range struct{ Least, Most time.Duration }

func (r Range) or(least, most time.Duration) Range {
	if r == (Range{}) {
		return Range{least, most}
	}
	return r
}

// draw prefers short durations: half of them are in the lowest tenth of the range.
func (r Range) draw(chance *rand.Rand) time.Duration {
	width := r.Most - r.Least
	if chance.IntN(2) == 0 {
		width /= 10
	}
	return r.Least + time.Duration(chance.Int64N(int64(width)+1))
}

func (p Profile) withDefaults() Profile {
	p.Latency = p.Latency.or(time.Millisecond, 10*time.Millisecond)
	p.LateBy = p.LateBy.or(10*time.Millisecond, 2*time.Minute)
	p.SlowBy = p.SlowBy.or(time.Second, 30*time.Second)
	p.StopFor = p.StopFor.or(100*time.Millisecond, time.Minute)
	if p.Dates == 0 {
		p.Dates = time.Hour
	}
	if p.Jump == 0 {
		p.Jump = time.Hour
	}
	return p
}

// Swarm returns a profile that the seed decides. It has some of all faults: some of them often, some rarely. Runs
// that each have a few faults find more than runs that all have every fault.
func Swarm(seed uint64) Profile {
	chance := rand.New(rand.NewPCG(mix(seed, "profile"), 0))
	share := func(most float64) float64 {
		if chance.IntN(2) == 0 {
			return 0
		}
		return most * chance.Float64()
	}
	every := func(least time.Duration) time.Duration {
		if chance.IntN(2) == 0 {
			return 0
		}
		return least + time.Duration(chance.Int64N(int64(4*least)))
	}
	p := Profile{
		Lost: share(.1), LostLate: share(.05), LostReply: share(.1), Duplicated: share(.1), Slow: share(.03), Throttled: share(.1),
		Internal: share(.1), InternalAfter: share(.1), Conflict: share(.2), Stale: share(.5), SkewedDate: share(.05), Expired: share(.01),
		Storms: every(time.Minute), Pauses: every(30 * time.Second), Suspends: every(time.Minute), Cuts: every(time.Minute),
		Crashes: every(time.Minute), Jumps: every(30 * time.Second), Sweeps: every(time.Minute),
		Rate: share(.2),
	}
	if chance.IntN(2) == 0 {
		p.Offset = time.Hour
	}
	if chance.IntN(8) == 0 { // a slow network
		p.Latency = Range{50 * time.Millisecond, 500 * time.Millisecond}
	}
	return p
}

// Hastened adapts a profile for worlds that last seconds. Repeated events come so many times as often. Stops and
// delays are so many times shorter.
func (p Profile) Hastened(times int) Profile {
	p = p.withDefaults()
	for _, d := range []*time.Duration{
		&p.Storms, &p.Pauses, &p.Suspends, &p.Cuts, &p.Crashes, &p.Jumps, &p.Sweeps,
		&p.StopFor.Least, &p.StopFor.Most, &p.LateBy.Least, &p.LateBy.Most, &p.SlowBy.Least, &p.SlowBy.Most,
	} {
		*d /= time.Duration(times)
	}
	return p
}

// Words describes what goes wrong, one line for each kind of fault that the profile has.
func (p Profile) Words() []string {
	p = p.withDefaults()
	between := func(r Range) string { return fmt.Sprintf("%v to %v", r.Least, r.Most) }
	words := []string{"every way takes " + between(p.Latency)}
	for _, s := range []struct {
		share float64
		what  string
	}{
		{p.Lost, "of requests are lost"},
		{p.LostLate, "are lost for their client and arrive later, by " + between(p.LateBy)},
		{p.LostReply, "are applied, and the reply is lost"},
		{p.Duplicated, "are applied once more, later by " + between(p.LateBy)},
		{p.Slow, "take longer by " + between(p.SlowBy)},
		{p.Throttled, "are throttled"},
		{p.Internal, "fail with 500, not applied"},
		{p.InternalAfter, "fail with 500, and are applied"},
		{p.Conflict, "meet a transaction, where they can"},
		{p.Stale, "miss the last writes, where they are eventually consistent reads"},
		{p.SkewedDate, fmt.Sprintf("are answered with a date off by up to %v", p.Dates)},
		{p.Expired, "are refused for expired credentials"},
	} {
		if s.share > 0 {
			words = append(words, fmt.Sprintf("%.2g %% %s", 100*s.share, s.what))
		}
	}
	stop := ", for " + between(p.StopFor)
	for _, e := range []struct {
		mean time.Duration
		what string
	}{
		{p.Pauses, "each process is paused" + stop},
		{p.Suspends, "each machine is suspended" + stop},
		{p.Cuts, "each process is cut off from the network" + stop},
		{p.Crashes, "each process crashes"},
		{p.Jumps, fmt.Sprintf("each wall clock jumps, by up to %v", p.Jump)},
		{p.Storms, "requests are throttled, nine of ten" + stop},
		{p.Sweeps, "what has outlived its time to live is deleted"},
	} {
		if e.mean > 0 {
			words = append(words, fmt.Sprintf("%s, every %v or so", e.what, e.mean.Round(time.Second)))
		}
	}
	if p.Settings {
		words = append(words, "the settings of clients differ")
	}
	if p.Offset > 0 {
		words = append(words, fmt.Sprintf("wall clocks are off by up to %v", p.Offset))
	}
	if p.Rate > 0 {
		words = append(words, fmt.Sprintf("clocks are too fast or too slow by up to %.2g %%", 100*p.Rate))
	}
	return words
}

// clock draws the clock of a process.
func (p *Profile) clock(chance *rand.Rand) *Clock {
	// The conversion rounds. Without it some processors fuse the multiplication with the addition, and the same seed
	// gives other clocks.
	rate := func() float64 { return 1 + float64(p.Rate*(2*chance.Float64()-1)) }
	return &Clock{Offset: time.Duration((2*chance.Float64() - 1) * float64(p.Offset)), Wall: rate(), Rate: rate()}
}
