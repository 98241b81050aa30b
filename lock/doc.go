// Package lock is a distributed lock whose row stands in the application's own table, next
// to the rows that it protects. A write made under a lock commits only while the lock is
// still held: DynamoDB decides that in the same transaction.
//
//	locks, err := lock.New(tbl, lock.Config{})
//	defer locks.Close(ctx)
//
//	err = locks.Do(ctx, lock.Beside(orders.Key(o)), func(ctx context.Context, lease *lock.Lease) error {
//		...
//		return lease.Commit(ctx, orders.PutOp(o)) // and release, in one transaction
//	})
//
// # Not guaranteed
//
//   - Exclusion of what happens outside the table. A lease can end while its holder is
//     paused, and nobody can be told anything while paused. Hand Lease.Fence to whatever
//     is written to, and have that refuse smaller numbers than it has seen; or check
//     Lease.Context right before, which leaves a gap.
//   - Exclusion of writes to the table that are not made through Lease.Write or
//     Lease.Commit, or with Lease.Guard among their operations.
//   - Fairness between processes: they get the lock in no order. The goroutines of one
//     client are served first come, first served, and after Config.Handoffs of them in a row
//     the lock is freed for everybody, which gives others a chance and no more.
//   - Reentrance. Whoever holds a lock and acquires it again waits for itself. Pass the
//     *Lease down to what works under it.
//   - Tables with replicas in other regions: two regions can both grant. Such a table is
//     refused (ErrMultiRegion) unless Config.HomeRegion names the one region whose clients
//     acquire; that other regions do not is then the application's business. Global tables
//     with strong consistency take no transactions, hence no guarded writes.
//   - Fences after a table was restored from a backup: they go on from what the backup has.
//     Resources outside the table that remember greater ones refuse writes until the fences
//     have caught up; deleting the lock's row makes them begin at the time of day again.
//   - To be told of a lock row that somebody deletes or changes by hand under a live session:
//     the next guarded write, commit or release finds out, since renewals do not look at it.
//   - Order in time: Lease.Context of a suspended machine ends up to a second after the
//     machine resumes.
//
// # Guarantees
//
//   - Guarded writes are exclusive, whatever clocks, pauses and networks do: one never
//     commits after another holder has acquired.
//   - Fences strictly increase per lock: across releases, expiry, deletion of the row by
//     time to live, and restarts.
//   - Lease.Context ends, with a cause, no later than the lease, also when every request
//     hangs; by the wall or the monotonic clock, whichever is earlier.
//   - A free lock is taken with one request. A lock whose holder died is taken soon after
//     its lease has ended, also when nobody was watching.
//   - An answer that was lost never makes a client wait for itself, lose its lock, or leave
//     a row held that it has reported as released. A request that arrives late can take a
//     free lock for nobody: it is free again within a lease and a period, where the holder
//     answers, once somebody has waited for it for a lease.
//   - A payload (WithData, SetData) is what the last holder that wrote one has written: a
//     request that arrives late, of an older holder or an older call, changes nothing.
//   - After ForceRelease no guarded write of the old holder goes through.
//   - Any number of locks costs one renewal per period, and no goroutine each.
//   - A row that is no lock, or a lock row that is not in order, is never changed.
//
// # When a holder is taken for dead
//
// Leases hang on their client's session, whose row alone is renewed; a Fixed lease is one of
// its own. A session is first declared dead in its row, which is terminal: it can never
// renew again. Then its locks are taken one by one. Either is enough, and the write that
// follows checks again what was seen:
//
//   - Observed: the row has shown no renewal for a whole lease, on the observer's own
//     monotonic clock. This needs no agreement of clocks.
//   - Recorded: the end that the holder has recorded lies further back than Config.Skew.
//     A client learns from DynamoDB's answers how far its own clock is off. One that may be
//     slow by more than the bound does not record ends; one that is off by more than it does
//     not use them; and what is uncertain goes to the holder. Config.Expiry switches this
//     way off.
//
// # Failure handling
//
// Renewals are repeated until the lease ends. Everything else is repeated by the table's
// retry policy (table.Retry), each single request with a timeout of a third of the lease
// and at most 3 s. A transaction conflict is repeated like throttling, and never means
// that a lock was lost.
//
//   - ErrHeld (a *HeldError): somebody else has the lock; the error says who.
//   - ErrLost: the lock is not held any more. ErrExpired, ErrStolen and ErrMaxHold match it.
//   - ErrReleased: it was given up, by Release, Commit or Close.
//   - ErrNotHeld, ErrNoSession: there is nobody to take the lock from, or to ask for it.
//   - ErrNotLock, ErrMalformed: what stands at the key is not a lock row, or not in order.
//     Somebody has to look at it.
//   - ErrClosed, ErrInvalid: the client was closed; an argument is not acceptable. Nothing
//     was sent.
//   - *table.ConditionError: a condition of the caller's own operation did not hold; its
//     Index counts among the operations given.
//   - table.ErrUnreachable and others of package table: the request failed. A guarded write
//     may then have been applied; Release may be called again.
//
// Waiting ends with the context, with Close, when Config.Backoff stops, and when a request
// fails for longer than the retry policy goes on. No error text and nothing that is logged
// above debug level contains a lock's name, a key, or a payload.
//
// # Cost
//
//	call                           requests                  units
//	Acquire, TryAcquire, free      1 UpdateItem              1 write
//	... by a client without a      1 more, which opens the   1 write more
//	session (the first, or after   session; none if Fixed
//	a lease without any lock)
//	TryAcquire, held               1 UpdateItem              1 write
//	... for longer than a lease,   1 more, at most once per  1 write more
//	by a session not known alive   lease and session
//	... cold client, ended lease   1 more                    1 write more
//	Acquire, held                  1 UpdateItem; 1           0.5 read per look, lock and
//	                               BatchGetItem per look at  session; 1 write per try; 1
//	                               all locks that are waited write after a lease, to ask
//	                               for, 1 to 2 per s         whether it is really held
//	taking over from a session     2 UpdateItem              2 writes
//	renewal of all locks           1 UpdateItem, every       1 write
//	                               quarter of the lease
//	lock held for long             1 UpdateItem, every       1 write
//	                               half Config.Retention
//	Renew, of a Fixed lease        1 UpdateItem              1 write
//	Renew, under a session         none                      none
//	Release, also to hand over     1 UpdateItem              1 write
//	Write                          1 TransactWriteItems      2 writes, and twice the operations'
//	Commit                         1 TransactWriteItems      2 writes, and twice the operations'
//	Release after Commit           none                      none
//	SetData                        1 UpdateItem              1 write
//	Inspect                        1 GetItem                 1 read
//	List of In, Index              1 Query per 1 MB of       0.5 read per 4 KB of them
//	                               lock rows
//	List of WholeTable             1 Scan per 1 MB           0.5 read per 4 KB of the table
//	ForceRelease                   1 UpdateItem; 1 to tell   1 write; 1 to tell
//	Revoke                         1 GetItem; 1 UpdateItem   1 read; 1 write
//	                               to ask
//	Close                          1 UpdateItem per lock,    1 write per lock, and 1
//	                               1 DeleteItem
//
// A client whose table has not been described yet (table.Table's Ensure, Plan, Verify) begins
// with one DescribeTable, unless Config.HomeRegion is set.
//
// Config.Index adds to what is written while a lock is held: see there.
//
// A lock row is smaller than 1 KB unless the application adds attributes, which survive, or
// a payload: each write then costs a unit per KB, and what is in a transaction twice that.
// Fixed leases take a timer each. A client takes one goroutine while it has a session, which
// ends when nothing has hung on it for a lease, and one while somebody waits.
//
// # The cheap tier
//
// A write to a single item needs no transaction where that item carries the fence of its
// last writer:
//
//	fence := table.Attr("fence")
//	err := tbl.Write(ctx, table.Update(key, fence.Set(lease.Fence()), ...).
//		If(table.Or(fence.NotExists(), fence.AtMost(lease.Fence()))))
//
// This costs half as much, and refuses an older holder only from the moment at which the
// new one has touched that item: a holder that reads first, to write what follows from
// it, has to raise the fence with its read (the same update with ReturnNew, through
// Table.Apply) or an older one can still write in between. Lease.Write has no such gap.
//
// # The lock row
//
// Names of pk, sk, type and ttl come from the table's scheme. Applications may read these
// rows, with Client.Records, and add attributes of other names.
//
//	attribute        type  meaning
//	pk, sk           S     Config.StandaloneKey or the partition key of the row beside it; Config.RowKey
//	type             S     "Lock"
//	fence            N     fencing token of the current or last holder
//	nonce            S     128 random bits per acquisition; absent means free
//	owner            S     Config.Owner of the current or last holder
//	session          S     ID of the holder's session; absent for a Fixed lease, whose
//	                       holder's liveness is in this row. After ForceRelease still there
//	lease            N     length of the lease in milliseconds; with a holder only
//	beat             N     renewals so far; Fixed only
//	expires          N     Fixed only: epoch milliseconds at which the lease ends unless renewed; absent
//	                       where the holder does not know its clock to be right
//	acquired         N     epoch milliseconds
//	released         N     epoch milliseconds; absent while held, unless it was handed over
//	released_nonce   S     nonce of the last holder that released
//	data             any   payload, encoded like an entity's attribute; absent for none
//	edits            N     how often the holder has called SetData; absent for never
//	forced           S     why ForceRelease took the lock, until the next acquisition
//	forced_nonce     S     128 random bits of the last ForceRelease
//	index keys       S     of Config.Index, while held: "LOCKS" with the scheme's prefix; acquired in
//	                       15 digits, the scheme's delimiter, and the nonce
//	ttl              N     epoch seconds: end of the lease and Config.Retention
//
// The row is kept on release, so that its fence survives. Where time to live has deleted it,
// fences begin anew at the time of day in milliseconds, which is more than a row can have
// counted to that nobody has used for the retention.
//
// # The session row
//
// Both of its keys are Config.SessionKey. It is deleted when the session ends; where that
// fails, or its process has died, time to live does it. Do not write to it.
//
//	attribute        type  meaning
//	type             S     "LockSession"
//	owner            S     Config.Owner
//	lease            N     Config.Lease in milliseconds
//	beat             N     renewals so far
//	expires          N     epoch milliseconds at which the session ends unless renewed; absent
//	                       where its holder does not know its clock to be right
//	dead             N     epoch milliseconds at which another client declared it dead
//	ask              SS    what others want to know of the holder, which each renewal reads; at most 64
//	ttl              N     epoch seconds: end of the lease and Config.Retention
//
// # Permissions
//
// dynamodb:UpdateItem, dynamodb:BatchGetItem, dynamodb:DeleteItem (of session rows),
// dynamodb:DescribeTable unless Config.HomeRegion is set, dynamodb:GetItem for Inspect and Revoke,
// dynamodb:Query for List of In, and for List of Index also on the index, dynamodb:Scan for List of
// WholeTable, and for guarded writes dynamodb:ConditionCheckItem,
// dynamodb:UpdateItem and whatever their operations need, on the table. A policy with
// dynamodb:LeadingKeys has to cover the partition keys of the locks
// and of the sessions, and "LOCKS" for List of Index.
package lock
