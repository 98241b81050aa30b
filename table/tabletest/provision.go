package tabletest

import (
	"slices"

	"github.com/mortise-go/mortise/table/tabletest/internal/jsontree"
)

const (
	statusActive   = "ACTIVE"
	statusCreating = "CREATING"
	statusDeleting = "DELETING"
	statusUpdating = "UPDATING"

	billOnDemand    = "PAY_PER_REQUEST"
	billProvisioned = "PROVISIONED"

	classStandard = "STANDARD"

	defaultListLimit = 100
)

func createTable(c *call) ([]byte, error) {
	in := &c.in
	if !in.has("TableName") {
		return nil, errNull("tableName")
	}
	name := in.text("TableName")
	if in.err != nil {
		return nil, in.err
	}
	if !validName(name) {
		return nil, errBadName()
	}
	c.noteTable(name)
	t := &table{name: name, id: tableID(c.e.ids), created: c.now}
	var err error
	if t.attrs, err = definitions(in); err != nil {
		return nil, err
	}
	if len(t.attrs) == 0 {
		return nil, invalid("No Attribute Schema Defined")
	}
	if t.keys, err = readKeySchema(in, t.attrs, false, unknownTableKey); err != nil {
		return nil, err
	}
	if err := t.readIndexes(in); err != nil {
		return nil, err
	}
	if err := t.checkDefinitions(); err != nil {
		return nil, err
	}
	if err := t.readSettings(c, true); err != nil {
		return nil, err
	}
	if err := t.readCapacity(in); err != nil {
		return nil, err
	}
	if t.tags, err = readTags(in); err != nil {
		return nil, err
	}
	if _, ok := c.e.tables[name]; ok {
		return nil, fail(codeInUse, "Cannot create preexisting table")
	}
	c.e.tables[name] = t
	o := newObject()
	// The table is ready at once; the service, too, answers CREATING here, and clients wait with DescribeTable.
	v := c.view(statusCreating)
	v.created, v.warmed = true, in.wantedWarmth().any()
	o.object("TableDescription", func(o *object) { t.describe(o, v) })
	return o.end(), nil
}

// readSettings reads what CreateTable and UpdateTable have in common.
func (t *table) readSettings(c *call, creating bool) error {
	in := &c.in
	if err := t.readBilling(c, creating); err != nil {
		return err
	}
	if err := t.readStream(c); err != nil {
		return err
	}
	if in.has("DeletionProtectionEnabled") {
		t.protected = in.flag("DeletionProtectionEnabled")
	}
	if in.has("TableClass") {
		class := in.text("TableClass")
		if _, ok := oneOf(class, "STANDARD", "STANDARD_INFREQUENT_ACCESS"); !ok {
			return invalid("1 validation error detected: Value '%s' at 'tableClass' failed to satisfy constraint: Member must satisfy enum value set: [STANDARD, STANDARD_INFREQUENT_ACCESS]", class)
		}
		t.class = class
	}
	if in.has("SSESpecification") {
		t.encryption = readEncryption(in)
	}
	return in.err
}

func (t *table) readBilling(c *call, creating bool) error {
	in := &c.in
	mode := in.text("BillingMode")
	if in.has("BillingMode") && mode != billOnDemand && mode != billProvisioned {
		return invalid("1 validation error detected: Value '%s' at 'billingMode' failed to satisfy constraint: Member must satisfy enum value set: [PROVISIONED, PAY_PER_REQUEST]", mode)
	}
	p := readThroughput(in)
	if in.err != nil {
		return in.err
	}
	switch {
	case mode == billOnDemand:
		if !t.onDemand {
			t.billedAt = c.now
		}
		t.onDemand, t.throughput = true, throughput{}
		for _, x := range t.indexes {
			x.throughput = throughput{}
		}
		return nil
	case !in.has("ProvisionedThroughput"):
		if creating || mode == billProvisioned {
			return invalid("No provisioned throughput specified for the table")
		}
		return nil
	case p.read < 1 || p.write < 1:
		return invalid("Provisioned throughput must be at least 1 for ReadCapacityUnits and WriteCapacityUnits")
	}
	if !creating && !in.has("BillingMode") && t.onDemand {
		return parameter("Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST")
	}
	t.onDemand, t.throughput = false, p
	return nil
}

func (t *table) readStream(c *call) error {
	in := &c.in
	if !in.has("StreamSpecification") {
		return nil
	}
	f := in.sub("StreamSpecification")
	enabled, view := f.flag("StreamEnabled"), f.text("StreamViewType")
	if err := firstError(in.err, f.err); err != nil {
		return err
	}
	switch {
	case enabled && view == "":
		return invalid("Invalid StreamViewType: Stream ViewType must not be null or empty when enabling streams.")
	case !enabled && view != "":
		return invalid("Invalid StreamViewType: Stream StreamEnabled was false but a StreamViewType was present.")
	case !enabled && t.stream.view == "" && c.op == "UpdateTable":
		return invalid("Table has no stream to disable: TableName: %s", t.name)
	case !enabled:
		t.stream.view = ""
		return nil
	case !slices.Contains([]string{"KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"}, view):
		return invalid("Invalid StreamViewType: %s", view)
	case t.stream.view != "":
		return invalid("Table already has an enabled stream: TableName: %s", t.name)
	}
	t.stream = stream{view: view, label: c.now.UTC().Format("2006-01-02T15:04:05.000")}
	return nil
}

func describeTable(c *call) ([]byte, error) {
	t, err := c.table(&c.in)
	if err != nil {
		return nil, err
	}
	o := newObject()
	o.object("Table", func(o *object) { t.describe(o, c.view(statusActive)) })
	return o.end(), nil
}

