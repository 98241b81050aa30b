package lockrow

// Granted reports whether a ticket holds, by the row that answered or refused its request to enter. Only that request can
// have put it there.
func (r *Row) Granted(id string) bool {
	place := r.Place(id)
	return place >= 0 && place < r.Holders()
}

// Released is what became of a request to give a holding up that was refused.
type Released uint8

const (
	// Lost means that somebody else took the lock, or the row away.
	Lost Released = iota
	// Held means that the ticket is first still: the request was refused for another reason.
	Held
	// Passed means that an earlier attempt to pass was applied: the target of the pass is first, and is
	// to be released in its place.
	Passed
	// Perhaps means that an earlier attempt was applied, if the holder's session lives: nobody takes a
	// lock from a session that lives but by force, which the row would tell.
	Perhaps
	// Unclear means that an earlier attempt was applied, or else that the lock was taken by force: the row tells of the last
	// force, which was used on a later holder, or another one.
	Unclear
)

// Released reports what a refusal of Release, or of Commit, means. inDoubt means that an earlier attempt
// may have been applied; target is the ID of the ticket that an attempt without an answer may have
// passed the lock to, or empty.
//
// The ticket of a reader, or of a permit, can be in the line again, by a late copy of its entry. That is no answer: under another
// fence it is not this holding.
func (r *Row) Released(h Holding, inDoubt bool, target string) Released {
	if r.Holds(h) {
		return Held
	}
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

// isAfter reports whether the row is one that a release of a holding can have left: one that was deleted is not.
func (r *Row) isAfter(h Holding) bool {
	switch h.Kind {
	case Shared: // others may read on, under the same fence
		return r.Permits == 0 && r.Fence >= h.Fence
	case Permit:
		return r.Permits > 0 && r.Fence > h.Fence
	}
	return r.Fence > h.Fence
}

// ForcedSince reports whether somebody lost the lock by force who may have been this holder: of a lock, under its fence or a
// later one; of permits, since its stay has begun.
func (r *Row) ForcedSince(h Holding) bool {
	return r.ForcedFence > h.Fence || r.ForcedFence == h.Fence && h.Kind != Permit
}

// Of are the places of a session's tickets; nil for none, and for leases of their own.
func (r *Row) Of(session string) (places []int) {
	for i, t := range r.Line {
		if session != "" && t.Session() == session {
			places = append(places, i)
		}
	}
	return places
}

// ForeignBefore is how many tickets of other sessions wait before a place.
func (r *Row) ForeignBefore(place int, session string) (n int) {
	for _, t := range r.Line[r.Holders():max(min(place, len(r.Line)), r.Holders())] {
		if t.Session() != session || session == "" {
			n++
		}
	}
	return n
}

// Echoes reports whether a holding may have ended by the very request that was refused: a network may deliver a request
// twice, and answer the second time. A change of the first place is known by the time that it has written. Of others, the row
// does not tell: a request that was refused may have been applied before, and one of a reader may yet be.
func (r *Row) Echoes(h Holding, c Change) bool {
	return h.Kind != Exclusive || r.Fence == h.Fence+1 && r.Since == c.Since
}
