package lock

import "context"

// EndedByClose is how what waits under the client has ended right after Close has begun, before anything
// that listens to that could run.
func EndedByClose(c *Client) (err, cause error) {
	ctx, stop := c.open(context.Background())
	defer stop()
	c.close(ErrClosed)
	err = ctx.Err()
	return err, context.Cause(ctx)
}
