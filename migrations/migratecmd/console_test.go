package migratecmd

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/mortise-go/mortise/internal/tty"
	"github.com/mortise-go/mortise/migrations"
)

func TestBar_FitsItsTerminal(t *testing.T) {
	p := &migrations.Progress{
		Migration: "3_orders_by_customer", Step: "customers", Seen: 360, Changed: 359, Total: 1440, Rate: 120, Left: 9 * time.Second,
	}
	for width, want := range map[int]string{
		140: "[=======                       ] 3_orders_by_customer customers: 360 items of about 1440 (25 %), 359 changed, 120/s, about 9s left",
		60:  "[======                  ] 360 of about 1440, 120/s, 9s left",
		30:  "360 of about 1440, 120/s, 9s left", // cut off by who draws it
	} {
		assert.Equal(t, want, bar(p, width), width)
	}
	assert.Contains(t, bar(p, 79), "] ", "on a common terminal there is a bar")
	assert.LessOrEqual(t, tty.Columns(bar(p, 79)), 79)
}
