package lock

import (
	"context"
	"fmt"
	"time"

	"github.com/mortise-go/mortise/lock/internal/lockrow"
)

// Option changes how a call acquires a lock. An option that does not fit the call is refused with [ErrInvalid].
//
//   - [Existing], [Fixed], [MaxHold], [WithData]: all calls that acquire
//   - [Permits], [Shared]: [Client.Acquire], [Client.TryAcquire], [Client.Do] and [Client.TryDo]
//   - [At], [OnFailed], [RetryFailed]: [Client.Every]
type Option func(*request) error

// request is what a call asks for. Once made it does not change, except permits: a call that waits follows SetPermits.
type request struct {
	fixed    time.Duration   // length of a Fixed lease; 0 for any other
	maxHold  time.Duration   // 0 for no limit
	data     lockrow.Data    // payload
	existing bool            // only if the lock has a row
	permits  int64           // how many may hold at once; 0 for a lock
	shared   bool            // as a reader, together with others
	alone    string          // name of a call that refuses permits and shared; empty for others
	run      *run            // of an interval (Every); nil for others
	job      job             // from options of Every
	values   context.Context // the lease's context carries its values
}

func (c *Client) request(ctx context.Context, opts []Option) (request, error) {
	r := request{maxHold: c.config.MaxHold, values: context.WithoutCancel(checked(ctx))}
	for _, opt := range opts {
		if opt == nil {
			return r, invalid("nil option")
		}
		if err := opt(&r); err != nil {
			return r, err
		}
	}
	if r.run == nil && r.job.option != "" {
		return r, invalid("%s: an option of Every", r.job.option)
	}
	return r, r.checkTogether()
}

// checkTogether refuses options that make no sense for a lock that several hold at once.
func (r *request) checkTogether() error {
	option := "Permits"
	switch {
	case r.permits > 0 && r.shared:
		return invalid("Permits and Shared: a lock has permits, or readers and writers")
	case r.permits == 0 && !r.shared:
		return nil
	case r.shared:
		option = "Shared"
	}
	switch {
	case r.fixed > 0:
		return invalid("%s and Fixed: the row keeps the time of one lease of its own", option)
	case r.data.Given:
		return invalid("%s and WithData: a payload is that of one holder", option)
	case r.alone != "":
		return invalid("%s: not an option of %s, whose locks are held alone", option, r.alone)
	}
	return nil
}

// heldAlone makes a call refuse Permits and Shared, with which several hold at once.
func heldAlone(call string) Option { return set(func(r *request) { r.alone = call }) }

func set(f func(*request)) Option {
	return func(r *request) error {
		f(r)
		return nil
	}
}

func (r *request) length(c *Client) time.Duration {
	if r.fixed > 0 {
		return r.fixed
	}
	return c.config.Lease
}

// keep is how long the row has to be kept beyond Config.Retention.
func (r *request) keep() time.Duration {
	if r.run == nil {
		return r.fixed
	}
	return r.fixed + 2*r.run.intervals.longest() // an interrupted run may begin again until the end of the next interval
}

// writes reports whether a holder writes a payload or a run besides its ticket when it gets the lock.
func (r *request) writes() bool { return r.data.Given || r.run != nil }

// Fixed gives the lease a fixed length: 100 ms to 24 h, rounded down to whole milliseconds. The lease is not renewed in the
// background and needs no session. It is made for short-lived processes, such as serverless functions. [Lease.Renew]
// extends it.
//
// The lease begins when the request is sent. If the answer takes longer than the lease, the lock is given back, and the
// error matches [ErrExpired].
func Fixed(lease time.Duration) Option {
	return func(r *request) error {
		if lease < MinFixed || lease > MaxFixed {
			return invalid("Fixed(%v): want %v to %v", lease, MinFixed, MaxFixed)
		}
		r.fixed = lease.Truncate(time.Millisecond)
		return nil
	}
}

// MaxHold limits how long the lock is held: at least 100 ms. A holder that hangs then does not keep the lock for ever.
// At the end of that time the lease's context ends with [ErrMaxHold], and the lock is released, after a guarded write
// that is under way.
//
// The time is counted from the request. If the call had to wait, it is counted from the moment at which the client
// noticed that it holds the lock.
func MaxHold(d time.Duration) Option {
	return func(r *request) error {
		if d < MinFixed {
			return invalid("MaxHold(%v): want at least %v", d, MinFixed)
		}
		r.maxHold = d
		return nil
	}
}

// WithData writes a payload into the lock's row. Others can read it: in a *[HeldError], with [Client.Inspect] and with
// [Client.List]. The value is encoded like a field of an entity. It has at most [MaxData] bytes, as DynamoDB counts
// them.
//
// The payload stays when the lock is released. Without this option a holder leaves the payload of the holder before it.
// nil removes it.
//
// Cost: nothing if the lock is free. If the call has to wait, two more conditional writes, or none if the lock then comes
// from another goroutine of this client. A row of more than 1 KB costs one write unit per KB.
func WithData(v any) Option {
	d, err := newData(v)
	return func(r *request) error {
		if err != nil {
			return fmt.Errorf("WithData: %w", err)
		}
		r.data = lockrow.Data{Given: true, Value: d.av}
		return nil
	}
}

// Existing acquires the lock only if its row exists: somebody has acquired the lock, and time to live has not deleted the
// row since. Otherwise the error matches [table.ErrNotFound], and no row is made for the lock.
func Existing() Option { return set(func(r *request) { r.existing = true }) }
