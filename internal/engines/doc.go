// Package engines runs one contract test on every DynamoDB engine that can be
// had: the in-process engine of package tabletest, DynamoDB Local (Amazon's
// own implementation, the reference), and on request the service itself.
//
// It is for tests, and for the example, which opens what its flags name (Target)
// with it; so it may import testing.
//
//	func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }
//
//	func TestPutRefusesEmptyKey(t *testing.T) {
//		engines.Run(t, func(t *testing.T, e *engines.Engine) {
//			client, name := e.Client(), e.TableName(t)
//			...
//		})
//	}
//
// # Selection
//
// MORTISE_ENGINE holds a comma separated list of "inprocess",
// "dynamodb-local", "aws" or endpoint URLs. When it is unset, tests run on
// inprocess and dynamodb-local. An engine that cannot be started fails the
// test if MORTISE_ENGINE names it or if CI is set; otherwise the test says in
// its log how to install what is missing.
//
// # Counting
//
// With MORTISE_CONTRACT_LOG naming a file, each contract test that ran to its
// end appends one line to it; the command contractcount adds them up and
// refuses a run in which the engines did not run the same tests. Run with
// -count=1, since a cached test result appends nothing.
package engines
