// Package entity keeps values of Go types as rows of one table, many types beside each other.
// Define says once how a type's keys are made of its fields; from then on keys, index
// keys, the type attribute, versions, timestamps and expiry are its business. It knows
// nothing of locks (see package lock).
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
//	o, err = orders.Update(ctx, o, entity.Set("status", "paid")) // and moves it in gsi1
//	for o, err := range orders.Query(ctx, keys.Values{"status": "open"}, entity.On("gsi1")) { … }
//
// # Encoding
//
// Fields become attributes by the tags and interfaces of github.com/guregu/dynamo:
// `dynamo:"name,omitempty"`, set, unixtime, allowempty, Marshaler and so on. A field tagged
// "-" that is part of the row's key is kept in the key alone and read back from it. The
// version and the time to live are kept in the attributes that the table's scheme names,
// whatever the fields' tags say. The version counts from 1; a time to live is in whole
// seconds, rounded up.
//
// A type that is its own ItemMarshaler has to write the attributes that its tags name.
//
// # Guarantees
//
//   - Define reports all problems of a specification at once, in a *SpecError. What it accepts
//     does not panic afterwards.
//   - Two entities of one *table.Table cannot have templates that could make the same key.
//   - A row of another type is never overwritten, changed or deleted: that is ErrType, or
//     ErrExists for Create. A row without a type attribute, as another program may write it,
//     counts as the entity's own if it stands at one of its keys: Create refuses it, Put
//     with version 0 and Delete do not.
//   - Keys of indexes are never stale. What an update touches is computed anew, from what is
//     supplied or from a consistent read, under a condition that it still holds.
//   - With a Version nothing that was not seen is overwritten: that is ErrStale.
//   - Expired rows are invisible before DynamoDB deletes them, also for Create and Update.
//   - Attributes that T does not know survive Update.
//   - Query and Collect drop no row silently: one that does not decode is a *DecodeError,
//     with its key. Query steps over rows of other types, Collect reports them unless told.
//   - Error texts contain no keys and no values of the application.
//
// # Not guaranteed
//
//   - Put replaces the whole row, attributes that T does not know included.
//   - Update with a version above 0 takes the value given to be the whole row as it was read. A
//     value that lacks a field of an index's key is refused with ErrStale; what a
//     predicate (Index.When) misses cannot be told.
//   - When an answer is lost, Create, Put, Update and Delete recognise their own effect in the
//     row they find. Somebody else's write of exactly the same content at the same version
//     looks the same. Updated, or a field that says who wrote, tells them apart.
//   - Without a version, an Add whose answer was lost may count twice; in a transaction never.
//   - Index reads are eventually consistent, and an index that does not hold all attributes
//     gives rows with fields missing.
//   - An entity with a TTL deletes nothing: DynamoDB does, within days.
//
// # Failure handling
//
// Errors are those of package table, and ErrExists, ErrStale, ErrType. A failed condition
// is a result: nothing was written. Update with version 0 reads again when it loses a
// race, by the table's retry policy. In a transaction a condition error's Err
// (table.ConditionError) says which of these it was.
//
// # Cost
//
// Units of rows as package table counts them.
//
//	Get                    1 read
//	Create, Put, Delete    1 conditional write
//	Update                 1 conditional write; a consistent read before it when an index key depends on a field that
//	                       neither the update nor the key supplies, and on any update with a predicate, unless the
//	                       value has a version above 0
//	…Op                    nothing: the transaction counts twice a write each
//	Query                  1 request per page, rows of other types and expired ones included
//	Collect                1 consistent query
//
// Each index that a write touches costs a write more, two when its key changes.
//
// # Permissions
//
// Those of the calls in package table: dynamodb:GetItem, PutItem, UpdateItem, DeleteItem, and
// Query on the table and its indexes.
package entity
