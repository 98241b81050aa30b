// Package tabletest runs DynamoDB inside a test's process. The real AWS SDK client talks to an engine that implements the
// service's JSON protocol:
//
//	func TestTransfer(t *testing.T) {
//		engine := tabletest.New(t)
//		tbl, err := table.Open(engine.Client(), table.Schema{Name: "app"}) // engine.Client is a *dynamodb.Client
//		err = tbl.Ensure(t.Context())
//
//		engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "UpdateItem", Times: 1})
//		err = transfer(t.Context(), tbl) // the answer to its first update is lost
//		assert.Len(t, engine.Requests(), 4)
//	}
//
// Only the network is replaced, so the SDK's serialization and error decoding are part of every test, and so are the
// retries of package table. (It switches the SDK's own retries off.) The engine opens no socket and starts no goroutine
// unless [Engine.Listen] is called. It therefore works inside a testing/synctest bubble, where hours pass in an instant.
//
// # Not a database
//
// The engine keeps everything in memory, in one process, under one mutex. It does not authenticate. It is a test double
// whose answers to generated requests are compared with those of Amazon's DynamoDB Local.
//
// # Scope
//
// The engine implements tables, items, queries, scans, batches, transactions, time to live, tags and the settings of
// backups; REFERENCE.md, in this package's directory, lists the operations. It implements all expressions,
// and the older parameters that expressions have replaced. Other operations, such as those of PartiQL and of DynamoDB
// Streams, return UnknownOperationException.
//
// # Faults
//
// [Engine.Inject] makes requests or answers get lost, late, doubled, refused or stale. A [Fault] selects requests by index,
// operation, table, key or predicate, every n-th one, or by a seeded schedule. [Engine.Requests] returns a log of all
// requests, and [Engine.Snapshot] and [Engine.Restore] save and restore the tables.
//
// # Guarantees
//
//   - Each request is atomic, including batches. A TransactWriteItems applies all of its actions or none.
//   - Errors have the service's types and messages. A transaction reports one reason for each action. If a request has
//     several mistakes, the error is the one that the service would report.
//   - Consumed capacity is that of the service. Sizes are rounded up to 1 KB and 4 KB, eventually consistent reads cost
//     half, and items in transactions double. An index costs only if its entries change. Refused conditional writes cost, too. A
//     Scan rounds up in each physical partition, of which an on-demand table has four.
//   - The same requests in the same order give the same answers, including page boundaries.
//   - Expired items stay visible until [Engine.Sweep] deletes them.
//
// # Simplifications
//
//   - Tables and indexes are ACTIVE as soon as the request that creates or changes them returns, although its answer has the
//     status CREATING or UPDATING. Global indexes, tags and item counts change immediately. Use [StaleRead] to make
//     reads return older items.
//   - Requests never overlap. A transaction conflict occurs only through [TransactionConflict], or through a [Delay] that
//     holds the items of a transaction.
//   - There is no throttling except [Throttle], no stream to read, no account quota, no limit to the frequency of changes,
//     and no backup except [Engine.Snapshot].
//   - A Scan and a BatchGetItem return partitions and items in the order of the engine's own hash, index rows with equal keys in the
//     order of their primary keys, and attributes in the order of a Java map. The service promises no order for any of these.
//   - A table keeps the number of partitions that it was created with.
//   - A page ends after 1 MB of items by their documented sizes. The service counts its storage format, which differs by some
//     bytes for each item.
//   - An UpdateItem can make an item of 400 KB, as a PutItem can. So it can in ten of the service's regions. In most others, us-east-1
//     among them, the service also limits what the expression writes plus some bytes for each of its actions, and so refuses some
//     items that are slightly smaller. (paritysuite.org has measured both, in September and October 2026.)
//   - A table has no replicas. UpdateTable ignores ReplicaUpdates and the other members that are about global tables.
//   - A boolean is true or false. The service takes some strings for it, such as "true" and "0", which SDKs do not send.
//   - Since June 2026 the service has new texts for some validation errors, in more and more regions. The engine has the
//     earlier texts, which most of DynamoDB Local's messages have too.
//
// Where DynamoDB Local differs from the service, the engine follows the service. REFERENCE.md lists these differences.
//
// # Cost
//
// A conditional UpdateItem through the SDK takes about 50 µs on an idle machine, less than half of it in the engine
// (BenchmarkConditionalUpdate). Reading or writing one item takes O(log n). The log keeps at most the last million requests.
package tabletest
