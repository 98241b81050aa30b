package lockrow

// Granted reports whether a ticket holds, by the row that answered or refused the request to enter it. Nothing but that request can have
// put the ticket there.
func (r *Row) Granted(id string) bool {
	place := r.Place(id)
	return place >= 0 && place < r.Holders()
}

// Released is the meaning of a refused request to release, commit or pass.
type Released uint8

const (
	// Lost means that somebody else took the lock, or that the row was deleted.
	Lost Released = iota
	// Passed means that an earlier attempt to pass was applied: the target of the pass is first and has the lock.
	Passed
	// Perhaps means that an earlier attempt was applied, if the holder's session (or Fixed lease) has not ended. Before that, nobody
	// takes its lock except by force, and the row would show that.
	Perhaps
	// Unclear means that an earlier attempt was applied, or that the lock was taken by force. The row shows only the last force, which
	// was used on a later holder, or on any of the permits.
	Unclear
)

// Released returns what the refusal of a Release, a Commit or a Pass means, by a row in which the holder does not hold. inDoubt means that an
// earlier attempt may have been applied. target is the ID of the ticket to which an unanswered attempt may have passed the lock; empty for none.
//
// A late copy of an entry can put the ticket of a reader or a permit into the line again. If that is under another fence (or stay), it is
// not this holding, and Released does not take it for one.
func (r *Row) Released(h Holding, inDoubt bool, target string) Released {
	if first, held := r.First(); held && r.Fence == h.Fence+1 && first.ID == target {
		return Passed
	}
	switch {
	case !inDoubt || !r.isAfter(h):
		return Lost
	case !r.ForcedSince(h):
		return Perhaps
	case r.ForcedFence > h.Fence:
		return Unclear
	}
	return Lost
}

// isAfter reports whether a release of the holding can have produced this row. It is false for a row that was deleted, also if it was made
// again with permits in place of a lock, or the other way round.
func (r *Row) isAfter(h Holding) bool {
	same := (r.Permits > 0) == (h.Kind == Permit)
	return same && (r.Fence > h.Fence || r.Fence == h.Fence && h.Kind == Shared) // others may read on, under the same fence
}

// ForcedSince reports whether this holder may be one that lost the lock by force. Without permits, that needs a force under its fence or
// a later one. With permits, it needs a force since its stay began.
func (r *Row) ForcedSince(h Holding) bool {
	return r.ForcedFence > h.Fence || r.ForcedFence == h.Fence && h.Kind != Permit
}

// Of returns the places of a session's tickets. It returns nil for an empty session, as a Fixed ticket has.
func (r *Row) Of(session string) (places []int) {
	for i, t := range r.Line {
		if session != "" && t.Session() == session {
			places = append(places, i)
		}
	}
	return places
}

// Echoes reports whether the refused request may itself have ended the holding: a network may deliver it twice, and the client may get
// the second answer. A lock's row shows that, by the time that the request has written. A row of readers or permits does not: the request
// may have been applied before the refusal, and a reader's may still be applied after it.
func (r *Row) Echoes(h Holding, c Change) bool {
	return h.Kind != Exclusive || r.Fence == h.Fence+1 && r.Since == c.Since
}
