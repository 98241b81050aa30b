// Package lease is how far a lease has come, as one table: from a state and an event follow the next
// state, and what is to be done. It is pure. Contexts, metrics, logs and callbacks are effects, which
// package lock carries out in one place.
package lease

// State is how far a lease has come.
type State uint8

const (
	// Held means that the row names the ticket, and the holder was told nothing.
	Held State = iota
	// Revoked means that it is held, and the holder was asked to release.
	Revoked
	// Expired means that the holder was told that the lease has ended. The row may name the ticket still: a
	// guarded write, or a release, finds out.
	Expired
	// Releasing means that the holder has begun to release, and no answer shows yet that it is done. What happens
	// from here on is no loss.
	Releasing
	// Released means that the holder gave the lock up.
	Released
	// Lost means that the row names somebody else, or is gone.
	Lost
)

// Event is what happens to a lease.
type Event uint8

const (
	// Ask means that somebody wants the lock back.
	Ask Event = iota
	// End means that the lease has ended without a renewal, or its session was marked dead.
	End
	// Overstay means that it was held for longer than it may be.
	Overstay
	// Release means that the holder begins to release.
	Release
	// GivenUp means that an answer shows that the row does not name the ticket, since the holder gave the lock up.
	GivenUp
	// Taken means that an answer shows that the row names somebody else, or is gone.
	Taken

	events
)

// Effect is a set of things to be done. The event is their reason.
type Effect uint8

const (
	// Cancel ends the lease's context. The first reason counts.
	Cancel Effect = 1 << iota
	// Tell logs and counts the event. A lease that is lost is told to OnLost as well.
	Tell
	// GiveUp releases in the holder's place.
	GiveUp
	// Forget stops what is watched for the lease: nothing in the client refers to it any more. It may come again.
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

// On is the state after an event, and what is to be done. A lease that is over stays so.
func (s State) On(e Event) (State, Effect) {
	if s.Over() {
		return s, 0
	}
	step := table[s][e]
	return step.next, step.effects
}

// Ended reports whether the lease has ended: its holder was told so, or does not hold the lock any more.
func (s State) Ended() bool { return s == Expired || s.Over() }

// Over reports whether the lease does not hold the lock any more, for certain.
func (s State) Over() bool { return s == Released || s == Lost }
