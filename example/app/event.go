package main

import "github.com/mortise-go/mortise/table"

// eventKind says what happened in a crew.
type eventKind string

const (
	crewReady    eventKind = "ready"    // its frozen workers are frozen
	workerFroze  eventKind = "froze"    // in the middle of a critical section
	orderSettled eventKind = "settled"  // by this worker
	orderFound   eventKind = "found"    // settled already, by somebody else
	staleRefused eventKind = "refused"  // a write under a lost lease did not commit
	crewFailed   eventKind = "failed"   // Error says why; crewGone follows
	crewGone     eventKind = "gone"     // the last event of a crew; from the foreman's side of the pipe
	crewProgress eventKind = "progress" // nothing but new stats
)

// event is what a crew tells the foreman. Worker processes send it as a line
// of JSON.
type event struct {
	Kind   eventKind `json:"kind"`
	Worker string    `json:"worker,omitempty"`
	Order  string    `json:"order,omitempty"`
	Error  string    `json:"error,omitempty"`
	Stats  stats     `json:"stats"`

	crew int   // index, set on the foreman's side
	err  error // the cause of Error, within one process
}

// stats are what a crew has counted since it started.
type stats struct {
	Waits   int64        `json:"waits"`   // an order's lock was held by somebody else
	Vain    int64        `json:"vain"`    // an order turned out to be settled once its lock was held
	Refused int64        `json:"refused"` // stale writes that did not commit
	Frozen  int64        `json:"frozen"`  // workers that froze
	Usage   table.Totals `json:"usage"`
}

func (s stats) plus(o stats) stats {
	return stats{
		Waits: s.Waits + o.Waits, Vain: s.Vain + o.Vain, Refused: s.Refused + o.Refused, Frozen: s.Frozen + o.Frozen,
		Usage: table.Totals{
			Requests: s.Usage.Requests + o.Usage.Requests, Retries: s.Usage.Retries + o.Usage.Retries,
			ReadUnits: s.Usage.ReadUnits + o.Usage.ReadUnits, WriteUnits: s.Usage.WriteUnits + o.Usage.WriteUnits,
		},
	}
}
