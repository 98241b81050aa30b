package tabletest

import (
	"slices"
	"strings"
	"time"
)

// view is the part of a description that is not in the table itself.
type view struct {
	status  string
	now     time.Time
	created bool              // set for the answer to CreateTable, which omits what the service does not know yet
	warmed  bool              // set if the CreateTable set WarmThroughput; otherwise its answer omits it
	indexes map[string]string // status of each index that the request changes; others are ACTIVE, or CREATING with created

	encrypting bool            // the request changes the encryption
	billing    bool            // the request changes the billing mode
	warming    map[string]bool // indexes whose WarmThroughput the request sets; "" for the table
}

func (c *call) view(status string) view { return view{status: status, now: c.now} }

// viewUpdate returns the view of an answer to UpdateTable, which the service sends while it makes the change.
func (c *call) viewUpdate() view {
	v := c.view(statusActive)
	v.encrypting = c.in.has("SSESpecification")
	v.warming = map[string]bool{"": c.in.has("WarmThroughput")}
	_, indexed := indexChanges(&c.in)
	if indexed || len(given(&c.in, []string{"BillingMode", "ProvisionedThroughput", "StreamSpecification", "TableClass"})) > 0 {
		v.status = statusUpdating
	}
	v.indexes = map[string]string{}
	updates := c.in.items("GlobalSecondaryIndexUpdates")
	for i := range updates {
		f := fields{n: &updates[i]}
		for action, status := range map[string]string{"Create": statusCreating, "Update": statusUpdating, "Delete": statusDeleting} {
			if in := f.sub(action); f.has(action) {
				name := in.text("IndexName")
				v.warming[name] = action == "Update" && in.has("WarmThroughput")
				// A new WarmThroughput leaves the index active.
				if !v.warming[name] || len(given(&in, []string{"ProvisionedThroughput", "OnDemandThroughput"})) > 0 {
					v.indexes[name] = status
				}
			}
		}
	}
	return v
}

// leaving returns the table as the answer to an UpdateTable shows it: next, but with what the service still has to change or to delete.
func (t *table) leaving(next table, now time.Time) table {
	next.encryption, next.class, next.classAt = t.encryption, t.class, t.classAt
	if len(next.indexes) < len(t.indexes) {
		next.indexes, next.attrs = t.indexes, t.attrs
	}
	billedAsBefore := t.onDemand == next.onDemand
	next.provision.leave(&t.provision, billedAsBefore, now)
	next.indexes = slices.Clone(next.indexes)
	for i, x := range next.indexes {
		if old := t.index(x.name); old != nil {
			y := *x
			y.provision.leave(&old.provision, billedAsBefore, now)
			next.indexes[i] = &y
		}
	}
	return next
}

// describe writes the members of a TableDescription. Attribute definitions are sorted by name, as by the service. Indexes are not.
func (t *table) describe(o *object, v view) {
	attrs := slices.Clone(t.attrs)
	slices.SortFunc(attrs, func(a, b keyAttr) int { return strings.Compare(a.name, b.name) })
	o.list("AttributeDefinitions", len(attrs), func(b []byte, i int) []byte {
		inner := object{b: append(b, '{')}
		inner.text("AttributeName", attrs[i].name)
		inner.text("AttributeType", attrs[i].kind.String())
		return inner.end()
	})
	t.keys.describe(o)
	o.time("CreationDateTime", t.created)
	t.describeItself(o, v)
	t.describeIndexes(o, "LocalSecondaryIndexes", false, v)
	t.describeIndexes(o, "GlobalSecondaryIndexes", true, v)
	t.describeCapacity(o, v, "")
	t.stream.describe(o, t.arn())
	t.encryption.describe(o, v)
	if t.class != "" {
		o.object("TableClassSummary", func(o *object) {
			o.text("TableClass", t.class)
			if !t.classAt.IsZero() {
				o.time("LastUpdateDateTime", t.classAt)
			}
		})
	}
}

// describeItself writes the members of a TableDescription that remain when a table is deleted.
func (t *table) describeItself(o *object, v view) {
	o.text("TableName", t.name)
	o.text("TableId", t.id)
	o.text("TableStatus", v.status)
	o.text("TableArn", t.arn())
	t.describeThroughput(o, v)
	o.int("TableSizeBytes", t.size)
	o.int("ItemCount", t.rows.count)
	if t.onDemand || !t.billedAt.IsZero() {
		o.object("BillingModeSummary", func(o *object) {
			mode := billProvisioned
			if t.onDemand {
				mode = billOnDemand
			}
			o.text("BillingMode", mode)
			if !v.created && !v.billing {
				o.time("LastUpdateToPayPerRequestDateTime", t.billedAt)
			}
		})
	}
	o.bool("DeletionProtectionEnabled", t.protected)
}

func (s keySchema) describe(o *object) {
	attrs := s.attrs()
	o.list("KeySchema", len(attrs), func(b []byte, i int) []byte {
		inner := object{b: append(b, '{')}
		inner.text("AttributeName", attrs[i].name)
		role := roleHash
		if i >= len(s.hash()) {
			role = roleSort
		}
		inner.text("KeyType", role)
		return inner.end()
	})
}

func (t *table) describeIndexes(o *object, name string, global bool, v view) {
	var list []*index
	for _, x := range t.indexes {
		if x.global == global {
			list = append(list, x)
		}
	}
	if len(list) == 0 {
		return
	}
	o.list(name, len(list), func(b []byte, i int) []byte {
		inner := object{b: append(b, '{')}
		list[i].describe(&inner, t.arn(), v)
		return inner.end()
	})
}

func (x *index) describe(o *object, tableARN string, v view) {
	o.text("IndexName", x.name)
	x.keys.describe(o)
	o.object("Projection", func(o *object) {
		o.text("ProjectionType", x.projection)
		if len(x.include) > 0 {
			include := slices.Sorted(slices.Values(x.include))
			o.list("NonKeyAttributes", len(include), func(b []byte, i int) []byte { return appendText(b, include[i]) })
		}
	})
	if x.global {
		x.describeStatus(o, v)
		x.describeThroughput(o, v)
		x.describeCapacity(o, v, x.name)
	}
	size := 0
	x.rows.ascend(position{}, func(r *row) bool { size += r.size; return true })
	o.int("IndexSizeBytes", size)
	o.int("ItemCount", x.rows.count)
	o.text("IndexArn", tableARN+"/index/"+x.name)
}

func (x *index) describeStatus(o *object, v view) {
	status := statusActive
	if v.created {
		status = v.status
	}
	if s, ok := v.indexes[x.name]; ok {
		status = s
		if status == statusCreating {
			o.bool("Backfilling", false)
		}
	}
	o.text("IndexStatus", status)
}

// describe writes the stream's members. A disabled stream keeps its label.
func (s stream) describe(o *object, tableARN string) {
	if s.view != "" {
		o.object("StreamSpecification", func(o *object) {
			o.bool("StreamEnabled", true)
			o.text("StreamViewType", s.view)
		})
	}
	if s.label != "" {
		o.text("LatestStreamLabel", s.label)
		o.text("LatestStreamArn", tableARN+"/stream/"+s.label)
	}
}
