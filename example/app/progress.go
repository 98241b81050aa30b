package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// How often the progress is written: a bar may move smoothly, lines should not
// fill a log.
const (
	barPeriod  = 80 * time.Millisecond
	linePeriod = time.Second
)

const (
	barWidth     = 30
	defaultWidth = 80 // columns, where the terminal does not say
)

// progress shows how far a run has come: a bar on a terminal, plain lines
// elsewhere, at most one per second. It is not safe for concurrent use.
type progress struct {
	w     io.Writer
	bar   bool
	width func() int
	now   func() time.Time

	phase string
	start time.Time
	last  time.Time // of the phase's last output
	drawn bool      // an unfinished bar is on the line
}

// newProgress writes to w, which is taken for a terminal if it is one.
func newProgress(w io.Writer) *progress {
	p := &progress{w: w, now: time.Now, width: func() int { return defaultWidth }}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.bar = true
		p.width = func() int {
			if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
				return width
			}
			return defaultWidth
		}
	}
	return p
}

// update shows that done of total are through in the phase; detail follows the
// numbers. What comes too early is dropped, the end of a phase excepted.
func (p *progress) update(phase string, done, total int, detail string) {
	now := p.now()
	if phase != p.phase {
		p.endBar()
		p.phase, p.start = phase, now
		if p.bar {
			p.last = time.Time{}
		}
	}
	period := linePeriod
	if p.bar {
		period = barPeriod
	}
	if now.Sub(p.last) < period && (!p.bar || done < total) {
		return
	}
	p.last = now
	if !p.bar {
		say(p.w, "%s: %d of %d orders%s, %.1f s\n", phase, done, total, comma(detail), now.Sub(p.start).Seconds())
		return
	}
	filled := barWidth
	if total > 0 {
		filled = barWidth * done / total
	}
	line := fmt.Sprintf("%-8s [%s%s] %d/%d%s, %.1f s", phase,
		strings.Repeat("=", filled), strings.Repeat(" ", barWidth-filled), done, total, comma(detail), now.Sub(p.start).Seconds())
	// A line that wraps could not be overwritten.
	if limit := p.width() - 1; len(line) > limit {
		line = line[:max(limit, 0)]
	}
	say(p.w, "\r\x1b[K%s", line)
	p.drawn = true
}

// note writes a line of its own, between updates.
func (p *progress) note(format string, args ...any) {
	if p.drawn {
		say(p.w, "\r\x1b[K")
		p.drawn = false
		p.last = time.Time{}
	}
	say(p.w, format+"\n", args...)
}

// endBar leaves the last bar on the screen and goes to the next line.
func (p *progress) endBar() {
	if p.drawn {
		say(p.w, "\n")
		p.drawn = false
	}
}

// say writes for people to read. Where they cannot be reached, nobody is left
// to be told so.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

func comma(detail string) string {
	if detail == "" {
		return ""
	}
	return ", " + detail
}
