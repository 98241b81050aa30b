package tabletest

import "slices"

// historyLimit bounds how many writes of a table a stale read can miss.
const historyLimit = 1024

// history records what the latest writes of a table replaced, so that reads can be made stale.
type history struct {
	past []change // oldest first
}

// change is one write. old is the row before the write, or nil if there was none.
type change struct {
	key rowKey
	old *row
}

func (h *history) add(k rowKey, old *row) {
	if len(h.past) >= 2*historyLimit {
		h.past = append(h.past[:0:0], h.past[historyLimit:]...)
	}
	h.past = append(h.past, change{k, old})
}

// last returns the latest n writes, oldest first.
func (h *history) last(n int) []change {
	n = min(n, historyLimit, len(h.past))
	return h.past[len(h.past)-n:]
}

// read returns an item as this request sees it, which is stale after a StaleRead.
func (c *call) read(t *table, k rowKey, consistent bool) *row {
	if c.stale > 0 && !consistent {
		for _, p := range t.history.last(c.stale) {
			if p.key == k {
				return p.old
			}
		}
	}
	return t.rows.get(k)
}

// source returns the rows of a table, or of one of its indexes, as this request sees them.
func (c *call) source(t *table, x *index, consistent bool) *rows {
	if c.stale == 0 || consistent {
		if x != nil {
			return &x.rows
		}
		return &t.rows
	}
	past := table{keys: t.keys, rows: t.rows.clone()}
	missed := t.history.last(c.stale)
	for _, m := range slices.Backward(missed) {
		if m.old == nil {
			past.rows.remove(m.key)
		} else {
			past.rows.put(m.old)
		}
	}
	if x == nil {
		return &past.rows
	}
	view := *x
	past.fill(&view)
	return &view.rows
}
