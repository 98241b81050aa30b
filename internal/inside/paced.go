package inside

import "context"

type pacedKey struct{}

// Paced returns a context for a caller that slows down by itself if it is throttled: the table's retry policy does not repeat requests
// that are refused for that reason. The other reasons to repeat a request stay.
func Paced(ctx context.Context) context.Context { return context.WithValue(ctx, pacedKey{}, true) }

// IsPaced reports whether ctx comes from [Paced].
func IsPaced(ctx context.Context) bool { return ctx.Value(pacedKey{}) != nil }
