// Package attrvalue compares, copies, orders and measures attribute values as DynamoDB does.
package attrvalue
