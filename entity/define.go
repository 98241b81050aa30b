package entity

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/mortise-go/mortise/internal/inside"
	"github.com/mortise-go/mortise/internal/toolkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Define checks spec against T and the table's schema, and compiles it. It reports all problems together, as a
// *[SpecError]. It sends no request.
//
// Types must be unique within one *[table.Table]. The templates of two types must not be able to produce the same key,
// unless [Spec.Match] distinguishes their rows. Defining the same entity again is allowed, if it writes its rows in the same way.
func Define[T any](t *table.Table, spec Spec[T]) (*Entity[T], error) {
	c, err := define(t, reflect.TypeFor[T](), spec.erased())
	if err != nil {
		return nil, err
	}
	return &Entity[T]{c}, nil
}

func define(t *table.Table, rt reflect.Type, spec Spec[reflect.Value]) (*core, error) {
	if t == nil {
		return nil, &SpecError{Type: spec.Type, Problems: []error{errors.New("nil table")}}
	}
	c := compiler{table: t, schema: t.Schema(), goType: rt, spec: spec, plan: &plan{scheme: t.Scheme(), readOnly: spec.ReadOnly, untyped: spec.Untyped}}
	if rt.Kind() == reflect.Struct {
		c.compile()
	} else {
		c.problem("%s is not a struct", rt)
	}
	if len(c.problems) > 0 {
		return nil, &SpecError{Type: spec.Type, Problems: c.problems}
	}
	return &core{table: t, typ: spec.Type, goType: rt, plan: c.plan}, nil
}

// compiler compiles a specification to a plan. It collects all problems instead of stopping at the first.
type compiler struct {
	table    *table.Table
	schema   table.Schema
	goType   reflect.Type
	spec     Spec[reflect.Value]
	plan     *plan
	problems []error
}

// compile compiles everything, in the order in which one part needs another.
func (c *compiler) compile() {
	p, spec := c.plan, &c.spec
	typ := table.Attr(p.scheme.Type)
	p.ours = table.Or(typ.NotExists(), typ.Equal(spec.Type))
	p.fields = fieldsOf(c.goType, spec.AttributePrefix)
	c.keys()
	p.version = c.special("Version", spec.Version, reflect.TypeFor[int64]())
	if p.ttl = c.special("TTL", spec.TTL, timeType); p.ttl != nil {
		p.ttl.seconds = ttlTime
	}
	p.created = c.special("Created", spec.Created, timeType)
	p.updated = c.special("Updated", spec.Updated, timeType)
	for i, x := range spec.Indexes {
		c.index(i, x)
	}
	c.shards()
	for i, x := range spec.Unique {
		c.unique(i, x)
	}
	c.upgrades()
	c.specials()
	c.match()
	c.needs()
	c.attributes()
	if bad := endless(c.goType); bad != nil {
		c.problem("%s: type %s contains itself without end and cannot be encoded", c.goType, bad)
	} else {
		c.rows()
		c.naturals()
		c.alsoStored()
	}
	c.register()
}

func (c *compiler) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Errorf(format, args...))
}

// keys checks Type, and compiles the keys of the table.
func (c *compiler) keys() {
	typ := c.spec.Type
	switch {
	case typ == "":
		c.problem("Type: empty")
	case len(typ) > 255:
		c.problem("Type: longer than 255 bytes")
	case toolkit.Has(typ) && !toolkit.Claimed(c.table.Inside(inside.Key{}), typ):
		c.problem("Type %q: names that begin with %q are the toolkit's own", typ, toolkit.Prefix)
	}
	for _, text := range [...]struct{ where, text string }{
		{"Type", typ}, {"AttributePrefix", c.spec.AttributePrefix}, {"Schema", c.spec.Schema},
	} {
		if !utf8.ValidString(text.text) {
			c.problem("%s: not valid UTF-8", text.where)
		}
	}
	s := c.plan.scheme
	c.plan.pk = c.key("PK", s.PK, c.spec.PK, s.PKTemplate)
	c.plan.sk = c.key("SK", s.SK, c.spec.SK, s.SKTemplate)
}

