package lock

import (
	"context"

	"github.com/mortise-go/mortise/internal/settings"
	"github.com/mortise-go/mortise/keys"
)

// SessionID is the ID of the client's session; empty where it has none.
func SessionID(c *Client) string {
	if s := c.keeper.Current(); s != nil {
		return s.ID()
	}
	return ""
}

// Settings are the names of the settings of Config, and the fields that these are.
func Settings() (names, fields []string) {
	for _, s := range new(Config).settings() {
		names, fields = append(names, s.Name), append(fields, settings.FieldName(s.Name))
	}
	return names, fields
}

// Queued is how many goroutines of this client wait behind its place in the line of a lock.
func Queued(c *Client, key keys.Key) int { return c.queues.Waiting(key) }

// EndedByClose is how what waits under the client has ended right after Close has begun, before anything
// that listens to that could run.
func EndedByClose(c *Client) (err, cause error) {
	ctx, stop := until(context.Background(), c.closing)
	defer stop()
	c.close(ErrClosed)
	err = ctx.Err()
	return err, context.Cause(ctx)
}
