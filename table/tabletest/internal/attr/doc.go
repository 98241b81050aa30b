// Package attr holds DynamoDB's attribute values: their JSON form, their rules, their order and their size.
//
// Values and items are immutable once made. Whoever changes one makes a new one along the changed path, so rows,
// snapshots and answers can share them without copying.
package attr
