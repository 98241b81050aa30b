package sim

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// history is what happened, in an order that does not depend on who was scheduled first: by
// the instant, then by process and worker.
type history struct {
	keep  bool
	begin time.Time

	mu     sync.Mutex
	closed bool
	lines  []entry
	names  map[string]string // of random texts, in the order in which they were met
}

type entry struct {
	at      time.Time
	process int
	worker  string
	number  int
	text    string
}

func newHistory(keep bool) *history {
	return &history{keep: keep, begin: time.Now(), names: map[string]string{}}
}

func (h *history) add(at time.Time, process int, worker, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.keep && !h.closed {
		h.lines = append(h.lines, entry{at, process, worker, len(h.lines), text})
	}
}

// close ends the history: what comes later is the cleaning up of the simulator.
func (h *history) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
}

// random is what Text of a machine looks like.
var random = regexp.MustCompile(`[A-Z2-7]{26}`)

// aliases replaces random texts by short names.
func (h *history) aliases(list []string) {
	if !h.keep {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, s := range list {
		list[i] = random.ReplaceAllStringFunc(s, func(text string) string {
			if h.names[text] == "" {
				h.names[text] = fmt.Sprintf("r%d", len(h.names)+1)
			}
			return h.names[text]
		})
	}
}

func (h *history) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.SortFunc(h.lines, func(a, b entry) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.process, b.process), cmp.Compare(a.worker, b.worker), cmp.Compare(a.number, b.number))
	})
	var b strings.Builder
	for _, e := range h.lines {
		fmt.Fprintf(&b, "%17.9f p%d %-3s %s\n", e.at.Sub(h.begin).Seconds(), e.process, e.worker, e.text)
	}
	return b.String()
}
