package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"
)

const (
	maxStreams = 200 // open at a time
	heartbeat  = 15 * time.Second
	// leastPause is the shortest time between two events of a page.
	leastPause = 400 * time.Millisecond
	// writeTimeout is the time within which a reader has to accept a page, a file or an event.
	writeTimeout = 10 * time.Second
)

// stream sends the content of a page as server-sent events, whenever it has changed, until the reader goes away or the
// console is closed. A comment every 15 s shows that the connection is alive.
func (c *Console) stream(w http.ResponseWriter, r *http.Request) {
	p := c.pageNamed(r.URL.Query().Get("page"))
	if p == nil {
		c.fail(w, r, http.StatusNotFound, "There is no such page.")
		return
	}
	part, err := p(c, r)
	if err == nil && part.enter == nil {
		err = &statusError{http.StatusNotFound, "This page has no events."}
	}
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	if !c.connect() {
		w.Header().Set("Retry-After", "10")
		c.fail(w, r, http.StatusServiceUnavailable, "Too many pages are open, or the console is closed.")
		return
	}
	defer c.disconnect()
	leave, err := part.enter()
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	defer leave()
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(errClosed) })()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // tells proxies (nginx) not to buffer events
	w.WriteHeader(http.StatusOK)
	out := events{w, http.NewResponseController(w)}
	if r.Method == http.MethodHead || out.send([]byte("retry: 3000\n\n")) != nil {
		return
	}
	out.follow(ctx, part)
}

// connect counts an event stream, which Close waits for. It returns false if the stream is not allowed.
func (c *Console) connect() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.open == maxStreams {
		return false
	}
	c.open++
	c.group.Add(1)
	return true
}

func (c *Console) disconnect() {
	c.mu.Lock()
	c.open--
	c.mu.Unlock()
	c.group.Done()
}

// events writes an event stream.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// follow sends the content of a part when it has changed, until ctx ends or the reader does not accept it.
func (e events) follow(ctx context.Context, p *part) {
	var last template.HTML
	sent := time.Now()
	for version := 0; ; {
		wait, cancel := context.WithDeadline(ctx, sent.Add(heartbeat))
		body, now, err := p.next(wait, version)
		cancel()
		if ctx.Err() != nil {
			return
		}
		version = now
		var data []byte
		if err == nil && body != last {
			data, last = event(body), body
		} else if time.Since(sent) >= heartbeat {
			data = []byte(":\n\n")
		}
		if data != nil {
			if e.send(data) != nil {
				return
			}
			sent = time.Now()
		}
		select {
		case <-time.After(leastPause):
		case <-ctx.Done():
			return
		}
	}
}

// newlines replaces the other ends of a line in event streams, which names from the table can contain. Browsers replace them in a page, too.
var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// event formats a text of several lines as one event.
func event(body template.HTML) []byte {
	var out bytes.Buffer
	for line := range strings.Lines(newlines.Replace(string(body))) {
		fmt.Fprintf(&out, "data: %s\n", strings.TrimSuffix(line, "\n"))
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// limit gives the reader writeTimeout to accept what is written next. One that reads nothing would otherwise keep its connection for ever.
func limit(w http.ResponseWriter) error {
	return http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
}

func (e events) send(data []byte) error {
	if err := limit(e.w); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := e.w.Write(data); err != nil {
		return err
	}
	if err := e.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}
