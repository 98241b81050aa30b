// Package jsontree reads one JSON document into a tree, without reflection. It keeps the order of an object's members.
//
// The engine decodes every request with it. The order of a batch's tables and of a document's attributes decides which error is
// reported first, and encoding/json does not keep that order.
package jsontree
