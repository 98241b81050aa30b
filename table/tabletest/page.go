package tabletest

import (
	"maps"
	"slices"
	"strings"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
	"github.com/mortise-go/mortise/table/tabletest/internal/expr"
)

// maxPage is how many bytes of items a Query or Scan reads before it ends the page.
const maxPage = 1 << 20

// The values of Select.
const (
	selectAll       = "ALL_ATTRIBUTES"
	selectProjected = "ALL_PROJECTED_ATTRIBUTES"
	selectSpecific  = "SPECIFIC_ATTRIBUTES"
	selectCount     = "COUNT"
)

// page is what Query and Scan have in common: a walk over rows that filters, projects, counts and stops.
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
	fetched float64 // units for reading the table behind a local index
	last    *row
	full    bool
	single  bool // there is no second item to go on to
}

// readPage reads the parameters that come before the expressions.
func (c *call) readPage() (*page, error) {
	in := &c.in
	t, err := c.table(in)
	if err != nil {
		return nil, err
	}
	p := &page{c: c, t: t, consistent: in.flag("ConsistentRead")}
	limit, given := in.number("Limit")
	if in.err != nil {
		return nil, in.err
	}
	if given && limit < 1 {
		return nil, invalid("Limit must be greater than or equal to 1")
	}
	p.limit = limit
	if in.has("IndexName") {
		name := in.text("IndexName")
		if p.x = t.index(name); p.x == nil {
			return nil, invalid("The table does not have the specified index: %s", name)
		}
	}
	return p, in.err
}

// checkConsistent refuses a consistent read of a global index.
func (p *page) checkConsistent() error {
	if p.x != nil && p.x.global && p.consistent {
		return invalid("Consistent reads are not supported on global secondary indexes")
	}
	return nil
}

// keys returns the key schema that the page is ordered by.
func (p *page) keys() keySchema {
	if p.x != nil {
		return p.x.keys
	}
	return p.t.keys
}

func (p *page) readFilter(legacy string) error {
	in := &p.c.in
	if in.has("FilterExpression") {
		f, err := expr.ParseCondition(in.text("FilterExpression"), p.env)
		if in.err != nil {
			return in.err
		}
		if err != nil {
			return within("FilterExpression", err)
		}
		p.filter = f
		return nil
	}
	f, err := readLegacyConditions(in, legacy, false)
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
	default:
		return invalid("Select must be ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES, COUNT, or SPECIFIC_ATTRIBUTES")
	}
	return in.err
}

// checkGlobal refuses to read attributes that a global index does not hold.
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

// checkFilterCovered refuses a query's filter on attributes that the index does not hold. Scans have no such check:
// to them these attributes are missing.
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

// readStart reads ExclusiveStartKey: the primary key and, of an index, its key.
func (p *page) readStart() error {
	n := p.c.in.n.Get("ExclusiveStartKey")
	if n.IsNull() {
		return nil
	}
	start, err := attr.DecodeItem(n)
	if err != nil {
		return err
	}
	want := p.startAttrs()
	if len(start) != len(want) {
		if len(start) == 0 || p.x != nil && p.x.global {
			return invalid("The provided starting key is invalid")
		}
		return invalid("Exclusive Start Key must have same size as table's key schema")
	}
	for _, a := range want {
		v, ok := start[a.name]
		if !ok {
			return invalid("The provided starting key is invalid")
		}
		if v.Kind != a.kind {
			return invalid("Type mismatch for attribute to update")
		}
		if err := p.checkEmpty(a, v); err != nil {
			prefix := "The provided starting key is invalid: "
			if named(p.t.keys.hash(), a.name) || named(p.keys().hash(), a.name) {
				prefix = "The query can return at most one row and cannot be restarted. " + prefix
			}
			return invalid("%s%s", prefix, asAPI(err).message)
		}
	}
	p.start = start
	return nil
}

func (p *page) startAttrs() []keyAttr {
	attrs := p.t.keys.attrs()
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

// startKey returns the place that ExclusiveStartKey names.
func (p *page) startKey() rowKey {
	k := p.keys().place(p.start)
	if p.x != nil {
		k.tie = p.t.keys.place(p.start).asTie()
	}
	return k
}

// fetches reports whether a local index has to read the table for attributes that it does not hold.
func (p *page) fetches() bool {
	if p.x == nil || p.x.global || p.x.projection == projectAll {
		return false
	}
	if p.what == selectAll {
		return true
	}
	return p.proj != nil && len(p.uncovered(p.proj.Roots())) > 0
}

// visit takes in one row and reports whether the page goes on.
func (p *page) visit(r *row, fetch bool) bool {
	p.scanned++
	p.size += r.size
	p.last = r
	item := r.item
	if fetch {
		if base := p.t.rows.get(p.t.keys.place(item)); base != nil {
			item = base.item
			p.fetched += readUnits(base.size, p.consistent)
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
	p.full = p.scanned == p.limit || p.size >= maxPage
	return !p.full
}

// output writes the answer.
func (p *page) output() []byte {
	o := newObject()
	if p.what != selectCount {
		o.list("Items", len(p.items), func(b []byte, i int) []byte { return p.items[i].Append(b) })
	}
	o.int("Count", p.count)
	o.int("ScannedCount", p.scanned)
	if p.full && !p.single {
		key := p.t.keys.extract(p.last.item)
		if p.x != nil {
			maps.Copy(key, p.x.keys.extract(p.last.item))
		}
		o.item("LastEvaluatedKey", key)
	}
	units := readUnits(p.size, p.consistent)
	u := &usage{table: units, read: true}
	if p.x != nil {
		u.table = p.fetched
		u.addIndex(p.x, units)
	}
	p.c.consumed(o, p.t, u)
	return o.end()
}
