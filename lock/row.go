package lock

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// maxFence is the greatest fence from which another one can follow.
const maxFence = math.MaxInt64 - 1

// shape is what rows of this client's locks are made of beside the attributes that all have.
type shape struct {
	keys.Scheme
	names

	index *sparse // nil where held locks are in no index
}

// rows makes the operations on lock rows. Their expressions are written once, those that
// come in variants when a variant is first needed: a client uses few of them.
type rows struct {
	shape     shape
	acquiring [variants]atomic.Pointer[table.Prepared]
	handing   [variants]atomic.Pointer[table.Prepared] // by those bits that say nothing of the holder before
	setting   [2]*table.Prepared                       // without and with a payload
	refencing *table.Prepared
	renewing  [2]*table.Prepared // without and with a recorded end
	releasing [2]*table.Prepared // without and with a time to live
	parting   *table.Prepared
	forcing   *table.Prepared
	prolonged *table.Prepared
	preserved *table.Prepared
	naming    *table.Prepared
}

// newRows fails for attribute names that do not go together.
func newRows(s shape) (*rows, error) {
	r := &rows{shape: s}
	var failed error
	prepare := func(op table.Op) *table.Prepared {
		p, err := table.Prepare(op)
		if err != nil && failed == nil {
			failed = err
		}
		return p
	}
	// The one with the most attributes: names that go together there do so in all.
	const most = recordsEnd | judgesEnd | tookSession | setsData
	r.acquiring[most].Store(prepare(acquiring(s, most)))
	named := s.attr(attrNonce).Equal(table.Param(0))
	fence := s.attr(attrFence)
	r.preserved = prepare(table.Update(keys.Key{}, table.Attr(s.TTL).Set(table.Param(1))).If(s.attr(attrNonce).NotExists(), fence.Equal(table.Param(0))))
	r.prolonged = prepare(table.Update(keys.Key{}, table.Attr(s.TTL).Set(table.Param(1))).If(named, fence.Equal(table.Param(2))))
	r.refencing = prepare(table.Update(keys.Key{}, fence.Set(table.Param(2))).If(named, fence.Equal(table.Param(1))))
	for i := range r.renewing {
		r.renewing[i] = prepare(table.Update(keys.Key{},
			s.attr(attrBeat).Set(table.Param(1)),
			table.Attr(s.TTL).Set(table.Param(2)),
			s.recordedEnd(i == 1, 3),
		).If(named, fence.Equal(table.Param(4)), s.attr(attrBeat).Less(table.Param(1))))
		change := s.attr(attrData).Remove()
		if i == 1 {
			change = s.attr(attrData).Set(table.Param(2))
		}
		edits := s.attr(attrEdits)
		r.setting[i] = prepare(table.Update(keys.Key{}, change, edits.Set(table.Param(1))).
			If(named, fence.Equal(table.Param(3)), table.Or(edits.NotExists(), edits.Less(table.Param(1)))))
	}
	releasing := table.Update(keys.Key{}, append(freed(s),
		s.attr(attrReleasedNonce).Set(table.Param(0)),
		s.attr(attrSession).Remove(),
		// The nonce alone would do, were it always one of this process's own: whoever asks
		// about one names the row, which may be no lock.
	)...).If(named, table.Attr(s.Type).Equal(recordType))
	r.releasing[0] = prepare(releasing)
	releasing = releasing.Changing(table.Attr(s.TTL).Set(table.Param(2)))
	r.releasing[1] = prepare(releasing)
	r.parting = prepare(releasing.If(fence.Equal(table.Param(3))))
	r.forcing = prepare(table.Update(keys.Key{}, append(freed(s),
		// The session stays: it is whom to tell.
		fence.Set(fence.Plus(1)),
		s.attr(attrForced).Set(table.Param(2)),
		s.attr(attrForcedNonce).Set(table.Param(3)),
		s.attr(attrForcedFence).Set(fence),
	)...).If(named, whole(s), heldInOrder(s), fence.Less(int64(maxFence))))
	r.naming = prepare(table.Check(keys.Key{}, table.And(named, fence.Equal(table.Param(1)))))
	return r, failed
}

// prepared is the variant of an update, which is written when it is first needed. Two that
// need it at once write the same.
func prepared(known *atomic.Pointer[table.Prepared], write func() table.Op) (*table.Prepared, error) {
	if p := known.Load(); p != nil {
		return p, nil
	}
	p, err := table.Prepare(write())
	if err != nil {
		return nil, fmt.Errorf("a variant of the row's updates: %w", err)
	}
	known.Store(p)
	return p, nil
}

