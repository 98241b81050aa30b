package tabletest

import "github.com/mortise-go/mortise/table/tabletest/internal/attr"

const conflictMessage = "Transaction is ongoing for the item"

// busy reports whether a fault puts this item into a transaction in flight: TransactionConflict, or Delay with Hold.
func (c *call) busy(t *table, key attr.Item, place rowKey) bool {
	for _, f := range c.conflicts {
		if f.names(t.name, sdkItem(key)) {
			return true
		}
	}
	return len(c.e.inflight) > 0 && c.e.inflight[placed{t, place}] > 0
}

func (c *call) conflicting(w *write) bool { return c.busy(w.t, w.key, w.place) }

// refuseConflict refuses a single write of an item that takes part in a transaction in flight.
func (c *call) refuseConflict(w *write) error {
	if c.conflicting(w) {
		return fail(codeConflict, conflictMessage)
	}
	return nil
}
