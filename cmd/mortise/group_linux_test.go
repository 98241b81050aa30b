package main

import (
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
)

// A daemon that leaves the group waits for no process that it has started there before. That one ends with the command, and stays a zombie
// as long as the daemon lives: the lock is given up all the same.
func TestExec_AZombieOfADaemonHoldsNoLock(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		p := b.start("report --lease 4s --grace 500ms", `(sleep 1000 & echo; exec setsid sh -c 'echo $$; exec sleep 1000 >/dev/null 2>&1') & read word; exit 3`)
		require.Empty(b, p.line())
		daemon, err := strconv.Atoi(p.line())
		require.NoError(b, err)
		defer func() { assert.NoError(b, syscall.Kill(daemon, syscall.SIGKILL)) }()
		p.say("end")
		defer time.AfterFunc(time.Minute, func() { _ = p.cmd.Process.Kill() }).Stop() // it would wait for the daemon
		code, _ := p.wait()
		assert.Equal(b, 3, code)
		b.waits(report, 0)
	})
}
