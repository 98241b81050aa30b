package tabletest

import (
	"fmt"
	"strings"
	"time"
)

// throughput is a provisioned capacity; zero for on-demand tables.
type throughput struct{ read, write int }

// table is one table with its indexes. Engine.mu guards it.
type table struct {
	name     string
	id       string
	keys     keySchema
	attrs    []keyAttr // AttributeDefinitions, in the order given
	indexes  []*index  // local ones first
	rows     rows
	size     int // bytes of all items
	history  history
	created  time.Time
	onDemand bool
	billedAt time.Time

	throughput throughput
	stream     stream
	protected  bool
	class      string
	encryption encryption
	ttl        string // attribute; empty if disabled
	tags       []tag
	recovery   bool // point-in-time recovery
}

type stream struct {
	view  string // empty if there is no stream
	label string
}

type encryption struct {
	enabled bool
	key     string
}

type tag struct{ key, value string }

const arnPrefix = "arn:aws:dynamodb:" + Region + ":000000000000:table/"

func (t *table) arn() string { return arnPrefix + t.name }

// tableOfARN lets a request name a table by its ARN, as the service does.
func tableOfARN(name string) string {
	if rest, ok := strings.CutPrefix(name, arnPrefix); ok {
		return rest
	}
	return name
}

// tableID returns an identifier in the service's form, a UUID.
func tableID(n uint64) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", n) }

func (t *table) index(name string) *index {
	for _, x := range t.indexes {
		if x.name == name {
			return x
		}
	}
	return nil
}

func (t *table) hasLocal() bool { return len(t.indexes) > 0 && !t.indexes[0].global }

// store writes a row and remembers what was there for stale reads.
func (t *table) store(x *row) {
	old := t.rows.put(x)
	t.size += x.size
	if old != nil {
		t.size -= old.size
	}
	t.history.add(x.rowKey, old)
}

func (t *table) remove(k rowKey) {
	old := t.rows.remove(k)
	if old == nil {
		return
	}
	t.size -= old.size
	t.history.add(k, old)
}

// fill builds an index from the items that are there.
func (t *table) fill(x *index) {
	x.rows = rows{}
	t.rows.ascend(position{}, func(r *row) bool {
		if entry := x.entry(t.keys, r.rowKey, r.item); entry != nil {
			x.rows.put(entry)
		}
		return true
	})
}

// describe writes the members of a TableDescription.
func (t *table) describe(o *object, status string) {
	o.list("AttributeDefinitions", len(t.attrs), func(b []byte, i int) []byte {
		inner := object{b: append(b, '{')}
		inner.text("AttributeName", t.attrs[i].name)
		inner.text("AttributeType", t.attrs[i].kind.String())
		return inner.end()
	})
	t.keys.describe(o)
	o.time("CreationDateTime", t.created)
	t.describeItself(o, status)
	t.describeIndexes(o, "LocalSecondaryIndexes", false)
	t.describeIndexes(o, "GlobalSecondaryIndexes", true)
	if t.stream.view != "" {
		o.object("StreamSpecification", func(o *object) {
			o.bool("StreamEnabled", true)
			o.text("StreamViewType", t.stream.view)
		})
		o.text("LatestStreamLabel", t.stream.label)
		o.text("LatestStreamArn", t.arn()+"/stream/"+t.stream.label)
	}
	if t.encryption.enabled {
		o.object("SSEDescription", func(o *object) {
			o.text("Status", "ENABLED")
			o.text("SSEType", "KMS")
			if t.encryption.key != "" {
				o.text("KMSMasterKeyArn", t.encryption.key)
			}
		})
	}
	if t.class != "" {
		o.object("TableClassSummary", func(o *object) { o.text("TableClass", t.class) })
	}
}

// describeItself writes the members of a TableDescription that are left when a table is deleted.
func (t *table) describeItself(o *object, status string) {
	o.text("TableName", t.name)
	o.text("TableId", t.id)
	o.text("TableStatus", status)
	o.text("TableArn", t.arn())
	t.throughput.describe(o)
	o.int("TableSizeBytes", t.size)
	o.int("ItemCount", t.rows.count)
	if t.onDemand {
		o.object("BillingModeSummary", func(o *object) {
			o.text("BillingMode", billOnDemand)
			o.time("LastUpdateToPayPerRequestDateTime", t.billedAt)
		})
	}
	o.bool("DeletionProtectionEnabled", t.protected)
}

func (s keySchema) describe(o *object) {
	attrs := s.attrs()
	o.list("KeySchema", len(attrs), func(b []byte, i int) []byte {
		inner := object{b: append(b, '{')}
		inner.text("AttributeName", attrs[i].name)
		role := "HASH"
		if i > 0 {
			role = "RANGE"
		}
		inner.text("KeyType", role)
		return inner.end()
	})
}

func (p throughput) describe(o *object) {
	o.object("ProvisionedThroughput", func(o *object) {
		o.int("NumberOfDecreasesToday", 0)
		o.int("ReadCapacityUnits", p.read)
		o.int("WriteCapacityUnits", p.write)
	})
}

func (t *table) describeIndexes(o *object, name string, global bool) {
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
		x := list[i]
		inner := object{b: append(b, '{')}
		inner.text("IndexName", x.name)
		x.keys.describe(&inner)
		inner.object("Projection", func(o *object) {
			o.text("ProjectionType", x.projection)
			if len(x.include) > 0 {
				o.list("NonKeyAttributes", len(x.include), func(b []byte, i int) []byte {
					return appendText(b, x.include[i])
				})
			}
		})
		if global {
			inner.text("IndexStatus", statusActive)
			x.throughput.describe(&inner)
		}
		size := 0
		x.rows.ascend(position{}, func(r *row) bool { size += r.size; return true })
		inner.int("IndexSizeBytes", size)
		inner.int("ItemCount", x.rows.count)
		inner.text("IndexArn", t.arn()+"/index/"+x.name)
		return inner.end()
	})
}
