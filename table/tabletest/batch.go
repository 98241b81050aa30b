package tabletest

import (
	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
	"github.com/mortise-go/mortise/table/tabletest/internal/jsontree"
)

// Limits of the batch operations.
const (
	maxBatchGet   = 100
	maxBatchWrite = 25
	maxBatchBytes = 16 << 20
)

// placed identifies an item across tables.
type placed struct {
	t     *table
	place rowKey
}

func errDuplicateKeys() error { return invalid("Provided list of item keys contains duplicates") }

type batchPart struct {
	t    *table
	name string // as the request wrote it
	node *jsontree.Node
	gets []*get
	raw  []*jsontree.Node // the key of each get, to be handed back unprocessed
	cons bool
}

func batchGetItem(c *call) ([]byte, error) {
	members := c.in.members("RequestItems")
	if c.in.err != nil {
		return nil, c.in.err
	}
	if len(members) == 0 {
		return nil, invalid("BatchGetItem must have some requests set")
	}
	parts, err := c.readBatchGet(members)
	if err != nil {
		return nil, err
	}
	used := map[*table]*usage{}
	var order []*table
	size, taken := 0, 0
	answers := make([][]attr.Item, len(parts))
	rest := make([][]*jsontree.Node, len(parts))
	for i, p := range parts {
		u := &usage{read: true}
		used[p.t] = u
		order = append(order, p.t)
		for j, g := range p.gets {
			if c.unprocessed > 0 && taken >= c.unprocessed || size >= maxBatchBytes {
				rest[i] = append(rest[i], p.raw[j])
				continue
			}
			taken++
			r := c.read(p.t, g.place, p.cons)
			bytes := 0
			if r != nil {
				bytes = r.size
				answers[i] = append(answers[i], g.pick(r.item))
			}
			size += bytes
			u.table += readUnits(bytes, p.cons)
		}
	}
	o := newObject()
	o.object("Responses", func(o *object) {
		for i, p := range parts {
			o.list(p.name, len(answers[i]), func(b []byte, j int) []byte { return answers[i][j].Append(b) })
		}
	})
	o.object("UnprocessedKeys", func(o *object) {
		for i, p := range parts {
			if len(rest[i]) > 0 {
				o.object(p.name, func(o *object) { unprocessedGet(o, p.node, rest[i]) })
			}
		}
	})
	c.consumedByTable(o, order, used)
	return o.end(), c.in.err
}

// unprocessedGet repeats a table's part of the request with the keys that are left.
func unprocessedGet(o *object, n *jsontree.Node, keys []*jsontree.Node) {
	o.list("Keys", len(keys), func(b []byte, i int) []byte { return keys[i].Append(b) })
	for i := range n.Members {
		if m := &n.Members[i]; m.Name != "Keys" && !m.Value.IsNull() {
			o.name(m.Name)
			o.b = m.Value.Append(o.b)
		}
	}
}