// freed is what a row that names nobody says, whoever freed it. Parameter 1 is when. Its time to live
// is the holder's to say, who knows the fence, and whether the row has to tell of a run: what others
// free keeps the one that it had, unless that is short (Client.preserve).
func freed(s shape) []table.Change {
	return s.unlisted([]table.Change{
		s.attr(attrReleased).Set(table.Param(1)),
		s.attr(attrNonce).Remove(),
		s.attr(attrLease).Remove(),
		s.attr(attrBeat).Remove(),
		s.attr(attrExpires).Remove(),
		s.attr(attrEdits).Remove(),
	})
}

func (s *shape) recordedEnd(known bool, param int) table.Change {
	if known {
		return s.attr(attrExpires).Set(table.Param(param))
	}
	return s.attr(attrExpires).Remove()
}

// Variants of the acquiring update.
const (
	recordsEnd   = 1 << iota // until is set
	judgesEnd                // deadline is set
	tookForDead              // ended is set, a lease of its own
	tookSession              // ended is set, a lease under a session
	underSession             // session is set
	setsData                 // data is set
	dropsData                // data is to be removed
	onlyExisting             // existing is set

	variants = 1 << iota
)

// grant is what an acquiring update is made of.
type grant struct {
	nonce    string
	owner    string
	length   time.Duration
	start    time.Time
	ttl      int64
	seed     int64  // where the fences of a new row begin
	until    int64  // the end to record, in epoch milliseconds; 0 for none
	deadline int64  // a recorded end before this lies back far enough; 0 for none
	ended    *ended // a holder that was seen to have died
	session  string // that the lease hangs on; empty for a lease of its own
	data     payload
	listed   string // sort key in the index of held locks, where there is one
	existing bool   // a row that does not exist is not made: nobody knows yet what fence to begin with
}

// Parameters of the acquiring update, in the order of params.
var (
	paramNonce        = table.Param(0)
	paramOwner        = table.Param(1)
	paramLength       = table.Param(2)
	paramStart        = table.Param(3)
	paramTTL          = table.Param(4)
	paramSession      = table.Param(5)
	paramData         = table.Param(7)
	paramListed       = table.Param(8)
	paramSeed         = table.Param(holderParams)
	paramBefore       = table.Param(holderParams + 1)
	paramEnded        = table.Param(holderParams + 2)
	paramEndedBeat    = table.Param(holderParams + 3)
	paramEndedSession = table.Param(holderParams + 4)
)

const (
	paramUntil   = 6 // that recordedEnd takes
	holderParams = 9 // how many say what a row says of its holder
)

// holder are the parameters that say what a row says of its holder.
func (g *grant) holder(room int) []any {
	return append(make([]any, 0, holderParams+room),
		g.nonce, g.owner, g.length.Milliseconds(), g.start.UnixMilli(), g.ttl, g.session, g.until, g.data.data.av, g.listed)
}

func (g *grant) params() []any {
	e := g.ended
	if e == nil {
		e = &ended{}
	}
	return append(g.holder(5), g.seed, g.deadline-1, e.nonce, e.beat, e.session)
}

func (g *grant) variant() int {
	variant := 0
	if g.until > 0 {
		variant |= recordsEnd
	}
	if g.deadline > 0 {
		variant |= judgesEnd
	}
	if g.existing {
		variant |= onlyExisting
	}
	switch e := g.ended; {
	case e == nil:
	case e.session != "":
		variant |= tookSession
	case e.beat >= 0:
		variant |= tookForDead
	}
	if g.session != "" {
		variant |= underSession
	}
	switch {
	case !g.data.given:
	case g.data.data.IsZero():
		variant |= dropsData
	default:
		variant |= setsData
	}
	return variant
}

// holder is what a row says of its holder, the fence excepted.
func holder(s shape, variant int) []table.Change {
	changes := make([]table.Change, 0, 20)
	changes = append(changes,
		table.Attr(s.Type).Set(recordType),
		s.attr(attrNonce).Set(paramNonce),
		s.attr(attrOwner).Set(paramOwner),
		s.attr(attrLease).Set(paramLength),
		s.attr(attrAcquired).Set(paramStart),
		table.Attr(s.TTL).Set(paramTTL),
		s.recordedEnd(variant&recordsEnd != 0, paramUntil),
		s.attr(attrEdits).Remove(),
		s.attr(attrForced).Remove(),
	)
	switch {
	case variant&setsData != 0:
		changes = append(changes, s.attr(attrData).Set(paramData))
	case variant&dropsData != 0:
		changes = append(changes, s.attr(attrData).Remove())
	}
	changes = s.listed(changes, paramListed)
	if variant&underSession != 0 {
		return append(changes, s.attr(attrSession).Set(paramSession), s.attr(attrBeat).Remove())
	}
	return append(changes, s.attr(attrSession).Remove(), s.attr(attrBeat).Set(0))
}

