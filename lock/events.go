package lock

import (
	"errors"
	"log/slog"
	"time"
)

// What is logged for people, all in one place: above debug level nothing of a target, a key
// or a payload. None of these is called with a mutex held, since a Logger is the
// application's and may do I/O.

// tellAcquired tells of a lease that begins.
func (c *Client) tellAcquired(l *Lease) {
	log := c.config.Logger
	if l.path == pathTakenOver {
		log.Info("lock: taken over from a holder that died", "fence", l.fence)
	}
	if log.Enabled(l.ctx, slog.LevelDebug) { // its arguments cost, and this is every acquisition
		log.Debug("lock: acquired", "key", l.key, "fence", l.fence, "path", string(l.path))
	}
}

func (c *Client) tellLost(l *Lease, cause error) {
	c.config.Logger.Warn("lock: lost", "fence", l.fence, "cause", cause)
}

func (c *Client) tellRevoked(l *Lease) {
	c.config.Logger.Info("lock: asked back", "fence", l.fence)
}

// tellForced tells of a lock that was taken from its holder by force; by whom, and from whose
// session.
func (c *Client) tellForced(session string, fence int64) {
	c.config.Logger.Warn("lock: taken by force", "session", session, "fence", fence)
}

func (c *Client) tellSessionOpened(s *session) {
	c.config.Logger.Debug("lock: session opened", "session", s.id, "lease", c.config.Lease)
}

// tellSessionEnded tells of the end of a session, with how many leases were lost by it.
func (c *Client) tellSessionEnded(s *session, cause error, leases int) {
	if errors.Is(cause, ErrLost) {
		c.config.Logger.Warn("lock: session lost", "session", s.id, "leases", leases, "cause", cause)
		return
	}
	c.config.Logger.Debug("lock: session ended", "session", s.id)
}

func (c *Client) tellClockOff(by time.Duration) {
	c.config.Logger.Warn("lock: the clock is off: recorded ends of leases are neither used nor written",
		"by", by, "bound", c.config.Skew)
}