func (c *call) readBatchGet(members []jsontree.Member) ([]*batchPart, error) {
	total := 0
	for i := range members {
		f := fields{n: &members[i].Value}
		n := len(f.items("Keys"))
		if f.err != nil {
			return nil, f.err
		}
		if n == 0 {
			return nil, invalid("The list of keys in RequestItems for BatchGetItem is required: %s has empty list", members[i].Name)
		}
		total += n
	}
	if total > maxBatchGet {
		return nil, invalid("Too many items requested for the BatchGetItem call")
	}
	seen := map[placed]bool{}
	var parts []*batchPart
	for i := range members {
		p, err := c.readBatchPart(&members[i], seen)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

func (c *call) readBatchPart(m *jsontree.Member, seen map[placed]bool) (*batchPart, error) {
	t, err := c.lookup(m.Name)
	if err != nil {
		return nil, err
	}
	f := fields{n: &m.Value}
	if err := refuseMixed(&f, []string{"AttributesToGet"}, []string{"ProjectionExpression"}); err != nil {
		return nil, err
	}
	env, err := expressions(&f, "ProjectionExpression")
	if err != nil {
		return nil, err
	}
	proj, err := readProjection(&f, env)
	if err != nil {
		return nil, err
	}
	if err := env.Unused(); err != nil {
		return nil, err
	}
	if proj != nil {
		if err := t.checkScalars(proj); err != nil {
			return nil, err
		}
	}
	p := &batchPart{t: t, name: m.Name, node: &m.Value, cons: f.flag("ConsistentRead")}
	keys := f.items("Keys")
	for j := range keys {
		key, err := attr.DecodeItem(&keys[j])
		if err != nil {
			return nil, err
		}
		if len(key) == 0 {
			return nil, invalid("The list of keys in RequestItems for BatchGetItem may not contain null or empty values: %s has one or more empty keys", m.Name)
		}
		if err := t.keys.checkKey(key); err != nil {
			return nil, err
		}
		g := &get{key: key, place: t.keys.place(key), proj: proj}
		if seen[placed{t, g.place}] {
			return nil, errDuplicateKeys()
		}
		seen[placed{t, g.place}] = true
		c.touch(t, touchedKey{t.name, key})
		p.gets = append(p.gets, g)
		p.raw = append(p.raw, &keys[j])
	}
	return p, f.err
}

type batchWrite struct {
	w    *write
	name string
	node *jsontree.Node
}

func batchWriteItem(c *call) ([]byte, error) {
	members := c.in.members("RequestItems")
	if c.in.err != nil {
		return nil, c.in.err
	}
	if len(members) == 0 {
		return nil, invalid("BatchWriteItem cannot have a null or no requests set")
	}
	writes, err := c.readBatchWrite(members)
	if err != nil {
		return nil, err
	}
	used := map[*table]*usage{}
	var order []*table
	var rest []batchWrite
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
		u.add(b.w.commit(), 1)
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
	c.consumedByTable(o, order, used)
	return o.end(), c.in.err
}

func (c *call) readBatchWrite(members []jsontree.Member) ([]batchWrite, error) {
	total, size := 0, 0
	for i := range members {
		n := &members[i].Value
		if n.Kind != jsontree.Array || len(n.Items) == 0 {
			return nil, invalid("The batch write request list for a table cannot be null or empty: %s", members[i].Name)
		}
		total += len(n.Items)
	}
	if total > maxBatchWrite {
		return nil, invalid("Too many items requested for the BatchWriteItem call")
	}
	seen := map[placed]bool{}
	var out []batchWrite
	for i := range members {
		t, err := c.lookup(members[i].Name)
		if err != nil {
			return nil, err
		}
		items := members[i].Value.Items
		for j := range items {
			w, bytes, err := c.readBatchRequest(t, &items[j])
			if err != nil {
				return nil, err
			}
			if seen[placed{t, w.place}] {
				return nil, errDuplicateKeys()
			}
			seen[placed{t, w.place}] = true
			size += bytes
			out = append(out, batchWrite{w: w, name: members[i].Name, node: &items[j]})
		}
	}
	if size > maxBatchBytes {
		return nil, invalid("Item collection size in the request exceeds 16 MB")
	}
	return out, nil
}

func (c *call) readBatchRequest(t *table, n *jsontree.Node) (*write, int, error) {
	f := fields{n: n}
	put, del := f.sub("PutRequest"), f.sub("DeleteRequest")
	if f.err != nil {
		return nil, 0, f.err
	}
	if put.n.IsNull() == del.n.IsNull() {
		return nil, 0, invalid("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes")
	}
	if !put.n.IsNull() {
		item, err := attr.DecodeItem(put.n.Get("Item"))
		if err != nil {
			return nil, 0, err
		}
		if err := t.checkPut(item); err != nil {
			return nil, 0, err
		}
		w := &write{t: t, key: t.keys.extract(item), place: t.keys.place(item), change: putting{item}}
		c.touch(t, touchedKey{t.name, w.key})
		return w, item.Size(), nil
	}
	w := &write{t: t, change: deleting{}}
	return w, 0, w.readPlace(c, &del)
}
