package entity

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/mortise-go/mortise/internal/attrvalue"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/internal/toolkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Unique requires that no two rows of an entity have the same value of a field, or of several fields together: {Name:
// "email", Key: "{tenant}#{email}"} allows each address once per tenant. Text is compared exactly; store what people
// type in lower case.
//
// A value occupies a row of its own, the sentinel, which is written in the same transaction, names its owner, and
// expires with it. REFERENCE.md, Unique values, has its attributes.
//
// Rows that were written before the constraint was declared have no sentinels until a write gives them another value.
// Until then they do not prevent others from having theirs. REFERENCE.md, Rows that are older than an index or a unique
// value, tells how to give them sentinels.
type Unique[T any] struct {
	// Name is the constraint's name, as in [UniqueError].
	Name string

	// Key is a template of the fields that are unique together. The constraint is sparse: it applies to a row only if
	// all of these fields have values (see [Index]).
	Key string

	// When reports whether a row has to be unique. It needs a Version, and makes every Update depend on the whole row.
	// What it must not depend on is as for [Index.When]. Defaults to nil: all rows.
	When func(T) bool
}

// ErrUnique reports that another row has a value that has to be unique. The error is a *[UniqueError]. [ErrExists] is
// different: it reports a row at the same key.
var ErrUnique = errors.New("value is taken")

// UniqueError names the constraint that a write would have violated. Its text contains neither the value nor the owner.
// It matches [ErrUnique].
type UniqueError struct {
	Type       string   // type of the entity
	Constraint string   // Unique.Name
	Owner      keys.Key // key of the row that has the value

	sentinel keys.Key
	release  bool // the write would have released the value, but another row has it
}

func (e *UniqueError) Error() string {
	return fmt.Sprintf("%v: constraint %q of %s", ErrUnique, e.Constraint, e.Type)
}

// Is reports whether target is [ErrUnique].
func (e *UniqueError) Is(target error) bool { return target == ErrUnique }

const (
	sentinelMark = "UNIQUE" // first part of a sentinel's partition key, and its sort key
	ownerAttr    = "uniqueowner"
)

// uniquePlan builds the sentinels of one constraint.
type uniquePlan struct {
	name string
	typ  string // type of the sentinels
	key  keyPlan
	sk   *keys.Template
	when predicate
}

// unique compiles one constraint.
func (c *compiler) unique(i int, spec Unique[reflect.Value]) {
	typ, name, key := c.spec.Type, spec.Name, spec.Key
	where := fmt.Sprintf("Unique[%d]", i)
	if name == "" {
		c.problem("%s.Name: empty", where)
	}
	for _, have := range c.plan.uniques {
		if have.name == name {
			c.problem("%s: constraint %q is declared twice", where, name)
		}
	}
	s := c.plan.scheme
	x := uniquePlan{name: name, typ: toolkit.Unique + typ + "." + name, when: spec.When}
	if len(x.typ) > 255 {
		c.problem("%s.Name: type %q of its sentinels is longer than 255 bytes", where, x.typ)
	}
	delimiter := string(s.Delimiter)
	text := strings.NewReplacer("{", "{{", "}", "}}").Replace(strings.Join([]string{sentinelMark, typ, name, ""}, delimiter)) + key
	x.key = c.key(where+".Key", s.PK, text, s.PKTemplate)
	if x.key.tpl == nil {
		return
	}
	x.sk, _ = s.SKTemplate(sentinelMark) // a word is a template with any delimiter
	if len(x.key.refs) == 0 {
		c.problem("%s.Key: %q names no field", where, key)
	}
	for j, tf := range x.key.tpl.Fields() {
		switch f := x.key.refs[j]; {
		case tf.Computed, strings.HasPrefix(tf.Codec, "shard"):
			c.problem("%s.Key: a shard is not unique", where)
		case !c.plan.isStored(f):
			c.problem("%s.Key: field %q has no attribute and is not part of the key: it could not be read back", where, f.goName)
		}
	}
	for _, have := range c.plan.uniques {
		if keys.Overlap(have.key.tpl, x.key.tpl) {
			c.problem("%s: its sentinels could have the keys of those of %q", where, have.name)
		}
	}
	if x.when != nil && c.plan.version == nil {
		c.problem("%s.When: a predicate needs a Version: an update that has not seen the whole row cannot decide", where)
	}
	if c.taken(ownerAttr) {
		c.problem("%s: attribute %q, which sentinels need, is a key or the scheme's", where, ownerAttr)
	}
	c.plan.uniques = append(c.plan.uniques, x)
}

// touchesUnique reports whether the update changes a field on which sentinels depend. One of these fields is the time to
// live, since sentinels expire with the row.
func (p *plan) touchesUnique(u *update) bool {
	for i := range p.uniques {
		x := &p.uniques[i]
		if x.when != nil && len(u.list) > 0 || p.ttl != nil && u.find(p.ttl) != nil || slices.ContainsFunc(x.key.refs, func(f *field) bool { return u.find(f) != nil }) {
			return true
		}
	}
	return false
}

