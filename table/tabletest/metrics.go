package tabletest

import "github.com/mortise-go/mortise/table/tabletest/internal/attr"

// collectionMetrics writes ItemCollectionMetrics if the request asked for them and the table has local indexes. For other tables, the
// service does not measure item collections.
func (c *call) collectionMetrics(o *object, w *write) {
	if c.wantsMetrics() && w.t.hasLocal() {
		o.object("ItemCollectionMetrics", w.collection)
	}
}

func (c *call) wantsMetrics() bool { return c.in.text("ReturnItemCollectionMetrics") == "SIZE" }

// collection writes the metrics of the written item's collection. No collection of a test reaches 1 GB.
func (w *write) collection(o *object) {
	hash := w.t.keys.hash()[0].name
	o.item("ItemCollectionKey", attr.Item{hash: w.key[hash]})
	o.list("SizeEstimateRangeGB", 2, func(b []byte, i int) []byte { return append(b, "01"[i]) })
}

// collectionMetricsByTable writes ItemCollectionMetrics for batches and transactions. Each table has a list in which each of the modified
// collections occurs once.
func (c *call) collectionMetricsByTable(o *object, writes []*write) {
	if !c.wantsMetrics() {
		return
	}
	type collection struct {
		t    *table
		part string
	}
	seen := map[collection]bool{}
	by, order := map[*table][]*write{}, []*table(nil)
	for _, w := range writes {
		id := collection{w.t, w.place.part}
		if seen[id] || w.change == nil || !w.t.hasLocal() {
			continue
		}
		seen[id] = true
		if by[w.t] == nil {
			order = append(order, w.t)
		}
		by[w.t] = append(by[w.t], w)
	}
	if len(order) == 0 {
		return
	}
	o.object("ItemCollectionMetrics", func(o *object) {
		for _, t := range order {
			o.list(t.name, len(by[t]), func(b []byte, i int) []byte {
				inner := object{b: append(b, '{')}
				by[t][i].collection(&inner)
				return inner.end()
			})
		}
	})
}
