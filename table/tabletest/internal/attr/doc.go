// Package attr implements DynamoDB's attribute values: their JSON form, their rules, their order and their size.
//
// Values and items are immutable. A change creates new values along the changed path, so rows, snapshots and answers
// can share values without copying.
package attr
