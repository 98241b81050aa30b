// Package session keeps a row that shows that this process is alive, and judges the rows of other processes.
//
// Every place of a process in a line depends on its session, unless it has a Fixed lease. Only the session's row is renewed: one write
// per quarter of the lease, for any number of locks. A process that finds another's session dead marks that row as dead, under a
// condition. The mark is final: the session's tickets can then be removed from every line.
//
// A Keeper opens this process's session when it is needed, and renews it. If nothing depends on the session, it ends half a lease after
// its last renewal. Others records what the sessions of other processes have shown, and whether they can be taken for dead. The mailbox
// in a session's row holds questions to its process, which reads them with its next renewal.
//
// The package knows nothing of lines.
package session
