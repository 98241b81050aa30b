package peers

import (
	"io"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestConfig_IsChecked(t *testing.T) {
	require.NoError(t, Defaults().Check())
	for _, tc := range []struct {
		flag   string
		change func(*Config)
	}{
		{"-only", func(c *Config) { c.Scenes = nil }},
		{"-only", func(c *Config) { c.Scenes = []string{"pairs", "peers"} }},
		{"-rounds", func(c *Config) { c.Rounds = 0 }},
		{"-pairs", func(c *Config) { c.Pairs = -1 }},
		{"-blocks", func(c *Config) { c.Blocks = 0 }},
		{"-warm", func(c *Config) { c.Warm = 0 }},
		{"-clients", func(c *Config) { c.Clients = 0 }},
		{"-goroutines", func(c *Config) { c.Goroutines = 1_000_001 }},
		{"-trials", func(c *Config) { c.Trials = 0 }},
		{"-locks", func(c *Config) { c.Locks = 0 }},
		{"-hold", func(c *Config) { c.Hold = -1 }},
		{"-limit", func(c *Config) { c.Limit = 0 }},
		{"-window", func(c *Config) { c.Window = 2 * time.Hour }},
		{"-refresh", func(c *Config) { c.Refresh = 0 }},
		{"-lease", func(c *Config) { c.Lease = time.Millisecond }},
		{"-renewed-lease", func(c *Config) { c.Renewed = 0 }},
		{"-latency", func(c *Config) { c.Latency = 2 * time.Second }},
		{"-leases", func(c *Config) { c.Leases = math.NaN() }},
	} {
		c := Defaults()
		tc.change(&c)
		require.ErrorContains(t, c.Check(), tc.flag+": ")
		_, err := Run(t.Context(), c, io.Discard)
		assert.ErrorContains(t, err, tc.flag+": ", "nothing is started")
	}
}
