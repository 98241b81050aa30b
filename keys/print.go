package keys

import (
	"fmt"
	"io"
	"log/slog"
)

// Keys often contain names, addresses and tenants. A log statement that prints a struct with a Key in it rarely means
// to print these. So no verb of package fmt and no slog handler prints them, as far as Go lets a type decide that: package
// fmt cannot call methods of unexported fields, and slog's JSONHandler writes what is inside of a value as package json
// does. A caller who needs PK and SK uses the fields.

// String returns the lengths of PK and SK, but not their text.
func (k Key) String() string {
	switch {
	case k.Err() != nil:
		return "key (invalid)"
	case k.IsZero():
		return "key (zero)"
	}
	return fmt.Sprintf("key (PK of %d bytes, SK of %d bytes)", len(k.PK), len(k.SK))
}

// Format implements [fmt.Formatter]. It writes [Key.String] for every verb.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// LogValue implements [slog.LogValuer] with [Key.String].
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// String returns the lengths of Lo and Hi, but not their text.
func (r Range) String() string {
	if r.Hi == "" {
		return fmt.Sprintf("range (from %d bytes on)", len(r.Lo))
	}
	return fmt.Sprintf("range (from %d bytes to %d bytes)", len(r.Lo), len(r.Hi))
}

// Format implements [fmt.Formatter]. It writes [Range.String] for every verb.
func (r Range) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, r.String()) }

// LogValue implements [slog.LogValuer] with [Range.String].
func (r Range) LogValue() slog.Value { return slog.StringValue(r.String()) }
