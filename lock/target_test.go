package lock_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
)

// Whoever prints the Target of a lock beside a row prints no key.
func TestTarget_TellsNoKeys(t *testing.T) {
	target := lock.Beside(keys.NewKey("canary", "canary"))
	for _, format := range []string{"%v", "%+v", "%s"} {
		assert.NotContains(t, fmt.Sprintf(format, target), "canary", format)
	}
}
