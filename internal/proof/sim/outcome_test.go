package sim

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mortise-go/mortise/table/tabletest"
)

// A fault of the engine is reported if the answer shows that it happened.
func TestHappened_GoesByTheAnswer(t *testing.T) {
	both := []tabletest.FaultKind{tabletest.TransactionConflict, tabletest.SkewDate}
	assert.Equal(t, []string{"skewed date"}, happened(both, ""), "repeated under its token")
	assert.Equal(t, []string{"conflict", "skewed date"}, happened(both, "TransactionCanceledException"))
	assert.Equal(t, []string{"conflict", "skewed date"}, happened(both, "TransactionConflictException"))
	stale := []tabletest.FaultKind{tabletest.StaleRead}
	assert.Equal(t, []string{"stale"}, happened(stale, ""))
	assert.Empty(t, happened(stale, "ValidationException"))
	assert.Empty(t, happened(nil, ""))
}
