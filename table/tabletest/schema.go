package tabletest

import (
	"slices"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
)

// Quotas of one table.
const (
	maxGlobalIndexes = 20
	maxLocalIndexes  = 5
	maxInclude       = 20
)

// definitions reads AttributeDefinitions.
func definitions(in *fields) ([]keyAttr, error) {
	items := in.items("AttributeDefinitions")
	out := make([]keyAttr, 0, len(items))
	for i := range items {
		f := fields{n: &items[i]}
		a := keyAttr{name: f.text("AttributeName"), kind: attr.KindOf(f.text("AttributeType"))}
		if f.err != nil {
			return nil, f.err
		}
		if !a.kind.Comparable() {
			return nil, invalid("Member must satisfy enum value set: [B, N, S]")
		}
		if a.name == "" || len(a.name) > 255 {
			return nil, invalid("Value '%s' at 'attributeDefinitions.%d.member.attributeName' failed to satisfy constraint: Member must have length between 1 and 255", a.name, i+1)
		}
		for _, b := range out {
			if b.name == a.name {
				return nil, parameter("Duplicate AttributeName in AttributeDefinitions: %s", a.name)
			}
		}
		out = append(out, a)
	}
	return out, in.err
}

// readKeySchema reads a KeySchema. unknown reports a key attribute without a definition.
// Where several is set, each role may have several attributes.
func readKeySchema(in *fields, defs []keyAttr, several bool, unknown func(name string, sort bool) error) (keySchema, error) {
	var s keySchema
	items := in.items("KeySchema")
	if in.err != nil {
		return s, in.err
	}
	if len(items) == 0 {
		return s, invalid("No defined key schema.  A key schema containing at least a hash key must be defined for all tables")
	}
	if len(items) > 2 && !several {
		return s, invalid("Key schema too big.  Key Schema must at most consist of the hash and range key of a table")
	}
	names := make([]string, len(items))
	roles := make([]string, len(items))
	for i := range items {
		f := fields{n: &items[i]}
		names[i], roles[i] = f.text("AttributeName"), f.text("KeyType")
		if f.err != nil {
			return s, f.err
		}
		if roles[i] != roleHash && roles[i] != roleSort {
			return s, invalid("Member must satisfy enum value set: [HASH, RANGE]")
		}
	}
	switch {
	case several:
		if err := checkRoles(names, roles); err != nil {
			return s, err
		}
	case len(items) == 2 && names[0] == names[1]:
		return s, invalid("Two keys can not have the same name")
	case len(items) == 1 && roles[0] != roleHash:
		return s, invalid("No Hash Key specified in schema.  All Dynamo DB tables must have exactly one hash key")
	case len(items) == 2 && roles[0] == roles[1]:
		return s, invalid("Too many hash keys specified.  All Dynamo DB tables must have exactly one hash key")
	case roles[0] != roleHash:
		return s, invalid("Invalid key order. Hash Key must be specified first in key schema, Range Key must be specifed second") //nolint:misspell // as the service spells it
	}
	for i, name := range names {
		at := slices.IndexFunc(defs, func(a keyAttr) bool { return a.name == name })
		if at < 0 {
			return s, unknown(name, roles[i] == roleSort)
		}
		s.all = append(s.all, defs[at])
		if roles[i] == roleHash {
			s.hashes++
		}
	}
	return s, nil
}

func unknownTableKey(_ string, sort bool) error {
	if sort {
		return invalid("Range Key not specified in Attribute Definitions.  Type unknown.")
	}
	return invalid("Hash Key not specified in Attribute Definitions.  Type unknown.")
}

func unknownIndexKey(name string, _ bool) error {
	return invalid("Attribute %s is not defined in AttributeDefinitions", name)
}

