// Package peers measures package lock beside other locks: each with an SDK client of its own,
// all on one DynamoDB Local, over real connections, in one run.
//
// It uses nothing of Mortise but the public API, so it also judges another implementation of
// package lock. README.md tells how to run it and how to read what it prints.
package peers
