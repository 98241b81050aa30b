package sim

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/mortise-go/mortise/table/tabletest"
)

// Profile is how often what goes wrong. Shares are of requests, from 0 to 1; times between
// events are means, per process, and zero for never.
type Profile struct {
	Latency Range // one way; defaults to 1 to 10 ms

	Lost          float64 // never arrive
	LostLate      float64 // the client sees a reset; the request arrives later, by LateBy
	LostReply     float64 // are applied, and the client sees a reset
	Duplicated    float64 // are applied again later, by LateBy
	Slow          float64 // arrive, or are answered, late by SlowBy: beyond timeouts
	Throttled     float64
	Internal      float64 // 500, not applied
	InternalAfter float64 // 500, applied
	Conflict      float64 // of transactions, and of writes that meet one
	Stale         float64 // eventually consistent reads that miss up to 20 writes
	SkewedDate    float64 // answers whose date is off by up to Dates
	Expired       float64 // refused since credentials have expired

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

	Offset time.Duration // of wall clocks, at most, either way
	Rate   float64       // by how much clocks are too fast or too slow, at most
}

// Range is from Least to Most.
type Range struct{ Least, Most time.Duration }

func (r Range) or(least, most time.Duration) Range {
	if r == (Range{}) {
		return Range{least, most}
	}
	return r
}

// draw prefers short ones: half of the durations lie in the lower tenth.
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

// Swarm is a profile that the seed decides: some of all faults, some often, some rarely. Runs
// that all have everything find less than runs of which each has something.
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

// Words says what goes wrong, a line for each kind of fault that there is.
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
	if p.Offset > 0 {
		words = append(words, fmt.Sprintf("wall clocks are off by up to %v", p.Offset))
	}
	if p.Rate > 0 {
		words = append(words, fmt.Sprintf("clocks are too fast or too slow by up to %.2g %%", 100*p.Rate))
	}
	return words
}

// clock draws clocks for a process.
func (p *Profile) clock(chance *rand.Rand) *Clock {
	rate := func() float64 { return 1 + p.Rate*(2*chance.Float64()-1) }
	return &Clock{Offset: time.Duration((2*chance.Float64() - 1) * float64(p.Offset)), Wall: rate(), Rate: rate()}
}

// Outcome is what becomes of a request.
type Outcome struct {
	There, Back time.Duration // how long it and its answer take
	Lose        bool          // it does not arrive
	LoseReply   bool
	Again       []time.Duration // when it arrives again, or at last
	Refuse      string          // an error code to answer with instead of the engine's answer
	Fault       []tabletest.Fault
	names       []string
}

func (o *Outcome) String() string {
	if len(o.names) == 0 {
		return "in order"
	}
	return strings.Join(o.names, ", ")
}

// decide draws what becomes of a request. It is called in an order that is always the same.
func (w *World) decide(r *Request) Outcome {
	p, chance := &w.Profile, w.chance
	o := Outcome{There: p.Latency.draw(chance), Back: p.Latency.draw(chance)}
	hits := func(share float64, name string) bool {
		if share == 0 || chance.Float64() >= share || w.calm {
			return false
		}
		o.names = append(o.names, name)
		w.faults[name]++
		return true
	}
	fault := func(f tabletest.Fault) { o.Fault = append(o.Fault, f) }
	if r.Process.isCut() {
		hits(1, "cut off")
		o.Lose = true
		return o
	}
	if hits(p.Lost, "lost") {
		o.Lose = true
	}
	if hits(p.LostLate, "lost, arrives late") {
		o.Lose, o.Again = true, append(o.Again, o.There+p.LateBy.draw(chance))
	}
	if hits(p.LostReply, "reply lost") {
		o.LoseReply = true
	}
	if hits(p.Duplicated, "duplicated") {
		o.Again = append(o.Again, o.There+p.LateBy.draw(chance))
	}
	if hits(p.Slow, "slow") {
		if by := p.SlowBy.draw(chance); chance.IntN(2) == 0 {
			o.There += by
		} else {
			o.Back += by
		}
	}
	throttled := p.Throttled
	if time.Now().Before(w.storm) {
		throttled = .9
	}
	switch {
	case hits(throttled, "throttled"):
		fault(tabletest.Fault{Kind: tabletest.Throttle})
	case hits(p.Internal, "500"):
		fault(tabletest.Fault{Kind: tabletest.InternalError})
	case hits(p.InternalAfter, "500 after"):
		fault(tabletest.Fault{Kind: tabletest.InternalErrorAfter})
	case hits(p.Conflict, "conflict"):
		fault(tabletest.Fault{Kind: tabletest.TransactionConflict})
	case hits(p.Expired, "expired credentials"):
		o.Refuse = "ExpiredTokenException"
	}
	if hits(p.Stale, "stale") {
		fault(tabletest.Fault{Kind: tabletest.StaleRead, Writes: 1 + chance.IntN(20)})
	}
	if hits(p.SkewedDate, "skewed date") {
		fault(tabletest.Fault{Kind: tabletest.SkewDate, For: time.Duration((2*chance.Float64() - 1) * float64(p.Dates))})
	}
	return o
}

