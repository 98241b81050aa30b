// Package expr reads and evaluates DynamoDB's expressions: conditions, filters, key conditions, projections and updates.
//
// An expression goes through three steps, which also fix the order in which errors are found: it is parsed into a tree
// (syntax), bound to the request's names and values (reserved words, functions, placeholders, operand types), and then
// evaluated against items as often as needed.
package expr
