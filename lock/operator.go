package lock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/lease"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/lock/internal/session"
	"github.com/mortise-go/mortise/table"
)

// ForceRelease takes the lock from a holder, without its consent. The next in the line then holds it, under a greater
// fence. From that moment on no guarded write of the old holder goes through. Its context ends with [ErrStolen] at its
// next renewal; a holder of a [Fixed] lease notices at its next Renew or write. So does a holder at its next write if it
// could not be told, as in an outage. To ask the holder first, use [Client.Revoke].
//
// seenTicket is the holder's ticket, as [Client.Inspect], [Client.List] or a *[HeldError] has shown it. ForceRelease
// changes nothing if another one holds the lock by now (the error is a *[HeldError]) or nobody does ([ErrNotHeld]). Others that
// hold at the same time ([Permits], [Shared]) keep what they hold.
//
// The reason is for people. It is stored in the row until the next holder gives the lock up or loses it ([Record].Forced).
// It is valid UTF-8 of at most 256 bytes. Defaults to "forced by " and [Config.Owner].
//
// If a run of [Client.Every] is under way under the lock, it counts as interrupted: another instance begins it again.
//
// A malformed row ([ErrMalformed]) is reset: its line becomes empty, and its fence greater than every earlier one. If its
// fence is 2^63 - 4096 or more, fences begin again with the time of day. What the row records about runs of [Client.Every]
// stays. To reset a malformed row, pass the text of the first element of its line as seenTicket, or "". A row that is in
// order for a client with another Config.AttributePrefix is refused with [ErrMalformed], and is not changed.
//
// If an answer was lost ([table.ErrUnreachable], or ctx has ended), call it again. Then [ErrNotHeld], or a *[HeldError]
// with a greater fence, means that the holder has lost the lock.
//
// Cost: one consistent read and one conditional write. To tell a holder in another process: one conditional write, and
// one read by that process. The first call of a client without [Config.HomeRegion] sends one DescribeTable, as
// [Client.Acquire] does.
func (c *Client) ForceRelease(ctx context.Context, target Target, seenTicket string, reason ...string) error {
	why, err := c.reason(reason)
	if err != nil {
		return wrap("force release", err)
	}
	return wrap("force release", c.operateAtHome(ctx, target, func(ctx context.Context, key keys.Key) error {
		return c.force(ctx, target, key, seenTicket, why)
	}))
}

func (c *Client) reason(given []string) (string, error) {
	switch {
	case len(given) > 1:
		return "", invalid("%d reasons, want one", len(given))
	case len(given) == 0 || given[0] == "":
		return lockrow.Cut("forced by "+c.config.Owner, MaxReason), nil
	case len(given[0]) > MaxReason || !utf8.ValidString(given[0]):
		return "", invalid("a reason has at most %d bytes of UTF-8", MaxReason)
	}
	return given[0], nil
}

// operate runs f with the key of a target's row. Close ends f's context, and waits for f.
func (c *Client) operate(ctx context.Context, target Target, f func(ctx context.Context, key keys.Key) error) error {
	key, err := c.key(target)
	if err != nil {
		return err
	}
	ctx, leave, err := c.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return f(ctx, key)
}

// operateAtHome is operate for calls that write. In another region they would check an older row, and then overwrite the present one.
func (c *Client) operateAtHome(ctx context.Context, target Target, f func(ctx context.Context, key keys.Key) error) error {
	return c.operate(ctx, target, func(ctx context.Context, key keys.Key) error {
		if err := c.checkRegion(ctx); err != nil {
			return err
		}
		return f(ctx, key)
	})
}

// force removes the ticket that was seen from the line if it holds. It empties the line of a malformed row.
func (c *Client) force(ctx context.Context, target Target, key keys.Key, seen, why string) error {
	var taken *lockrow.Holding // that an attempt has tried to remove
	var ticket lockrow.Ticket
	var malformed table.Item // that an attempt has tried to reset; nil for none
	inDoubt := false         // an attempt may be applied: also one that was throttled, since a copy of it can arrive
	_, err := c.repeater.Do(ctx, attempt.MaxTimeout, func(ctx context.Context) error {
		item, err := c.table.Get(ctx, key, true)
		if errors.Is(err, table.ErrNotFound) {
			return ErrNotHeld
		}
		if err != nil {
			return err
		}
		row, bad := c.layout.names.Parse(item)
		place := row.Place(seen)
		var op table.Op
		switch {
		case errors.Is(bad, ErrMalformed) && !errors.Is(bad, lockrow.ErrPrefix):
			if place, _ := c.layout.names.Find(item, seen); seen != "" && place != 0 {
				return bad
			}
			malformed = item
			op = c.layout.rows.Reset(key, item, c.resetFence(item), lockrow.Change{Since: c.now(), TTL: c.ttl(0)}, why)
		case bad != nil:
			return bad
		case malformed != nil && place < 0, inDoubt && taken != nil && !row.Holds(*taken) && row.ForcedSince(*taken):
			return nil // an attempt without an answer was applied
		case len(row.Line) == 0:
			return ErrNotHeld
		case seen == "":
			return invalid("empty ticket, and the row is in order")
		case place < 0 || place >= row.Holders():
			return c.heldError(target, &row)
		default:
			h := row.Holding(place)
			taken, ticket, malformed = &h, row.Line[place], nil
			op = c.layout.rows.Force(key, &row, place, c.change(&row), why)
		}
		err = c.table.Write(ctx, op)
		if errors.Is(err, table.ErrCondition) {
			if !inDoubt {
				malformed = nil
			}
			return attempt.ErrAgain // the row has changed
		}
		inDoubt = inDoubt || err != nil
		return err
	})
	switch {
	case err != nil:
		return err
	case malformed != nil:
		line := c.layout.names.Tickets(malformed)
		if len(line) > 0 {
			c.config.Logger.Warn("lock: taken by force", "session", line[0].Session())
		}
		return attempt.Each(line, func(t lockrow.Ticket) error { // any of them may have held
			c.tellForced(ctx, key, t, 0)
			return nil
		})
	}
	c.config.Logger.Warn("lock: taken by force", "session", ticket.Session(), "fence", taken.Fence)
	c.tellForced(ctx, key, ticket, taken.Fence)
	return nil
}

