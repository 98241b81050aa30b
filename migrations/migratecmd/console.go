package migratecmd

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/mortise-go/mortise/internal/tty"
	"github.com/mortise-go/mortise/migrations"
)

// plainPeriod is the interval between lines of progress without a terminal. It keeps logs short.
const plainPeriod = 5 * time.Second

// console writes lines and progress to standard error from one goroutine. So they do not interleave, and no caller
// holds a mutex during a write.
type console struct {
	w     io.Writer
	width func() int // 0 if it is not a terminal

	messages   chan message
	end, ended chan struct{}
	once       sync.Once

	// Used by the goroutine only:
	step  string               // step of the last progress written
	last  time.Time            // time at which it was written
	held  *migrations.Progress // progress that came too early to be written
	drawn bool                 // the current line has a bar
}

// message is a line or progress.
type message struct {
	line     string
	progress *migrations.Progress
}

// newConsole starts the goroutine. close ends it.
func newConsole(w io.Writer, width func() int) *console {
	c := &console{w: w, width: width, messages: make(chan message), end: make(chan struct{}), ended: make(chan struct{})}
	go c.run()
	return c
}

// close returns when everything has been written. Later messages are dropped.
func (c *console) close() {
	c.once.Do(func() { close(c.end) })
	<-c.ended
}

func (c *console) line(text string)               { c.send(message{line: text}) }
func (c *console) progress(p migrations.Progress) { c.send(message{progress: &p}) }
func (c *console) send(m message) {
	select {
	case c.messages <- m:
	case <-c.ended:
	}
}

func (c *console) run() {
	defer close(c.ended)
	for {
		select {
		case m := <-c.messages:
			if m.progress == nil {
				c.release()
				tty.Say(c.w, "%s\n", tty.Clean(m.line))
			} else {
				c.show(m.progress)
			}
		case <-c.end:
			c.release()
			return
		}
	}
}

// release writes progress that was held back, or ends the line of the bar.
func (c *console) release() {
	if c.held != nil {
		tty.Say(c.w, "%s\n", tty.Clean(c.held.String()))
		c.held = nil
	}
	if c.drawn {
		tty.Say(c.w, "\n")
		c.drawn = false
	}
	c.step = ""
}

func (c *console) show(p *migrations.Progress) {
	step := p.Migration + " " + p.Step
	if step != c.step {
		c.release()
		c.step, c.last = step, time.Time{}
	}
	now := time.Now()
	if width := c.width(); width > 0 {
		// The text has to fit: a line that wraps cannot be overwritten.
		tty.Say(c.w, "\r\x1b[K%s", tty.Cut(bar(p, width-1), width-1))
		c.drawn = true
		if p.Done {
			c.release()
		}
		return
	}
	if c.held = nil; !p.Done && now.Sub(c.last) < plainPeriod {
		c.held = p
		return
	}
	c.last = now
	tty.Say(c.w, "%s\n", tty.Clean(p.String()))
}

// bar formats progress as one line. It has a bar if the total is known, and as many words as fit.
func bar(p *migrations.Progress, width int) string {
	const most, least = 30, 10
	text := tty.Clean(p.String())
	if p.Total <= 0 || p.Done {
		return text
	}
	brief := fmt.Sprintf("%d of about %d, %.0f/s", p.Seen, p.Total, p.Rate)
	if p.Left > 0 {
		brief += fmt.Sprintf(", %v left", p.Left.Round(time.Second))
	}
	cells := 0
	for _, words := range []string{text, tty.Clean(p.Migration+" "+p.Step) + ": " + brief, brief} {
		text = words
		if cells = min(most, width-tty.Columns(text)-len("[] ")); cells >= least {
			break
		}
	}
	if cells < least {
		return text
	}
	filled := int(min(p.Seen, p.Total) * int64(cells) / p.Total)
	return fmt.Sprintf("[%s%s] %s", strings.Repeat("=", filled), strings.Repeat(" ", cells-filled), text)
}
