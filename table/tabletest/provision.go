package tabletest

import (
	"slices"
	"strings"

	"github.com/mortise-go/mortise/table/tabletest/internal/jsontree"
)

const (
	statusActive   = "ACTIVE"
	statusCreating = "CREATING"
	statusDeleting = "DELETING"
	statusUpdating = "UPDATING"

	billOnDemand    = "PAY_PER_REQUEST"
	billProvisioned = "PROVISIONED"

	classStandard   = "STANDARD"
	classInfrequent = "STANDARD_INFREQUENT_ACCESS"

	defaultListLimit = 100
)

func createTable(c *call) ([]byte, error) {
	in := &c.in
	name := in.text("TableName")
	c.noteTable(name)
	t := &table{name: name, id: tableID(c.e.ids), created: c.now}
	var err error
	if err = checkBilling(in, true); err != nil {
		return nil, err
	}
	if err = t.readSettings(c, true); err != nil {
		return nil, err
	}
	if err = t.read(in, target{onDemand: t.onDemand, fresh: true}); err != nil {
		return nil, err
	}
	if t.attrs, err = definitions(in); err != nil {
		return nil, err
	}
	if len(in.items("KeySchema")) > len(t.attrs) {
		return nil, invalid("Invalid KeySchema: Some index key attribute have no definition")
	}
	if t.keys, err = readKeySchema(in, t.attrs, false); err != nil {
		return nil, err
	}
	if err := t.readIndexes(in); err != nil {
		return nil, err
	}
	if t.tags, err = readTags(in); err != nil {
		return nil, err
	}
	if _, ok := c.e.tables[name]; ok {
		return nil, fail(codeInUse, "Table already exists: %s", name)
	}
	c.e.tables[name] = t
	o := newObject()
	// The table is ready immediately. The answer still has the status CREATING, like the service's answer, so clients wait with
	// DescribeTable.
	v := c.view(statusCreating)
	v.created, v.warmed = true, in.wantedWarmth().any()
	o.object("TableDescription", func(o *object) { t.describe(o, v) })
	return o.end(), nil
}

// readSettings reads the settings that CreateTable and UpdateTable share.
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
		if t.class = in.text("TableClass"); t.class != classStandard && t.class != classInfrequent {
			return invalid("Invalid table-class parameter provided. Please try again with a valid table-class value: [%s, %s].", classStandard, classInfrequent)
		}
	}
	return t.readEncryption(in, creating)
}

func (t *table) readEncryption(in *fields, creating bool) error {
	if !in.has("SSESpecification") {
		return nil
	}
	next, err := readEncryption(in)
	if err == nil && !creating {
		err = next.replace(t.encryption)
	}
	t.encryption = next
	return err
}

func (t *table) readBilling(c *call, creating bool) error {
	in := &c.in
	p := readThroughput(in)
	given := in.has("ProvisionedThroughput")
	switch {
	case given && !creating && !in.has("BillingMode") && t.onDemand:
		return parameter(unitsOnDemand)
	case in.text("BillingMode") == billOnDemand:
		if !t.onDemand {
			t.billedAt = c.now
		}
		t.onDemand, t.throughput = true, throughput{}
		for _, x := range t.indexes {
			x.throughput = throughput{}
		}
		return nil
	case !given:
		return nil
	case !creating && !t.onDemand && t.throughput == p && !in.has("GlobalSecondaryIndexUpdates"):
		return invalid("The provisioned throughput for the table will not change. The requested value equals the current value. "+
			"Current ReadCapacityUnits provisioned for the table: %d. Requested ReadCapacityUnits: %d. "+
			"Current WriteCapacityUnits provisioned for the table: %d. Requested WriteCapacityUnits: %d. "+
			"Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits.", t.throughput.read, p.read, t.throughput.write, p.write)
	}
	t.onDemand, t.throughput = false, p
	return nil
}

const unitsOnDemand = "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"

// checkBilling refuses a billing mode and units that no table can have. The service does so before it looks for the table.
func checkBilling(in *fields, creating bool) error {
	mode, p := in.text("BillingMode"), readThroughput(in)
	given := in.has("ProvisionedThroughput")
	switch {
	case given && mode == billOnDemand:
		return parameter(unitsOnDemand)
	case !given && creating && mode != billOnDemand:
		return parameter("ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED")
	case !given && mode == billProvisioned:
		return parameter("ProvisionedThroughput must be specified when BillingMode is PROVISIONED")
	case p.read > maxUnits:
		return invalid("Given value %d for ReadCapacityUnits is out of bounds", p.read)
	case p.write > maxUnits:
		return invalid("Given value %d for WriteCapacityUnits is out of bounds", p.write)
	}
	return nil
}

func (t *table) readStream(c *call) error {
	in := &c.in
	if !in.has("StreamSpecification") {
		return nil
	}
	f := in.sub("StreamSpecification")
	enabled, view := f.flag("StreamEnabled"), f.text("StreamViewType")
	if enabled == (view == "") {
		return errStreamView(c.op, enabled)
	}
	switch {
	case !enabled && t.stream.view == "" && c.op == "UpdateTable":
		return invalid("Table has no stream to disable: TableName: %s", t.name)
	case !enabled:
		t.stream.view = ""
		return nil
	case t.stream.view != "":
		return invalid("Table already has an enabled stream: TableName: %s", t.name)
	}
	t.stream = stream{view: view, label: c.now.UTC().Format("2006-01-02T15:04:05.000")}
	return nil
}

