package inside

import (
	"context"
	"time"
)

type withinKey struct{}

// Within returns a context that gives each request the timeout d, in addition to the timeout of the table's retry policy.
func Within(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, withinKey{}, d)
}

// Timeout returns the shorter one of policy, the timeout of a policy or negative if it has none, and the timeout of the context.
func Timeout(ctx context.Context, policy time.Duration) time.Duration {
	if d, ok := ctx.Value(withinKey{}).(time.Duration); ok && (policy < 0 || d < policy) {
		return d
	}
	return policy
}