// key compiles one template and finds the fields that it names.
func (c *compiler) key(where, attr, text string, compile func(string) (*keys.Template, error)) keyPlan {
	k := keyPlan{attr: attr}
	tpl, err := compile(text)
	if err != nil {
		c.problem("%s: %w", where, err)
		return k
	}
	k.tpl = tpl
	for _, tf := range tpl.Fields() {
		f := resolve(c.plan.fields, tf.Name)
		switch {
		case f == nil:
			c.problem("%s: template names %q, but no field has that name, or several have it", where, tf.Name)
			f = &field{goName: tf.Name, typ: reflect.TypeFor[string]()}
		case !tf.Accepts(keyType(f.typ)):
			c.problem("%s: codec %s does not take field %q, which is %s", where, tf.Codec, f.goName, f.typ)
		case f.attr == "" && !tf.Computed && !restorable(f.typ):
			c.problem("%s: field %q has no attribute and its %s cannot be read back from a key: it has no UnmarshalText", where, f.goName, f.typ)
		}
		k.refs = append(k.refs, f)
		if !tf.Computed {
			k.stored = append(k.stored, f)
		}
	}
	return k
}

// indexKey compiles one key of an index. If the attribute is also a key of the table, the plan of that key is used. If it
// is the attribute of a field, there is no template, and the field is the key. Otherwise the key has its own template.
func (c *compiler) indexKey(where, index, attr string, kind table.AttributeType, text string, compile func(string) (*keys.Template, error)) keyPlan {
	for _, own := range []keyPlan{c.plan.pk, c.plan.sk} {
		if attr != own.attr {
			continue
		}
		if text != "" {
			c.problem("%s: attribute %q is a key of the table: leave this empty", where, attr)
		}
		own.inherited = true
		return own
	}
	if f := c.natural(attr); f != nil {
		switch {
		case text != "":
			c.problem("%s: attribute %q is that of field %s: leave this empty", where, attr, f.goName)
		case kind == table.Binary:
			c.problem("%s: attribute %q is binary: such an index cannot be queried, so leave it out: rows are in it by their attributes", where, attr)
		}
		return keyPlan{attr: attr, natural: f}
	}
	s := c.plan.scheme
	switch {
	case attr == s.Type || attr == s.TTL || attr == s.Version:
		c.problem("%s: attribute %q is the scheme's: leave the index out, and read it with CollectQuery", where, attr)
		return keyPlan{attr: attr}
	case text == "":
		c.problem("%s: attribute %q is a key of index %q, of type %s: no field of %s is that attribute%s, and there is no template to make it of",
			where, attr, index, kind, c.goType, c.nearly(attr))
		return keyPlan{attr: attr}
	case kind != table.String:
		c.problem("%s: attribute %q, a key of index %q of type %s, is no field's, and keys made of templates are strings", where, attr, index, kind)
		return keyPlan{attr: attr}
	}
	k := c.key(where, attr, text, compile)
	c.settle(&k)
	for _, x := range c.plan.indexes {
		if x.pk.attr == attr || x.sk.attr == attr {
			c.problem("%s: attribute %q is a key of index %q too: this entity can be in one of them", where, attr, x.name)
		}
	}
	return k
}

// specials checks the maintained fields against each other, indexes and constraints, and the keys of sentinels against those of rows.
func (c *compiler) specials() {
	p := c.plan
	seen := map[*field]string{}
	for _, s := range []struct {
		where string
		f     *field
		kept  bool // whether the field's own attribute stores it, and not one that the scheme names
	}{{"Version", p.version, false}, {"TTL", p.ttl, false}, {"Created", p.created, true}, {"Updated", p.updated, true}} {
		if s.f == nil {
			continue
		}
		if other, ok := seen[s.f]; ok {
			c.problem("%s: field %q is %s already", s.where, s.f.goName, other)
		}
		seen[s.f] = s.where
		if s.kept && s.f.attr == "" {
			c.problem("%s: field %q has no attribute", s.where, s.f.goName)
		}
	}
	for _, x := range p.indexes {
		for f := range x.refs() {
			if f == p.version {
				c.problem("Indexes: index %q: the version cannot be part of a key", x.name)
			}
		}
	}
	for _, x := range p.uniques {
		for _, f := range x.key.refs {
			if f == p.version || f == p.created || f == p.updated {
				c.problem("Unique: constraint %q: field %q is maintained by the entity", x.name, f.goName)
			}
		}
		if p.sk.tpl != nil && p.pk.tpl != nil && keys.Overlap(p.sk.tpl, x.sk) && keys.Overlap(p.pk.tpl, x.key.tpl) {
			c.problem("Unique: constraint %q: its sentinels could have the keys of rows", x.name)
		}
	}
}

