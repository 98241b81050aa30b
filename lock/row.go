package lock

import (
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// maxFence is the greatest fence from which another one can follow.
const maxFence = math.MaxInt64 - 1

// rows makes the operations on lock rows. Their expressions are written once.
type rows struct {
	acquiring [variants]*table.Prepared
	handing   [variants]*table.Prepared // those that say nothing of the holder before
	refencing *table.Prepared
	renewing  [2]*table.Prepared // without and with a recorded end
	releasing *table.Prepared
	prolonged *table.Prepared
	naming    *table.Prepared
}

// newRows fails for attribute names that do not go together.
func newRows(s keys.Scheme) (*rows, error) {
	var r rows
	var failed error
	prepare := func(op table.Op) *table.Prepared {
		p, err := table.Prepare(op)
		if err != nil && failed == nil {
			failed = err
		}
		return p
	}
	named := table.Attr(attrNonce).Equal(table.Param(0))
	for variant := range r.acquiring {
		r.acquiring[variant] = prepare(acquiring(s, variant))
		if variant&(judgesEnd|tookForDead|tookSession) == 0 {
			r.handing[variant] = prepare(handingOver(s, variant))
		}
	}
	r.prolonged = prepare(table.Update(keys.Key{}, table.Attr(s.TTL).Set(table.Param(1))).If(named))
	r.refencing = prepare(table.Update(keys.Key{}, table.Attr(attrFence).Set(table.Param(2))).
		If(named, table.Attr(attrFence).Equal(table.Param(1))))
	for i := range r.renewing {
		r.renewing[i] = prepare(table.Update(keys.Key{},
			table.Attr(attrBeat).Set(table.Param(1)),
			table.Attr(s.TTL).Set(table.Param(2)),
			recordedEnd(i == 1, 3),
		).If(named, table.Attr(attrBeat).Less(table.Param(1))))
	}
	r.releasing = prepare(table.Update(keys.Key{},
		table.Attr(attrReleasedNonce).Set(table.Param(0)),
		table.Attr(attrReleased).Set(table.Param(1)),
		table.Attr(s.TTL).Set(table.Param(2)),
		table.Attr(attrNonce).Remove(),
		table.Attr(attrSession).Remove(),
		table.Attr(attrLease).Remove(),
		table.Attr(attrBeat).Remove(),
		table.Attr(attrExpires).Remove(),
		// The nonce alone would do, were it always one of this process's own: whoever asks
		// about one names the row, which may be no lock.
	).If(named, table.Attr(s.Type).Equal(recordType)))
	r.naming = prepare(table.Check(keys.Key{}, named))
	return &r, failed
}

func recordedEnd(known bool, param int) table.Change {
	if known {
		return table.Attr(attrExpires).Set(table.Param(param))
	}
	return table.Attr(attrExpires).Remove()
}

// Variants of the acquiring update.
const (
	recordsEnd   = 1 << iota // until is set
	judgesEnd                // deadline is set
	tookForDead              // ended is set, a lease of its own
	tookSession              // ended is set, a lease under a session
	underSession             // session is set

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
}

// Parameters of the acquiring update, in the order of params.
var (
	paramNonce        = table.Param(0)
	paramOwner        = table.Param(1)
	paramLength       = table.Param(2)
	paramStart        = table.Param(3)
	paramTTL          = table.Param(4)
	paramSession      = table.Param(5)
	paramSeed         = table.Param(7)
	paramBefore       = table.Param(8)
	paramEnded        = table.Param(9)
	paramEndedBeat    = table.Param(10)
	paramEndedSession = table.Param(11)
)

// until is the parameter that recordedEnd takes.
const paramUntil = 6

func (g *grant) params() []any {
	params := make([]any, 0, 12)
	params = append(params, g.nonce, g.owner, g.length.Milliseconds(), g.start.UnixMilli(), g.ttl, g.session, g.until)
	e := g.ended
	if e == nil {
		e = &ended{}
	}
	return append(params, g.seed, g.deadline-1, e.nonce, e.beat, e.session)
}

func (g *grant) variant() int {
	variant := 0
	if g.until > 0 {
		variant |= recordsEnd
	}
	if g.deadline > 0 {
		variant |= judgesEnd
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
	return variant
}

// holder is what a row says of its holder, the fence excepted.
func holder(s keys.Scheme, variant int) []table.Change {
	changes := make([]table.Change, 0, 12)
	changes = append(changes,
		table.Attr(s.Type).Set(recordType),
		table.Attr(attrNonce).Set(paramNonce),
		table.Attr(attrOwner).Set(paramOwner),
		table.Attr(attrLease).Set(paramLength),
		table.Attr(attrAcquired).Set(paramStart),
		table.Attr(s.TTL).Set(paramTTL),
		recordedEnd(variant&recordsEnd != 0, paramUntil),
	)
	if variant&underSession != 0 {
		return append(changes, table.Attr(attrSession).Set(paramSession), table.Attr(attrBeat).Remove())
	}
	return append(changes, table.Attr(attrSession).Remove(), table.Attr(attrBeat).Set(0))
}

// handingOver is the update that makes a row that names one holder name the next one. What
// it keeps of the first is what a release keeps.
func handingOver(s keys.Scheme, variant int) table.Op {
	from, fence := table.Param(7), table.Param(8)
	return table.Update(keys.Key{}, append(holder(s, variant),
		table.Attr(attrFence).Set(fence),
		table.Attr(attrReleasedNonce).Set(from),
		table.Attr(attrReleased).Set(paramStart),
	)...).If(table.Attr(attrNonce).Equal(from))
}

// handOver gives a row that names nonce, under the given fence, to the next holder.
func (r *rows) handOver(key keys.Key, nonce string, fence int64, g *grant) table.Op {
	return r.handing[g.variant()].Op(key, append(g.params()[:7], nonce, fence+1)...).Explain(explainLoss(nonce))
}

// prolong puts off the deletion of a row that nothing else writes while it is held.
func (r *rows) prolong(key keys.Key, nonce string, ttl int64) table.Op {
	return r.prolonged.Op(key, nonce, ttl).Explain(explainLoss(nonce))
}

// acquiring is the update that takes a row which does not exist, is free, or has a holder
// whose lease has ended. It refuses a row that is not in order, rather than mending it:
// whoever wrote that may believe to hold the lock.
func acquiring(s keys.Scheme, variant int) table.Op {
	optional := func(name, typ string) table.Cond {
		return table.Or(table.Attr(name).NotExists(), table.Attr(name).IsType(typ))
	}
	// A lock row in order, as far as that does not depend on its state.
	whole := table.And(
		table.Attr(s.Type).Equal(recordType),
		table.Attr(attrFence).Between(1, int64(maxFence)),
		optional(attrOwner, "S"),
		optional(attrReleasedNonce, "S"),
		optional(attrAcquired, "N"),
		optional(attrReleased, "N"),
		optional(s.TTL, "N"),
		// Also of a free one, where somebody has done the freeing by hand.
		optional(attrSession, "S"),
		optional(attrLease, "N"),
		optional(attrBeat, "N"),
		optional(attrExpires, "N"),
		optional(attrRan, "N"),
		optional(attrRunning, "N"),
	)
	// One with a holder whose lease is its own.
	held := table.And(
		table.Attr(attrNonce).Greater(""),
		table.Attr(attrBeat).AtLeast(0),
		table.Attr(attrLease).Between(1, MaxFixed.Milliseconds()),
		table.Attr(attrSession).NotExists(),
	)
	// Not the row that this very acquisition has released again, or an attempt that
	// comes in late would take it.
	takeable := []table.Cond{table.And(table.Attr(attrNonce).NotExists(), table.Attr(attrReleasedNonce).NotEqual(paramNonce))}
	if variant&judgesEnd != 0 {
		takeable = append(takeable, table.And(held, table.Attr(attrExpires).Between(0, paramBefore)))
	}
	if variant&tookForDead != 0 {
		takeable = append(takeable, table.And(held, table.Attr(attrNonce).Equal(paramEnded), table.Attr(attrBeat).Equal(paramEndedBeat)))
	}
	if variant&tookSession != 0 {
		// The session is dead by now, which is terminal.
		takeable = append(takeable, table.And(table.Attr(attrNonce).Equal(paramEnded), table.Attr(attrSession).Equal(paramEndedSession)))
	}
	fence := table.Attr(attrFence)
	return table.Update(keys.Key{}, append(holder(s, variant),
		fence.Set(fence.OrElse(paramSeed).Plus(1)),
		table.Attr(attrReleased).Remove(),
	)...).If(table.Or(table.Attr(s.PK).NotExists(), table.And(whole, table.Or(takeable...))))
}

// acquire is the update for one attempt.
func (r *rows) acquire(key keys.Key, g *grant) table.Op {
	return r.acquiring[g.variant()].Op(key, g.params()...)
}

// refence replaces a fence that was never given out.
func (r *rows) refence(key keys.Key, nonce string, old, fence int64) table.Op {
	return r.refencing.Op(key, nonce, old, fence)
}

// renew writes a beat. Beats only grow, so a late duplicate of an earlier renewal finds a
// greater one and changes nothing.
func (r *rows) renew(key keys.Key, nonce string, beat, until, ttl int64) table.Op {
	prepared := r.renewing[0]
	if until > 0 {
		prepared = r.renewing[1]
	}
	return prepared.Op(key, nonce, beat, ttl, until).Explain(func(item table.Item) error {
		if !isString(item[attrNonce], nonce) {
			return explainLoss(nonce)(item)
		}
		return errOwnBeat
	})
}

// release frees the row if it names nonce. What the row keeps tells a holder whose answer
// was lost that it was its own release.
func (r *rows) release(key keys.Key, nonce string, at time.Time, ttl int64) table.Op {
	return r.releasing.Op(key, nonce, at.UnixMilli(), ttl).Explain(explainLoss(nonce))
}

// guard is the condition that the row names nonce.
func (r *rows) guard(key keys.Key, nonce string) table.Op {
	return r.naming.Op(key, nonce).Explain(explainLoss(nonce))
}

// explainLoss says what it means that a row does not name nonce.
func explainLoss(nonce string) func(table.Item) error {
	return func(item table.Item) error {
		if isString(item[attrReleasedNonce], nonce) {
			return ErrReleased
		}
		return ErrStolen
	}
}

func isString(av types.AttributeValue, want string) bool {
	s, ok := av.(*types.AttributeValueMemberS)
	return ok && s.Value == want
}
