// Package tabletest is DynamoDB in the process of a test: an engine that speaks the service's JSON protocol to the real
// AWS SDK client.
//
// The SDK's retries, serialization and error decoding are part of every test, because only the network between the
// client and the service is replaced. There are no sockets and no goroutines unless [Engine.Listen] is called, so
// the engine works inside a testing/synctest bubble, where hours pass in an instant.
//
//	db := tabletest.New(t).Client() // *dynamodb.Client
//
// # Not a database
//
// The engine keeps everything in memory, in one process, under one mutex. It authenticates nobody. It is a test double,
// held to Amazon's own DynamoDB Local by a differential test that compares generated operations answer by answer.
//
// # Scope
//
// CreateTable, DescribeTable, UpdateTable, DeleteTable, ListTables, UpdateTimeToLive, DescribeTimeToLive, PutItem,
// GetItem, UpdateItem, DeleteItem, Query, Scan, BatchGetItem, BatchWriteItem, TransactWriteItems, TransactGetItems,
// TagResource, UntagResource, ListTagsOfResource, DescribeContinuousBackups and UpdateContinuousBackups.
//
// Every other operation answers UnknownOperationException, as the service answers an operation that it does not have.
// That includes PartiQL (ExecuteStatement, BatchExecuteStatement, ExecuteTransaction) and DynamoDB Streams (ListStreams,
// DescribeStream, GetShardIterator, GetRecords): a table can have a stream, but no operation reads it.
//
// Global indexes may have up to four partition key and four sort key attributes.
//
// Condition, filter, projection, key-condition and update expressions are complete, and so are the older parameters
// that they replaced (KeyConditions, QueryFilter, ScanFilter, Expected, AttributeUpdates, AttributesToGet).
//
// # Guarantees
//
//   - Each request is atomic, batches included. A TransactWriteItems applies all of its actions or none.
//   - Errors have the service's types and messages; transactions report one reason for each action. Of several mistakes in
//     a request the service's order decides: types of members, then all constraints on them together, then values and
//     expressions, then the table, its keys and indexes.
//   - Consumed capacity is counted as the service does: sizes rounded up to 1 KB and 4 KB, eventually consistent reads
//     half, transactions double, indexes only where what they hold changed, and refused conditional writes, too. A Scan
//     rounds up in each physical partition, of which a table that is billed by request has four.
//   - The same requests in the same order give the same answers, page boundaries included.
//   - Expired items stay visible until [Engine.Sweep] deletes them.
//
// # Known simplifications
//
//   - Tables and indexes are ACTIVE as soon as the request that makes or changes them returns, although its answer has
//     the status CREATING or UPDATING. Global indexes, tags and the item counts of descriptions show a change at once.
//     [StaleRead] gives older answers to reads where a test wants them.
//   - Requests never overlap, so a transaction meets another one only through [TransactionConflict], or through a
//     [Delay] that holds its items.
//   - There is no throttling but [Throttle], no stream to read, no quota of an account, no limit to how often a table is
//     changed, and no backup beside [Engine.Snapshot].
//   - A Scan returns partitions in the order of the engine's own hash, index rows with equal keys in the order of their
//     primary keys, and attributes in the order of a Java map. The service promises no order for any of these.
//   - A table keeps the number of partitions that it had when it was new.
//   - Since June 2026 the service words some validation errors in a new way, in more regions each month. The engine has
//     the wording before that, which is also the one of most of DynamoDB Local's messages.
//
// # Differences from DynamoDB Local
//
// Where DynamoDB Local is known to differ from the service, the engine follows the service:
//
//   - Many errors have other texts, and parameters that DynamoDB Local does not look at are checked.
//   - An update that only removes makes no item where none is, whatever its paths.
//   - A query of a table without sort key takes no ExclusiveStartKey.
//   - UPDATED_OLD and UPDATED_NEW hold only what the expression's paths lead to, not the whole top-level attribute. After
//     the removal of a list's element, UPDATED_NEW has what moved to its place.
//   - An action that does not fit its item or the table's schema cancels a transaction, with one reason for each action. The
//     first action that does not fit the schema is the only one with a reason.
//   - Each action of a transaction costs double, each missing item of a batch and each empty page the minimum, and a
//     Scan of an index what the index holds.
//   - ItemCollectionMetrics are reported for tables with local indexes.
//   - AttributeUpdates without an Action puts the value.
//   - CreateTable and UpdateTable answer with the status CREATING or UPDATING, and descriptions have all members.
//   - Tables have tags, table classes, encryption settings, warm throughput and limits of on-demand throughput.
//   - UpdateTable refuses changes that have to be made one at a time.
//   - The total size of an index's key attributes is checked in updates, too, and an index that is added to a table leaves
//     out items whose keys are too long or of another type.
//   - Errors carry a checksum (X-Amz-Crc32), too.
//   - All that is wrong with the members of a request is named in one error, before the table is looked for.
//   - A Scan rounds up what it reads in each physical partition, of which a new on-demand table has four.
//   - An update that only removes makes no item.
//   - What is not well-formed is a SerializationException, not an internal failure, and no type is coerced.
//   - A request over 16 MB is refused with the status 413.
//
// # Faults
//
// [Engine.Inject] makes requests or answers get lost, late, doubled, refused or stale: by call index, operation, table,
// key or predicate, every n-th time, or by a seeded schedule. See [Fault].
//
// # Cost
//
// A conditional UpdateItem through the SDK takes about 50 µs on an idle machine, less than half of it in the engine
// (BenchmarkConditionalUpdate). Reading and writing one item costs O(log n). The request log keeps the last million
// requests.
package tabletest
