// Package table provides access to one DynamoDB table. It creates the table from a schema. Its writes work the same alone and
// in a transaction, its reads span pages, and one policy repeats requests. It classifies errors and counts what requests
// cost.
//
//	tbl, err := table.Open(client, table.Schema{Name: "app"}) // *dynamodb.Client is a Client
//	err = tbl.Ensure(ctx)                                     // creates the table, or adds what is missing
//
//	n := table.Attr("n")
//	err = tbl.Write(ctx, // both or neither
//		table.Update(account, n.Add(-10)).If(n.AtLeast(10)),
//		table.Put(entry).If(table.Attr("pk").NotExists()))
//
//	var failed *table.ConditionError
//	if errors.As(err, &failed) { … } // failed.Op failed, and found failed.Item
//
// Keys come from package keys. Package entity stores Go types in a table, and package lock keeps locks in it.
// REFERENCE.md, in this package's directory, lists the cost of each call and the permissions.
//
// # Encoding
//
// Go values become attribute values as by github.com/guregu/dynamo, with its struct tags and its Marshaler interfaces. An
// operand of an expression must not be empty: nil and an empty set are refused. An empty string is a value like any other,
// but inside of a struct or a map it is left out ([Encode]). An [Item] is the SDK's map of attribute values. [ItemFromJSON]
// reads one from DynamoDB's JSON, and [Table.OpsFromJSON] a transaction.
//
// # Guarantees
//
//   - [Table.Write] applies all of its operations or none.
//   - A transaction is applied once, even if answers are lost. All attempts carry the same token, and no attempt starts after
//     DynamoDB may have forgotten it.
//   - An invalid request is refused before it is sent, with an error that matches [ErrInvalid] and names the operation. Examples
//     are an invalid key, two operations on one item, more than [MaxOps] actions, or an Add of a text. Other
//     mistakes in the types of values, and two changes of one attribute, are found by DynamoDB. Its error names no operation.
//   - A *[ConditionError] has the operation whose condition failed and the item that was found, without a second read.
//     Repeated is set if that item may be the operation's own effect.
//   - Equal operations give equal expressions, which depend only on the order of conditions and changes.
//   - Ranges of sort keys are half open. A limit counts the items that are returned, not those examined.
//   - [Table.TransactGet] shows all items as they are at one moment. Of a transaction that was made in the same region it
//     shows everything or nothing.
//   - A batch never drops an item. What DynamoDB left undone is in an *[UnprocessedError].
//   - [Table.Ensure] never destroys anything. If a difference cannot be resolved without that, it changes nothing. Several
//     instances can run it at the same time.
//   - Equal schemas give equal exports ([Schema.CloudFormation], [Schema.Workbench]).
//   - The text of an error contains no keys and no values of the application. Its causes may; [errors.As] finds them.
//
// # Not guaranteed
//
//   - A single operation is applied once. It has no token, so it is sent again if its answer is lost. An Add without a
//     condition can then count twice, and a condition can find the operation's own effect. Use [Table.WriteOnce] where
//     that matters.
//   - Fresh reads. Reads of a global index, and reads that are not consistent, can be behind.
//   - Atomic batches. A batch can be applied in part, in any order, and a BatchGet can show part of a transaction.
//   - A snapshot. Query and Scan can see a change during the read, or not.
//   - Auto scaling, replicas, encryption keys and table classes. The package leaves them as they are.
//
// # Provisioning
//
// [Table.Plan] compares the live table with the schema, [Table.Ensure] resolves the differences, and [Table.Verify] reports them, for
// deployments that provision in another way. A plan prints as
//
//	table app
//	  + index gsi1 (GSI1PK:S, GSI1SK:S; all)
//	  ~ capacity: 5 read and 2 write units, now 4 read and 2 write units
//	  = keys PK:S, SK:S; time to live on attribute expiresAt; index old, which is not in the schema
//
// Ensure adds global indexes (one at a time), a stream, time to live, recovery, deletion protection and tags. It sets the
// capacity if the schema has one. It leaves everything else as it is.
//
// Ensure refuses changes that would destroy or rebuild something, in a *[SchemaError] that lists them all: other keys,
// another index of the same name, a local index, another view of a stream, time to live on another attribute.
//
// # Errors
//
// Each error matches one of these values with [errors.Is], and wraps the SDK's error for [errors.As]:
//
//	ErrNotFound         the item does not exist
//	ErrCondition        a result rather than a failure: see ConditionError; nothing was written
//	ErrConflict         transactions kept conflicting: try later, or touch fewer items
//	ErrThrottled        try later, or provision more capacity
//	ErrUnreachable      no answer came, or one that is not DynamoDB's, or an internal error; a write may have been
//	                    applied: see MayBeApplied
//	ErrCredentials      fix the credentials; nothing was sent, or DynamoDB refused them
//	ErrDenied           fix the permissions
//	ErrNoTable          run Ensure without Schema.MustExist, or fix the name
//	ErrSchema           the live table differs from the schema
//	ErrInvalid          fix the program
//
// [Retry] is the table's retry policy. By default it repeats throttled requests, internal errors, lost connections, answers
// that are not DynamoDB's and transaction conflicts for up to 10 s. It waits from 25 ms to 1 s between attempts, and each
// request may take 5 s. The SDK's own retries are disabled, since two nested policies multiply. A failed condition is never
// repeated.
//
// If the context ends, the call returns immediately. The error then matches the context's Err, its Cause, and the error of
// the last attempt. No request is sent with a context that has ended.
//
// # Cost
//
//	Get, BatchGet                   0.5 read units per 4 KB of each item; 1 if consistent
//	TransactGet                     2 read units per 4 KB of each item
//	Query, Scan                     0.5 read units per 4 KB examined; 1 if consistent
//	Write of one operation          1 write unit per KB, at least 1; the same if its condition fails
//	Write of several, WriteOnce     twice that
//	BatchWrite                      as single writes
//	Plan, Verify, Ensure            requests, but no units
//
// Each repeated request counts again. [WithUsage] and [Table.Metered] count what requests consume. DynamoDB is asked for
// units only where they are counted.
package table
