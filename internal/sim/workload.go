package sim

// Workload is something that processes do in a world, with a checker for what comes of it.
type Workload struct {
	Name  string
	About string

	// Run does it and reports violations to the world. The negative twin does it without what
	// is checked (a guard, a fence): over some seeds its checker must find violations.
	Run func(w *World, twin bool) Tally
}

// Workloads are all of them.
func Workloads() []Workload {
	return []Workload{
		{"lockset", "clients take turns in adding to a set (Jepsen's test); the twin writes without the guard", func(w *World, twin bool) Tally {
			return LockSet{Clients: 8, Rounds: 20, Overslept: .1, Unguarded: twin}.Run(w)
		}},
	}
}

// Tally is how attempts to write ended, as far as their callers know, and how many of those
// that were acknowledged have left no trace.
type Tally struct{ Acknowledged, Refused, Unknown, Lost int }

// Add adds another one.
func (t *Tally) Add(o Tally) {
	t.Acknowledged += o.Acknowledged
	t.Refused += o.Refused
	t.Unknown += o.Unknown
	t.Lost += o.Lost
}
