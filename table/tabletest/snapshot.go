package tabletest

import "slices"

// Snapshot is the state of all tables at one time. It is immutable and can be restored any number of times.
type Snapshot struct{ tables map[string]*table }

// Snapshot saves the state of all tables, for [Engine.Restore]. It takes time linear in the number of items, and shares
// their memory.
func (e *Engine) Snapshot() *Snapshot {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deliver()
	return &Snapshot{tables: cloneTables(e.tables)}
}

// Restore replaces all tables by those of the snapshot, as if each had been restored from a backup: items, indexes and
// settings. Idempotency tokens are forgotten. The clock, the request log and the faults do not change, and late
// requests still arrive.
func (e *Engine) Restore(s *Snapshot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deliver()
	e.tables = cloneTables(s.tables)
	e.tokens, e.past = map[string]*pastTransaction{}, nil
}

func cloneTables(tables map[string]*table) map[string]*table {
	out := make(map[string]*table, len(tables))
	for name, t := range tables {
		c := *t
		c.rows = t.rows.clone()
		c.history = history{}
		c.attrs = slices.Clone(t.attrs)
		c.tags = slices.Clone(t.tags)
		c.indexes = make([]*index, len(t.indexes))
		for i, x := range t.indexes {
			y := *x
			y.rows = x.rows.clone()
			c.indexes[i] = &y
		}
		out[name] = &c
	}
	return out
}
