package tabletest

import (
	"slices"
)

// Sizes that one unit covers (Developer Guide, "Read and write operations").
const (
	readBlock  = 4096
	writeBlock = 1024
)

// writeUnits returns the cost of writing an item of that many bytes: at least one unit.
func writeUnits(size int) float64 {
	return float64(max(1, (size+writeBlock-1)/writeBlock))
}

// readUnits returns the cost of reading that many bytes: one unit per block, at least one, and half of that if the read may be stale.
func readUnits(size int, consistent bool) float64 { return unitsOf(readBlocks(size), consistent) }

func readBlocks(size int) int { return max(1, (size+readBlock-1)/readBlock) }

func unitsOf(blocks int, consistent bool) float64 {
	if consistent {
		return float64(blocks)
	}
	return float64(blocks) / 2
}

// usage is the capacity that a request consumed on one table.
type usage struct {
	table  float64
	global map[string]float64
	local  map[string]float64
}

func (u *usage) total() float64 {
	sum := u.table
	for _, v := range u.global {
		sum += v
	}
	for _, v := range u.local {
		sum += v
	}
	return sum
}

func (u *usage) addIndex(x *index, units float64) {
	m := &u.local
	if x.global {
		m = &u.global
	}
	if *m == nil {
		*m = map[string]float64{}
	}
	(*m)[x.name] += units
}

func (u *usage) add(o *usage) {
	u.table += o.table
	for _, side := range []struct{ to, from *map[string]float64 }{{&u.global, &o.global}, {&u.local, &o.local}} {
		for name, v := range *side.from {
			if *side.to == nil {
				*side.to = map[string]float64{}
			}
			(*side.to)[name] += v
		}
	}
}

// Levels of ReturnConsumedCapacity.
const (
	capacityTotal   = "TOTAL"
	capacityIndexes = "INDEXES"
)

// unitKind says what the units of an answer are spent on. Its values are the names of the members that hold them beside CapacityUnits.
type unitKind string

const (
	bothKinds unitKind = "" // only transactions report reads and writes apart
	readKind  unitKind = "ReadCapacityUnits"
	writeKind unitKind = "WriteCapacityUnits"
)

func (k unitKind) write(o *object, units float64) {
	o.number("CapacityUnits", units)
	if k != bothKinds {
		o.number(string(k), units)
	}
}

// write writes the members of a ConsumedCapacity.
func (u *usage) write(o *object, table, level string, k unitKind) {
	o.text("TableName", table)
	k.write(o, u.total())
	if level != capacityIndexes {
		return
	}
	o.object("Table", func(o *object) { k.write(o, u.table) })
	k.writeIndexes(o, "GlobalSecondaryIndexes", u.global)
	k.writeIndexes(o, "LocalSecondaryIndexes", u.local)
}

func (k unitKind) writeIndexes(o *object, name string, units map[string]float64) {
	var names []string
	for n, v := range units {
		if v > 0 {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	o.object(name, func(o *object) {
		for _, n := range names {
			o.object(n, func(o *object) { k.write(o, units[n]) })
		}
	})
}

func wantsCapacity(level string) bool { return level == capacityTotal || level == capacityIndexes }

// consumed writes a request's ConsumedCapacity if the request asked for it.
func (c *call) consumed(o *object, t *table, u *usage) {
	c.spent(t, u)
	if level := c.capacityLevel(); wantsCapacity(level) {
		o.object("ConsumedCapacity", func(o *object) { u.write(o, c.nameOf(t), level, bothKinds) })
	}
}

func (c *call) capacityLevel() string { return c.in.text("ReturnConsumedCapacity") }

// consumedByTable writes ConsumedCapacity for batches and transactions, as a list with one entry for each table.
func (c *call) consumedByTable(o *object, k unitKind, order []*table, by map[*table]*usage) {
	for _, t := range order {
		c.spent(t, by[t])
	}
	if level := c.capacityLevel(); wantsCapacity(level) {
		o.list("ConsumedCapacity", len(order), func(b []byte, i int) []byte {
			inner := object{b: append(b, '{')}
			by[order[i]].write(&inner, c.nameOf(order[i]), level, k)
			return inner.end()
		})
	}
}
