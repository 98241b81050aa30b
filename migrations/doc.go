// Package migrations changes the schema and data of a table in versioned steps. Each migration runs once across all
// instances of the program, under a lock of package [lock], and leaves a record in the same table.
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
//	report, err := m.Up(ctx) // when each instance starts
//
// Package migratecmd is a command for operators, with subcommands such as status, plan and repair. REFERENCE.md, in this
// package's directory, has the format of the rows, the cost of each call, and the permissions.
//
// # How to write a migration
//
//   - If all changes fit into one transaction of up to 98 operations, use [Run.Atomic]. They are applied once, together with
//     the record, so they may be additions. Mark the migration Idempotent.
//   - For several transactions, use one [Run.AtomicStep] each. A resumed migration skips the finished steps.
//   - For an action that can be repeated, like [table.Table.Ensure], use [Run.Step], or no step. Mark the migration Idempotent
//     if everything outside of finished steps can be repeated.
//   - For many items, use [Run.Backfill]. Transform has to recognise items that it has transformed before, and return nil for
//     them. If the item does not show it, for example when a number is doubled, set Exact. Set WriteUnits to leave
//     capacity to the application. Try it with [Migrator.DryRun] first.
//   - Do not change, rename or reorder a migration that has been applied. Write another one.
//
// During a deployment, old and new instances run side by side. Change a format in steps, each in a deployment of its own: write
// both forms and read either; backfill; read the new form only; drop the old form. An old instance that starts after
// the migration finds an unknown record; [OnUnknown] with [Warn] allows that.
//
// A migration may run for hours under a lease of seconds, since the lock's session is renewed in the background.
// [lock.Config.MaxHold] applies to migrations too.
//
// # Guarantees
//
//   - Only the holder of the lock records a migration as applied. DynamoDB checks that in the same transaction. The same holds
//     for every finished step and every position of a backfill.
//   - An applied migration is not run again. A pending migration is never skipped silently. Migrations run in the order of
//     their IDs, unless an option changes that.
//   - A migration that failed, panicked or was interrupted never counts as applied. If it is not Idempotent, it does not run
//     again until an operator has decided ([Migrator.Repair]).
//   - Operations that are recorded in the same transaction are applied once, even if an answer is lost or the process dies
//     at any request.
//   - Positions of a backfill never go backwards. After a crash, at most a page per segment is repeated, and nothing if
//     Exact is set.
//   - A backfill loses no write of another program. An item that changes between its read and its write is transformed again. A
//     deleted item stays deleted.
//   - Finished steps count only for the same run. Steps of Up do not count for Down, or for the next Up.
//   - When the lease ends, the migration's context is cancelled, with the cause.
//   - An instance with no pending migrations sends one query. It does not take the lock and does not wait.
//
// # Not guaranteed
//
//   - That writes outside of the table, or without the [Run], happen once or under the lock. A holder that is paused for
//     longer than its lease continues when it resumes. Its guarded writes fail; other writes do not.
//   - That a [Run.Step] runs once. If it is interrupted, it is repeated as a whole. AtomicStep, Atomic and Exact backfills run
//     once.
//   - That writes of a Backfill without Exact are made under the lock. Each is conditional on the item that was read, so it
//     overwrites nothing. But a write in progress when the lock is lost can still be applied. So can a late copy of a request, if
//     the item is again as it was read, for example since Down has restored it. An item with a version never is.
//   - That a Backfill sees items that are created while it runs.
//   - That a Backfill maintains what package entity derives. It changes rows, not values. Transform has to set attributes of
//     index keys, and must not change unique values.
//   - That a change of a migration's code is noticed. Change [Migration.Revision] with it.
//
// # Errors
//
// The table's retry policy repeats requests. A backfill that is throttled slows down, and goes on for as long as that takes.
// Up and Down return a *[PartialError] with the finished migrations, the failed migration and its step. Its cause, or the
// error itself, is one of these:
//
//	UnfinishedError   a migration was interrupted or has failed before, and is not Idempotent: see Repair;
//	                  or its Down was: call Down again. Matches ErrUnfinished
//	DriftError        the revision of an applied migration has changed. Nothing ran. Matches ErrDrift
//	UnknownError      the table has records that the program does not know. Nothing ran. Matches ErrUnknown
//	OrderError        a pending migration comes before one that has begun. Nothing ran. Matches ErrOutOfOrder
//	ErrIrreversible   a migration has no Down. Nothing ran
//	ItemError         a backfill failed on this item, which is unchanged unless table.MayBeApplied is true of the error.
//	                  Others may have been written
//	PanicError        a migration panicked. It has the stack. Matches ErrPanic
//	lock.ErrLost      another instance may hold the lock. The record still shows the migration as running; the
//	                  next Up continues it if it is Idempotent
//	ErrMalformed      this version of the package cannot read a row. Nothing ran but the finished migrations
//
// A failure is recorded even if the context has ended; that takes at most 5 s. Texts of this package's errors, and logs above
// debug level, contain no keys and no values of attributes. The texts of the application's own errors and panics are returned to the
// caller and stored in [Record.Error], in the application's own table.
//
// # Cost
//
//	Up, nothing pending            1 consistent Query: 1 read unit per 4 KB of records, about 15 of them
//	Up, Down, Repair               2 Queries and the cost of a lock
//	Baseline                       1 Query and the cost of a lock
//	a migration                    2 transactions of 4 write units each
//	Step                           1 transaction of 4 write units
//	Atomic, AtomicStep             1 transaction of 4 write units and twice the operations'
//	Backfill                       a consistent Scan of the table, and 1 write unit per KB of each item that changes
//	                               (2 if Exact); 4 write units per page
package migrations