// special finds a field that the entity itself maintains, and checks its type.
func (c *compiler) special(where, name string, want reflect.Type) *field {
	if name == "" {
		return nil
	}
	f := resolve(c.plan.fields, name)
	switch {
	case f == nil:
		c.problem("%s: no field %q", where, name)
	case f.typ != want:
		c.problem("%s: field %q is %s, want %s", where, name, f.typ, want)
	default:
		if c.plan.inKey(f) {
			c.problem("%s: field %q is part of the key", where, name)
		}
		return f
	}
	return nil
}

func (c *compiler) index(i int, spec Index[reflect.Value]) {
	name, pk, sk := spec.Name, spec.PK, spec.SK
	where := fmt.Sprintf("Indexes[%d]", i)
	x, ok := c.schema.Index(name)
	if !ok {
		c.problem("%s: the table has no index %q", where, name)
		if pk != "" {
			c.key(where+".PK", "", pk, c.plan.scheme.PKTemplate)
		}
		if sk != "" {
			c.key(where+".SK", "", sk, c.plan.scheme.SKTemplate)
		}
		return
	}
	for _, have := range c.plan.indexes {
		if have.name == name {
			c.problem("%s: index %q is used twice", where, name)
		}
	}
	ip := indexPlan{name: name, when: spec.When}
	ip.pk = c.indexKey(where+".PK", name, x.PK, x.PKType, pk, c.plan.scheme.PKTemplate)
	switch {
	case x.SK != "":
		ip.sk = c.indexKey(where+".SK", name, x.SK, x.SKType, sk, c.plan.scheme.SKTemplate)
	case sk != "":
		c.problem("%s.SK: index %q has no sort key", where, name)
	}
	if ip.sk.natural != nil && x.SKType == table.Number && ip.pk.sharded() {
		c.problem("%s: index %q: shards cannot be merged by a sort key of numbers", where, name)
	}
	if ip.when != nil && !ip.pk.removable() && !ip.sk.removable() {
		c.problem("%s.When: no key of index %q is made of a template of fields that are kept elsewhere too, so no row can be kept out of it", where, name)
	}
	if ip.when != nil && c.plan.version == nil {
		c.problem("%s.When: a predicate needs a Version: an update that has not seen the whole row cannot decide", where)
	}
	c.plan.indexes = append(c.plan.indexes, ip)
}

// shards checks that the fields from which shards are computed are stored elsewhere, since a shard does not contain them.
// All keys must be compiled.
func (c *compiler) shards() {
	p := c.plan
	check := func(where string, k keyPlan) {
		for _, f := range k.refs {
			if !p.isStored(f) {
				c.problem("%s: field %q has no attribute and cannot be read back from a shard", where, f.goName)
			}
		}
	}
	check("PK", p.pk)
	check("SK", p.sk)
	for _, x := range p.indexes {
		where := fmt.Sprintf("Indexes: index %q", x.name)
		check(where, x.pk)
		check(where, x.sk)
	}
}

// taken reports whether an attribute is one of the scheme's, or a key of an index, so that the entity cannot use it for something else.
func (c *compiler) taken(attr string) bool {
	s := c.plan.scheme
	return slices.Contains([]string{s.PK, s.SK, s.Type, s.TTL, s.Version}, attr) ||
		slices.ContainsFunc(c.schema.Indexes, func(x table.Index) bool { return attr == x.PK || attr == x.SK })
}

// attributes checks that no field's attribute has another use in the table, such as a key or the type.
func (c *compiler) attributes() {
	s := c.plan.scheme
	taken := map[string]string{}
	for _, x := range c.schema.Indexes { // a field may be an index key, except Version and TTL, whose values other attributes store
		taken[x.PK], taken[x.SK] = "key of index "+x.Name, "key of index "+x.Name
	}
	for _, f := range c.plan.fields {
		if f != c.plan.version && f != c.plan.ttl {
			delete(taken, f.attr)
		}
	}
	const inKey = `: tag the field "-", and name it in the key's template`
	taken[s.PK], taken[s.SK], taken[s.Type] = "partition key"+inKey, "sort key"+inKey, "type: leave the field out"
	if c.plan.version != nil {
		taken[s.Version] = "version"
	}
	if !c.schema.NoTTL || c.plan.ttl != nil {
		taken[s.TTL] = "time to live"
	}
	delete(taken, "")
	for _, f := range c.plan.fields {
		if f.attr == "" {
			continue
		}
		if f == c.plan.version && f.attr == s.Version || f == c.plan.ttl && f.attr == s.TTL {
			continue
		}
		if what, ok := taken[f.attr]; ok {
			c.problem("field %s: attribute %q is the table's %s", f.goName, f.attr, what)
		}
	}
}
