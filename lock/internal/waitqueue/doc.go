// Package waitqueue lets many goroutines of one process wait for locks whose waiting lines are rows of a table.
//
// It has two parts, neither of which uses the other:
//
//   - [Queues] orders the goroutines that want the same lock, first come, first served. The process has one [Place]
//     in the lock's line, and its goroutines use it one after the other.
//   - [Poller] reads the rows that somebody watches: many rows with one request, and at most [Rate] rows a second in
//     the long run. [Estimate] tells when a waiter looks at its row again.
//
// The package knows nothing of leases, tickets or transactions, nor of the content of a row.
//
// # Guarantees
//
//   - A key that has no place, and for which nobody waits, is forgotten. A waiter leaves in constant time.
//   - The goroutine that reads runs only while somebody watches, and until a read under way has ended.
//   - No mutex is held while a row is read or a function of the caller runs.
package waitqueue
