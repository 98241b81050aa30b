// Package table is one DynamoDB table as an application sees it: its schema and how to bring
// the live table there, writes that mean the same alone and in a transaction, reads that go
// across pages, errors by what they are about, one retry policy, and what it all cost. It
// knows keys, but no entity types (see package entity) and no locks (see package lock).
//
//	tbl, err := table.Open(client, table.Schema{Name: "app"}) // *dynamodb.Client is a Client
//	err = tbl.Ensure(ctx)
//	n := table.Attr("n")
//	err = tbl.Write(ctx,
//		table.Update(account, n.Add(-10)).If(n.AtLeast(10)),
//		table.Put(entry).If(table.Attr("pk").NotExists()))
//	var failed *table.ConditionError // which operation failed, and what stood in its way
//
// # Encoding
//
// Go values become attribute values as github.com/guregu/dynamo encodes them, with its struct
// tags and its Marshaler interfaces. In expressions an empty string is a value like
// another; what encodes to nothing (nil, an empty set) is refused. Items are the SDK's own
// maps of attribute values; ItemFromJSON reads them from DynamoDB's JSON.
//
// # Guarantees
//
//   - Write applies all of its operations or none.
//   - What can be seen to be wrong is refused before anything is sent, with an error that matches
//     ErrInvalid and names the operation: bad keys, two operations on one item, more
//     than MaxOps actions, operands where DynamoDB takes none.
//   - A transaction is applied once, however often its answers get lost: all attempts carry
//     one token, and none starts when DynamoDB may have forgotten it.
//   - A *ConditionError says which operation's condition failed and what stood there, without a
//     second read. ConditionError.Repeated says that this may be the operation's own effect.
//   - Equal operations give equal bytes: expressions depend on nothing but the order of
//     conditions and changes.
//   - Ranges of sort keys are half open; a Limit counts items that are returned, not examined.
//   - Batches return what DynamoDB left undone, in an *UnprocessedError; they drop nothing.
//   - Ensure destroys nothing, and changes nothing when there is nothing to change, or when
//     anything would have to be destroyed. Several instances may run it at once.
//   - Exports of a schema (CloudFormation, Workbench) depend on nothing but the schema: equal
//     ones give equal bytes.
//   - Error texts contain no keys and no values of the application. Causes may: they stay in
//     the chain, for errors.As.
//
// # Not guaranteed
//
//   - A single operation has no token. When an answer is lost it is sent again: an Add without
//     a condition may count twice, and a condition may meet the operation's own effect. Use
//     WriteOnce where that matters.
//   - Reads of a global index, and reads that are not consistent, may be behind.
//   - Batches are not transactions: they may be applied in part, in any order.
//   - Query and Scan do not see one moment: rows that change meanwhile may be seen before or after.
//   - Auto scaling, replicas, encryption keys and table classes are left to others.
//
// # Provisioning
//
// Plan says how the live table differs from the schema, Ensure mends that, Verify is for a
// deployment that provisions elsewhere:
//
//	table app
//	  + index gsi1 (GSI1PK:S, GSI1SK:S; all)
//	  ~ capacity: 5 read and 2 write units, now 4 read and 2 write units
//	  = keys PK:S, SK:S; time to live on attribute expiresAt; index old, which is not in the schema
//
// Ensure adds global indexes (one at a time), a stream, time to live, recovery, deletion
// protection and tags, and sets the capacity where the schema names one. It refuses, in a
// *SchemaError that lists everything, what would destroy or rebuild: other keys, another
// index under the name of one, a local index, another view of a stream, time to live on
// another attribute. What the schema does not mention stays as it is.
//
// # Failure handling
//
// Errors match one of the Err… values with errors.Is, by what they are about, and keep the SDK's
// error for errors.As. The table's Retry policy repeats what is worth it (throttling,
// internal errors, lost connections, transaction conflicts), by default for 10 s with
// waits from 25 ms to 1 s, each request for at most 5 s; the SDK's own retries are switched off, because two policies
// multiply. A failed condition is a result and never repeated. A context that ends stops
// waiting at once; the error then matches its Err, its Cause, and what the last attempt
// met. With a context that has ended nothing is sent.
//
//	errors.Is(err, …)   what to do
//	ErrNotFound         there is no such item
//	ErrCondition        look at the ConditionError: a result, not a failure
//	ErrConflict         transactions kept meeting each other: try later, or touch fewer items
//	ErrThrottled        try later, or buy capacity
//	ErrUnreachable      no answer came: a write may have been applied, see MayHaveApplied
//	ErrCredentials      fix the credentials; nothing was sent, or DynamoDB did not accept them
//	ErrDenied           fix the permissions
//	ErrNoTable          run Ensure without Schema.MustExist, or fix the name
//	ErrSchema           the live table is another one than the schema describes
//	ErrInvalid          fix the program
//
// # Cost
//
// Units as DynamoDB counts them; sizes are those of whole items, indexes are extra.
//
//	call                            requests             units
//	Get, BatchGet                   1; 1 per 100 keys    0.5 read per 4 KB of each item, 1 consistent
//	Query, Scan                     1 per MB or page     0.5 read per 4 KB examined, 1 consistent
//	Write of one put/update/delete  1                    1 write per KB, at least 1; also when its condition fails
//	Write of more, WriteOnce        1                    twice that; a check counts like a write
//	BatchWrite                      1 per 25             like single writes
//	Plan, Verify                    2 to 4               none
//	Ensure                          3 when all is well   none
//
// Every repeated request counts again. WithUsage tells what the requests under a context have
// consumed, Table.Metered what those through a Table have. DynamoDB is asked for units only
// where they are counted.
//
// # Permissions
//
// On the table: dynamodb:GetItem, BatchGetItem, Query, Scan, PutItem, UpdateItem, DeleteItem,
// BatchWriteItem, and ConditionCheckItem for checks; a transaction needs what its
// operations need. On table/NAME/index/*: dynamodb:Query and Scan. Plan and Verify need
// dynamodb:DescribeTable and DescribeTimeToLive, with PointInTimeRecovery also
// DescribeContinuousBackups, with Tags also ListTagsOfResource. Ensure needs those and
// dynamodb:CreateTable, UpdateTable, UpdateTimeToLive, UpdateContinuousBackups, TagResource.
package table
