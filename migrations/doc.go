// Package migrations makes versioned changes of a table's schema and data: each runs once
// across all deployments, under a lock of this toolkit, and leaves a record in the same table.
//
//	m, err := migrations.New(tbl, locks, []migrations.Migration{
//		{ID: "1_index", Idempotent: true, Up: func(ctx context.Context, run *migrations.Run) error {
//			return run.Table().Ensure(ctx)
//		}},
//		{ID: "2_status", Idempotent: true, Up: func(ctx context.Context, run *migrations.Run) error {
//			_, err := run.Backfill(ctx, migrations.Backfill{
//				Name:      "orders",
//				Filter:    table.And(table.Attr("type").Equal("Order"), table.Attr("status").NotExists()),
//				Transform: setStatus,
//			})
//			return err
//		}},
//	})
//	report, err := m.Up(ctx) // at the start of every instance
//
// # Not guaranteed
//
//   - That what a migration does outside of the table, or writes to it without its Run, is
//     done once, or under the lock. A holder that is paused for longer than its lease goes
//     on writing when it wakes up; its guarded writes fail, others do not.
//   - That a Step is done once: it is repeated as a whole when it was cut off. AtomicStep,
//     Atomic and Exact backfills are done once.
//   - That the writes of a Backfill which is not Exact are made under the lock: each is
//     conditional on what was read, which keeps them from overwriting anything, and no more.
//     One that is under way while the lock is lost can still be applied.
//   - That a Backfill meets items that others make while it runs.
//   - That a backfill keeps what package entity derives: it sees rows, not values. Attributes
//     of index keys have to be set along, and unique values cannot be changed by it.
//   - To notice that the code of a migration was changed: Migration.Revision says so.
//
// # Guarantees
//
//   - A migration is recorded as applied only by who holds the lock: DynamoDB decides that in
//     the same transaction. So is every finished step and every position of a backfill.
//   - A migration that is applied is not run again, a pending one is never skipped without a
//     word, and they run in the order of their IDs, unless an option says otherwise.
//   - A migration that has failed, panicked or was cut off is never taken for applied, and
//     one that is not Idempotent is not run again before somebody has decided (Repair).
//   - What was applied and recorded in one transaction is applied once, also where the answer
//     was lost, and where the process died at whatever request.
//   - Positions of a backfill never go backwards, within and across attempts; what is
//     repeated after a crash is at most a page per segment, and nothing if Exact.
//   - A backfill loses nobody's write: an item that changes between its read and its write is
//     transformed anew. One that is deleted meanwhile does not come back.
//   - Steps belong to the run that they were done in: those of Up say nothing to Down, or to
//     the next Up.
//   - The end of the lease cancels the context of the migration, with the cause.
//   - Instances that have nothing to do send one query, and neither take the lock nor wait.
//
// # How to write a migration
//
//   - All that fits into one transaction: Run.Atomic, up to 98 operations. It is applied
//     together with the record, so it may be anything, an addition too. Mark it Idempotent.
//   - Several of these: one AtomicStep each. A resume skips those that are done.
//   - Something that can be repeated, like Table.Ensure: Step, or no step at all. Mark the
//     migration Idempotent if all that it does outside of finished steps bears repetition.
//   - Many items: Backfill. Have Transform recognise what it has done already, and return nil
//     for it; where that cannot be seen from the item (a number that is to be doubled), set
//     Exact. Set WriteUnits so that the application keeps its share of the capacity, and look
//     at a DryRun first.
//   - Do not change or reorder a migration that is applied somewhere. Write another one.
//
// Deployments roll: for some time old and new instances run beside each other, and a backfill
// takes its time. Go in steps that each work with the one before: first write both forms and
// read either, then backfill, then read the new form alone, then drop the old one, each in a
// deployment of its own. An old instance that starts after the new one has migrated meets
// records that it does not know, which OnUnknown(Warn) lets pass.
//
// Whatever runs is under one lock, whose session is renewed in the background: migrations may
// take hours under a lease of seconds. lock.Config.MaxHold ends them like any holder.
//
// # Failure handling
//
// Requests are repeated by the table's retry policy. What comes back from Up and Down says
// in a *PartialError what was done, and which migration failed in which step.
//
//   - ErrUnfinished (an *UnfinishedError): a migration was cut off or has failed before, and
//     is not Idempotent: Repair. Or it was being taken back: Down goes on with it.
//   - ErrDrift, ErrUnknown, ErrOutOfOrder (a *DriftError, *UnknownError, *OrderError): the
//     records and the program's list do not go together. Nothing was run. Options decide.
//   - ErrIrreversible: Down of a migration that has none. Nothing was run.
//   - lock.ErrLost: somebody else may hold the lock by now. The record still says that the
//     migration runs; the next Up goes on with it where it is Idempotent.
//   - *ItemError: a backfill failed on this item, which is as it was. Other items may have
//     been written, positions before it are recorded.
//   - ErrPanic (a *PanicError, with the stack), ErrSegments, ErrRecorded, ErrInvalid: see there.
//   - ErrMalformed: a row is not one that this version of the package writes. Nothing was run.
//
// A failure is recorded also where the context has ended, bounded by 5 s. Nothing that is
// logged above debug level, and no error text of this package, contains a key or an
// attribute of the application's. The texts of its own errors and panics are passed on, to
// the caller and into Record.Error, which stands in its own table.
//
// # Cost
//
//	call                           requests                  units
//	Up, nothing pending; Status,   1 Query, consistent       1 read per 4 KB of records,
//	Plan, Validate                                           about 15 of them
//	... Status, per unfinished     1 Query, consistent; 1    1 read per 4 KB of checkpoints,
//	migration                      DescribeTable in all      about 15 of them
//	Up, Down, Baseline, Repair     2 Query, and what a lock  ... and 2 writes for the lock
//	                               costs (see package lock)
//	waiting for another instance   1 Query every 1 to 5 s,   as above
//	                               and looks at the lock
//	a migration                    2 TransactWriteItems;     4 writes each
//	                               1 Query if run before
//	Step                           1 TransactWriteItems      4 writes
//	Atomic, AtomicStep             1 TransactWriteItems      4 writes, and twice the operations'
//	                               (Atomic: 1 less after)
//	Backfill                       2 TransactWriteItems, 1   8 writes, 1 read per 4 KB of the
//	                               Scan per page             table
//	... per page                   1 TransactWriteItems      4 writes
//	... per item that changes      1 UpdateItem              1 write per KB
//	... Exact, per 98 items        1 TransactWriteItems      2 writes per KB of items, and 4
//	Baseline                       1 TransactWriteItems per  2 writes each, and 2
//	                               99 migrations
//	DryRun                         1 Scan per page           1 read per 4 KB of the table
//
// # Rows
//
// All stand in one partition per set, beside the lock. Names of pk, sk and type come from the
// table's scheme, as do the prefix and the delimiter of keys. All others begin with the
// lock.Config.AttributePrefix of the lock client. Records have no time to live: they are the history.
//
//	record           type  meaning
//	pk               S     MIGRATIONS#, and the set: "main" unless InSet says otherwise
//	sk               S     MIGRATION#, and the ID
//	type             S     "Migration"
//	state            S     pending (taken back), running, applied, failed
//	name, revision   S     of the migration when it was run last
//	down             BOOL  what runs, or has failed, takes the migration back
//	baseline         BOOL  taken for applied, and not run
//	repeatable       BOOL  Migration.Repeatable
//	owner            S     lock.Config.Owner of who ran it last
//	fence            N     fencing token of the lease that it ran under
//	base             N     that of the lease that it was begun under
//	attempts         N     to run it since it was pending
//	started,         S     times of the last attempt
//	finished
//	took             N     nanoseconds, of the last attempt
//	approved         BOOL  Repair lets it run again
//	step, error      S     in which step it failed, and why, at most 1000 bytes
//
//	checkpoint       type  meaning
//	sk               S     CHECKPOINT#, the ID, #, the step's name, #, and the part as six digits:
//	                       000000 is the step itself, others are segments of a backfill
//	type             S     "MigrationCheckpoint"
//	done             BOOL
//	base             N     the record's: those of other runs do not count
//	seq              N     counts the writes of this row
//	segments         N     into which the backfill parts the table
//	after_pk,        S     key of the last item that is done
//	after_sk
//	seen, changed    N     items so far
//	fence            N     of the lease that it was written under
//	at               S     time of the write
//
// # Permissions
//
// dynamodb:Query, dynamodb:PutItem, dynamodb:DeleteItem and dynamodb:ConditionCheckItem for
// the bookkeeping and the guard, what package lock needs for its lock, dynamodb:Scan and
// dynamodb:UpdateItem for backfills, dynamodb:DescribeTable for the progress's total, and
// whatever the migrations themselves do, on the table. A policy with dynamodb:LeadingKeys has
// to cover the partition of each set; a Scan has none.
package migrations
