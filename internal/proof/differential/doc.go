// Package differential compares two DynamoDB engines: it generates requests
// from a seed, sends each to both through the SDK client, and compares the
// answers in full.
//
// A Generator holds no answers of its own except the key where a page ended,
// so the same seed gives the same requests as long as the reference engine
// answers the same. Names, keys and values come from a small space: few
// partitions, few attributes with a usual type each, paths that hit maps and
// lists. That makes conditions true about as often as false, and makes
// requests meet the same items again and again.
//
// About one request in eight is spoiled on purpose (invalid.go): the engines
// must refuse it with the same error type and text.
package differential
