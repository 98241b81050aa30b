// Package engines runs one contract test on several DynamoDB engines: the in-process engine of package tabletest,
// DynamoDB Local (Amazon's own implementation, the reference), and on request the service itself.
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
// It is for tests, so it may import testing. The example uses it, too, to open the engine that its flags name
// (Target).
//
// # Selection
//
// MORTISE_ENGINE is a comma separated list of "inprocess", "dynamodb-local", "aws" or endpoint URLs. If it is not
// set, tests run on inprocess and dynamodb-local. An engine that cannot be started fails the test if MORTISE_ENGINE
// names it or if CI is set. Otherwise the test's log tells how to install what is missing.
//
// # Many packages
//
// The command contracttest runs go test with one DynamoDB Local for all packages (MORTISE_DYNAMODB_LOCAL is its
// endpoint), and counts the contract tests: each one that ran to its end appends a line to the file that
// MORTISE_CONTRACT_LOG names. It refuses a run in which the engines did not run the same tests. Run with -count=1, since
// a cached test result appends nothing. At the end it prints once more what has failed.
package engines
