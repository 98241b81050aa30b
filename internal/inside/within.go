package inside

import (
	"context"
	"time"
)

type withinKey struct{}

// Within returns a context under which each request has a timeout, beside that of the table's retry policy.
func Within(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, withinKey{}, d)
}

// Timeout is the shorter of a policy's timeout, which is negative for none, and that of the context.
func Timeout(ctx context.Context, policy time.Duration) time.Duration {
	if d, ok := ctx.Value(withinKey{}).(time.Duration); ok && (policy < 0 || d < policy) {
		return d
	}
	return policy
}