// errStreamView returns the error for a stream without a view, or for a view without a stream.
func errStreamView(op string, enabled bool) error {
	switch {
	case op == "CreateTable" && enabled:
		return parameter("Table is being created with a stream enabled, UpdateViewType is required")
	case op == "CreateTable":
		return parameter("Table is being created with a stream disabled, UpdateViewType should not be specified")
	case enabled:
		return parameter("If stream is being enabled then UpdateViewType is required")
	}
	return parameter("If stream is being disabled, then UpdateViewType must not be specified")
}

func describeTable(c *call) ([]byte, error) {
	t, err := c.tableItself()
	if err != nil {
		return nil, err
	}
	o := newObject()
	o.object("Table", func(o *object) { t.describe(o, c.view(statusActive)) })
	return o.end(), nil
}

func deleteTable(c *call) ([]byte, error) {
	t, err := c.tableItself()
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
	if !given {
		limit = defaultListLimit
	}
	start := c.in.text("ExclusiveStartTableName")
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

// updateTable works on a copy, so that a refused request changes nothing.
func updateTable(c *call) ([]byte, error) {
	in := &c.in
	parts := []string{"BillingMode", "ProvisionedThroughput", "StreamSpecification", "DeletionProtectionEnabled", "TableClass", "SSESpecification", "OnDemandThroughput", "WarmThroughput"}
	if len(given(in, parts)) == 0 && len(in.items("GlobalSecondaryIndexUpdates")) == 0 {
		return nil, invalid("At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates, SSESpecification, " +
			"ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, MultiRegionConsistency, DeletionProtectionEnabled, OnDemandThroughput, " +
			"WarmThroughput or TableClass is required")
	}
	if err := checkBilling(in, false); err != nil {
		return nil, err
	}
	if err := checkIndexUpdates(in); err != nil {
		return nil, err
	}
	if err := checkCombination(in); err != nil {
		return nil, err
	}
	t, err := c.tableItself()
	if err != nil {
		return nil, err
	}
	if len(changes(in)) == 0 {
		return nil, errFailure() // an OnDemandThroughput or a WarmThroughput without members is all there is
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
	shown, v := t.leaving(next, c.now), c.viewUpdate()
	v.billing = t.onDemand != next.onDemand
	o.object("TableDescription", func(o *object) { shown.describe(o, v) })
	for _, p := range next.provisions() {
		p.settle()
	}
	*t = next
	return o.end(), nil
}

// checkIndexUpdates refuses an index update that is not exactly one of create, update and delete, and two updates of
// one index.
func checkIndexUpdates(in *fields) error {
	updates := in.items("GlobalSecondaryIndexUpdates")
	if in.has("GlobalSecondaryIndexUpdates") && len(updates) == 0 {
		return parameter("List of GlobalSecondaryIndexUpdates is empty")
	}
	var names []string
	for i := range updates {
		f := fields{n: &updates[i]}
		which := given(&f, []string{"Update", "Create", "Delete"})
		switch len(which) {
		case 0:
			return parameter("One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, GlobalSecondaryIndexUpdate.Delete must not be null")
		case 1:
		default:
			return parameter("Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object")
		}
		action := f.sub(which[0])
		name := action.text("IndexName")
		if slices.Contains(names, name) {
			return parameter("Only one global secondary index update per index is allowed simultaneously. Index: %s", name)
		}
		names = append(names, name)
		if which[0] == "Update" && action.has("WarmThroughput") && !action.wantedWarmth().any() {
			return parameter("WarmThroughput must have at least one of ReadUnitsPerSecond or WriteUnitsPerSecond specified for index: %s", name)
		}
	}
	return nil
}

func (t *table) updateIndexes(in *fields) error {
	updates := in.items("GlobalSecondaryIndexUpdates")
	changes := 0
	for i := range updates {
		if f := (fields{n: &updates[i]}); !f.has("Update") {
			changes++
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
	return nil
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
	switch {
	case x == nil && m.Name == "Update" && f.has("WarmThroughput"):
		return errFailure()
	case x == nil:
		return fail(codeNotFound, "Requested resource not found: Index %s for table %s", name, t.name)
	case !x.global:
		return invalid("Cannot %s an index that is not a GlobalSecondaryIndex: %s", strings.ToLower(m.Name), name)
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

// createIndex adds a global index and fills it from the existing items.
func (t *table) createIndex(in, f *fields) error {
	defs, err := definitions(in)
	if err != nil {
		return err
	}
	if len(defs) == 0 {
		return parameter("AttributeDefinitions is not specified for index: %s", f.text("IndexName"))
	}
	x, err := readIndex(f, defs, true) // the request defines all attributes of the index, even known ones
	if err != nil {
		return err
	}
	all := slices.Clone(t.attrs)
	for _, d := range defs {
		at := slices.IndexFunc(all, func(a keyAttr) bool { return a.name == d.name })
		switch {
		case at < 0:
			all = append(all, d)
		case all[at].kind != d.kind && x.keys.has(d.name): // other attributes keep their types
			return parameter("Attributes cannot be redefined. Please check that your attribute has the same type as previously defined. Existing schema: Schema:[SchemaElement: key{%s:%s}] New schema: Schema:[SchemaElement: key{%s:%s}]",
				d.name, all[at].kind, d.name, d.kind)
		}
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
		return fail(codeLimit, "Subscriber limit exceeded: Number of global secondary indexes exceeds per-table limit of %d", maxGlobalIndexes)
	}
	t.attrs = slices.DeleteFunc(all, func(a keyAttr) bool {
		return !x.keys.has(a.name) && !slices.ContainsFunc(t.attrs, func(b keyAttr) bool { return a.name == b.name })
	})
	t.fill(x)
	t.indexes = append(t.indexes, x)
	return nil
}
