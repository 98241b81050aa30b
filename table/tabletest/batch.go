package tabletest

import (
	"slices"
	"strings"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
	"github.com/mortise-go/mortise/table/tabletest/internal/jsontree"
)

// Limits of the batch operations.
const (
	maxBatchGet   = 100
	maxBatchWrite = 25
	maxBatchBytes = 16 << 20
)

// placed identifies an item among all tables.
type placed struct {
	t     *table
	place rowKey
}

// physical identifies a physical partition among all tables.
type physical struct {
	t      *table
	number int
}

func errDuplicateKeys() error { return invalid("Provided list of item keys contains duplicates") }

type batchPart struct {
	t    *table
	name string // as written in the request
	node *jsontree.Node
	gets []*get
	raw  []*jsontree.Node // key of each get, to return if it stays unprocessed
	cons bool             // consistent reads
}

// found is an item of an answer. The service reads in parallel and answers in no particular order, in one item collection too. A test that
// gets the order of its request would hide a caller that relies on it.
type found struct {
	order string
	item  attr.Item
}

func batchGetItem(c *call) ([]byte, error) {
	members := c.in.members("RequestItems")
	if len(members) == 0 {
		return nil, errNothing(c.op)
	}
	parts, err := c.readBatchGet(members)
	if err != nil {
		return nil, err
	}
	used := map[*table]*usage{}
	var order []*table
	size, taken := 0, 0
	read := map[physical]int{} // bytes
	answers := make([][]found, len(parts))
	rest := make([][]*jsontree.Node, len(parts))
	for i, p := range parts {
		u := used[p.t]
		if u == nil { // a request can name a table twice, by its ARN, too
			u = &usage{}
			used[p.t] = u
			order = append(order, p.t)
		}
		for j, g := range p.gets {
			if c.unprocessed > 0 && taken >= c.unprocessed {
				rest[i] = append(rest[i], p.raw[j])
				continue
			}
			r := c.read(p.t, g.place, p.cons)
			bytes := 0
			if r != nil {
				bytes = r.size
			}
			at := physical{p.t, p.t.partitions().of(g.place)}
			if read[at] >= maxPage || size+bytes > maxBatchBytes {
				rest[i] = append(rest[i], p.raw[j])
				u.table += readUnits(0, p.cons) // the service charges the minimum for a key that it leaves out
				continue
			}
			taken++
			if r != nil {
				answers[i] = append(answers[i], found{g.place.scattered(), g.pick(r.item)})
			}
			read[at] += bytes
			size += bytes
			u.table += readUnits(bytes, p.cons)
		}
	}
	o := newObject()
	o.object("Responses", func(o *object) {
		for i, p := range parts {
			slices.SortFunc(answers[i], func(a, b found) int { return strings.Compare(a.order, b.order) })
			o.list(p.name, len(answers[i]), func(b []byte, j int) []byte { return answers[i][j].item.Append(b) })
		}
	})
	o.object("UnprocessedKeys", func(o *object) {
		for i, p := range parts {
			if len(rest[i]) > 0 {
				o.object(p.name, func(o *object) { unprocessedGet(o, p.node, rest[i]) })
			}
		}
	})
	c.consumedByTable(o, bothKinds, order, used)
	return o.end(), nil
}

// unprocessedGet writes a table's part of the request again, with only the unprocessed keys.
func unprocessedGet(o *object, n *jsontree.Node, keys []*jsontree.Node) {
	o.list("Keys", len(keys), func(b []byte, i int) []byte { return keys[i].Append(b) })
	for i := range n.Members {
		if m := &n.Members[i]; m.Name != "Keys" && !m.Value.IsNull() {
			o.name(m.Name)
			o.b = m.Value.Append(o.b)
		}
	}
}

// readBatchGet reads the parts of all tables and then looks up the tables.
func (c *call) readBatchGet(members []jsontree.Member) ([]*batchPart, error) {
	if err := refuseMixedTables(members); err != nil {
		return nil, err
	}
	total := 0
	parts := make([]*batchPart, len(members))
	for i := range members {
		p, err := readBatchPart(&members[i])
		if err != nil {
			return nil, err
		}
		parts[i] = p
		total += len(p.gets)
	}
	if total > maxBatchGet {
		return nil, invalid("Too many items requested for the BatchGetItem call")
	}
	seen := map[placed]*batchPart{}
	for _, p := range parts {
		var err error
		if p.t, err = c.lookup(p.name); err != nil {
			return nil, err
		}
		gets, raw := p.gets, p.raw
		p.gets, p.raw = nil, nil
		for i, g := range gets {
			if err := g.locate(c, p.t); err != nil {
				return nil, err
			}
			switch at := (placed{p.t, g.place}); seen[at] {
			case nil:
				seen[at] = p
				p.gets, p.raw = append(p.gets, g), append(p.raw, raw[i])
			case p: // another spelling of a number: the service reads the item once
			default:
				return nil, errDuplicateKeys()
			}
		}
	}
	return parts, nil
}

