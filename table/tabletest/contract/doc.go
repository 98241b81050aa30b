// Package contract holds no code, only tests: what this project relies on in
// DynamoDB, one promise per test, checked on the in-process engine and on
// DynamoDB Local. Where a promise is about the service and DynamoDB Local is
// known to break it, the test says so.
package contract
