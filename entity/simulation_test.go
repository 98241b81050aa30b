package entity_test

import (
	"testing"

	"github.com/mortise-go/mortise/internal/proof/sim/simtest"
	"github.com/mortise-go/mortise/internal/testkit"
)

// simulated plays a workload, which must not violate anything, and its negative twins, of each of
// which must be found what it is there for.
func simulated(t *testing.T, name string) {
	t.Helper()
	o := simtest.Play(t, name, 8)
	testkit.Check(t, name, o.Played(), testkit.AtLeast(o.Acknowledged, "acknowledged", 1), testkit.AtLeast(o.Refused, "refused since somebody was in the way", 1), o.None())
	for _, twin := range simtest.Workload(t, name).Twins {
		simtest.Twinned(t, name, twin.Name, 2, simtest.Finds(name+", "+twin.About, .5))
	}
}

// What was acknowledged counts once, what was refused does not, whatever was lost on the way.
func TestSimulation_VersionsCountOnce(t *testing.T) { simulated(t, "versions") }

// A value is never that of two rows, and a row and its sentinel are never without each other.
func TestSimulation_UniqueValuesStayUnique(t *testing.T) { simulated(t, "unique") }