// dependsUnique adds the fields on which a row's sentinels depend.
func (from *basis) dependsUnique(p *plan, depends *fieldSet) error {
	for i := range p.uniques {
		x := &p.uniques[i]
		if x.when != nil {
			if !from.guarded {
				return fmt.Errorf("%w: constraint %s has a predicate: the row as it was read is needed", ErrInvalid, x.name)
			}
			depends.add(from.all(p, nil)...)
		}
		for _, f := range x.key.refs {
			if !p.keyStores(f) {
				depends.add(f)
			}
		}
	}
	if p.ttl != nil && len(p.uniques) > 0 {
		depends.add(p.ttl)
	}
	return nil
}

// sentinelKey returns the key of v's sentinel for the constraint, or false if it has none.
func (x *uniquePlan) sentinelKey(v reflect.Value) (key keys.Key, ok bool, err error) {
	if !v.IsValid() || x.key.missing(v) != nil || !x.when.holds(v) {
		return key, false, nil
	}
	pk, err := x.key.format(v)
	if err != nil {
		return key, false, fmt.Errorf("constraint %s: %w", x.name, err)
	}
	return keys.NewKey(pk, sentinelMark), true, nil
}

// isSentinel reports whether a row is a sentinel of this entity. The type attribute decides or, if there is none, the
// key.
func (e *core) isSentinel(item table.Item) bool {
	p := e.plan
	return slices.ContainsFunc(p.uniques, func(x uniquePlan) bool {
		if item[p.scheme.Type] == nil {
			return text(item, p.scheme.SK) == sentinelMark && x.key.tpl.Matches(text(item, p.scheme.PK))
		}
		return text(item, p.scheme.Type) == x.typ
	})
}

// settlement has a ruling for each sentinel that wrongly blocked an earlier attempt of a write, by the sentinel's key.
type settlement map[keys.Key]ruling

type ruling struct {
	leave  bool       // it belongs to another row, so do not delete it
	orphan keys.Key   // its owner, which does not have the value, so take the sentinel over
	still  table.Cond // whether the owner still does not have it
}

// sentinels returns the operations on sentinels that belong to a change of the row at owner from before to after. No value
// in before or after means no row.
func (e *core) sentinels(owner keys.Key, before, after reflect.Value, s settlement) (ops []table.Op, err error) {
	p := e.plan
	checks := map[keys.Key]int{} // where ops checks an owner, since a transaction accepts only one operation for each item
	lifetime := false            // whether the time to live changes
	if p.ttl != nil && before.IsValid() && after.IsValid() {
		lifetime = !attrvalue.Same(p.ttlAttribute(p.ttl.of(before)), p.ttlAttribute(p.ttl.of(after)))
	}
	for i := range p.uniques {
		x := &p.uniques[i]
		was, had, _ := x.sentinelKey(before) // a row that is older than the constraint can have a value that no key holds: it has no sentinel
		will, has, err := x.sentinelKey(after)
		if err != nil {
			return nil, err
		}
		if has && (!had || was != will || lifetime) {
			r := s[will]
			ops = append(ops, e.claim(x, will, owner, after, r))
			if at, ok := checks[r.orphan]; ok {
				ops[at] = ops[at].If(r.still)
			} else if !r.orphan.IsZero() {
				checks[r.orphan] = len(ops)
				ops = append(ops, e.checkOrphan(x, will, r))
			}
		}
		if had && (!has || was != will) && !s[was].leave {
			ops = append(ops, e.release(x, was, owner))
		}
	}
	return ops, nil
}

// claim puts a sentinel if there is none, or if the one there is the row's own, has expired, or belongs to the orphan.
func (e *core) claim(x *uniquePlan, sentinel, owner keys.Key, after reflect.Value, r ruling) table.Op {
	p := e.plan
	item := e.table.KeyItem(sentinel)
	item[p.scheme.Type] = &types.AttributeValueMemberS{Value: x.typ}
	item[ownerAttr] = &types.AttributeValueMemberM{Value: e.table.KeyItem(owner)}
	owners := []table.Cond{x.ownedBy(e.table, owner)}
	if p.ttl != nil {
		if av := p.ttlAttribute(p.ttl.of(after)); av != nil {
			item[p.scheme.TTL] = av
		}
		owners = append(owners, e.hasExpired())
	}
	if !r.orphan.IsZero() {
		owners = append(owners, x.ownedBy(e.table, r.orphan))
	}
	free := table.Or(table.Attr(p.scheme.PK).NotExists(), table.And(x.isType(p), table.Or(owners...)))
	return table.Put(item).If(free).Explain(e.explainSentinel(x, sentinel, false))
}