// handingOver is the update that makes a row that names one holder name the next one. What
// it keeps of the first is what a release keeps. The fence must be the first one's: its
// acquisition may have come in late once more, after others, under a greater one.
func handingOver(s shape, variant int) table.Op {
	from, fence, next := table.Param(holderParams), table.Param(holderParams+1), table.Param(holderParams+2)
	return table.Update(keys.Key{}, append(holder(s, variant),
		s.attr(attrFence).Set(next),
		s.attr(attrReleasedNonce).Set(from),
		s.attr(attrReleased).Set(paramStart),
	)...).If(s.attr(attrNonce).Equal(from), s.attr(attrFence).Equal(fence))
}

// handOver gives a row that names nonce, under the given fence, to the next holder.
func (r *rows) handOver(key keys.Key, nonce string, fence int64, g *grant) table.Op {
	variant := g.variant()
	p, err := prepared(&r.handing[variant], func() table.Op { return handingOver(r.shape, variant) })
	if err != nil {
		return table.Invalid(err)
	}
	return p.Op(key, append(g.holder(3), nonce, fence, fence+1)...).Explain(r.explainLoss(nonce))
}

// prolong puts off the deletion of a row that nothing else writes while it is held.
func (r *rows) prolong(key keys.Key, nonce string, fence, ttl int64) table.Op {
	return r.prolonged.Op(key, nonce, ttl, fence).Explain(r.explainLoss(nonce))
}

// preserve puts off the deletion of a row that nobody holds.
func (r *rows) preserve(key keys.Key, fence, ttl int64) table.Op {
	return r.preserved.Op(key, fence, ttl)
}

func (n names) optional(name, typ string) table.Cond {
	return table.Or(n.attr(name).NotExists(), n.attr(name).IsType(typ))
}

func (n names) countedFrom0(name string) table.Cond {
	return table.Or(n.attr(name).NotExists(), n.attr(name).AtLeast(0))
}

// whole holds for a lock row in order, as far as that does not depend on its state.
func whole(s shape) table.Cond {
	return table.And(
		table.Attr(s.Type).Equal(recordType),
		s.attr(attrFence).Between(1, int64(maxFence)),
		s.optional(attrOwner, "S"),
		s.optional(attrReleasedNonce, "S"),
		s.optional(attrForced, "S"),
		s.optional(attrForcedNonce, "S"),
		s.optional(attrForcedFence, "N"),
		s.optional(attrAcquired, "N"),
		s.optional(attrReleased, "N"),
		s.optional(attrEdits, "N"),
		names("").optional(s.TTL, "N"),
		// Also of a free one, where somebody has done the freeing by hand.
		s.optional(attrSession, "S"),
		s.optional(attrLease, "N"),
		s.optional(attrBeat, "N"),
		s.optional(attrExpires, "N"),
		s.countedFrom0(attrRan),
		s.countedFrom0(attrRunning),
		s.countedFrom0(attrFailed),
	)
}

// heldInOrder holds for a row with a holder, be its lease its own or a session's.
func heldInOrder(s shape) table.Cond {
	beat, expires, session := s.attr(attrBeat), s.attr(attrExpires), s.attr(attrSession)
	return table.And(
		s.attr(attrLease).Between(1, MaxFixed.Milliseconds()),
		table.Or(beat.AtLeast(0), table.And(beat.NotExists(), session.Greater(""))),
		table.Or(expires.AtLeast(0), expires.NotExists()),
		table.Or(session.NotExists(), table.And(session.Greater(""), session.Size().AtMost(maxSessionID))),
	)
}

