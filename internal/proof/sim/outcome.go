package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/mortise-go/mortise/table/tabletest"
)

// Outcome is what happens to a request.
type Outcome struct {
	There, Back time.Duration     // how long it and its answer take
	Lost        string            // why it does not arrive; empty if it does
	ReplyLost   bool              // it arrives, and its client sees a reset
	Slow        bool              // There or Back is longer than timeouts allow
	Again       []again           // late arrivals
	Faults      []tabletest.Fault // faults for the engine
}

// again is a request that arrives late.
type again struct {
	by   time.Duration
	name string
}

// The names of what happens on the way.
const (
	cutOff     = "cut off"
	lostOnWay  = "lost"
	lostLate   = "lost, arrives late"
	replyLost  = "reply lost"
	duplicated = "duplicated"
	slow       = "slow"
)

// String names what happens to the request on its way. What the engine does to it is known when it has arrived.
func (o *Outcome) String() string {
	var names []string
	if o.Lost != "" {
		names = append(names, o.Lost)
	}
	if o.ReplyLost {
		names = append(names, replyLost)
	}
	for _, a := range o.Again {
		if a.name != o.Lost {
			names = append(names, a.name)
		}
	}
	if o.Slow {
		names = append(names, slow)
	}
	if names == nil {
		return "in order"
	}
	return strings.Join(names, ", ")
}

// decide draws what happens to a request. It is always called in the same order. It draws no fault that an earlier
// one prevents.
func (w *World) decide(r *Request) Outcome {
	p, chance := &w.Profile, w.chance
	o := Outcome{There: p.Latency.draw(chance), Back: p.Latency.draw(chance)}
	hits := func(share float64) bool { return share > 0 && chance.Float64() < share && !w.calm }
	switch {
	case r.Process.isCut():
		o.Lost = cutOff
	case hits(p.Lost):
		o.Lost = lostOnWay
	case hits(p.LostLate):
		o.Lost, o.Again = lostLate, []again{{o.There + p.LateBy.draw(chance), lostLate}}
	}
	if o.Lost != "" {
		return o
	}
	o.ReplyLost = hits(p.LostReply)
	if hits(p.Duplicated) {
		o.Again = append(o.Again, again{o.There + p.LateBy.draw(chance), duplicated})
	}
	if o.Slow = hits(p.Slow); o.Slow {
		if by := p.SlowBy.draw(chance); chance.IntN(2) == 0 {
			o.There += by
		} else {
			o.Back += by
		}
	}
	fault := func(f tabletest.Fault) { o.Faults = append(o.Faults, f) }
	throttled := p.Throttled
	if time.Now().Before(w.storm) {
		throttled = .9
	}
	switch {
	case hits(throttled):
		fault(tabletest.Fault{Kind: tabletest.Throttle})
	case hits(p.Internal):
		fault(tabletest.Fault{Kind: tabletest.InternalError})
	case !o.ReplyLost && hits(p.InternalAfter):
		fault(tabletest.Fault{Kind: tabletest.InternalErrorAfter})
	case r.writes() && hits(p.Conflict):
		fault(tabletest.Fault{Kind: tabletest.TransactionConflict})
	case hits(p.Expired):
		fault(tabletest.Fault{Kind: tabletest.ExpiredCredentials})
	case r.Eventual && hits(p.Stale):
		fault(tabletest.Fault{Kind: tabletest.StaleRead, Writes: 1 + chance.IntN(20)})
	}
	if !o.ReplyLost && hits(p.SkewedDate) {
		fault(tabletest.Fault{Kind: tabletest.SkewDate, For: time.Duration((2*chance.Float64() - 1) * float64(p.Dates))})
	}
	return o
}

// happened names those faults of a request that made a difference, by what the engine reports. For example, a
// transaction that was repeated under its token meets no conflict. code is that of the engine's answer.
func happened(kinds []tabletest.FaultKind, code string) []string {
	var names []string
	for _, k := range kinds {
		switch k {
		case tabletest.Throttle:
			names = append(names, "throttled")
		case tabletest.InternalError:
			names = append(names, "500")
		case tabletest.InternalErrorAfter:
			names = append(names, "500 after")
		case tabletest.TransactionConflict:
			if slices.Contains([]string{"TransactionConflictException", "TransactionCanceledException"}, code) {
				names = append(names, conflict)
			}
		case tabletest.StaleRead:
			if code == "" {
				names = append(names, "stale")
			}
		case tabletest.SkewDate:
			names = append(names, "skewed date")
		case tabletest.ExpiredCredentials:
			names = append(names, "expired credentials")
		}
	}
	return names
}

const conflict = "conflict"

// met counts a fault that has happened.
func (w *World) met(name string) { w.faults[name]++ }
