package migratecmd

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
)

// logger returns a logger that writes lines for people.
func (c *console) logger() *slog.Logger { return slog.New(&lines{console: c}) }

// lines is a slog.Handler that writes the message followed by the attributes.
type lines struct {
	console *console
	prefix  string // of attributes' names: the groups, each with a dot
	attrs   []string
}

// Enabled implements slog.Handler.
func (*lines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle implements slog.Handler.
func (h *lines) Handle(_ context.Context, r slog.Record) error {
	parts := []string{strings.TrimPrefix(r.Message, "migrations: ")}
	if r.Level > slog.LevelInfo {
		parts[0] = strings.ToLower(r.Level.String()) + ": " + parts[0]
	}
	parts = append(parts, h.attrs...)
	r.Attrs(func(a slog.Attr) bool {
		parts = append(parts, h.text(a))
		return true
	})
	h.console.line(strings.Join(parts, " "))
	return nil
}

func (h *lines) text(a slog.Attr) string {
	value := a.Value.Resolve()
	if value.Kind() == slog.KindDuration {
		value = slog.StringValue(roundly(value.Duration()))
	}
	return fmt.Sprintf("%s%s=%v", h.prefix, a.Key, value)
}

// WithAttrs implements slog.Handler.
func (h *lines) WithAttrs(attrs []slog.Attr) slog.Handler {
	n := *h
	n.attrs = slices.Clone(h.attrs)
	for _, a := range attrs {
		n.attrs = append(n.attrs, h.text(a))
	}
	return &n
}

// WithGroup implements slog.Handler.
func (h *lines) WithGroup(name string) slog.Handler {
	n := *h
	if name != "" {
		n.prefix += name + "."
	}
	return &n
}