// acquiring is the update that takes a row which does not exist, is free, or has a holder
// whose lease has ended. It refuses a row that is not in order, rather than mending it:
// whoever wrote that may believe to hold the lock.
func acquiring(s shape, variant int) table.Op {
	// One with a holder whose lease is its own.
	held := table.And(
		s.attr(attrNonce).Greater(""),
		s.attr(attrBeat).AtLeast(0),
		s.attr(attrLease).Between(1, MaxFixed.Milliseconds()),
		s.attr(attrSession).NotExists(),
	)
	// Not the row that this very acquisition has released again, or an attempt that
	// comes in late would take it.
	takeable := []table.Cond{table.And(s.attr(attrNonce).NotExists(), s.attr(attrReleasedNonce).NotEqual(paramNonce))}
	if variant&judgesEnd != 0 {
		takeable = append(takeable, table.And(held, s.attr(attrExpires).Between(0, paramBefore)))
	}
	if variant&tookForDead != 0 {
		takeable = append(takeable, table.And(held, s.attr(attrNonce).Equal(paramEnded), s.attr(attrBeat).Equal(paramEndedBeat)))
	}
	if variant&tookSession != 0 {
		// The session is dead by now, which is terminal.
		takeable = append(takeable, table.And(s.attr(attrNonce).Equal(paramEnded), s.attr(attrSession).Equal(paramEndedSession)))
	}
	cond := table.And(whole(s), table.Or(takeable...))
	if variant&onlyExisting == 0 {
		cond = table.Or(table.Attr(s.PK).NotExists(), cond)
	}
	fence := s.attr(attrFence)
	return table.Update(keys.Key{}, append(holder(s, variant),
		fence.Set(fence.OrElse(paramSeed).Plus(1)),
		s.attr(attrReleased).Remove(),
	)...).If(cond)
}

// acquire is the update for one attempt.
func (r *rows) acquire(key keys.Key, g *grant) table.Op {
	variant := g.variant()
	p, err := prepared(&r.acquiring[variant], func() table.Op { return acquiring(r.shape, variant) })
	if err != nil {
		return table.Invalid(err)
	}
	return p.Op(key, g.params()...)
}

// refence replaces a fence that was never given out.
func (r *rows) refence(key keys.Key, nonce string, old, fence int64) table.Op {
	return r.refencing.Op(key, nonce, old, fence)
}

// renew writes a beat. Beats only grow, so a late duplicate of an earlier renewal finds a
// greater one and changes nothing.
func (r *rows) renew(key keys.Key, nonce string, fence, beat, until, ttl int64) table.Op {
	prepared := r.renewing[0]
	if until > 0 {
		prepared = r.renewing[1]
	}
	return prepared.Op(key, nonce, beat, ttl, until, fence).Explain(func(item table.Item) error {
		if !isString(r.shape.of(item, attrNonce), nonce) || !isNumber(r.shape.of(item, attrFence), fence) {
			return r.explainLoss(nonce)(item)
		}
		return errOwnBeat
	})
}

// part is release by the holder, under the fence that it was granted: like guard.
func (r *rows) part(key keys.Key, nonce string, fence int64, at time.Time, ttl int64) table.Op {
	return r.parting.Op(key, nonce, at.UnixMilli(), ttl, fence).Explain(r.explainLoss(nonce))
}

// release frees the row if it names nonce, whatever its fence. What the row keeps tells a holder
// whose answer was lost that it was its own release. The time to live stays as it is where ttl is 0.
func (r *rows) release(key keys.Key, nonce string, at time.Time, ttl int64) table.Op {
	p := r.releasing[0]
	if ttl > 0 {
		p = r.releasing[1]
	}
	return p.Op(key, nonce, at.UnixMilli(), ttl).Explain(r.explainLoss(nonce))
}

// set replaces the payload, or removes it. Edits only grow under one nonce, so a late
// duplicate of an earlier one finds a greater number and changes nothing.
func (r *rows) set(key keys.Key, nonce string, fence, edit int64, data Data) table.Op {
	p := r.setting[1]
	if data.IsZero() {
		p = r.setting[0]
	}
	return p.Op(key, nonce, edit, data.av, fence).Explain(r.explainLoss(nonce))
}

// force frees a row in the name of somebody who does not hold it. What it leaves tells its
// own call, by its nonce, from a release: the holder must find its lock stolen.
func (r *rows) force(key keys.Key, seen string, at time.Time, reason, nonce string) table.Op {
	return r.forcing.Op(key, seen, at.UnixMilli(), reason, nonce)
}

// guard is the condition that the row names nonce, under the fence that was granted with
// it: an acquisition that comes in late once more, after others have held the lock, gets
// another.
func (r *rows) guard(key keys.Key, nonce string, fence int64) table.Op {
	return r.naming.Op(key, nonce, fence).Explain(r.explainLoss(nonce))
}

// explainLoss says what it means that a row does not name nonce.
func (r *rows) explainLoss(nonce string) func(table.Item) error {
	return func(item table.Item) error {
		if isString(r.shape.of(item, attrReleasedNonce), nonce) {
			return ErrReleased
		}
		return ErrStolen
	}
}

func isString(av types.AttributeValue, want string) bool {
	s, ok := av.(*types.AttributeValueMemberS)
	return ok && s.Value == want
}
