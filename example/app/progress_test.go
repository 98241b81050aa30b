package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func testProgress(bar bool) (*progress, *bytes.Buffer, func(time.Duration)) {
	var out bytes.Buffer
	now := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	p := newProgress(&out)
	p.bar = bar
	p.now = func() time.Time { return now }
	return p, &out, func(d time.Duration) { now = now.Add(d) }
}

func TestProgressLinesComeOncePerSecond(t *testing.T) {
	p, out, pass := testProgress(false)
	for i := range 50 {
		phase := "loading"
		if i > 5 {
			phase = "settling"
		}
		p.update(phase, i, 50, "3 waits")
		pass(100 * time.Millisecond)
	}
	p.endBar()
	assert.Equal(t, 5, strings.Count(out.String(), "\n"))
	assert.True(t, strings.HasPrefix(out.String(), "loading: 0 of 50 orders, 3 waits, 0.0 s\nsettling: 10 of 50 orders, 3 waits, 0.4 s\n"), out.String())
	assert.NotContains(t, out.String(), "\r")
}

func TestProgressBar(t *testing.T) {
	p, out, pass := testProgress(true)
	p.update("settling", 5, 10, "")
	assert.Equal(t, "\r\x1b[Ksettling [===============               ] 5/10, 0.0 s", out.String())
	out.Reset()
	p.update("settling", 6, 10, "")
	assert.Empty(t, out.String(), "too early")
	p.note("a worker died")
	assert.Equal(t, "\r\x1b[Ka worker died\n", out.String())
	out.Reset()
	pass(barPeriod)
	p.width = func() int { return 20 }
	p.update("settling", 10, 10, "")
	assert.Equal(t, "\r\x1b[Ksettling [=========", out.String(), "cut to the terminal's width")
	out.Reset()
	p.endBar()
	p.endBar()
	assert.Equal(t, "\n", out.String())
}

func TestProgressOfNothing(t *testing.T) {
	p, out, _ := testProgress(true)
	p.update("settling", 0, 0, "")
	assert.Contains(t, out.String(), "["+strings.Repeat("=", barWidth)+"] 0/0")
}
