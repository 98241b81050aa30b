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

// rows writes the updates and conditions of lock rows: what stays the same is made once.
type rows struct {
	scheme keys.Scheme
	fresh  table.Cond // no row
	whole  table.Cond // a lock row in order, as far as that does not depend on its state
	held   table.Cond // one with a holder whose lease is its own
}

func newRows(s keys.Scheme) rows {
	optional := func(name, typ string) table.Cond {
		return table.Or(table.Attr(name).NotExists(), table.Attr(name).IsType(typ))
	}
	return rows{
		scheme: s,
		fresh:  table.Attr(s.PK).NotExists(),
		whole: table.And(
			table.Attr(s.Type).Equal(recordType),
			table.Attr(attrFence).Between(1, maxFence),
			optional(attrOwner, "S"),
			optional(attrReleasedNonce, "S"),
			optional(attrAcquired, "N"),
			optional(attrReleased, "N"),
			optional(s.TTL, "N"),
		),
		held: table.And(
			table.Attr(attrNonce).Greater(""),
			table.Attr(attrBeat).AtLeast(0),
			table.Attr(attrLease).Between(1, MaxFixed.Milliseconds()),
			table.Attr(attrSession).NotExists(),
		),
	}
}

// grant is what an acquiring update is made of.
type grant struct {
	nonce    string
	owner    string
	length   time.Duration
	start    time.Time
	seed     int64        // where the fences of a new row begin
	until    int64        // the end to record, in epoch milliseconds; 0 for none
	deadline int64        // a recorded end before this lies back far enough; 0 for none
	ended    *observation // a holder that was seen to have died
	ttl      int64
}

// acquire takes a row that does not exist, is free, or has a holder whose lease has ended.
// It refuses a row that is not in order, rather than mending it: whoever wrote that may
// believe to hold the lock.
func (r *rows) acquire(key keys.Key, g *grant) table.Op {
	// Not the row that this very acquisition has released again, or an attempt that
	// comes in late would take it.
	free := table.And(table.Attr(attrNonce).NotExists(), table.Attr(attrReleasedNonce).NotEqual(g.nonce))
	takeable := append(make([]table.Cond, 0, 3), free)
	if g.deadline > 0 {
		takeable = append(takeable, table.And(r.held, table.Attr(attrExpires).Between(0, g.deadline-1)))
	}
	if g.ended != nil {
		takeable = append(takeable, table.And(r.held,
			table.Attr(attrNonce).Equal(g.ended.nonce), table.Attr(attrBeat).Equal(g.ended.beat)))
	}
	fence := table.Attr(attrFence)
	expires := table.Attr(attrExpires).Remove()
	if g.until > 0 {
		expires = table.Attr(attrExpires).Set(g.until)
	}
	return table.Update(key,
		table.Attr(r.scheme.Type).Set(recordType),
		fence.Set(fence.OrElse(g.seed).Plus(1)),
		table.Attr(attrNonce).Set(g.nonce),
		table.Attr(attrOwner).Set(g.owner),
		table.Attr(attrLease).Set(g.length.Milliseconds()),
		table.Attr(attrBeat).Set(0),
		table.Attr(attrAcquired).Set(g.start.UnixMilli()),
		table.Attr(r.scheme.TTL).Set(g.ttl),
		expires,
		table.Attr(attrReleased).Remove(),
		table.Attr(attrSession).Remove(),
	).If(table.Or(r.fresh, table.And(r.whole, table.Or(takeable...))))
}

// refence replaces a fence that was never given out.
func (r *rows) refence(key keys.Key, nonce string, old, fence int64) table.Op {
	return table.Update(key, table.Attr(attrFence).Set(fence)).
		If(r.names(nonce), table.Attr(attrFence).Equal(old))
}

// renew writes a beat. Beats only grow, so a late duplicate of an earlier renewal finds a
// greater one and changes nothing.
func (r *rows) renew(key keys.Key, nonce string, beat, until, ttl int64) table.Op {
	expires := table.Attr(attrExpires).Remove()
	if until > 0 {
		expires = table.Attr(attrExpires).Set(until)
	}
	return table.Update(key, table.Attr(attrBeat).Set(beat), table.Attr(r.scheme.TTL).Set(ttl), expires).
		If(r.names(nonce), table.Attr(attrBeat).Less(beat)).
		Explain(func(item table.Item) error {
			if !isString(item[attrNonce], nonce) {
				return explainLoss(nonce)(item)
			}
			return errOwnBeat
		})
}

// release frees the row if it names nonce. What the row keeps tells a holder whose answer
// was lost that it was its own release.
func (r *rows) release(key keys.Key, nonce string, at time.Time, ttl int64) table.Op {
	return table.Update(key,
		table.Attr(attrReleasedNonce).Set(nonce),
		table.Attr(attrReleased).Set(at.UnixMilli()),
		table.Attr(r.scheme.TTL).Set(ttl),
		table.Attr(attrNonce).Remove(),
		table.Attr(attrSession).Remove(),
		table.Attr(attrLease).Remove(),
		table.Attr(attrBeat).Remove(),
		table.Attr(attrExpires).Remove(),
	).If(r.names(nonce)).Explain(explainLoss(nonce))
}

// names is the condition that the row names this acquisition.
func (*rows) names(nonce string) table.Cond { return table.Attr(attrNonce).Equal(nonce) }

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
