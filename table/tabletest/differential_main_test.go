package tabletest_test

import (
	"os"
	"testing"

	"github.com/mortise-go/mortise/internal/engines"
)

// TestMain stops the DynamoDB Local that TestDifferential starts.
func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }
