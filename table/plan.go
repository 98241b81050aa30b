package table

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Plan is the difference between a schema and the live table.
type Plan struct {
	Table   string
	Steps   []Step   // what Ensure would do, in order; nothing if Refused is not empty
	Refused []string // differences that Ensure could only resolve by destroying something

	// Unchanged lists what schema and table agree on, and what only the table has. Ensure leaves it as it is.
	Unchanged []string
}

// Step is one change that Ensure would make.
type Step struct {
	Kind StepKind
	Text string // for people
	name string // of AddIndex and ChangeCapacity: the index; empty for the table, or if CreateTable creates the index
}

// StepKind is the kind of a step.
type StepKind string

// Kinds of steps.
const (
	CreateTable              StepKind = "create table"
	AddIndex                 StepKind = "add index"
	ChangeCapacity           StepKind = "change capacity"
	EnableTTL                StepKind = "enable time to live"
	EnableStream             StepKind = "enable stream"
	EnableRecovery           StepKind = "enable point-in-time recovery"
	EnableDeletionProtection StepKind = "enable deletion protection"
	AddTags                  StepKind = "add tags"
)

// IsEmpty reports whether the live table agrees with the schema.
func (p Plan) IsEmpty() bool { return len(p.Steps) == 0 && len(p.Refused) == 0 }

// String lists the plan with one line per difference: "!" for what Ensure refuses, "+" for what it adds, "~" for what
// it changes. A last line, "=", lists what stays as it is.
func (p Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "table %s", p.Table)
	switch {
	case p.IsEmpty():
		b.WriteString(": nothing to do")
	case len(p.Refused) > 0:
		b.WriteString(": refused, nothing will be done")
	}
	b.WriteByte('\n')
	for _, r := range p.Refused {
		fmt.Fprintf(&b, "  ! %s\n", r)
	}
	for _, s := range p.Steps {
		mark := "+"
		if s.Kind == ChangeCapacity {
			mark = "~"
		}
		fmt.Fprintf(&b, "  %s %s\n", mark, s.Text)
	}
	if len(p.Unchanged) > 0 {
		fmt.Fprintf(&b, "  = %s\n", strings.Join(p.Unchanged, "; "))
	}
	return b.String()
}

// SchemaError lists all differences between a schema and the live table. It matches [ErrSchema].
type SchemaError struct {
	Table       string
	Differences []string
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("table: %s %v: %s", e.Table, ErrSchema, strings.Join(e.Differences, "; "))
}

// Is reports whether target is [ErrSchema].
func (e *SchemaError) Is(target error) bool { return target == ErrSchema }

// Plan compares the live table with the schema and changes nothing. If the table does not exist, the plan is to create
// it; with [Schema.MustExist], the error is [ErrNoTable]. That can also be the error while the
// table is being made.
//
// Cost: 1 to 4 requests, and no units. They are DescribeTable, one for the time to live (unless [Schema.NoTTL] is set), one for the
// backups and one for the tags (if the schema has settings for them).
func (t *Table) Plan(ctx context.Context) (Plan, error) {
	d, err := t.describeTable(ctx)
	if err != nil {
		return Plan{}, err
	}
	l, err := t.describe(ctx, d)
	if err != nil {
		return Plan{}, err
	}
	return t.compare(l), nil
}

// Verify compares the live table with the schema. It returns a *[SchemaError] that lists every difference, or nil. A
// missing table is a difference or, with [Schema.MustExist], [ErrNoTable].
//
// Cost: as [Table.Plan].
func (t *Table) Verify(ctx context.Context) error {
	p, err := t.Plan(ctx)
	if err != nil || p.IsEmpty() {
		return err
	}
	e := &SchemaError{Table: t.schema.Name, Differences: p.Refused}
	for _, s := range p.Steps {
		e.Differences = append(e.Differences, "missing: "+s.Text)
	}
	return e
}

// compare defines, with compareSettings, what a difference is. Plan, Verify and Ensure all use it.
func (t *Table) compare(l live) Plan {
	p := Plan{Table: t.schema.Name}
	l = l.present()
	step := func(kind StepKind, name, format string, args ...any) {
		p.Steps = append(p.Steps, Step{Kind: kind, Text: fmt.Sprintf(format, args...), name: name})
	}
	refuse := func(format string, args ...any) { p.Refused = append(p.Refused, fmt.Sprintf(format, args...)) }
	same := func(format string, args ...any) { p.Unchanged = append(p.Unchanged, fmt.Sprintf(format, args...)) }
	s := t.schema
	if l.table == nil {
		step(CreateTable, "", "table with keys %s, %s", s.Keys.PK, s.Keys.SK)
		for _, x := range s.Indexes {
			step(AddIndex, "", "index %s", x.describe())
		}
		t.compareSettings(step, refuse, same, l)
		return p
	}
	kinds := attributeTypes(l.table.AttributeDefinitions)
	if want, have := keyText(s.Keys.PK, String, s.Keys.SK, String), liveKeyText(l.table.KeySchema, kinds); want != have {
		refuse("keys are %s, the schema wants %s: a table's keys cannot be changed%s", have, want, hint(l.table.KeySchema, kinds))
	} else {
		same("keys %s", have)
	}
	found := map[string]string{} // from name to description
	for _, g := range l.table.GlobalSecondaryIndexes {
		found[aws.ToString(g.IndexName)] = liveIndex(g.IndexName, false, g.KeySchema, g.Projection, kinds)
	}
	for _, g := range l.table.LocalSecondaryIndexes {
		found[aws.ToString(g.IndexName)] = liveIndex(g.IndexName, true, g.KeySchema, g.Projection, kinds)
	}
	for _, x := range s.Indexes {
		have, ok := found[x.Name]
		switch {
		case !ok && x.Local:
			refuse("index %s is missing: a local index can only be made with the table", x.describe())
		case !ok:
			if attr := x.mistyped(kinds); attr != "" {
				refuse("index %s is missing: attribute %s is of type %s in the table's other keys and indexes", x.describe(), attr, kinds[attr])
				continue
			}
			step(AddIndex, x.Name, "index %s", x.describe())
		case have != x.describe():
			refuse("index is %s, the schema wants %s: an index cannot be changed, only dropped and made anew", have, x.describe())
		default:
			same("index %s", x.Name)
		}
	}
	t.compareSettings(step, refuse, same, l)
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if _, ours := s.Index(name); !ours {
			same("index %s, which is not in the schema", name)
		}
	}
	return p
}

