// Package inside is what package table offers to the other packages of this module, and not to applications.
//
// A *table.Table has a method Inside. The documentation does not list it, since it comes from an embedded type. Its argument is a [Key],
// which no package outside of this module can name:
//
//	clock := t.Inside(inside.Key{}).Machine
package inside

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/keys"
)

// Key opens a [Door].
type Key struct{ _ [0]func() }

// Door is embedded by *table.Table.
type Door[Op any] struct{ table *Table[Op] }

// NewDoor returns the door to a table.
func NewDoor[Op any](t *Table[Op]) Door[Op] { return Door[Op]{t} }

// Inside returns what is behind the door.
func (d Door[Op]) Inside(Key) *Table[Op] { return d.table }

// Table is what a table offers in addition to its API. Op is table.Op, which this package cannot import.
type Table[Op any] struct {
	Names

	Machine machine.Machine // source of time and randomness

	// Prepare builds the expressions of an update or a check once, for operations that differ only in values ([Param]). It ignores the
	// key of op. It returns errors in expressions. All other errors are returned when an operation is sent.
	Prepare func(op Op) (Prepared[Op], error)

	mu       sync.Mutex // guards the field below
	sighting ServerTime
}

// Prepared returns the operation on one row, with a value for each [Param]. It is safe for concurrent use.
type Prepared[Op any] func(key keys.Key, params ...any) Op

// Param is a placeholder for a value (table.Value): Param(i) is replaced by the i-th value, counted from 0, that is passed to [Prepared].
// Operations that are not prepared refuse it.
type Param int

// ServerTime is one observation of DynamoDB's clock.
type ServerTime struct {
	Server time.Time     // time in the answer, in whole seconds, rounded down
	Local  time.Time     // time of the table's clock when the answer arrived
	At     time.Time     // time of the process's clock then, with its monotonic reading
	Trip   time.Duration // duration from sending to receiving
}

// See records an observation.
func (t *Table[Op]) See(s ServerTime) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sighting = s
}

// LastServerTime returns the latest observation of DynamoDB's clock, or false before the first answer.
func (t *Table[Op]) LastServerTime() (ServerTime, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sighting, !t.sighting.Server.IsZero()
}

// tolerance is how far clocks may differ before times of rows are compared with DynamoDB's clock.
const tolerance = 3 * time.Second

// Correct returns what DynamoDB's clock shows at the time now of the table's clock, or now if the two hardly differed when DynamoDB
// answered last. A person who looks at times that others have recorded would otherwise take a wrong clock for dead holders.
func (t *Table[Op]) Correct(now time.Time) time.Time {
	s, ok := t.LastServerTime()
	if off := s.Server.Sub(s.Local); ok && off.Abs() > tolerance+s.Trip {
		return now.Add(off)
	}
	return now
}

// Names are names of one table that must not conflict. The zero value has none. It is safe for concurrent use.
type Names struct {
	mu    sync.Mutex
	names map[string]any
}

// Registered returns all names with their values.
func (n *Names) Registered() map[string]any {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.names)
}

// Register records a name. The first registration of a name wins. It calls check with every registration and joins the errors.
// If there is an error, or value is nil, it registers nothing.
func (n *Names) Register(name string, value any, check func(name string, other any) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var errs []error
	for _, other := range slices.Sorted(maps.Keys(n.names)) {
		if err := check(other, n.names[other]); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if _, ok := n.names[name]; !ok && value != nil {
		if n.names == nil {
			n.names = map[string]any{}
		}
		n.names[name] = value
	}
	return nil
}
