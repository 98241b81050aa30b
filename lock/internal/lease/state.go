// Package lease has the states of a lease as one table: a state and an event give the next state, and what to do. It is pure. The effects
// (contexts, metrics, logs and callbacks) are carried out by package lock, in one place.
package lease

// State is the state of a lease, as far as the client knows.
type State uint8

const (
	// Held means that the row names the ticket, and that the holder was told nothing.
	Held State = iota
	// Revoked means that the lease is held, and that the holder was asked to release it.
	Revoked
	// Expired means that the holder was told that the lease has ended. The row may still name the ticket: a guarded write or a release
	// finds out.
	Expired
	// Releasing means that the holder has begun to release, and that no answer shows yet that it is done. From then on nothing is
	// reported as a loss.
	Releasing
	// Released means that the holder gave the lock up.
	Released
	// Lost means that the row names somebody else, or is gone.
	Lost
)

// Event is something that happens to a lease.
type Event uint8

const (
	// Ask means that somebody asks the holder to release.
	Ask Event = iota
	// End means that the lease has ended without a renewal, or that its session has ended for any reason.
	End
	// Overstay means that the lease was held for longer than allowed.
	Overstay
	// Release means that the holder begins to release.
	Release
	// GivenUp means that an answer shows that the row does not name the ticket, because the holder gave the lock up.
	GivenUp
	// Taken means that an answer shows that the row names somebody else, or is gone.
	Taken

	events
)

// Effect is a set of things to do. The event is their reason.
type Effect uint8

const (
	// Cancel ends the lease's context. The first cause counts.
	Cancel Effect = 1 << iota
	// Tell logs and counts the event. If the lease is lost, it also calls OnLost.
	Tell
	// GiveUp releases in the holder's place.
	GiveUp
	// Forget drops everything that the client keeps for the lease. It may come more than once.
	Forget
)

// Has reports whether an effect is in the set.
func (e Effect) Has(one Effect) bool { return e&one != 0 }

type step struct {
	next    State
	effects Effect
}

// table has a step for each event in each state that is not over.
//
//nolint:gochecknoglobals // a constant, which Go has no arrays of
var table = [Releasing + 1][events]step{
	Held: {
		Ask:      {Revoked, Cancel | Tell},
		End:      {Expired, Cancel | Tell | Forget},
		Overstay: {Expired, Cancel | Tell | GiveUp},
		Release:  {Releasing, 0},
		GivenUp:  {Released, Cancel | Tell | Forget},
		Taken:    {Lost, Cancel | Tell | Forget},
	},
	Revoked: { // its context has ended
		Ask:      {Revoked, 0},
		End:      {Expired, Tell | Forget},
		Overstay: {Expired, Tell | GiveUp},
		Release:  {Releasing, 0},
		GivenUp:  {Released, Tell | Forget},
		Taken:    {Lost, Tell | Forget},
	},
	Expired: { // the holder has been told
		Ask:      {Expired, 0},
		End:      {Expired, Forget},
		Overstay: {Expired, 0},
		Release:  {Expired, 0},
		GivenUp:  {Released, Tell | Forget},
		Taken:    {Lost, Forget},
	},
	Releasing: {
		Ask:      {Releasing, 0},
		End:      {Expired, Cancel | Forget},
		Overstay: {Releasing, Cancel | GiveUp},
		Release:  {Releasing, 0},
		GivenUp:  {Released, Cancel | Tell | Forget},
		Taken:    {Lost, Cancel | Forget},
	},
}

// On returns the state after an event, and what to do. A lease that is over stays over.
func (s State) On(e Event) (State, Effect) {
	if s.Over() {
		return s, 0
	}
	step := table[s][e]
	return step.next, step.effects
}

// Ended reports whether the lease has ended: its holder was told so, or certainly does not hold the lock.
func (s State) Ended() bool { return s == Expired || s.Over() }

// Over reports whether the lease certainly does not hold the lock any more.
func (s State) Over() bool { return s == Released || s == Lost }
