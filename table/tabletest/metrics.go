package tabletest

import "github.com/mortise-go/mortise/table/tabletest/internal/attr"

// collectionMetrics writes ItemCollectionMetrics if the request asked for them and the table has local indexes. For other tables, the
// service does not measure item collections.
func (c *call) collectionMetrics(o *object, w *write) {
	if c.in.text("ReturnItemCollectionMetrics") != "SIZE" || !w.t.hasLocal() {
		return
	}
	hash := w.t.keys.hash()[0].name
	o.object("ItemCollectionMetrics", func(o *object) {
		o.item("ItemCollectionKey", attr.Item{hash: w.key[hash]})
		o.list("SizeEstimateRangeGB", 2, func(b []byte, i int) []byte { return append(b, "01"[i]) })
	})
}
