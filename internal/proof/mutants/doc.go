// Package mutants breaks the lock protocol on purpose, to find out whether the tests notice:
// a test suite is worth what it fails for.
//
// Each Mutant is one mistake of the kind that somebody could make: a condition that is
// dropped, an answer that is ignored, a bound that is off by one. Run compiles the tests with
// the mistake in place of the source (go test -overlay: no file of the source is touched) and
// runs them, the one that has killed it before first (killers.txt), and then the fast ones, until
// one fails. A mutant that survives shows a promise that no test holds.
//
// A kill counts only where the same test, run alone, fails with the mistake once more and
// passes without, so a test that fails now and then, or on a busy machine, kills nothing. A
// test that hangs is stopped, and counts as a kill of its own kind. A mutant that does not fit
// the source any more, or does not compile, is an error and no kill.
//
// Most mutants are killed by a fast test that was written for them, so the table says nothing
// about the simulation. Config.Tests has only some tests run, and the sum then says what those
// kill alone:
//
//	make mutants TESTS='LockSet|Linearizable|CounterAdds|BankKeeps|LeadersFences|OnceWhatever|QueueIs|WrongClocks|RowsDisappear'
//
// A seed that has found a mistake says nothing any more once the simulation or the protocol
// has changed: it is another world then. A Mutant can therefore list worlds in which it was Seen,
// and Run and a test play them: with the mistake there have to be violations, and none
// without. Where a mistake shows no more, Search finds other worlds:
//
//	go run ./internal/proof/mutants/cmd/mutants -search queue,register -seeds 0-99 -run hand-overs-counted-anew
//
// Left out are mistakes that no test can tell from the protocol, since something else decides the same:
//   - a waiter that takes a holder for dead too early: the write that it sends then checks once more what was
//     observed (what is observed, and that check, are in the list);
//   - evicting a session's ticket under whatever fence: a session that is marked dead holds under no other;
//   - giving out a lease that comes after Close: the context that Close has ended refuses it as well.
package mutants
