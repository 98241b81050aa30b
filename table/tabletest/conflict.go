package tabletest

// conflicting reports whether a fault has this write meet a transaction in flight.
func (c *call) conflicting(w *write) bool {
	return c.conflict || c.e.inflight[placed{w.t, w.place}] > 0
}

// refuseConflict refuses a single write that meets a transaction in flight.
func (c *call) refuseConflict(w *write) error {
	if c.conflicting(w) {
		return fail(codeConflict, "Transaction is ongoing for the item")
	}
	return nil
}
