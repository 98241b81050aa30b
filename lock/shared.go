package lock

// Shared acquires the lock as a reader. Readers hold together. A writer, who acquires without this option, holds alone.
//
//	lease, err := locks.Acquire(ctx, lock.Beside(orders.Key(o)), lock.Shared())
//
// The order of the line decides. A reader holds while all tickets before it are readers. A writer that waits stops the
// readers behind it, so it only waits for those before it. [Client.TryAcquire] succeeds if only readers are in the
// line, apart from writers that died long ago. A reader that acquires the lock as a writer waits for itself: release first.
//
// If a writer dies while it waits, the readers behind it go on after its lease. If it waited with a [Fixed] lease, nothing tells that it
// has died: they wait until the readers before it have left, and then for that lease.
//
// Guarded writes of a reader ([Lease.Write], [Lease.Commit], [Lease.Guard]) are applied only if no writer has held the
// lock since the reader's lease was granted: what the reader has read under the lease has not changed since. Writes
// of several readers can be applied in any order. A write whose answer was lost may be applied after a later one, while no
// writer holds. [Lease.Fence] orders readers and writers that follow each other, but not readers who hold together.
//
// Each reader has a place of its own in the line, and does not pass it on. After [Client.ForceRelease] of one reader,
// the releases of the readers that hold with it return [ErrLost], although they have lost nothing.
//
// A late copy of the request that acquired a reader's lease can enter its ticket again. While other readers hold, the
// [Lease.Guard] and the [GuardToken] of that lease are then valid again. Its writes still commit only if no writer has
// held since. So if a reader's write got no answer, and its repetition finds the lock lost, the error matches
// [table.ErrUnreachable] and not [ErrLost]: the first attempt may yet be applied.
//
// Shared cannot be combined with [Permits], [Fixed] and [WithData], nor with [Client.AcquireAll], [Client.Lead] and
// [Client.Every].
//
// Cost: that of a lock. Release costs one more consistent read if others have removed a dead reader meanwhile.
// TryAcquire costs one more write if other readers hold already.
func Shared() Option { return set(func(r *request) { r.shared = true }) }
