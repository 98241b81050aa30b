// Package lock is a distributed lock whose row is in the application's own table, next to the rows that it protects.
// A write made under a lock commits only while the lock is still held: DynamoDB decides that in the same transaction.
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
//	n at a time                               [Permits]                  the same; more where many come and go at once
//	many who read, or one who writes          [Shared]                   the same as Permits
//	what several rows say at one moment       [Client.View]              a transaction of reads; nothing is acquired
//	a value that no two rows have             entity.Spec.Unique         one row more in the transaction that writes
//	nobody has changed the row since          entity.Spec.Version        none: a condition of the write
//	several locks, or none                    [Client.AcquireAll]        2 writes for each, in one transaction, and 1 to release
//
// A lock is for work that takes time, or that writes several rows in several steps. What fits into one transaction needs a
// version or a unique value, and no lock.
//
// # The line
//
// The lock's row holds a line of tickets, in the order of their arrival. The first ticket holds the lock. The fence counts how
// often the first place has changed; it is the fencing token of the ticket that is first.
//
//	                 line                               fence
//	                 A holds, B and C wait                 17
//	D acquires       A holds, B, C and D wait              17    one write: appends a ticket
//	A releases       B holds, C and D wait                 18    one write: removes the first ticket
//
// An acquire is one write whether the lock is free or not. A release hands over to the next ticket, in any process, so there
// is no moment at which processes race for the lock. A process has one place per lock: its goroutines queue in memory, and
// pass the lock to each other at most [Config.Handoffs] times in a row while other processes wait.
//
// # Guarantees
//
//   - Guarded writes are exclusive, whatever clocks, pauses and networks do. A write through [Lease.Write] or [Lease.Commit],
//     or with [Lease.Guard] in its transaction, never commits after another holder has acquired.
//   - Writes through one lease are applied in their order. One that was given up without an answer is not applied after a
//     later one was.
//   - Fences strictly increase per lock: across releases, expiry, force, deletion of the row by time to live, and restarts.
//   - First come, first served: across processes in the order in which DynamoDB applied the requests, within a process in the
//     order of the calls. The only exception are the passes above.
//   - [Lease.Context] ends, with a cause, no later than the lease, by the wall or the monotonic clock, whichever is earlier,
//     also when every request hangs.
//   - A lock whose holder died is taken soon after its lease has ended. A waiter that died delays those behind it by no more
//     than that, once per dead process.
//   - A lost answer never makes a client wait for itself, lose its lock, or leave a lock or a place that it has reported as
//     given up. A request that arrives late can leave a ticket that nobody uses. It is first for at most a lease and a
//     quarter, while its process lives and somebody waits.
//   - Several locks are taken together ([Client.AcquireAll]) without deadlock, in whatever order they are named, and without
//     starvation: all lines are entered in one transaction.
//   - After [Client.ForceRelease] no guarded write of the old holder goes through.
//   - Of the runs of one interval ([Client.Every]) at most one is recorded, together with what it commits.
//   - Any number of locks and places costs one renewal every quarter of the lease, and no goroutine for a lock that is held.
//   - No more than n hold permits at once ([Permits]), by guarded writes; a permit of a process that died is free after its lease.
//   - Readers hold together, and a writer alone ([Shared]). A guarded write of a reader is applied only if no writer has held since
//     its lease was granted. A writer that waits stops the readers behind it.
//   - A view ([Client.View]) shows rows, and whether somebody holds their lock, at one moment, without acquiring.
//   - A row that is not a lock's is never changed. A lock's row that is not in order grants nothing.
//
// # Not guaranteed
//
//   - Exclusion of effects outside the table. A lease can end while its holder is paused. Send [Lease.Fence] along, and have
//     the resource refuse numbers smaller than it has seen; or check [Lease.Context] right before, which leaves a gap.
//   - Exclusion of writes to the table that are not guarded.
//   - An order among the writes of those who hold at once, readers or permits. One of theirs that was given up without an answer
//     may be applied after a later one of the same lease, while it holds.
//   - Reentrance. A holder that acquires its own lock again waits for itself. Pass the [*Lease] down instead.
//   - Order before the line. It has 100 places. Where it is full, processes try again to enter, in no order.
//   - Progress of others behind AcquireAll. It holds the locks that it is first for while it waits for the rest.
//   - Tables with replicas in other regions: two regions can both grant. Such a table is refused ([ErrMultiRegion]) unless
//     [Config.HomeRegion] names the one region that acquires.
//   - Fences after a table was restored from a backup: they go on from what the backup has.
//   - A signal about a row that was deleted or changed by hand. The next guarded write, commit or release finds out.
//   - A signal before the first instruction after a pause. The context ends within milliseconds after a stopped process goes
//     on, and within a twentieth of the lease (50 ms to 1 s) after a suspended machine resumes.
//
// # When a holder is taken for dead
//
// All tickets of a process depend on its session, a row of its own that is renewed every quarter of the lease. A [Fixed] lease
// needs no session: its ticket contains the length of its lease. A session is dead when either is true:
//
//   - Observed: it showed no renewal for a whole lease, on the observer's own monotonic clock.
//   - Recorded: the end that it has recorded lies further back than [Config.Skew]. A client learns from DynamoDB's answers how
//     far its own clock is off; one that is off by more neither uses nor records ends. [ObservedOnly] switches this off.
//
// A waiter first marks the session dead, under a condition that checks again what was seen. That is terminal: the session can
// never be renewed again. Then its tickets are removed, which hands the lock over. Clocks decide only when that happens.
// Guarded writes are safe without them.
//
// # Failure handling
//
//   - [ErrHeld] (a [*HeldError]): somebody else has the lock. The error tells who, and how many wait.
//   - [ErrLost]: the lock is not held any more. [ErrExpired], [ErrStolen] and [ErrMaxHold] match it.
//   - [ErrRevoked], the cause of a lease's context: somebody asked for the lock ([Client.Revoke]). It is still held.
//   - [ErrReleased]: it was given up, by Release, Commit or Close.
//   - [*PermitsError]: the row has another number of permits than the call names, or one of both is a lock.
//   - [ErrNotHeld], [ErrNoSession]: there is no holder to take the lock from, or to ask.
//   - [ErrNotLock], [ErrMalformed]: the row at the key is not a lock, or not in order. It may come from an older version of
//     this package, or from a client with another [Config.AttributePrefix].
//   - [ErrClosed], [ErrInvalid]: the client was closed; an argument is not acceptable. Nothing was sent.
//   - [*table.ConditionError]: a condition of the caller's own operation did not hold. Its Index counts among the caller's.
//   - [table.ErrUnreachable] and others of package table: the request failed. A guarded write may have been applied. Release
//     may be called again.
//
// Requests are repeated by the table's retry policy ([table.Retry]), each with a timeout of a third of the lease and at most
// 3 s. Renewals are repeated until the lease ends. A transaction conflict is repeated, and never means that a lock was lost.
// Waiting goes on through an outage. It ends with ctx, with Close, and when [Config.Backoff] stops.
//
// A panic in a caller's function (of [Client.Do], [Client.Lead] or [Client.Every]) releases the lock and goes on to the caller.
// No error and no log record above debug level contains a lock's name, a key or a payload.
//
// # Cost
//
//	call                               requests                  units
//	Acquire of a free lock             1                         1 write
//	... by a client without a session  1 more, which opens it    1 write more; none if Fixed
//	TryAcquire of a held lock          1                         1 write
//	Acquire of a held lock             1, and some 4 to 6 looks  1 write, and 0.5 read per look
//	Release, also to hand over         1                         1 write
//	... of a permit, or a reader       1, and 1 if it has moved  1 write each
//	Write, Commit (and release)        1 transaction             2 writes, and twice the operations'
//	View of n rows, without the lock   1 transaction             2 reads for each, and 2
//	renewal of all locks               1 per quarter of a lease  1 write
//
// A row with less than 12 tickets and no payload is smaller than 1 KB. Beyond that, each write to it costs one unit per KB.
//
// # More
//
// REFERENCE.md, in this package's directory, has the format of the rows, the cost of all calls, IAM permissions, metrics, log
// events and settings. policy.json is an IAM policy. TESTING.md describes how the lock is tested.
package lock
