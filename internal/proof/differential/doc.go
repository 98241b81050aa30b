// Package differential compares two DynamoDB engines. It generates requests from a seed, sends each of them to both
// engines through the SDK client, and compares the whole answers.
//
// A Generator remembers nothing of the answers but the key at which a page ended. So the same seed gives the same
// requests as long as the reference engine gives the same answers. Names, keys and values come from a small space:
// few partitions, few attributes with a usual type each, paths that lead to maps and lists. So conditions are true
// about as often as false, and requests meet the same items again and again.
//
// About one request in eight is made invalid on purpose (invalid.go; invalid_shape.go for
// what is invalid in one kind of request). The engines must refuse it with the same error
// type and text.
package differential