// checkOrphan checks, in the transaction that takes a sentinel over, that its old owner still does not have the value.
func (e *core) checkOrphan(x *uniquePlan, sentinel keys.Key, r ruling) table.Op {
	return table.Check(r.orphan, r.still).Explain(func(table.Item) error {
		return &UniqueError{Type: e.typ, Constraint: x.name, Owner: r.orphan, sentinel: sentinel}
	})
}

// release deletes a sentinel of the row at owner. A missing sentinel is not an error.
func (e *core) release(x *uniquePlan, sentinel, owner keys.Key) table.Op {
	own := table.And(x.isType(e.plan), x.ownedBy(e.table, owner))
	return table.Delete(sentinel).If(table.Or(table.Attr(e.plan.scheme.PK).NotExists(), own)).Explain(e.explainSentinel(x, sentinel, true))
}

func (x *uniquePlan) isType(p *plan) table.Cond { return table.Attr(p.scheme.Type).Equal(x.typ) }

func (x *uniquePlan) ownedBy(t *table.Table, owner keys.Key) table.Cond {
	return table.Attr(ownerAttr).Equal(&types.AttributeValueMemberM{Value: t.KeyItem(owner)})
}

// explainSentinel returns the error for a sentinel that blocks a write.
func (e *core) explainSentinel(x *uniquePlan, sentinel keys.Key, release bool) func(table.Item) error {
	return func(item table.Item) error {
		owner, _ := item[ownerAttr].(*types.AttributeValueMemberM)
		if text(item, e.plan.scheme.Type) != x.typ || owner == nil {
			return ErrType
		}
		err := &UniqueError{Type: e.typ, Constraint: x.name, sentinel: sentinel, release: release}
		var keyErr error
		if err.Owner, keyErr = e.table.KeyOf(owner.Value); keyErr != nil {
			return ErrType
		}
		return err
	}
}

// settled makes a write that can include operations on sentinels. It repeats the write, at most once for each sentinel,
// if sentinels block it wrongly. There are two cases. The owner does not have the value, because another program or the time
// to live deleted it. Or a sentinel that the write deletes belongs to another row, because the rows are older than the constraint.
//
// Cost: nothing, unless a sentinel blocks the write; then a consistent read of its owner.
func (e *core) settled(ctx context.Context, write func(settlement) error) error {
	var s settlement
	for unclear := false; ; {
		err := write(s)
		if err == nil {
			return nil
		}
		if unclear = unclear || table.MayBeApplied(err); unclear {
			err = errs.WithOutcome(err, true) // perhaps by a transaction before this one
		}
		again := false
		for _, c := range table.Conditions(err) {
			var taken *UniqueError
			if !errors.As(c, &taken) {
				return err // another condition failed too
			}
			if _, known := s[taken.sentinel]; known {
				return err
			}
			r := ruling{leave: taken.release}
			if !taken.release {
				still, orphan, readErr := e.orphaned(ctx, taken.sentinel, taken.Owner)
				if readErr != nil {
					return fmt.Errorf("%w; looking at the owner: %w", err, readErr)
				}
				if !orphan {
					return err
				}
				r.orphan, r.still = taken.Owner, still
			}
			if s == nil {
				s = settlement{}
			}
			s[taken.sentinel], again = r, true
		}
		if !again {
			return err
		}
	}
}

// orphaned reports whether a sentinel's owner does not have the value: it does not exist, has expired, or has another value,
// since a program that does not know sentinels deleted it before it was created again. It also returns the condition on the
// owner's row under which this is still so.
func (e *core) orphaned(ctx context.Context, sentinel, owner keys.Key) (still table.Cond, orphan bool, err error) {
	p := e.plan
	item, err := e.table.Get(ctx, owner, true)
	switch {
	case errors.Is(err, ErrNotFound), err == nil && e.owns(item) && p.expired(item, e.table.Now()):
		still = table.Attr(p.scheme.PK).NotExists()
		if p.ttl != nil {
			still = table.Or(still, table.And(e.isOursOrNone(p.match.at(owner)), e.hasExpired()))
		}
		return still, true, nil
	case err != nil || !e.owns(item):
		return still, false, err
	}
	row, err := e.decodeAt(owner, item)
	if err != nil {
		return still, false, err
	}
	for i := range p.uniques {
		if has, ok, _ := p.uniques[i].sentinelKey(row); ok && has == sentinel {
			return still, false, nil
		}
	}
	seen, err := e.expectations(&basis{row: row, item: item, guarded: p.version != nil})
	conds := []table.Cond{table.Attr(p.scheme.PK).Exists()}
	if p.version != nil {
		conds = append(conds, p.hasVersion(e.versionOf(row)))
	}
	for i := range seen {
		conds = append(conds, seen[i].cond())
	}
	return table.And(conds...), true, err
}
