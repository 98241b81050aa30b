// Package expr reads and evaluates DynamoDB's expressions: conditions, filters, key conditions, projections and updates.
//
// An expression goes through three steps. Their order is also the order in which errors are found. It is parsed into a tree (syntax),
// then bound to the request's names and values (reserved words, functions, placeholders, operand types), and finally evaluated for any
// number of items.
package expr
