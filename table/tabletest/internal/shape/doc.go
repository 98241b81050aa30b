// Package shape describes requests: their members, and the types and constraints of these.
//
// As in the service, a request is checked in two passes. [Shape.Types] stops at the first value of a wrong JSON type. [Shape.Broken]
// collects every constraint that the request breaks.
package shape
