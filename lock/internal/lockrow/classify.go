package lockrow

import "slices"

// What the row that a request returned, or was refused with, tells the client whose request it was.

// Holds reports whether the row says that a holder holds the lock.
func (r *Row) Holds(h Holding) bool {
	first, held := r.First()
	return held && first.ID == h.ID && r.Fence == h.Fence
}

// Entered is what became of a request to enter.
type Entered uint8

const (
	// Refused says that the ticket is not in the line: the line is full, or not empty where it has to
	// be, or the interval has run.
	Refused Entered = iota
	// Waits says that the ticket is in the line, behind others.
	Waits
	// Granted says that the ticket is first, under the row's fence.
	Granted
)

// Entered reports what became of a ticket's request to enter, by the row that answered it or refused
// it. Only the ticket's own request can have put it there.
func (r *Row) Entered(id string) Entered {
	switch r.Place(id) {
	case -1:
		return Refused
	case 0:
		return Granted
	}
	return Waits
}

// Settled reports whether the run of an interval, or of a later one, was recorded.
func (r *Row) Settled(interval int64) bool { return interval > 0 && r.Ran >= interval }

// Released is what became of a request to give a holding up that was refused.
type Released uint8

const (
	// Lost says that somebody else took the lock, or the row away.
	Lost Released = iota
	// Held says that the ticket is first still: the request was refused for another reason.
	Held
	// Passed says that an earlier attempt to pass was applied: the target of the pass is first, and is
	// to be released in its place.
	Passed
	// Perhaps says that an earlier attempt was applied, if the holder's session lives: nobody takes a
	// lock from a session that lives but by force, which the row would tell.
	Perhaps
)

// Released reports what a refusal of Release, or of Commit, means. inDoubt says that an earlier attempt
// may have been applied; targets are the IDs of tickets that attempts without an answer may have
// passed the lock to.
func (r *Row) Released(h Holding, inDoubt bool, targets ...string) Released {
	if r.Holds(h) {
		return Held
	}
	if first, held := r.First(); held && r.Fence == h.Fence+1 && slices.Contains(targets, first.ID) {
		return Passed
	}
	if inDoubt && r.Fence > h.Fence && !r.forcedSince(h.Fence) {
		return Perhaps
	}
	return Lost
}

// forcedSince reports whether a holder under the given fence, or a later one, lost the lock by force.
func (r *Row) forcedSince(fence int64) bool { return r.ForcedFence >= fence }

// Wrote is what became of a numbered write whose guard was refused.
type Wrote uint8

const (
	// Gone says that the lock is not held any more. The write will not be applied, and the row does not
	// tell whether an earlier attempt was.
	Gone Wrote = iota
	// Written says that this very write was applied.
	Written
	// Overtaken says that a later write was applied: this one was not, and will not be.
	Overtaken
	// Open says that the guard holds.
	Open
)

// Wrote reports what the row says of the write with the given number.
func (r *Row) Wrote(h Holding, number int64) Wrote { return r.counted(h, r.Writes, number) }

// Edited is Wrote for SetData.
func (r *Row) Edited(h Holding, number int64) Wrote { return r.counted(h, r.Edits, number) }

func (r *Row) counted(h Holding, count, number int64) Wrote {
	switch {
	case !r.Holds(h):
		return Gone
	case count == number:
		return Written
	case count > number:
		return Overtaken
	}
	return Open
}

// Others are the places of a session's tickets behind the first.
func (r *Row) Others(session string) (list []Position) {
	for i, t := range r.Line {
		if i > 0 && session != "" && t.Session() == session {
			list = append(list, Position{Place: i, ID: t.ID})
		}
	}
	return list
}

// ForeignBefore is how many tickets of other sessions stand before a place.
func (r *Row) ForeignBefore(place int, session string) (n int) {
	for _, t := range r.Line[:min(place, len(r.Line))] {
		if t.Session() != session || session == "" {
			n++
		}
	}
	return n
}

// Echoes reports whether a change of the first place under a holding is the last one, by the time that it has
// written: a network may deliver a request twice, and answer the second time.
func (r *Row) Echoes(h Holding, c Change) bool { return r.Fence == h.Fence+1 && r.Since == c.Since }
