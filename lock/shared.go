package lock

// Shared takes the lock as a reader: readers hold together, and a writer, who acquires without this option, holds alone. The order
// of the line decides: a reader holds while all before it are readers. A writer that waits stops the readers behind it, so it waits
// for those before it and for nobody else.
//
//	lease, err := locks.Acquire(ctx, lock.Beside(orders.Key(o)), lock.Shared())
//
// TryAcquire takes the lock where nobody but readers is in the line.
//
// Guarded writes of a reader ([Lease.Write], [Lease.Commit], [Lease.Guard]) are applied only if no writer has held the lock since the
// lease was granted: what it has read under the lease is as it was. They are in no order with those of other readers, and one
// that was given up without an answer may still be applied after a later one, as long as no writer holds. [Lease.Fence] tells
// readers and writers apart that come after each other, and not readers who hold together.
//
// A process has a place for each reader, which none passes on. [Client.ForceRelease] of one reader makes the releases of
// those that hold with it [ErrLost], although nothing of theirs was lost. Not with [Permits], [Fixed] and [WithData], and not in
// AcquireAll, Lead and Every.
//
// Cost: that of a lock; for Release one consistent read more where others have taken a dead reader out of the line meanwhile, and
// for TryAcquire one write more where others read already.
func Shared() Option {
	return func(r *request) error {
		r.shared = true
		return nil
	}
}
