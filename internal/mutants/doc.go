// Package mutants breaks the lock protocol on purpose, to find out whether the tests notice:
// a test suite is worth what it fails for.
//
// Each Mutant is one mistake of the kind that somebody could make: a condition that is
// dropped, an answer that is ignored, a bound that is off by one. Run compiles the tests with
// the mistake in place of the source (go test -overlay: no file of the source is touched) and
// runs them, the fast ones first, until one fails. A mutant that survives shows a promise that
// no test holds.
//
// A kill counts only where the same test passes without the mistake right afterwards, so a
// test that fails now and then, or on a busy machine, kills nothing. A test that hangs is
// stopped, and counts as a kill of its own kind. A mutant that does not fit the source any
// more, or does not compile, is an error and no kill.
//
// Mutations that no test can tell from the protocol are not in the list. Some conditions are
// there twice for good measure; where one of the two is dropped the other holds:
//   - how long a waiter waits, and the conditions of the write that it sends then;
//   - the nonce and the session of a dead session's lock: neither changes without the other;
//   - the nonce of a hand-over, whose fence says the same, since others increase it.
package mutants
