// Package waitqueue lets many goroutines of one process wait for locks whose waiting lines are rows of a table.
//
// It has two parts, which do not know each other:
//
//   - [Queues] orders the goroutines that want the same lock, first come, first served. The process has one [Place]
//     in the lock's line, and its goroutines use it one after the other.
//   - [Poller] reads the rows that somebody watches, many of them with one request, and never more than a given
//     number a second. [Estimate] says when a waiter looks at its row again.
//
// The package knows nothing of leases, tickets or transactions, nor of what a row contains.
//
// # Guarantees
//
//   - A key for which nobody waits and that has no place is forgotten. A waiter leaves in constant time.
//   - The goroutine that reads runs only while somebody watches, and until a read under way has ended.
//   - No mutex is held while a row is read or a caller's function runs.
package waitqueue
