// Package entity stores values of Go types as rows of one DynamoDB table, many types side by side. A [Spec] describes how
// a type's keys are made of its fields. The package then maintains the keys, index keys, type attribute, version,
// timestamps and expiry of its rows.
//
//	type Order struct {
//		Tenant, ID string
//		Status     string    `dynamo:"status"`
//		Placed     time.Time `dynamo:"placed"`
//		Version    int64     `dynamo:"version"`
//	}
//	orders, err := entity.Define(tbl, entity.Spec[Order]{
//		Type: "Order", PK: "TENANT#{tenant}", SK: "ORDER#{id}", Version: "version",
//		Indexes: []entity.Index[Order]{{Name: "gsi1", PK: "STATUS#{status}", SK: "{placed:time}"}},
//	})
//	o, err := orders.Create(ctx, Order{Tenant: "acme", ID: "42", Status: "open", Placed: now})
//	o, err = orders.Update(ctx, o, entity.Set("status", "paid")) // also moves the row in gsi1
//	for o, err := range orders.Query(ctx, keys.Values{"status": "open"}, entity.On("gsi1")) { … }
//
// COOKBOOK.md, in this package's directory, has the access patterns of single-table design, each with a runnable example.
// REFERENCE.md has the details of everything below.
//
// # Writing
//
//	Create             a new row; fails if one exists
//	Put                a whole row, in place of the old one
//	Update             some fields: Set, Add, Remove, Append, RemoveFrom
//	Modify, Upsert     read, change by a function, write; again if the row has changed meanwhile
//	Delete             one row
//	PutAll             many rows, each as by Put
//	CreateOp, …        the same as an operation, for a transaction (table.Table.Write)
//
// Calls that return a row return it as written. After an error they return the value that they were given, so
// o, err = orders.Update(ctx, o, …) does not lose o.
//
// # Reading
//
//	Get, BatchGet        rows by key; BatchGet returns them in the order of the input
//	Query                rows of one partition key, in order, as an iterator
//	Page                 a page of a query, with a Cursor for the next one
//	Scan                 all rows of the type, in no order, optionally in parallel
//	Collect              an item collection of several types with one query, each type into its sink
//	CollectQuery         the same for a part of it, in descending order, or for an index
//	Sort                 a single row, such as a stream's image, into its sink
//
// # Encoding
//
// Fields become attributes by the tags and interfaces of github.com/guregu/dynamo, such as `dynamo:"name,omitempty"`,
// set, unixtime and Marshaler. A key field that is tagged "-" is stored in the key alone, and is read back from it. The version
// and the time to live are stored in the attributes that the table's scheme names.
//
// # Versions
//
// With [Spec.Version], each row counts its writes. A value carries the version at which it was read, and a write with it
// applies only to a row of that version. Otherwise the error is [ErrStale], or [ErrNotFound] if there is no row. Version 0
// stands for a new row in Create and Put. [Entity.AnyVersion] writes without having read.
//
// # Indexes and unique values
//
// The key of an index is made by a template, or it is a field: an index on the attribute "email" is {Name: "by-email"}. An index
// is sparse. A row is in it only if all fields of its keys have values, and [Index.When], if set, returns true.
//
// [Spec.Unique] lists values that no two rows may share. Each value occupies a row of its own, the sentinel. A row and its
// sentinels are written in one transaction.
//
// # Existing tables
//
// A table can contain rows of other programs. A row without a type attribute belongs to the entity whose key templates
// it fits. If the keys of two entities have the same form, [Spec.Match] tells their rows apart. docs/how-to/adopt.md, in
// this module, goes through an example.
//
// This module stores locks, sessions, migration records and sentinels in the same table. Their types begin with "mortise.".
// Readers skip them. [Spec.Upgrades] convert rows of older programs when they are read.
//
// # Guarantees
//
//   - [Define] reports all problems of a specification at once, as a *[SpecError]. A specification that it accepts does not
//     cause a panic later.
//   - Two entities of one *[table.Table] cannot claim the same row.
//   - A row of another type is never overwritten, changed or deleted ([ErrType]; for Create, [ErrExists]).
//   - Index keys are never stale. An update computes those that it affects from values that it has or reads, under the
//     condition that these still hold.
//   - If T has a version, no write overwrites or deletes fields that the caller has not seen ([ErrStale]). The exceptions are
//     AnyVersion and programs that do not count versions.
//   - No two rows that have not expired share a unique value ([UniqueError]).
//   - [Entity.Modify] writes the changes of its function and nothing else, and only to the row that the function saw.
//   - A row that was read in order to be written back must decode to the key that it has ([DecodeError]).
//   - A row of a newer schema is not overwritten, changed or deleted, unless it has expired ([ErrNewer]).
//   - Expired rows are invisible, also to Create, Update and Delete, before DynamoDB deletes them. [WithExpired], [Raw] and [Sort]
//     show them.
//   - Attributes that T does not have survive Update, Modify and Upsert.
//   - No reader drops a row of the entity silently. A row that does not decode is a *[DecodeError] with its key. A row that has the
//     entity's key but an unknown type is a *[ForeignTypeError].
//   - The pages of a query contain each row once, also with filters, expired rows, equal sort keys, shards, and if the
//     last row of a page is deleted.
//   - A cursor of another query is refused before any request. A forged cursor cannot reach rows outside its query.
//   - All goroutines of a call have ended when it returns; those of Scan when the loop ends.
//   - The same update produces the same request. Error texts contain no keys and no values.
//
// # Not guaranteed
//
//   - A snapshot. Query, Page and Scan can see a change during the read, or not. They can see a row whose index key changes
//     twice, or not at all.
//   - Fresh indexes. Reads of an index are eventually consistent. An index that does not project all attributes gives rows
//     with missing fields.
//   - Secret cursors. A cursor contains the sort key of a row and, on an index, the row's own key. It is neither encrypted nor
//     signed.
//   - Atomic batches. [Entity.PutAll] can write some values and not others. [table.Table.BatchWrite] does not know sentinels.
//   - Unknown attributes under Put. It replaces the whole row.
//   - Unknown members of a struct within a row. A field is written whole, so members that T does not have are lost, and
//     so are the digits of a number in an any that a float64 does not hold.
//   - An exact count if T has no version. An [Add] whose answer was lost can count twice, except in a transaction.
//   - Uniqueness of rows that are older than the constraint, until a write gives them another value.
//   - Moving a unique value between two rows in one transaction ([ErrInvalid]). Use two.
//   - Versions across deletion. A row that was deleted, or has expired, and was created again counts from 1. A write with an old
//     version can take it for the old row. Modify does not.
//   - The result of every lost answer. Writes recognise their own effect in the row that they find. If they cannot, the
//     error is [table.ErrUnreachable]. See REFERENCE.md, Lost answers.
//   - Deletion of expired rows. DynamoDB deletes them, within days.
//
// # Errors
//
// Errors are those of package table, and [ErrExists], [ErrStale], [ErrType], [ErrUnique], [ErrNewer], [ErrOlder] and
// [ErrMatch]. A failed condition means that nothing was written. A condition that the caller added ([Entity.If],
// [table.Op.If]) and that does not hold is [table.ErrCondition] alone. In a transaction, the Err of the
// [table.ConditionError] is one of these errors.
//
// # Cost
//
//	Get                    1 read
//	Create, Put, Delete    1 conditional write
//	Update                 1 conditional write; in some cases a consistent read before it
//	Modify, Upsert         1 consistent read and 1 conditional write, for each attempt
//	unique values          a transaction if one changes: 2 writes for the row and 2 for each sentinel
//	…Op                    nothing; the transaction counts each write twice
//	Query, Page            1 request per page and shard; rows that are skipped count
//	Scan                   the whole table or index
//	Collect                1 consistent query
//	CollectQuery           the query
//	BatchGet               1 request per 100 rows; units as for Get
//	PutAll                 as Put, for each value
//	Sort                   nothing
//
// Each index that a write touches costs a write more, or two if its key changes. Units per row are those of package table.
package entity
