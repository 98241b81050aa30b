package tabletest

import (
	"fmt"
	"strings"
	"time"

	"github.com/mortise-go/mortise/table/tabletest/internal/shape"
)

// table is one table with its indexes. Engine.mu guards it.
type table struct {
	name     string
	id       string
	keys     keySchema
	attrs    []keyAttr // AttributeDefinitions, in the order of the request
	indexes  []*index  // local indexes first
	rows     rows
	size     int // total size of all items in bytes
	history  history
	created  time.Time
	onDemand bool
	billedAt time.Time // time at which the table last became on demand; zero if it never was

	provision
	stream     stream
	protected  bool
	class      string
	classAt    time.Time // time at which the class was changed
	encryption encryption
	ttl        string // attribute name; empty if disabled
	tags       []tag
	recovery   recovery
}

type stream struct {
	view  string // empty if there is no stream
	label string // label of the last stream
}

type tag struct{ key, value string }

// account is the account in all ARNs. AWS's documentation uses it in examples.
const account = "123456789012"

const arnPrefix = "arn:aws:dynamodb:" + Region + ":" + account + ":table/"

func (t *table) arn() string { return arnPrefix + t.name }

// tableOfARN returns the table's name from a name or an ARN. The service accepts both.
func tableOfARN(name string) string {
	if rest, ok := strings.CutPrefix(name, arnPrefix); ok {
		return rest
	}
	return name
}

// checkTableARN refuses what begins like an ARN and is not that of a table in the engine's region and account. A name has no colon.
func checkTableARN(given string) error {
	if !strings.HasPrefix(given, "arn:") {
		return nil
	}
	parts := strings.SplitN(given, ":", 6) // arn, partition, service, region, account, resource
	if len(parts) < 6 || parts[2] != "dynamodb" {
		return errNotARN()
	}
	kind, name, _ := strings.Cut(parts[5], "/")
	switch {
	case len(name) < minNameLength, len(name) > maxNameLength, !shape.IsName(name):
		return errNotARN()
	case parts[1] != "aws":
		return invalid("1 validation error detected: Invalid AWS partition in '%s'", given)
	case parts[3] != Region:
		return invalid("1 validation error detected: Invalid AWS region in '%s'", given)
	case kind != "table":
		return invalid("1 validation error detected: Invalid resource type in '%s'", given)
	case parts[4] != account:
		return errForeign()
	}
	return nil
}

func errNotARN() *apiError {
	return invalid("1 validation error detected: Valid ARN format is 'arn:<awsPartition>:<vendor>:<region>:<subscriber>:" +
		"resourceType/resourceName'")
}

// errForeign returns the error for an ARN of another account.
func errForeign() *apiError { return fail(codeDenied, "Access is denied") }

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

// store writes a row and records the previous one for stale reads.
func (t *table) store(x *row) {
	old := t.rows.put(x)
	t.size += x.size
	if old != nil {
		t.size -= old.size
	}
	t.history.add(x.rowKey, old)
}

// remove deletes an existing row and records it for stale reads.
func (t *table) remove(old *row) {
	t.rows.remove(old.rowKey)
	t.size -= old.size
	t.history.add(old.rowKey, old)
}

// fill builds an index from the existing items.
func (t *table) fill(x *index) {
	x.rows = rows{}
	t.rows.ascend(position{}, func(r *row) bool {
		if entry := x.entry(t.keys, r.rowKey, r.item); entry != nil {
			x.rows.put(entry)
		}
		return true
	})
}
