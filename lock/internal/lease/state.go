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
	// Releasing means that the holder has begun to release, and no answer says yet that it is done. What happens
	// from here on is no loss.
	Releasing
	// Released means that the holder gave the lock up.
	Released
	// Lost means that the row names somebody else, or is gone.
	Lost

	states
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

// Effect is a set of things to be done.
type Effect uint16

const (
	// CancelRevoked ends the lease's context: the lock was asked back.
	CancelRevoked Effect = 1 << iota
	// CancelExpired ends the lease's context: the lease has ended.
	CancelExpired
	// CancelOverstayed ends the lease's context: the lock was held for too long.
	CancelOverstayed
	// CancelReleased ends the lease's context: the holder gave the lock up.
	CancelReleased
	// CancelStolen ends the lease's context: somebody else holds the lock.
	CancelStolen
	// TellRevoked logs and counts that the lock was asked back.
	TellRevoked
	// TellLost logs and counts a loss, and calls OnLost.
	TellLost
	// TellReleased counts a release.
	TellReleased
	// GiveUp releases in the holder's place.
	GiveUp
	// Forget stops what is watched for the lease. Nothing in the client refers to it any more.
	Forget

	cancels = CancelRevoked | CancelExpired | CancelOverstayed | CancelReleased | CancelStolen
)

// Has reports whether an effect is in the set.
func (e Effect) Has(one Effect) bool { return e&one != 0 }

type step struct {
	next    State
	effects Effect
}

// table has a step for each state and event.
//
//nolint:gochecknoglobals // a constant, which Go has no arrays of
var table = [states][events]step{
	Held: {
		Ask:      {Revoked, CancelRevoked | TellRevoked},
		End:      {Expired, CancelExpired | TellLost | Forget},
		Overstay: {Expired, CancelOverstayed | TellLost | GiveUp},
		Release:  {Releasing, 0},
		GivenUp:  {Released, CancelReleased | TellReleased | Forget},
		Taken:    {Lost, CancelStolen | TellLost | Forget},
	},
	Revoked: {
		Ask:      {Revoked, 0},
		End:      {Expired, TellLost | Forget},
		Overstay: {Expired, TellLost | GiveUp},
		Release:  {Releasing, 0},
		GivenUp:  {Released, TellReleased | Forget},
		Taken:    {Lost, TellLost | Forget},
	},
	Expired: { // the holder has been told
		Ask:      {Expired, 0},
		End:      {Expired, Forget},
		Overstay: {Expired, 0},
		Release:  {Expired, 0},
		GivenUp:  {Released, TellReleased | Forget},
		Taken:    {Lost, Forget},
	},
	Releasing: {
		Ask:      {Releasing, 0},
		End:      {Expired, CancelExpired | Forget},
		Overstay: {Releasing, CancelOverstayed},
		Release:  {Releasing, 0},
		GivenUp:  {Released, CancelReleased | TellReleased | Forget},
		Taken:    {Lost, CancelStolen | Forget},
	},
	Released: same(Released),
	Lost:     same(Lost),
}

// same stays in a state whatever happens.
func same(s State) (row [events]step) {
	for e := range row {
		row[e] = step{next: s}
	}
	return row
}

// On is the state after an event, and what is to be done. A context is ended once: the first cause
// counts. Forget may come again.
func (s State) On(e Event) (State, Effect) {
	step := table[s][e]
	return step.next, step.effects
}

// Ended reports whether the lease has ended: its holder was told so, or does not hold the lock any more.
func (s State) Ended() bool { return s == Expired || s.Over() }

// Over reports whether the lease does not hold the lock any more, for certain.
func (s State) Over() bool { return s == Released || s == Lost }

// String is the constant's name.
func (s State) String() string {
	return [...]string{"Held", "Revoked", "Expired", "Releasing", "Released", "Lost"}[s]
}

// String is the constant's name.
func (e Event) String() string {
	return [...]string{"Ask", "End", "Overstay", "Release", "GivenUp", "Taken"}[e]
}
