package tabletest

import (
	"maps"
	"slices"
	"strings"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
	"github.com/mortise-go/mortise/table/tabletest/internal/expr"
)

// maxPage is the number of bytes of items after which a Query or Scan ends the page, and a BatchGetItem reads no more from a physical
// partition.
const maxPage = 1 << 20

// Values of Select.
const (
	selectAll       = "ALL_ATTRIBUTES"
	selectProjected = "ALL_PROJECTED_ATTRIBUTES"
	selectSpecific  = "SPECIFIC_ATTRIBUTES"
	selectCount     = "COUNT"
)

// page is the common part of Query and Scan: it reads rows, filters, projects and counts them, and ends the page.
type page struct {
	c          *call
	t          *table
	x          *index // nil for the table itself
	consistent bool
	limit      int
	what       string // Select
	env        *expr.Env
	filter     condition
	proj       *expr.Projection
	start      attr.Item // ExclusiveStartKey

	items   []attr.Item
	count   int
	scanned int
	size    int
	fetched int     // blocks of items that a query or scan of a local index reads from the table
	read    float64 // units for the physical partitions that a scan has finished
	rest    int     // bytes read from the current physical partition
	at      int     // number of the current physical partition
	last    *row
	full    bool
	over    bool // no item that the query matches can follow last
}

// The request of a page is read in two steps, as for a write: first the parts that need no table, then those that need its schema.

// newPage begins a page. It reads only ConsistentRead and Limit.
func (c *call) newPage() *page {
	p := &page{c: c, consistent: c.in.flag("ConsistentRead")}
	p.limit, _ = c.in.number("Limit")
	return p
}

// locate finds the table and, if the request names one, the index.
func (p *page) locate() error {
	in := &p.c.in
	var err error
	if p.t, err = p.c.table(in); err != nil {
		return err
	}
	if !in.has("IndexName") {
		return nil
	}
	name := in.text("IndexName")
	if p.x = p.t.index(name); p.x == nil {
		return invalid("The table does not have the specified index: %s", name)
	}
	if p.x.global && p.consistent {
		return invalid("Consistent reads are not supported on global secondary indexes")
	}
	return nil
}

// keys returns the key schema of the index or table that is read. It orders the rows.
func (p *page) keys() keySchema {
	if p.x != nil {
		return p.x.keys
	}
	return p.t.keys
}

// readFilter reads FilterExpression. readLegacyFilter reads its older form.
func (p *page) readFilter() error {
	in := &p.c.in
	if !in.has("FilterExpression") {
		return nil
	}
	f, err := expr.ParseCondition(in.text("FilterExpression"), p.env)
	if err != nil {
		return within("FilterExpression", err)
	}
	p.filter = f
	return nil
}

func (p *page) readLegacyFilter(param string) error {
	if p.c.in.has("FilterExpression") {
		return nil
	}
	f, err := readLegacyConditions(&p.c.in, param, false)
	if err != nil || f == nil {
		return err
	}
	p.filter = f
	return nil
}

