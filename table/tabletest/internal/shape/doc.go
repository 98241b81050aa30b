// Package shape describes requests: which members they have, of which types, and what each may hold.
//
// A request is checked in two passes, as the service does it. [Shape.Types] stops at the first value of a wrong JSON
// type. [Shape.Broken] goes on and collects every constraint that the request breaks.
package shape
