package lock

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// ForceRelease takes a lock away from the holder whose acquisition has the given nonce, as
// Inspect, List or a *HeldError has shown it; whoever else holds it by now keeps it. The lock
// is free then, and its next fence greater. From that moment on no guarded write of the old
// holder goes through; its context ends with ErrStolen at its next renewal. A holder of a
// Fixed lease hears of it from its next Renew or write.
//
// The reason, valid UTF-8 of at most 256 bytes, stands in the row for people (Record.Forced)
// until the next acquisition. Defaults to "forced by " and Config.Owner.
//
// A run of Every under the lock counts as broken off, not as finished: another instance
// takes it up.
//
// Another holder is a *HeldError, none ErrNotHeld. A row that is no lock, or not in order,
// is ErrNotLock or ErrMalformed, and is left as it is. After a request without an answer for
// good (table.ErrUnreachable, or ctx ended) it may be called again: ErrNotHeld, or a
// *HeldError that names a later holder, then says that the lock is not this holder's any more.
//
// Cost: one conditional write, another to tell a holder of another process, which reads the row then
// (one read unit), and one more where the row would be deleted soon.
func (c *Client) ForceRelease(ctx context.Context, target Target, seenNonce string, reason ...string) error {
	why, err := c.reason(reason)
	if err == nil && seenNonce == "" {
		err = fmt.Errorf("%w: empty nonce", ErrInvalid)
	}
	if err != nil {
		return wrap("force release", err)
	}
	return wrap("force release", c.operate(ctx, target, func(ctx context.Context, key keys.Key) error {
		session, fence, err := c.force(ctx, target, key, seenNonce, why)
		if err == nil {
			c.tellForced(session, fence)
			c.tellTaken(ctx, session, question{kind: tellTaken, nonce: seenNonce, key: key})
		}
		return err
	}))
}

// reason checks what ForceRelease was given.
func (c *Client) reason(given []string) (string, error) {
	switch {
	case len(given) > 1:
		return "", fmt.Errorf("%w: %d reasons, want one", ErrInvalid, len(given))
	case len(given) == 0 || given[0] == "":
		why := "forced by " + c.config.Owner
		for len(why) > MaxReason {
			_, size := utf8.DecodeLastRuneInString(why)
			why = why[:len(why)-size]
		}
		return why, nil
	case len(given[0]) > MaxReason || !utf8.ValidString(given[0]):
		return "", fmt.Errorf("%w: a reason has at most %d bytes of UTF-8", ErrInvalid, MaxReason)
	}
	return given[0], nil
}

// operate runs f for the row of a target, as work that Close ends and waits for.
func (c *Client) operate(ctx context.Context, target Target, f func(ctx context.Context, key keys.Key) error) error {
	key, err := c.key(target)
	if err != nil {
		return err
	}
	if !c.enter() {
		return ErrClosed
	}
	defer c.work.Done()
	ctx, stop := c.waiting(ctx)
	defer stop()
	return f(ctx, key)
}

// force frees the row if it names seen, and returns the session of the holder and the fence
// that the lock was taken with; empty and 0 where there is none, or somebody has acquired
// since.
func (c *Client) force(ctx context.Context, target Target, key keys.Key, seen, why string) (session string, fence int64, err error) {
	nonce := c.newNonce() // by which a call whose answer was lost knows what it has done
	err = c.attempts(ctx, maxAttempt, func(ctx context.Context, start instant) error {
		op := c.rows.force(key, seen, start.wall, why, nonce)
		item, err := c.table.Apply(ctx, op, table.ReturnNew)
		var failed *table.ConditionError
		if errors.As(err, &failed) {
			item, err = failed.Item, c.notForced(target, failed.Item, seen, nonce)
		}
		if err == nil && c.of(item, attrNonce) == nil {
			if id, ok := c.of(item, attrSession).(*types.AttributeValueMemberS); ok {
				session = id.Value
			}
			if fence, err = c.fenceOf(item); err == nil {
				c.preserve(ctx, key, item)
			}
		}
		return err
	})
	return session, fence, err
}

// notForced says why a row was not freed; nil where an earlier attempt of the call did it.
func (c *Client) notForced(target Target, item table.Item, seen, nonce string) error {
	if isString(c.of(item, attrForcedNonce), nonce) {
		return nil
	}
	if item == nil {
		return ErrNotHeld
	}
	r, err := c.recordOf(item)
	switch {
	case err != nil:
		return err
	case !r.Held():
		return ErrNotHeld
	case r.Nonce == seen:
		return malformed("an attribute is out of range")
	}
	return heldError(target, &r)
}

// tellTaken has the holder's context end. It is a courtesy: no write of the holder's goes
// through whether it arrives or not.
func (c *Client) tellTaken(ctx context.Context, session string, q question) {
	if l := c.leaseOf(q.nonce); l != nil {
		l.stolen()
		return
	}
	if session == "" {
		return
	}
	ctx, cancel := c.clock.detached(ctx)
	defer cancel()
	err := c.attempts(ctx, maxAttempt, func(ctx context.Context, _ instant) error {
		_, err := c.ask(ctx, session, q)
		return err
	})
	if err != nil {
		c.config.Logger.Debug("lock: could not tell a holder that its lock was taken", "error", err)
	}
}

// leaseOf is this client's own lease with the given nonce; nil where it has none.
func (c *Client) leaseOf(nonce string) *Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	for l := range c.leases {
		if l.nonce == nonce {
			return l
		}
	}
	return nil
}

// Revoke asks the holder of a lock to give it up: its context ends with ErrRevoked within one
// renewal period, a quarter of its Config.Lease. The lock stays held until the holder
// releases it: what it writes under the lock until then goes through. A holder of this same
// client is told at once. Whether and when it releases is its business; ForceRelease does
// not ask.
//
// A lock that nobody holds is ErrNotHeld. A holder that cannot be asked, since its lease is
// one of its own (Fixed) or its session has ended, is ErrNoSession. Where 64 questions
// wait for the holder's next renewal already, the error matches table.ErrThrottled.
//
// Cost: one consistent read, and one conditional write to ask a holder of another process.
func (c *Client) Revoke(ctx context.Context, target Target) error {
	return wrap("revoke", c.operate(ctx, target, c.revoke))
}

func (c *Client) revoke(ctx context.Context, key keys.Key) error {
	item, err := c.table.Get(ctx, key, true)
	if errors.Is(err, table.ErrNotFound) {
		return ErrNotHeld
	}
	if err != nil {
		return err
	}
	r, err := c.recordOf(item)
	switch {
	case err != nil:
		return err
	case !r.Held():
		return ErrNotHeld
	case r.Session == "":
		return fmt.Errorf("%w: its lease is one of its own (Fixed)", ErrNoSession)
	}
	if l := c.leaseOf(r.Nonce); l != nil && l.term.cause() == nil {
		l.revoke()
		return nil
	}
	var row *sessionRow
	err = c.attempts(ctx, maxAttempt, func(ctx context.Context, _ instant) error {
		row, err = c.ask(ctx, r.Session, question{kind: askRelease, nonce: r.Nonce, key: key})
		return err
	})
	if errors.Is(err, table.ErrCondition) {
		return fmt.Errorf("%w: it has ended", ErrNoSession)
	}
	if err != nil {
		return err
	}
	if left, known := c.untilTakeable(fromMillis(row.Expires)); known && left <= 0 {
		return fmt.Errorf("%w: it was not renewed in time", ErrNoSession)
	}
	return nil
}