func deleteTable(c *call) ([]byte, error) {
	t, err := c.table(&c.in)
	if err != nil {
		return nil, err
	}
	if t.protected {
		return nil, invalid("Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.")
	}
	delete(c.e.tables, t.name)
	o := newObject()
	o.object("TableDescription", func(o *object) { t.describeItself(o, c.view(statusDeleting)) })
	return o.end(), nil
}

func listTables(c *call) ([]byte, error) {
	limit, given := c.in.number("Limit")
	if given && limit < 1 {
		return nil, invalid("Limit must be greater than or equal to 1")
	}
	if limit > defaultListLimit {
		return nil, invalid("1 validation error detected: Value '%d' at 'limit' failed to satisfy constraint: Member must have value less than or equal to 100", limit)
	}
	if !given {
		limit = defaultListLimit
	}
	start := c.in.text("ExclusiveStartTableName")
	if c.in.err != nil {
		return nil, c.in.err
	}
	var names []string
	for name := range c.e.tables {
		if name > start {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	more := len(names) > limit
	if more {
		names = names[:limit]
	}
	o := newObject()
	o.list("TableNames", len(names), func(b []byte, i int) []byte { return appendText(b, names[i]) })
	if more {
		o.text("LastEvaluatedTableName", names[limit-1])
	}
	return o.end(), nil
}

// updateTable works on a copy, so that a request that is refused half way changes nothing.
func updateTable(c *call) ([]byte, error) {
	t, err := c.table(&c.in)
	if err != nil {
		return nil, err
	}
	in := &c.in
	if err := checkCombination(in); err != nil {
		return nil, err
	}
	parts := []string{"BillingMode", "ProvisionedThroughput", "StreamSpecification", "DeletionProtectionEnabled", "TableClass", "SSESpecification", "GlobalSecondaryIndexUpdates", "OnDemandThroughput", "WarmThroughput"}
	if len(given(in, parts)) == 0 {
		return nil, invalid("Nothing to update")
	}
	next := *t
	next.indexes = make([]*index, len(t.indexes))
	for i, x := range t.indexes {
		y := *x
		next.indexes[i] = &y
	}
	if err := next.readSettings(c, false); err != nil {
		return nil, err
	}
	if err := next.read(in, target{onDemand: next.onDemand, updating: true}); err != nil {
		return nil, err
	}
	if err := next.updateIndexes(in); err != nil {
		return nil, err
	}
	if err := next.changed(t, c.now); err != nil {
		return nil, err
	}
	o := newObject()
	shown := t.leaving(next)
	o.object("TableDescription", func(o *object) { shown.describe(o, c.viewUpdate()) })
	for _, p := range next.provisions() {
		p.settle()
	}
	*t = next
	return o.end(), nil
}

func (t *table) updateIndexes(in *fields) error {
	updates := in.items("GlobalSecondaryIndexUpdates")
	changes := 0
	for i := range updates {
		for _, m := range updates[i].Members {
			if m.Name != "Update" && !m.Value.IsNull() {
				changes++
			}
		}
	}
	if changes > 1 {
		return fail(codeLimit, "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table")
	}
	for i := range updates {
		for j := range updates[i].Members {
			if err := t.updateIndex(in, &updates[i].Members[j]); err != nil {
				return err
			}
		}
	}
	return in.err
}

func (t *table) updateIndex(in *fields, m *jsontree.Member) error {
	f := &fields{n: &m.Value}
	if m.Value.IsNull() {
		return nil
	}
	if m.Name == "Create" {
		return t.createIndex(in, f)
	}
	name := f.text("IndexName")
	x := t.index(name)
	if f.err != nil {
		return f.err
	}
	if x == nil || !x.global {
		return fail(codeNotFound, "Requested resource not found")
	}
	if m.Name == "Delete" {
		t.indexes = slices.DeleteFunc(t.indexes, func(y *index) bool { return y == x })
		t.attrs = slices.DeleteFunc(slices.Clone(t.attrs), func(a keyAttr) bool {
			return !t.keys.has(a.name) && !slices.ContainsFunc(t.indexes, func(y *index) bool { return y.keys.has(a.name) })
		})
		return nil
	}
	return x.changeCapacity(f, t.onDemand)
}

// createIndex adds a global index and fills it from the items that are there.
func (t *table) createIndex(in, f *fields) error {
	defs, err := definitions(in)
	if err != nil {
		return err
	}
	if len(defs) == 0 {
		return invalid("No Attribute Schema Defined")
	}
	all := slices.Clone(t.attrs)
	for _, d := range defs {
		at := slices.IndexFunc(all, func(a keyAttr) bool { return a.name == d.name })
		switch {
		case at < 0:
			all = append(all, d)
		case all[at].kind != d.kind:
			return parameter("Attribute %s is already defined with another type", d.name)
		}
	}
	x, err := readIndex(f, all, true)
	if err != nil {
		return err
	}
	if err := x.readCapacity(f, target{onDemand: t.onDemand, fresh: true, updating: true}); err != nil {
		return err
	}
	if t.index(x.name) != nil {
		return invalid("Attempting to create an index which already exists")
	}
	global := 0
	for _, y := range t.indexes {
		if y.global {
			global++
		}
	}
	if global >= maxGlobalIndexes {
		return invalid("GlobalSecondaryIndex count exceeds the per-table limit")
	}
	t.attrs = slices.DeleteFunc(all, func(a keyAttr) bool {
		return !x.keys.has(a.name) && !slices.ContainsFunc(t.attrs, func(b keyAttr) bool { return a.name == b.name })
	})
	t.fill(x)
	t.indexes = append(t.indexes, x)
	return nil
}
