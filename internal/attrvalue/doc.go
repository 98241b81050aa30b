// Package attrvalue compares, copies and measures attribute values as DynamoDB does.
package attrvalue