// hint explains a difference that no schema can describe: keys that are not two strings.
func hint(schema []types.KeySchemaElement, kinds map[string]AttributeType) string {
	pk, sk := liveKeys(schema)
	switch {
	case sk == "":
		return ", and a table without a sort key cannot hold many entity types"
	case kinds[pk] != String || kinds[sk] != String:
		return ", and keys that are made of templates are strings"
	}
	return ""
}

// mistyped names a key attribute of the index that has another type in the live table. An attribute has one type in all
// keys and indexes.
func (x Index) mistyped(kinds map[string]AttributeType) string {
	for _, k := range []struct {
		name string
		kind AttributeType
	}{{x.PK, x.PKType}, {x.SK, x.SKType}} {
		if have, ok := kinds[k.name]; ok && have != k.kind {
			return k.name
		}
	}
	return ""
}

// compareSettings compares everything but keys and indexes. For a table that does not exist, each setting of the schema except the
// capacity is a step. Ensure sets some of them when it creates the table, and the others afterwards.
func (t *Table) compareSettings(step func(StepKind, string, string, ...any), refuse, same func(string, ...any), l live) {
	s := t.schema
	if l.table != nil {
		if have := liveCapacity(l.table); s.Capacity != nil && (have == nil || *have != *s.Capacity) {
			step(ChangeCapacity, "", "capacity: %s, now %s", s.Capacity.describe(), have.describe())
		} else {
			same("capacity %s", have.describe())
		}
		for _, g := range l.table.GlobalSecondaryIndexes {
			name := aws.ToString(g.IndexName)
			have := provisioned(g.ProvisionedThroughput)
			if _, ours := s.Index(name); ours && s.Capacity != nil && have != nil && *have != *s.Capacity {
				step(ChangeCapacity, name, "capacity of index %s: %s, now %s", name, s.Capacity.describe(), have.describe())
			}
		}
	}
	if s.Stream != "" {
		var have StreamView
		if l.table != nil && l.table.StreamSpecification != nil && aws.ToBool(l.table.StreamSpecification.StreamEnabled) {
			have = StreamView(l.table.StreamSpecification.StreamViewType)
		}
		switch have {
		case s.Stream:
			same("stream of %s", s.Stream)
		case "":
			step(EnableStream, "", "stream of %s", s.Stream)
		default:
			refuse("stream is of %s, the schema wants %s: its readers would lose their place", have, s.Stream)
		}
	}
	switch {
	case l.table != nil && aws.ToBool(l.table.DeletionProtectionEnabled):
		same("deletion protection")
	case s.DeletionProtection:
		step(EnableDeletionProtection, "", "deletion protection")
	}
	if !s.NoTTL {
		switch on, name := ttlState(l.ttl); {
		case on && name != s.Keys.TTL:
			refuse("time to live is on attribute %s, the schema wants %s: rows that count on it would stay for good", name, s.Keys.TTL)
		case !on:
			step(EnableTTL, "", "time to live on attribute %s", s.Keys.TTL)
		default:
			same("time to live on attribute %s", name)
		}
	}
	switch {
	case l.recovery:
		same("point-in-time recovery")
	case s.PointInTimeRecovery:
		step(EnableRecovery, "", "point-in-time recovery")
	}
	if missing := s.missingTags(l.tags); len(missing) > 0 {
		step(AddTags, "", "tags %s", strings.Join(missing, ", "))
	} else if len(s.Tags) > 0 {
		same("tags")
	}
}

func (s Schema) missingTags(have map[string]string) (names []string) {
	for name, value := range s.Tags {
		if v, ok := have[name]; !ok || v != value {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// indexText returns an index in words. include is nil if it projects all attributes.
func indexText(name string, local bool, keys string, include []string) string {
	kind := ""
	if local {
		kind = "local "
	}
	holds := "all"
	if include != nil {
		list := slices.Clone(include)
		slices.Sort(list)
		holds = strings.TrimSuffix("keys "+strings.Join(list, " "), " ")
	}
	return fmt.Sprintf("%s%s (%s; %s)", kind, name, keys, holds)
}

func keyText(pk string, pkType AttributeType, sk string, skType AttributeType) string {
	text := pk + ":" + string(pkType)
	if sk != "" {
		text += ", " + sk + ":" + string(skType)
	}
	return text
}

func (c *Capacity) describe() string {
	if c == nil {
		return "on demand"
	}
	return fmt.Sprintf("%d read and %d write units", c.Read, c.Write)
}

// describe returns the index in words. Two indexes are equal if their descriptions are.
func (x Index) describe() string {
	return indexText(x.Name, x.Local, keyText(x.PK, x.PKType, x.SK, x.SKType), x.Include)
}
