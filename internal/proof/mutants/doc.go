// Package mutants breaks the lock protocol on purpose, to find out whether the tests notice.
//
// Each Mutant is one mistake that a programmer could make: a condition is dropped, an answer is ignored, a bound is
// off by one. Run compiles the tests with the mistake in place of the source (go test -overlay, so no file of the
// source changes). It runs the tests until one fails: first the one that has killed the mutant before (killers.txt),
// then the fast ones, then the others. A mutant that survives shows a promise that no test checks.
//
// A kill counts only if the same test, run alone, fails once more with the mistake and passes without it. So a flaky
// test, or a busy machine, kills nothing. A test that hangs is stopped, and counts as a kill of its own kind. A
// mutant that does not fit the source any more, or does not compile, is an error and no kill.
//
// Most mutants are killed by a fast test that was written for them. So the table says nothing about the simulation.
// Config.Tests selects tests, and the sum then tells what those kill alone:
//
//	make mutants TESTS='LockSet|Linearizable|CounterAdds|BankKeeps|LeadersFences|OnceWhatever|QueueIs|WrongClocks|RowsDisappear'
//
// A Mutant can list worlds of the simulation in which it was Seen. Run and a test play them: there must be violations
// with the mistake, and none without. After a change of the simulation or the protocol, a seed is another world, in
// which the mistake may not show any more. Search then finds other worlds:
//
//	go run ./internal/proof/mutants/cmd/mutants -search queue,register -seeds 0-99 -run hand-overs-counted-anew
//
// Three mistakes are not in the list, since the code behaves correctly with each of them:
//
//   - A waiter takes a holder for dead too early. The write that it then sends checks again what was observed. (What
//     is observed, and that check, are in the list.)
//   - A session's ticket is evicted under any fence. A session that is marked dead holds under no other fence.
//   - A lease is returned after Close. Close has ended the context, which refuses the lease as well.
package mutants