// readSelect reads Select and checks it against the projection and the index.
func (p *page) readSelect() error {
	in := &p.c.in
	param := "ProjectionExpression"
	if in.has("AttributesToGet") {
		param = "AttributesToGet"
	}
	p.what = in.text("Select")
	switch p.what {
	case "":
		p.what = selectAll
		if p.x != nil {
			p.what = selectProjected
		}
		if p.proj != nil {
			p.what = selectSpecific
		}
	case selectAll:
		if p.proj != nil {
			return invalid("Cannot specify the %s when choosing to get ALL_ATTRIBUTES", param)
		}
	case selectProjected:
		if p.proj != nil {
			return invalid("Cannot specify the %s when choosing to get ALL_PROJECTED_ATTRIBUTES", param)
		}
		if p.x == nil {
			return invalid("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
		}
	case selectCount:
		if p.proj != nil {
			return invalid("Cannot specify the %s when choosing to get only the Count", param)
		}
	case selectSpecific:
		if p.proj == nil {
			return invalid("Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES")
		}
	}
	return nil
}

// checkGlobal refuses reads of attributes that a global index does not project.
func (p *page) checkGlobal() error {
	if p.x == nil || !p.x.global || p.x.projection == projectAll {
		return nil
	}
	if p.what == selectAll {
		return parameter("Select type ALL_ATTRIBUTES is not supported for global secondary index %s because its projection type is not ALL", p.x.name)
	}
	if p.proj != nil {
		if missing := p.uncovered(p.proj.Roots()); len(missing) > 0 {
			return parameter("Global secondary index %s does not project [%s]", p.x.name, strings.Join(missing, ", "))
		}
	}
	return nil
}

// checkFilterCovered refuses a query's filter on attributes that the index does not project. A scan has no such check: for its filter,
// these attributes are missing, unless the scan fetches the items from the table.
func (p *page) checkFilterCovered() error {
	if p.x == nil {
		return nil
	}
	if missing := p.uncovered(filterRoots(p.filter)); len(missing) > 0 {
		return parameter("Secondary index %s does not project one or more filter attributes: [%s]", p.x.name, strings.Join(missing, ", "))
	}
	return nil
}

// checkScalars refuses paths into key attributes in the filter and the projection.
func (p *page) checkScalars() error {
	if err := p.t.checkCondition(p.filter); err != nil {
		return err
	}
	if p.proj != nil {
		return p.t.checkScalars(p.proj)
	}
	return nil
}

func (p *page) uncovered(names []string) []string {
	var missing []string
	for _, n := range names {
		if !p.x.covers(p.t.keys, n) {
			missing = append(missing, n)
		}
	}
	return missing
}

// filterRoots returns the top-level attributes that a filter reads, sorted.
func filterRoots(f condition) []string {
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	switch f := f.(type) {
	case *expr.Condition:
		f.Paths(func(path expr.Path) { add(path[0].Name) })
	case *legacyConditions:
		for _, t := range f.terms {
			add(t.name)
		}
	}
	slices.Sort(names)
	return names
}

const badStart = "The provided starting key is invalid"

// readStart reads ExclusiveStartKey.
func (p *page) readStart() error {
	n := p.c.in.n.Get("ExclusiveStartKey")
	if n.IsNull() {
		return nil
	}
	var err error
	if p.start, err = attr.DecodeItem(n); err == nil {
		return nil
	}
	// The service prefixes only some texts with the parameter's name.
	if text := asAPI(err).message; strings.Contains(text, "datatypes") || strings.Contains(text, "string set") || strings.Contains(text, "Binary set") || strings.Contains(text, "Null attribute") {
		return invalid("%s: %s", badStart, text)
	}
	return err
}

// checkStart checks the attributes of ExclusiveStartKey: it needs the primary key, and for an index also the index's key. A scan of a table
// leaves them to checkStartKey, which has one text for all.
func (p *page) checkStart() error {
	if p.start == nil || p.x == nil && p.c.op == "Scan" {
		return nil
	}
	if len(p.start) != len(p.startAttrs()) {
		return invalid(badStart)
	}
	for _, a := range p.keys().attrs() {
		switch v, ok := p.start[a.name]; {
		case !ok:
			return invalid(badStart)
		case v.Kind != a.kind:
			return invalid(keyMismatch)
		}
	}
	return nil
}

// checkStartKey checks the table's key in ExclusiveStartKey, and refuses empty values.
func (p *page) checkStartKey() error {
	if p.start == nil {
		return nil
	}
	want := p.startAttrs()
	if len(p.start) != len(want) || p.t.keys.fails(p.start) {
		return invalid("%s: %s", badStart, keyMismatch)
	}
	for _, a := range want {
		v := p.start[a.name]
		if err := p.checkEmpty(a, v); err != nil {
			prefix := badStart + ": "
			if named(p.t.keys.hash(), a.name) || named(p.keys().hash(), a.name) {
				prefix = "The query can return at most one row and cannot be restarted. " + prefix
			}
			return invalid("%s%s", prefix, asAPI(err).message)
		}
	}
	return nil
}

func (p *page) startAttrs() []keyAttr {
	attrs := slices.Clone(p.t.keys.attrs())
	if p.x != nil {
		for _, a := range p.x.keys.attrs() {
			if !p.t.keys.has(a.name) {
				attrs = append(attrs, a)
			}
		}
	}
	return attrs
}

// checkEmpty refuses an empty value for a key attribute of the index or of the table.
func (p *page) checkEmpty(a keyAttr, v *attr.Value) error {
	if p.x != nil && p.x.keys.has(a.name) {
		return p.x.checkEmpty(a, v)
	}
	return a.checkEmpty(v)
}

// startKey returns the position of ExclusiveStartKey.
func (p *page) startKey() rowKey {
	k := p.keys().place(p.start)
	if p.x != nil {
		k.tie = p.t.keys.place(p.start).asTie()
	}
	return k
}

// fetches reports whether a local index has to read the table for attributes that it does not project.
func (p *page) fetches() bool {
	if p.x == nil || p.x.global || p.x.projection == projectAll {
		return false
	}
	if p.what == selectAll {
		return true
	}
	return p.proj != nil && len(p.uncovered(p.proj.Roots())) > 0
}

// visit handles one row and reports whether the page continues.
func (p *page) visit(r *row, fetch bool) bool {
	p.scanned++
	p.size += r.size
	p.rest += r.size
	p.last = r
	item := r.item
	if fetch {
		if base := p.c.read(p.t, p.t.keys.place(item), p.consistent); base != nil {
			item = base.item
			p.fetched += readBlocks(base.size)
		}
	}
	if p.filter == nil || p.filter.Holds(item) {
		p.count++
		if p.what != selectCount {
			if p.proj != nil {
				item = p.proj.Apply(item)
			}
			p.items = append(p.items, item)
		}
	}
	size := p.size
	if fetch { // then the limit applies to whole blocks (Developer Guide, "Local secondary indexes")
		size = readBlock * (readBlocks(p.size) + p.fetched)
	}
	p.full = p.scanned == p.limit || size >= maxPage
	return !p.full
}

// units returns the page's cost, without fetched.
func (p *page) units() float64 { return p.read + readUnits(p.rest, p.consistent) }

// enter moves to a later physical partition. Each partition, also one without rows, is rounded up separately, to at least the minimum.
func (p *page) enter(partition int) {
	for ; p.at < partition; p.at++ {
		p.read += readUnits(p.rest, p.consistent)
		p.rest = 0
	}
}

// output writes the answer.
func (p *page) output() []byte {
	o := newObject()
	if p.what != selectCount {
		o.list("Items", len(p.items), func(b []byte, i int) []byte { return p.items[i].Append(b) })
	}
	o.int("Count", p.count)
	o.int("ScannedCount", p.scanned)
	if p.full && !p.over {
		key := p.t.keys.extract(p.last.item)
		if p.x != nil {
			maps.Copy(key, p.x.keys.extract(p.last.item))
		}
		o.item("LastEvaluatedKey", key)
	}
	units := p.units()
	u := &usage{table: units}
	if p.x != nil {
		u.table = unitsOf(p.fetched, p.consistent)
		u.addIndex(p.x, units)
	}
	p.c.consumed(o, p.t, u)
	return o.end()
}
