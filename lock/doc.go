// Package lock is a distributed lock whose row is in the application's own table, next to the rows that it protects.
// A write under a lock commits only while the lock is still held. DynamoDB decides that in the same transaction.
//
//	locks, err := lock.New(tbl, lock.Config{})
//	defer locks.Close(ctx)
//
//	err = locks.Do(ctx, lock.Beside(orders.Key(o)), func(ctx context.Context, lease *lock.Lease) error {
//		...
//		return lease.Commit(ctx, orders.PutOp(o)) // and release, in one transaction
//	})
//
// # Which one do I need
//
//	wanted                                    use                        cost
//	one at a time                             a lock: Acquire            2 writes: acquire and release
//	n at a time                               Permits                    the same; more where many come and go at once
//	many readers, or one writer alone         Shared                     the same as Permits
//	a snapshot of several rows                Client.View                a transaction of reads; nothing is acquired
//	a value that is unique                    entity.Spec.Unique         one more row in the transaction that writes
//	no lost update of one row                 entity.Spec.Version        none: a condition of the write
//	several locks, all or none                Client.AcquireAll          2 writes and 1 read for each, and 1 write each to release
//
// A lock is for work that takes time, or that writes several rows in several steps. What fits into one transaction needs a
// version or a unique value, and no lock.
//
// # The line
//
// The lock's row holds a line of tickets, in the order of their arrival. The first ticket holds the lock. The fence is the
// fencing token of the first ticket. It grows by one each time that the first ticket leaves the line. (Readers that hold
// together share one.)
//
//	                 line                               fence
//	                 A holds, B and C wait                 17
//	D acquires       A holds, B, C and D wait              17    one write: appends a ticket
//	A releases       B holds, C and D wait                 18    one write: removes the first ticket
//
// An acquire is one write, whether the lock is free or not. A release gives the lock to the next ticket, in any process, so
// processes never race for a lock. A process has one place per lock. Its goroutines queue in memory, and pass the lock to
// each other at most [Config.Handoffs] times in a row while other processes wait.
//
// # Guarantees
//
//   - Guarded writes are exclusive, whatever happens to clocks, processes and networks. A write through [Lease.Write] or
//     [Lease.Commit], or with [Lease.Guard] or [GuardToken.Guard] in its transaction, never commits after another holder has
//     acquired.
//   - [Lease.Write] and [Lease.Commit] are applied in their order. One whose answer was lost is never applied after a later one.
//   - Fences strictly increase per lock: across releases, expiry, force, restarts, and deletion of the row by time to live.
//     Readers that hold together share a fence. [Client.ForceRelease] tells what the reset of a malformed row does.
//   - First come, first served. Across processes, the order is that in which DynamoDB applied the requests; within a process,
//     that of the calls. Exceptions: passes, a full line, and calls that take a place over or enter again after an outage.
//   - [Lease.Context] ends no later than the lease, by the wall clock or the monotonic clock, whichever is earlier, even if
//     no request gets an answer. [context.Cause] tells why.
//   - If a holder dies, the lock is taken soon after the end of its lease. A process that dies while it waits delays those
//     behind it once: by up to one lease (its own, or that of a holder that has died too), and by two for each [Fixed] lease
//     that it had asked for. ([Shared] describes an exception for readers behind a writer with a Fixed lease.)
//   - A lost answer does no harm: no client waits for itself, loses its own lock, or leaves behind a lock or a place that it
//     has reported as given up. A request that arrives late can leave a ticket that nobody uses. If its process lives, that
//     ticket is removed at most one and a half leases after it is first and somebody waits; it can take longer behind more
//     than 1,000 tickets of that process. REFERENCE.md tells when it is removed if others only try.
//   - [Client.AcquireAll] takes several locks without deadlock or starvation, in whatever order they are named.
//   - After [Client.ForceRelease] no guarded write of the old holder goes through. ([Shared] describes an exception for readers.)
//   - At most one run of an interval ([Client.Every]) is recorded, together with what it commits.
//   - One renewal every quarter of the lease is enough for any number of locks and places. A lock that is held needs no
//     goroutine.
//   - Guarded writes of at most n permit holders go through at any time ([Permits]). The permit of a process that died is
//     free after its lease.
//   - Readers hold together, and a writer alone ([Shared]). A guarded write of a reader is applied only if no writer has held
//     since the reader's lease was granted. A writer that waits stops the readers behind it.
//   - [Client.View] shows rows, and who holds their lock, as of one moment, without acquiring the lock.
//   - A row that is not a lock is never changed. A malformed lock row grants nothing.
//
// # Not guaranteed
//
//   - Exclusion of effects outside the table. A lease can end while its holder is paused. Send [Lease.Fence] with the
//     request, and let the resource refuse a number that is smaller than one it has seen. Without that, check
//     [Lease.Context] directly before the effect, which leaves a gap.
//   - Exclusion of writes to the table that are not guarded.
//   - An order among the writes of leases that are held at the same time ([Permits], [Shared]). Under such a lease, a write
//     whose answer was lost can also be applied after a later write, as long as the lease is held.
//   - Reentrance. A holder that acquires its own lock again waits for itself. Pass the [*Lease] as an argument instead.
//   - Order beyond 100 processes. A line has 100 places. If it is full, processes try again to enter it, in no order. With
//     [Permits] and [Shared] each call has a place of its own, so that this is true of more than 100 calls.
//   - Progress of others behind AcquireAll. It holds the locks for which it is first while it waits for the rest.
//   - Tables with replicas in other regions: two regions can both grant a lock. Such a table is refused ([ErrMultiRegion])
//     unless [Config.HomeRegion] names the one region that acquires. If it is strongly consistent across regions (MRSC), it
//     has no transactions: guarded writes fail there.
//   - Fences after the table was restored from a backup: they continue from the numbers in the backup.
//   - A signal if the lock's row was deleted or changed by hand. The next guarded write, commit or release notices that.
//   - A signal before anything else runs after a pause: some instructions can run before the context ends. It ends within
//     milliseconds after a stopped process continues, and within a twentieth of the lease (50 ms to 1 s) after a suspended
//     machine resumes.
//
// # When a holder counts as dead
//
// All tickets of a process depend on its session: one row, which is renewed every quarter of the lease. ([Fixed] leases need
// no session: the ticket contains the length of the lease.) A session counts as dead in either of two cases:
//
//   - Observed: another client has seen no renewal for a whole lease, on its own monotonic clock.
//   - Recorded: the end that the session has recorded is further in the past than [Config.Skew]. A client learns from
//     DynamoDB's answers how far its own clock is off. If that is more than Skew, it neither uses nor records such times.
//     [ObservedOnly] switches this case off.
//
// A waiter first marks the session as dead, under a condition that checks again what it has seen. From then on the session
// can never be renewed. Then the waiter removes the session's tickets, and the next in line holds the lock. Clocks decide
// only when that happens. Guarded writes are safe without them. From a holder that died long ago, the lock is taken at once.
// REFERENCE.md tells what "long ago" means.
//
// # Failure handling
//
//   - [ErrHeld] (a [*HeldError]): somebody else has the lock. The error tells who, and how many wait.
//   - [ErrLost]: the lock is not held any more. [ErrExpired], [ErrStolen] and [ErrMaxHold] match it.
//   - [ErrRevoked], as the cause of a lease's context: somebody asked for the lock ([Client.Revoke]). It is still held.
//   - [ErrReleased]: the lock was given up by Release, Commit or Close.
//   - [*PermitsError]: the call and the row have different numbers of permits. A lock without permits has the number 0.
//   - [ErrNotHeld], [ErrNoSession]: there is no holder to take the lock from, or none that can be asked.
//   - [ErrNotLock], [ErrMalformed]: the row at the key is not a lock, or is a malformed one. Perhaps an older version of
//     this package wrote it, or a client with another [Config.AttributePrefix] or [Config.SessionKey].
//   - [ErrClosed]: the client was closed. [ErrInvalid]: an argument is not acceptable; nothing was written.
//   - [*table.ConditionError]: a condition of the caller's own operation was not met. Its Index is that of the operation.
//   - [table.ErrUnreachable] and other errors of package table: the request failed. A guarded write may have been applied.
//     Release can be called again.
//
// Requests are repeated by the table's retry policy ([table.Retry]). Each request of the lock itself has a timeout
// of a third of the lease, at most 3 s. A guarded write has the timeout of the policy, 5 s by default.
// Renewals are repeated until the lease ends. A transaction conflict is repeated; it never means that the lock was lost.
// A wait goes on through an outage. It ends with ctx, with [Client.Close], and when [Config.Backoff] stops.
//
// A panic in a function that was passed to [Client.Do], [Client.TryDo], [Client.Lead] or [Client.Every] releases the lock.
// It is not recovered. No error, and no log record above debug level, contains a lock's name, a key or a payload.
//
// # Cost
//
//	call                               requests                  units
//	Acquire of a free lock             1                         1 write
//	... by a client without a session  1 more, which opens it    1 write more; none if Fixed
//	TryAcquire of a held lock          1                         1 write
//	Acquire of a held lock             1, and looks              1 write, and 0.5 read per look
//	Release, also to the next in line  1                         1 write
//	... of a permit, or a reader       1, or 2 if it has moved   1 write each
//	Write, Commit (and release)        1 transaction             2 writes, and twice the operations'
//	View of n rows                     1 transaction             2 reads for each row, and 2 for the lock
//	renewal of all locks               1 per quarter of a lease  1 write
//
// In a long wait, the next in the line looks every 0.75 s, others every 5 s, and all more often before a deadline.
//
// # More
//
// REFERENCE.md, in this package's directory, has the format of the rows, the cost of all calls, IAM permissions, metrics, log
// events and settings. policy.json is an IAM policy. TESTING.md describes how the lock is tested.
package lock
