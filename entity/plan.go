package entity

import (
	"iter"
	"reflect"
	"slices"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// plan is a checked and compiled specification. All operations use it in place of the Spec.
type plan struct {
	scheme keys.Scheme
	fields []*field
	rows   rows
	// readOnly and untyped are Spec.ReadOnly and Spec.Untyped.
	readOnly, untyped bool

	pk, sk  keyPlan
	match   *match     // nil if every row matches
	ours    table.Cond // the type is the entity's, or there is no type attribute
	indexes []indexPlan
	version *field
	ttl     *field
	created *field
	updated *field
	uniques []uniquePlan
	// naturals are the index keys that are not made by a template, also those of indexes that the entity does not use.
	naturals []naturalKey
	homes    []*keyPlan // index keys that store fields without an attribute; see composite.go
	nameless []string   // attributes of T whose fields a caller cannot name, such as those of embedded pointers
	needs    []need
	lacks    map[string][]need // by index of the table: what of needs it does not project
	schema   string            // attribute of the schema number; "" if there is none
	upgrades []func(table.Item) (table.Item, error)
}

// keyPlan describes one key attribute, which is made from a value's fields.
type keyPlan struct {
	attr      string
	tpl       *keys.Template
	refs      []*field   // the template's fields, parallel to tpl.Fields()
	stored    []*field   // the fields whose values a key contains: refs without computed shards
	inherited bool       // in an index: the attribute is also a key of the table, and tpl is that key's template
	natural   *field     // in an index: the field whose attribute is the key; tpl is nil
	keeps     []*field   // in an index: the fields in stored that no other attribute stores
	also      []*keyPlan // of a home: other index keys that contain all fields in keeps
}

// predicate is the When of an index or of a unique constraint. It is nil if there is none, so that all rows qualify.
type predicate func(reflect.Value) bool

func (when predicate) holds(v reflect.Value) bool { return when == nil || when(v) }

// indexPlan builds the keys of one index.
type indexPlan struct {
	name   string
	pk, sk keyPlan // tpl is nil for a natural key, and sk.attr is empty for an index without a sort key
	when   predicate
}

// refs returns the fields in the templates of the index's keys.
func (x *indexPlan) refs() iter.Seq[*field] {
	return func(yield func(*field) bool) {
		for _, k := range []*keyPlan{&x.pk, &x.sk} {
			for _, f := range k.refs {
				if !yield(f) {
					return
				}
			}
		}
	}
}

// inKey reports whether the row's own key contains the field, so that every value with a key has it.
func (p *plan) inKey(f *field) bool {
	return slices.Contains(p.pk.refs, f) || slices.Contains(p.sk.refs, f)
}

// keyStores reports whether the row's own key contains the field's value. A shard does not: rows of other values have the same one.
func (p *plan) keyStores(f *field) bool {
	return slices.Contains(p.pk.stored, f) || slices.Contains(p.sk.stored, f)
}

// isStored reports whether a row contains the field's value: in an attribute, or in a key other than as a shard. The keys
// must be compiled, and the version, if the field can be that.
func (p *plan) isStored(f *field) bool {
	return f.index == nil || // a problem that is reported elsewhere
		f == p.version || p.attrOf(f) != "" || p.keyStores(f)
}

// sharded reports whether the key has a shard that is computed from a field. A query without that field reads all shards.
func (k *keyPlan) sharded() bool {
	return slices.ContainsFunc(k.tpl.Fields(), func(f keys.Field) bool { return f.Computed })
}