// refusal is an answer that is not the engine's.
func refusal(code string) *http.Response {
	body := fmt.Sprintf(`{"__type":"com.amazon.coral.service#%s","message":"refused"}`, code)
	return &http.Response{
		StatusCode: http.StatusBadRequest, Status: "400 Bad Request", Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(bytes.NewReader([]byte(body))), ContentLength: int64(len(body)),
	}
}

// weather schedules what happens to a process by itself.
func (w *World) weather(p *Process) {
	chance := rand.New(rand.NewPCG(mix(w.Seed, "weather", uint64(p.id)), 0))
	w.recur(chance, w.Profile.Pauses, p, "paused", func() { w.halt(p, chance, false) })
	w.recur(chance, w.Profile.Suspends, p, "suspended", func() { w.halt(p, chance, true) })
	w.recur(chance, w.Profile.Cuts, p, "partitioned", func() {
		p.Cut(true)
		w.network.later(p.id, time.Now().Add(w.Profile.StopFor.draw(chance)), func() { p.Cut(false) })
	})
	w.recur(chance, w.Profile.Crashes, p, "crashed", func() { p.Crash() })
	w.recur(chance, w.Profile.Jumps, p, "clock jumped", func() {
		p.Jump(time.Duration((2*chance.Float64() - 1) * float64(w.Profile.Jump)))
	})
}

// climate schedules what happens to the world.
func (w *World) climate() {
	chance := rand.New(rand.NewPCG(mix(w.Seed, "climate"), 0))
	w.recur(chance, w.Profile.Storms, nil, "throttling storm", func() {
		w.storm = time.Now().Add(w.Profile.StopFor.draw(chance))
		w.tell(Event{Kind: Storm}, "throttling storm")
		w.network.later(0, w.storm, func() {
			if !time.Now().Before(w.storm) { // or else another one has begun meanwhile
				w.tell(Event{Kind: Abated}, "throttling storm over")
			}
		})
	})
	w.recur(chance, w.Profile.Sweeps, nil, "deletion by time to live", func() {
		w.tell(Event{Kind: Swept}, "%d items deleted by time to live", w.engine.Sweep())
	})
}

func (w *World) halt(p *Process, chance *rand.Rand, suspend bool) {
	p.Stop(suspend)
	w.network.later(p.id, time.Now().Add(w.Profile.StopFor.draw(chance)), p.Resume)
}

// recur has something happen again and again, to a process that lives, or to the world.
func (w *World) recur(chance *rand.Rand, mean time.Duration, p *Process, name string, do func()) {
	if mean == 0 {
		return
	}
	of := 0
	if p != nil {
		of = p.id
	}
	var next func()
	next = func() {
		wait := time.Duration(chance.ExpFloat64() * float64(mean))
		w.network.later(of, time.Now().Add(wait), func() {
			if w.calm || p != nil && p.Crashed() {
				return
			}
			w.faults[name]++
			do()
			next()
		})
	}
	next()
}