// resetFence returns a fence that is greater than every fence of a malformed row.
func (c *Client) resetFence(item table.Item) int64 {
	fence, n := c.clk().Stamp().UnixMilli(), c.layout.names
	all := []types.AttributeValue{item[n.Fence]}
	for _, name := range []string{n.Stays, n.Next} { // of permits
		if l, ok := item[name].(*types.AttributeValueMemberL); ok {
			all = append(all, l.Value...)
		}
	}
	for _, av := range all {
		if number, ok := av.(*types.AttributeValueMemberN); ok {
			was, err := strconv.ParseFloat(number.Value, 64) // rounding may lower it: hence Nextafter
			if err == nil && was < 1<<63-1<<12 {
				fence = max(fence, int64(math.Nextafter(was, math.MaxInt64))+2)
			}
		}
	}
	return fence
}

// tellForced makes the holder's context end. Safety does not depend on it: no guarded write of the holder goes through any more.
func (c *Client) tellForced(ctx context.Context, key keys.Key, first lockrow.Ticket, fence int64) {
	q := session.Question{Kind: session.Forced, Ticket: first.ID, Fence: fence, Key: key}
	ctx, cancel := c.clk().Detached(ctx)
	defer cancel()
	by := c.tickets.find(first.ID)
	switch l, held := by.(*Lease); {
	case held:
		l.on(lease.Taken, nil)
		l.letGo()
	case (by == nil || !by.answer(ctx, q)) && first.Session() != "":
		if err := c.others.Ask(ctx, first.Session(), q); err != nil {
			c.config.Logger.Debug("lock: could not tell a holder that its lock was taken", "error", err)
		}
	}
}

// Revoke asks the holder of a lock to give it up. The holder's context ends with [ErrRevoked] at its next renewal, within
// about a quarter of its [Config.Lease]. The holder keeps the lock until it releases it, so it can finish: its guarded
// writes still go through. If the holder is in this client, its context ends at once.
//
// If several hold at once ([Permits], [Shared]), all of them are asked. The errors are joined.
//
// If nobody holds the lock, the error matches [ErrNotHeld]. If the holder cannot be asked, it matches [ErrNoSession]:
// the lease is a [Fixed] one, or the holder's session has ended. If 1,000 requests of this kind already wait for the
// holder's next renewal, it matches [table.ErrThrottled].
//
// Cost: one consistent read, and one conditional write for each holder in another process. The first call of a client
// without [Config.HomeRegion] sends one DescribeTable, as [Client.Acquire] does.
func (c *Client) Revoke(ctx context.Context, target Target) error {
	return wrap("revoke", c.operateAtHome(ctx, target, func(ctx context.Context, key keys.Key) error {
		row, err := c.read(ctx, key)
		if err != nil && !errors.Is(err, table.ErrNotFound) {
			return err
		}
		if len(row.Line) == 0 {
			return ErrNotHeld
		}
		return attempt.Each(row.Line[:row.Holders()], func(holder lockrow.Ticket) error { return c.revoke(ctx, key, holder) })
	}))
}

func (c *Client) revoke(ctx context.Context, key keys.Key, holder lockrow.Ticket) error {
	if holder.Length > 0 {
		return fmt.Errorf("%w: it has a Fixed lease", ErrNoSession)
	}
	if l, ok := c.tickets.find(holder.ID).(*Lease); ok {
		l.on(lease.Ask, nil)
		return nil
	}
	if _, ok := c.others.Key(holder.Session()); !ok {
		return fmt.Errorf("%w: it is that of a client with another Config.SessionKey", ErrNoSession)
	}
	err := c.others.Ask(ctx, holder.Session(), session.Question{Kind: session.Revoke, Ticket: holder.ID, Key: key})
	if errors.Is(err, session.ErrNobody) {
		return fmt.Errorf("%w: its session has ended", ErrNoSession)
	}
	return err
}
