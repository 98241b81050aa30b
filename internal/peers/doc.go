// Package peers measures package lock beside other locks. Each has an SDK client of its own, and all of them use one
// DynamoDB Local, over real connections, in one run.
//
// The package uses only Mortise's public API, so it can also measure another implementation of package lock.
// README.md describes how to run it and how to read its report.
package peers
