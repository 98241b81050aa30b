// Package contract contains only tests. Each test checks one property of DynamoDB
// that this project relies on, on the in-process engine and on DynamoDB Local. If
// DynamoDB Local is known to differ from the service in it, the test says so.
package contract