// refuseMixedTables is refuseMixed for a BatchGetItem, where one table can have an expression and another one the older form.
func refuseMixedTables(members []jsontree.Member) error {
	var old, now []string
	for i := range members {
		f := fields{n: &members[i].Value}
		if f.has("AttributesToGet") {
			old = []string{"AttributesToGet"}
		}
		if f.has("ProjectionExpression") {
			now = []string{"ProjectionExpression"}
		}
	}
	return errMixed(old, now)
}

func readBatchPart(m *jsontree.Member) (*batchPart, error) {
	f := fields{n: &m.Value}
	proj, err := readProjecting(&f)
	if err != nil {
		return nil, err
	}
	p := &batchPart{name: m.Name, node: &m.Value, cons: f.flag("ConsistentRead")}
	keys := f.items("Keys")
	seen := map[string]bool{}
	for j := range keys {
		key, err := attr.DecodeItem(&keys[j])
		if err != nil {
			return nil, err
		}
		text := asSent(&keys[j])
		if seen[text] {
			return nil, errDuplicateKeys()
		}
		seen[text] = true
		p.gets = append(p.gets, &get{key: key, proj: proj})
		p.raw = append(p.raw, &keys[j])
	}
	return p, nil
}

// asSent returns a key's text, with numbers as they are spelled. The service compares the keys of a BatchGetItem like this.
func asSent(key *jsontree.Node) string {
	var b []byte
	for _, m := range slices.SortedFunc(slices.Values(key.Members), func(x, y jsontree.Member) int { return strings.Compare(x.Name, y.Name) }) {
		b = m.Value.Append(jsontree.AppendString(b, m.Name))
	}
	return string(b)
}

type batchWrite struct {
	w    *write
	name string
	node *jsontree.Node
}

func batchWriteItem(c *call) ([]byte, error) {
	members := c.in.members("RequestItems")
	if len(members) == 0 {
		return nil, errNothing(c.op)
	}
	writes, err := c.readBatchWrite(members)
	if err != nil {
		return nil, err
	}
	used := map[*table]*usage{}
	var order []*table
	var rest []batchWrite
	var written []*write
	for i, b := range writes {
		u := used[b.w.t]
		if u == nil {
			u = &usage{}
			used[b.w.t] = u
			order = append(order, b.w.t)
		}
		if c.unprocessed > 0 && i >= c.unprocessed || c.conflicting(b.w) {
			rest = append(rest, b)
			continue
		}
		if err := b.w.run(); err != nil {
			return nil, err
		}
		u.add(b.w.commit())
		written = append(written, b.w)
	}
	o := newObject()
	o.object("UnprocessedItems", func(o *object) {
		for i := range members {
			var mine []*jsontree.Node
			for _, b := range rest {
				if b.name == members[i].Name {
					mine = append(mine, b.node)
				}
			}
			if len(mine) > 0 {
				o.list(members[i].Name, len(mine), func(b []byte, j int) []byte { return mine[j].Append(b) })
			}
		}
	})
	c.collectionMetricsByTable(o, written)
	c.consumedByTable(o, bothKinds, order, used)
	return o.end(), nil
}

// readBatchWrite reads all requests and then looks up the tables.
func (c *call) readBatchWrite(members []jsontree.Member) ([]batchWrite, error) {
	total := 0
	var out []batchWrite
	for i := range members {
		items := members[i].Value.Items
		for j := range items {
			w, err := readBatchRequest(&items[j])
			if err != nil {
				return nil, err
			}
			out = append(out, batchWrite{w: w, name: members[i].Name, node: &items[j]})
		}
		total += len(items)
	}
	if total > maxBatchWrite {
		return nil, invalid("Too many items requested for the BatchWriteItem call")
	}
	seen := map[placed]bool{}
	for _, b := range out {
		var err error
		if b.w.t, err = c.lookup(b.name); err != nil {
			return nil, err
		}
		if err := b.w.locate(c); err != nil {
			if api := asAPI(err); api.mismatch && b.w.t.keys.fails(b.w.given) {
				return nil, mismatch(keyMismatch)
			}
			return nil, err
		}
		if seen[placed{b.w.t, b.w.place}] {
			return nil, errDuplicateKeys()
		}
		seen[placed{b.w.t, b.w.place}] = true
	}
	return out, nil
}

func readBatchRequest(n *jsontree.Node) (*write, error) {
	f := fields{n: n}
	put, del := f.sub("PutRequest"), f.sub("DeleteRequest")
	if put.n.IsNull() == del.n.IsNull() {
		return nil, invalid("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes")
	}
	w := &write{change: deleting{}}
	var err error
	if put.n.IsNull() {
		w.given, err = attr.DecodeItem(del.n.Get("Key"))
		return w, err
	}
	if w.given, err = attr.DecodeItem(put.n.Get("Item")); err != nil {
		return nil, err
	}
	w.change = putting{w.given}
	return w, checkItemSize(w.given)
}
