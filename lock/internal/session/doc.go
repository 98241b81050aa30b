// Package session keeps the liveness of one process in a row of its own, and judges that of others.
//
// Every place that a process has in a line depends on its session, whose row alone is renewed: one
// write per quarter of the lease, for any number of locks. A process that finds another's session dead
// marks it so, under a condition. That is terminal, and its tickets can be removed from every line.
//
// A Keeper opens this process's session when it is needed, renews it, and ends it when nothing has
// depended on it for half a lease. Others records what the sessions of other processes have shown, and
// whether they can be taken for dead. The row's mailbox holds questions to the process behind a
// session, which reads them with its next renewal.
//
// The package knows nothing of lines.
package session
