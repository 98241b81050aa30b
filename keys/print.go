package keys

import (
	"fmt"
	"io"
	"log/slog"
)

// A key often holds what nobody wants in a log: names, addresses, tenants. What prints a struct with a Key somewhere
// inside rarely means to print that, so no verb of package fmt and no slog handler does. PK and SK are strings like
// any others to those who ask for them.

// String tells how long PK and SK are; it does not tell them.
func (k Key) String() string {
	switch {
	case k.Err() != nil:
		return "key (invalid)"
	case k.IsZero():
		return "key (zero)"
	}
	return fmt.Sprintf("key (PK of %d bytes, SK of %d bytes)", len(k.PK), len(k.SK))
}

// Format writes String for every verb.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// LogValue is String for package log/slog.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// String tells how long Lo and Hi are; it does not tell them.
func (r Range) String() string {
	if r.Hi == "" {
		return fmt.Sprintf("range (from %d bytes on)", len(r.Lo))
	}
	return fmt.Sprintf("range (from %d bytes to %d bytes)", len(r.Lo), len(r.Hi))
}

// Format writes String for every verb.
func (r Range) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, r.String()) }

// LogValue is String for package log/slog.
func (r Range) LogValue() slog.Value { return slog.StringValue(r.String()) }
