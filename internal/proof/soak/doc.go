// Package soak runs locks for as long as one likes in real processes, which are killed,
// stopped and cut off, over a network that loses, delays, repeats and refuses what they send.
// In the end it reads what they have written and says what must not be.
//
// A supervisor (Run) starts worker processes (Work) on one table and stands between each of
// them and DynamoDB with a faulty proxy of its own. The workers write down what they do,
// line by line, before a write is sent and after its answer has come; so the supervisor knows
// of each write whether it was acknowledged, refused, or neither: then it may or may not have
// been applied.
//
// # Workloads
//
//   - set: a row holds a list of elements, which a holder reads and writes back with one more.
//     Every acknowledged element has to be there in the end, once, and no refused one.
//   - counter: the same with a number. No two acknowledged writes have written the same one.
//   - bank: transfers between accounts whose locks are taken together. No money comes or goes,
//     and the transfers that were written account for every balance.
//   - fences: holders append their fences to a list, which keeps the order in which they were
//     committed: it never decreases.
//   - every: a job runs each 2 s in one of the processes. No interval is recorded twice.
//
// No two acquisitions of a lock have the same fence, and in the end every lock can be had.
//
// Config.Unguarded is the control: all but the last, with writes that do not go through the
// lock's guard. Sets have to lose elements, or the faults are none.
//
// # The seed
//
// It fixes the faults of each process's n-th request, and what is done to each process in
// which order and for how long. Processes run as the machine lets them, so a seed repeats
// the plan and not the history.
package soak
