package tabletest

import (
	"slices"
	"strings"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
)

// Quotas of one table.
const (
	maxGlobalIndexes = 20
	maxLocalIndexes  = 5
	maxInclude       = 20
	// maxUnits is the maximum of ReadCapacityUnits and of WriteCapacityUnits.
	maxUnits = 1000000000000
)

// definitions reads AttributeDefinitions.
func definitions(in *fields) ([]keyAttr, error) {
	items := in.items("AttributeDefinitions")
	out := make([]keyAttr, 0, len(items))
	for i := range items {
		f := fields{n: &items[i]}
		a := keyAttr{name: f.text("AttributeName"), kind: attr.KindOf(f.text("AttributeType"))}
		for _, b := range out {
			if b.name == a.name {
				return nil, invalid("Attribute Name is duplicated: %s", a.name)
			}
		}
		out = append(out, a)
	}
	return out, nil
}

// readKeySchema reads a KeySchema. If several is set, each role can have several attributes.
func readKeySchema(in *fields, defs []keyAttr, several bool) (keySchema, error) {
	var s keySchema
	items := in.items("KeySchema")
	names := make([]string, len(items))
	roles := make([]string, len(items))
	for i := range items {
		f := fields{n: &items[i]}
		names[i], roles[i] = f.text("AttributeName"), f.text("KeyType")
	}
	for _, name := range names {
		if !slices.ContainsFunc(defs, func(a keyAttr) bool { return a.name == name }) {
			return s, parameter("Some index key attributes are not defined in AttributeDefinitions. Keys: [%s], AttributeDefinitions: %s", strings.Join(names, ", "), namesOf(defs))
		}
	}
	switch {
	case several:
		if err := checkRoles(names, roles); err != nil {
			return s, err
		}
	case len(items) == 2 && names[0] == names[1]:
		return s, errOneName()
	case roles[0] != roleHash:
		return s, errFirstRole()
	case len(items) == 2 && roles[1] != roleSort:
		return s, invalid("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type")
	}
	for i, name := range names {
		at := slices.IndexFunc(defs, func(a keyAttr) bool { return a.name == name })
		s.all = append(s.all, defs[at])
		if roles[i] == roleHash {
			s.hashes++
		}
	}
	return s, nil
}

// readIndex reads one index definition.
func readIndex(in *fields, defs []keyAttr, global bool) (*index, error) {
	x, err := readIndexKeys(in, defs, global)
	if err != nil {
		return nil, err
	}
	return x, x.readRest(in)
}

func readIndexKeys(in *fields, defs []keyAttr, global bool) (*index, error) {
	keys, err := readKeySchema(in, defs, global)
	return &index{name: in.text("IndexName"), global: global, keys: keys}, err
}

// readRest reads the projection and the throughput of an index.
func (x *index) readRest(in *fields) error {
	proj := in.sub("Projection")
	x.projection = proj.text("ProjectionType")
	x.include = proj.texts("NonKeyAttributes")
	switch {
	case x.projection == "":
		return parameter("Unknown ProjectionType: null")
	case x.projection == projectInclude && len(x.include) == 0:
		return parameter("ProjectionType is INCLUDE, but NonKeyAttributes is not specified")
	case x.projection != projectInclude && len(x.include) > 0:
		return parameter("ProjectionType is %s, but NonKeyAttributes is specified", x.projection)
	}
	for i, name := range x.include {
		if slices.Contains(x.include[:i], name) {
			return parameter("Duplicate element in NonKeyAttributes: %s", name)
		}
	}
	x.throughput = readThroughput(in)
	return nil
}

func readThroughput(in *fields) throughput {
	if !in.has("ProvisionedThroughput") {
		return throughput{}
	}
	f := in.sub("ProvisionedThroughput")
	var p throughput
	p.read, _ = f.long("ReadCapacityUnits")
	p.write, _ = f.long("WriteCapacityUnits")
	return p
}

// readIndexes reads the indexes of a CreateTable. The service compares the keys of all indexes with the definitions of attributes before
// it looks at anything else in them.
func (t *table) readIndexes(in *fields) error {
	var read []*fields
	var indexes []*index
	for _, global := range []bool{false, true} {
		name := "LocalSecondaryIndexes"
		if global {
			name = "GlobalSecondaryIndexes"
		}
		if !in.has(name) {
			continue
		}
		items := in.items(name)
		if err := t.checkIndexCount(len(items), global); err != nil {
			return err
		}
		for i := range items {
			f := &fields{n: &items[i]}
			x, err := readIndexKeys(f, t.attrs, global)
			if err != nil {
				return err
			}
			read, indexes = append(read, f), append(indexes, x)
		}
	}
	if err := t.checkDefinitions(indexes); err != nil {
		return err
	}
	for i, x := range indexes {
		if err := t.addIndex(read[i], x); err != nil {
			return err
		}
	}
	return nil
}

// addIndex reads the rest of an index of a CreateTable and adds it to the table.
func (t *table) addIndex(in *fields, x *index) error {
	switch {
	case !x.global && !x.keys.hasSort():
		return parameter("Index KeySchema does not have a range key for index: %s", x.name)
	case !x.global && !slices.Equal(x.keys.hash(), t.keys.hash()):
		return parameter("Index KeySchema does not have the same leading hash key as table KeySchema for index: %s. index hash key: %s, table hash key: %s",
			x.name, x.keys.hash()[0].name, t.keys.hash()[0].name)
	}
	if err := x.readRest(in); err != nil {
		return err
	}
	if x.global {
		if err := x.readCapacity(in, target{onDemand: t.onDemand, fresh: true}); err != nil {
			return err
		}
	}
	if t.index(x.name) != nil {
		return parameter("Duplicate index name: %s", x.name)
	}
	t.indexes = append(t.indexes, x)
	return nil
}

func (t *table) checkIndexCount(n int, global bool) error {
	switch {
	case global && n == 0:
		return parameter("List of GlobalSecondaryIndexes is empty")
	case global && n > maxGlobalIndexes:
		return parameter("GlobalSecondaryIndex count exceeds the per-table limit of %d", maxGlobalIndexes)
	case global:
		return nil
	case n == 0:
		return parameter("List of LocalSecondaryIndexes is empty")
	case !t.keys.hasSort():
		return parameter("Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex")
	case n > maxLocalIndexes:
		return parameter("Number of LocalSecondaryIndexes exceeds per-table limit of %d", maxLocalIndexes)
	}
	return nil
}

// checkDefinitions refuses definitions that no key uses.
func (t *table) checkDefinitions(indexes []*index) error {
	for _, a := range t.attrs {
		used := t.keys.has(a.name) || slices.ContainsFunc(indexes, func(x *index) bool { return x.keys.has(a.name) })
		if !used {
			if len(indexes) == 0 {
				return parameter("Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions")
			}
			return parameter("Some AttributeDefinitions are not used. AttributeDefinitions: %s, keys used: %s", namesOf(t.attrs), namesOf(t.usedKeys(indexes)))
		}
	}
	return nil
}

// usedKeys returns the key attributes of the table and of its indexes, without repetitions.
func (t *table) usedKeys(indexes []*index) []keyAttr {
	used := slices.Clone(t.keys.attrs())
	for _, x := range indexes {
		for _, a := range x.keys.attrs() {
			if !slices.Contains(used, a) {
				used = append(used, a)
			}
		}
	}
	return used
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
