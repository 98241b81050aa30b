// Package soak runs locks in real processes for as long as wanted. The processes are killed, stopped and cut off.
// Their network loses, delays, repeats and refuses requests. At the end, the package reads what the processes have
// written, and reports violations.
//
// A supervisor (Run) starts worker processes (Work) on one table. Between each of them and DynamoDB it puts a faulty
// proxy. The workers report each write in a line before it is sent, and again after its answer has come. So the
// supervisor knows whether a write was acknowledged, was refused, or has no known result: then it may have been
// applied or not.
//
// # Workloads
//
//   - set: a row holds a list of elements. A holder reads it, and writes it back with one element more. At the end,
//     every acknowledged element is there once, and no refused one.
//   - counter: the same with a number. No two acknowledged writes have written the same number.
//   - bank: transfers between accounts whose locks are acquired together. The sum never changes, and the transfers
//     explain every balance.
//   - fences: holders append their fences to a list, in the order of the commits. The list never decreases.
//   - every: a job runs every 2 s in one of the processes. No interval is recorded twice.
//
// No two acquisitions of a lock have the same fence, and at the end every lock can be acquired.
//
// Config.Unguarded is the control. It runs all workloads but every, with writes that do not use the lock's guard.
// Sets have to lose elements: otherwise the faults are too weak.
//
// # The seed
//
// The seed decides the faults of each process's n-th request, and what is done to each process, in which order and
// for how long. How fast processes run depends on the machine. So a seed repeats the plan, and not the history.
package soak
