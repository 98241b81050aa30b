package engines

import (
	"testing"

	"github.com/mortise-go/mortise/table/tabletest"
)

// InProcess returns the in-process engine, for its clock, faults and request log. It returns nil if the engine is
// another program.
func (e *Engine) InProcess() *tabletest.Engine { return e.inProcess }

// openInProcess returns an engine of the test's own.
func openInProcess(t *testing.T) (*Engine, error) {
	return &Engine{Name: InProcess, inProcess: tabletest.New(t)}, nil
}