// readIndex reads one index definition.
func readIndex(in *fields, defs []keyAttr, global bool) (*index, error) {
	x := &index{name: in.text("IndexName"), global: global}
	if in.err != nil {
		return nil, in.err
	}
	if !validName(x.name) {
		return nil, errBadName()
	}
	proj := in.sub("Projection")
	x.projection = proj.text("ProjectionType")
	x.include = proj.texts("NonKeyAttributes")
	if proj.err != nil || in.err != nil {
		return nil, firstError(proj.err, in.err)
	}
	switch x.projection {
	case "":
		return nil, invalid("Indexes must have a projection specified")
	case projectInclude:
		if len(x.include) == 0 {
			return nil, invalid("If Projection type INCLUDE is specified, some non-key attributes to include in the projection must be specified as well")
		}
		if len(x.include) > maxInclude {
			return nil, invalid("Number of NonKeyAttributes exceeds the limit")
		}
	case projectAll, projectKeys:
		if len(x.include) > 0 {
			return nil, invalid("No attributes should be specified to be projected unless projection type is INCLUDE")
		}
	default:
		return nil, invalid("Member must satisfy enum value set: [ALL, INCLUDE, KEYS_ONLY]")
	}
	var err error
	x.keys, err = readKeySchema(in, defs, global, unknownIndexKey)
	if err != nil {
		return nil, err
	}
	x.throughput = readThroughput(in)
	return x, in.err
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func readThroughput(in *fields) throughput {
	if !in.has("ProvisionedThroughput") {
		return throughput{}
	}
	f := in.sub("ProvisionedThroughput")
	var p throughput
	p.read, _ = f.number("ReadCapacityUnits")
	p.write, _ = f.number("WriteCapacityUnits")
	in.err = firstError(in.err, f.err)
	return p
}

// readIndexes reads the indexes of a CreateTable.
func (t *table) readIndexes(in *fields) error {
	for _, global := range []bool{false, true} {
		name := "LocalSecondaryIndexes"
		if global {
			name = "GlobalSecondaryIndexes"
		}
		if !in.has(name) {
			continue
		}
		items := in.items(name)
		if in.err != nil {
			return in.err
		}
		if err := t.checkIndexCount(len(items), global); err != nil {
			return err
		}
		for i := range items {
			x, err := readIndex(&fields{n: &items[i]}, t.attrs, global)
			if err != nil {
				return err
			}
			if t.index(x.name) != nil {
				kind := "local"
				if global {
					kind = "global"
				}
				return invalid("Two %s secondary indices have the same name", kind)
			}
			if !global {
				if !slices.Equal(x.keys.hash(), t.keys.hash()) {
					return invalid("Local Secondary indices must have the same hash key as the main table")
				}
				if !x.keys.hasSort() {
					return invalid("Local Secondary indices must have a range key")
				}
			}
			t.indexes = append(t.indexes, x)
		}
	}
	return nil
}

func (t *table) checkIndexCount(n int, global bool) error {
	switch {
	case global && n == 0:
		return invalid("GSI list is empty/invalid")
	case global && n > maxGlobalIndexes:
		return invalid("GlobalSecondaryIndex count exceeds the per-table limit")
	case global:
		return nil
	case n == 0:
		return invalid("LSI list is empty/invalid")
	case n > maxLocalIndexes:
		return invalid("LocalSecondaryIndex count exceeds the per-table limit")
	case !t.keys.hasSort():
		return invalid("Local Secondary indices are not allowed on hash tables, only hash and range tables")
	}
	return nil
}

// checkDefinitions refuses definitions that no key uses.
func (t *table) checkDefinitions() error {
	for _, a := range t.attrs {
		used := t.keys.has(a.name) || slices.ContainsFunc(t.indexes, func(x *index) bool { return x.keys.has(a.name) })
		if !used {
			if len(t.indexes) == 0 {
				return invalid("The number of attributes in key schema must match the number of attributes defined in attribute definitions.")
			}
			return parameter("Some AttributeDefinitions are not used. AttributeDefinitions: %s", namesOf(t.attrs))
		}
	}
	return nil
}

func namesOf(attrs []keyAttr) string {
	b := []byte{'['}
	for i, a := range attrs {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(b, a.name...)
	}
	return string(append(b, ']'))
}
