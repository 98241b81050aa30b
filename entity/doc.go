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
// # Reading
//
//	Get, BatchGet        rows by key; BatchGet many of them, in the order of the input
//	Query                rows of one partition key, or of all shards of one, in order, as an iterator
//	Page                 some of them, with a Cursor for the next page that may travel in a URL
//	Scan                 all rows of the type, in parallel segments if wanted, in no order
//	Collect, CollectIn   all rows of an item collection, of many types, each into its sink
//	Sort                 one row, such as an image of a stream's record, into its sink
//
// # Encoding
//
// Fields become attributes by the tags and interfaces of github.com/guregu/dynamo:
// `dynamo:"name,omitempty"`, set, unixtime, allowempty, Marshaler and so on. A field tagged
// "-" that is part of the row's key is kept in the key alone and read back from it. The
// version and the time to live are kept in the attributes that the table's scheme names,
// whatever the fields' tags say. The version counts from 1; a time to live is in whole
// seconds, rounded up. A field tagged unixtime has whole seconds in keys too.
//
// Define compiles them once; rows are then written and read without looking anything up by
// name. What comes out is what guregu/dynamo v2.6.0 makes, except where that loses data or
// panics: a number that does not fit its field is refused, also inside of lists and maps,
// and so are NaN and infinity; values are at most 32 lists and maps deep, as in DynamoDB; an
// embedded struct never hides a field of its type's name; maps that are sets are written in order.
//
// A type that is its own ItemMarshaler has to write the attributes that its tags name. It
// and an ItemUnmarshaler are called for every row.
//
// # Indexes on fields
//
// Index keys are made of templates, or are fields: an index of the table on the attribute "email" is in a
// specification as {Name: "by-email"}. Such a field is changed like any other, for the cost of any other. Query
// takes its value by name, and From and Until where it is the sort key. Numbers sort as numbers, and strings by
// their bytes. Times that are numbers (unixtime) have bounds of whole seconds. So have those that are text, whose
// rows have to be in UTC to be in the order of time, and come out of order within a second; a
// value to be equal to is compared as the text that Go makes of it.
//
// Prefix takes the beginning of such a sort key, where it is text, and of the next field of one that is made
// of a template.
//
// A field that is tagged "-" and part of an index's template, and of no key of the table, is kept in the
// index's key alone: composite attributes of other programs, such as data = country#city#address, are
// {Name: "by-data", SK: "{country:raw}#{city:raw}#{address:rest}"}. What is read back is what the template's
// Parse returns for the attribute, and what it does not accept is a *DecodeError. Of a field in several keys the first in
// Spec.Indexes tells. The attribute is written whenever all fields of the template have values, also where
// the row is not in the index for lack of the other key, or because of When. What would not be read back is refused with
// ErrInvalid before it is sent: some of the fields without the others (the zero value of a number counts as none), and what
// the codecs refuse, such as a delimiter in a raw value that is not the last. Such fields can be set and removed,
// not added to; conditions (Entity.Field) cannot name them. An update of one is an update of the index's key: it
// depends on the others.
//
// What is empty or NULL there is not written, whatever the field's tag says, since DynamoDB refuses it. So is
// it with indexes that the entity does not name: only the type of the field has to be theirs. Binary
// keys can be written, but not queried.
//
// # Unique values
//
// Spec.Unique names what no two rows may share. Each value of a row stands in a row of its
// own beside it, the sentinel, with these attributes: the table's keys, the type
// ("User.email"), "uniqueowner" (a map with the key of the row that has the value), and the
// row's time to live. Row and sentinels are written in one transaction, so a crash leaves none
// without the other. What can: another program that deletes a row, and DynamoDB,
// which deletes expired rows one by one. An expired sentinel counts as none, and one whose
// owner does not exist is taken over, by all but the …Op twins, under the condition that
// the owner does not come back.
//
// # Versions
//
// Where a Spec names a Version, a write is for the row that its value was read from. The value's
// version says which that is:
//
//	version    Update, Delete, ModifyOp and so on             Put
//	n > 0      the row has version n                          the row has version n
//	0          the row has no version, and the attributes     there is no row
//	           that the value has
//
// Any other row is ErrStale, and none ErrNotFound. So a value of the key alone is ErrStale, too,
// unless the row has nothing else. AnyVersion is for writes that do not depend on what was read.
//
// Version 0 is for rows of programs that know no versions. The first write here gives such a row
// version 1. Until then its attributes tell it: all those of T's fields, but for Created and Updated.
// A missing attribute, NULL and the zero value count as the same. Update and Delete read
// the row, so they know it in whatever form the other program writes. UpdateOp, ModifyOp and
// DeleteOp cannot: a row that T would write in another form, such as a time with another number
// of digits, is ErrStale to them until an Update has given it a version. They are ErrInvalid for
// values with more than some 50 empty fields, for which DynamoDB's expressions are too short. Put
// cannot tell at all, since its value is what the row is to be and not what it was.
//
// A program that counts no versions is noticed as long as the row has none, and when it replaces
// a whole row, which then has none any more. It is not noticed when it changes single attributes of a row
// that has a version. It must count, too: add 1 to the version attribute with each such change.
//
// # Schemas
//
// Spec.Upgrades tell how rows of older programs become today's. All that read
// upgrade what they read and write nothing; Update, Modify and Upsert bring a row that
// they change to the current schema as a whole, by the same write; Put replaces it.
//
// # Cookbook
//
// Access patterns of single-table design. Each is a runnable example of the package, under
// the name in parentheses. PK and SK are those of Spec or, where an index is named, of Index.
//
// One to many in one collection (OneToMany): parent and children share the partition key,
// and the sort key of the parent comes before those of its children. Collect reads all of
// them with one query, Query the children alone.
//
//	Customer   PK CUSTOMER#{id}         SK CUSTOMER
//	Order      PK CUSTOMER#{customer}   SK ORDER#{no:uint6}
//
// Many to many by an inverted index (ManyToMany): the row of a pair stands with one side. An
// index of the table with the keys swapped has it with the other; it needs no templates.
//
//	Member     PK TEAM#{team}           SK USER#{user}
//	inverted   PK SK of the table       SK PK of the table
//
// Time series, newest first (TimeSeries): a descending codec turns the order round, for
// whatever reads the collection. Where only queries of the entity have to be so, Descending
// does it with an ascending key. From and Until take times in their own order. A collection
// that grows without end gets a period into its PK: SENSOR#{sensor}#{month}.
//
//	Reading    PK SENSOR#{sensor}       SK READING#{at:time-ms:desc}
//
// Sparse queue (SparseQueue): with When, the index holds what is to be done and nothing
// else, in the order of the sort key. A worker takes a row by an update with the version it
// saw; who comes second gets ErrStale. Where a worker may die with its row, let it move the
// row's due time instead of taking it out, so that it comes up again, or work under a lock
// (package lock).
//
//	gsi1       PK QUEUE#{queue}         SK {due:time-s}#{id}        When it has no worker
//
// Hierarchy by prefix (Hierarchy): the fields of SK from the whole to the part. Query takes
// as many of them as are given, and its prefix ends where a field ends.
//
//	Store      PK COUNTRY#{country}     SK STORE#{state}#{city}#{no:uint3}
//
// Unique email (UniqueEmail): Unique keeps a second row from having it, an index finds the
// row that has it. An index alone keeps nobody out.
//
//	Unique     Key {email}
//	gsi1       PK EMAIL#{email}         SK USER
//
// Counters (Counter): Add counts without reading. An answer that is lost makes it count
// twice, so what is counted is a row of its own that is created in the same transaction.
// A condition on the count (Op.If) is a limit that holds. Partition and row take 1,000 write
// units per second (source: "Best practices for designing and using partition keys"), and
// a transaction takes two a write: a counter above that is several rows, one for each shard,
// which the reader adds up.
//
//	Poll       PK POLL#{id}             SK POLL
//	Vote       PK POLL#{poll}           SK VOTE#{user}
//
// Sharded hot partition (ShardedPartition): what all rows have in common makes a partition
// key too hot, so a shard, computed from what they differ in, splits it. A query that leaves
// that out reads all shards and merges them. N shards take N times the writes, and cost each
// query N requests.
//
//	gsi1       PK STATE#{state}#{id:shard8}   SK {opened:time-s}#{id}
//
// # Guarantees
//
//   - Define reports all problems of a specification at once, in a *SpecError. What it accepts
//     does not panic afterwards.
//   - Two entities of one *table.Table cannot have templates that could make the same key.
//   - A row of another type is never overwritten, changed or deleted: that is ErrType, or
//     ErrExists for Create. A row without a type attribute, as another program may write it,
//     counts as the entity's own if it stands at one of its keys. Update adds no type
//     attribute, and with Spec.Untyped nothing does: see ADOPTING.md for tables that other
//     programs filled.
//   - Keys of indexes are never stale. What an update touches is computed anew, from what is
//     supplied or from a consistent read, under a condition that it still holds.
//   - With a Version nothing of T's that was not seen is overwritten or deleted: that is ErrStale. Only
//     AnyVersion does it, and who counts no versions where others do: see Versions.
//   - No two rows have the same value of a Unique constraint, expired rows left out: that is
//     a *UniqueError. The value that a row had is known from the row, or its write is refused.
//   - Modify writes what its function changed and nothing else, to the row that it was shown.
//   - What reads a row in order to write it refuses one whose attributes make another key than
//     it stands at, with a *DecodeError: the write would go to another row.
//   - A row holds attributes of one schema, and a row of a newer one is not overwritten,
//     changed or deleted, unless it has expired: that is ErrNewer.
//   - The same update makes the same request.
//   - Expired rows are invisible before DynamoDB deletes them, also for Create and Update. Only
//     WithExpired, Raw and Sort show them.
//   - Attributes that T does not know survive Update, Modify and Upsert.
//   - No reader drops a row silently: one that does not decode is a *DecodeError, with its
//     key. Query, Page and Scan step over rows of other types, Collect and Sort report them
//     unless told.
//   - Pages together are the query: no row is skipped or repeated because a page ended, with
//     filters, expired rows, equal sort keys and shards too, and if the row at the end is deleted.
//   - A cursor of another query is refused before anything is sent. One that somebody made up
//     reaches no row that its query does not: it says where to begin, not what to read.
//   - Goroutines of a call have ended when it returns, those of Scan when the loop ends.
//   - Error texts contain no keys and no values of the application.
//
// # Not guaranteed
//
//   - Query, Page and Scan do not see one moment: rows that change meanwhile may be seen before or
//     after, and a row whose key in an index changes may be seen there twice or not at all.
//   - Cursors are neither secret nor signed: they contain the sort key of a row and, on an
//     index, the row's own key.
//   - PutAll is not a transaction: some of the values may be written and others not.
//   - Put replaces the whole row, attributes that T does not know included.
//   - Update with a version above 0 takes the value given to be the whole row as it was read. A
//     value that lacks a field of an index's key is refused with ErrStale; what a
//     predicate (Index.When) misses cannot be told.
//   - When an answer is lost, Create, Put, Update, Modify and Delete recognise their own effect in the
//     row they find. Somebody else's write of exactly the same content at the same version
//     looks the same. Updated, or a field that says who wrote, tells them apart.
//     Where they do not, and no version tells that somebody else has changed the row in the
//     write's place, the error is table.ErrUnreachable, never ErrStale, ErrExists, ErrNotFound or
//     table.ErrCondition, and Modify does not try again: the write may have been applied, and
//     the row have been changed, or deleted and created, since.
//   - A row that was deleted and created again, or that a program replaced that counts no versions,
//     counts them from 1 again: Put and Update
//     with a version that was read before may meet the new row, and take it for the old one; where
//     an answer was lost, their refusal, and that of Delete, may be the new row's. Modify does not,
//     and keys of indexes and sentinels are right all the same.
//   - Rows that are older than a constraint have no sentinels until their value changes, and
//     do not keep others from having it.
//   - Handing a unique value from one row to another takes two transactions: in one, both rows
//     would write the same sentinel, which is ErrInvalid.
//   - Batches (Table.BatchWrite) know nothing of sentinels.
//   - Without a version, an Add whose answer was lost may count twice; in a transaction never.
//   - Index reads are eventually consistent, and an index that does not hold all attributes
//     gives rows with fields missing.
//   - An entity with a TTL deletes nothing: DynamoDB does, within days.
//
// # Failure handling
//
// Errors are those of package table, and ErrExists, ErrStale, ErrType, ErrUnique, ErrNewer,
// ErrOlder. A failed condition is a result: nothing was written. Modify and Upsert, and other
// writes that read first for AnyVersion or where T has no Version, read again when they lose a
// race, by the table's retry policy. A condition that
// was added (Entity.If, Op.If) and does not hold is ErrCondition alone. In a transaction a condition error's Err
// (table.ConditionError) says which of these it was.
//
// # Cost
//
// Units of rows as package table counts them.
//
//	Get                    1 read
//	Create, Put, Delete    1 conditional write
//	Update                 1 conditional write; unless the value has a version above 0, a consistent read before it:
//	                       for version 0 always; for AnyVersion, and where T has no Version, when an index key depends
//	                       on a field that neither the update nor the key supplies, and with a predicate
//	Modify, Upsert         1 consistent read and 1 conditional write, each time that a race is lost too
//	Put, Delete, unique    1 consistent read more; Delete of a whole row with a version above 0 does without
//	Put of AnyVersion      1 consistent read more
//	Delete of version 0    1 consistent read more
//	unique values          a transaction where one changes: 2 writes for the row, and 2 for each sentinel that
//	                       is written or deleted; a read each for those in the way
//	…Op                    nothing: the transaction counts twice a write each
//	Query                  1 request per page, rows of other types and expired ones included; per shard
//	Page                   the same, of a row more than the page has
//	Scan                   the whole table or index, rows of other types included
//	Collect, CollectIn     1 consistent query
//	BatchGet               1 request per 100 rows, units as for Get
//	PutAll                 that of Put for each value
//	Sort                   nothing
//
// Each index that a write touches costs a write more, two when its key changes.
//
// # Permissions
//
// Those of the calls in package table: dynamodb:GetItem, BatchGetItem, PutItem, UpdateItem,
// DeleteItem, and Query and Scan on the table and its indexes; ConditionCheckItem where values
// are unique.
package entity
