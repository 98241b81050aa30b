//go:build unix

package speccheck

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// programs puts shell scripts first into the PATH: a Spin that replays the given text, and a compiler whose verifier
// prints the given text.
func programs(t *testing.T, verifier, replay string) Config {
	t.Helper()
	dir := t.TempDir()
	script := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "replay"), []byte(replay), 0o600))
	script("spin", `case "$*" in *-t*) cat "`+dir+`/replay";; *) grep -q include run.pml;; esac`)
	script("verifier", verifier)
	script("cc", `cp "`+dir+`/verifier" pan`)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return Config{Dir: models, Parallel: 1, MB: 100, Limit: time.Minute}
}

func print(text string) string { return "cat <<'END'\n" + text + "\nEND\n" }

func check(t *testing.T, c Config, r Run) (Result, string) {
	t.Helper()
	var out bytes.Buffer
	report := Report{Out: &out}
	c.Done = report.Done
	results := Check(context.Background(), c, []Run{r})
	require.Len(t, results, 1)
	verdict, _ := r.Judge(results[0].Outcome)
	require.Equal(t, results[0].Err == nil && verdict == Expected, report.Sum(time.Second))
	return results[0], out.String()
}

func TestCheck_ReportsARunThatHolds(t *testing.T) {
	c := programs(t, print(searched), "")
	got, said := check(t, c, Run{Name: "three clients", Model: oneLock})
	require.NoError(t, got.Err)
	require.EqualValues(t, 1091947, got.Outcome.States)
	require.Contains(t, said, "holds in 1,091,947 states")
}

func TestCheck_TwinBreaksThePromiseThatTheReplayNames(t *testing.T) {
	c := programs(t, print("pan:1: assertion violated 0 (at depth 41)\n"+strings.Replace(searched, "errors: 0", "errors: 1", 1)), "BROKEN: one holder per fence\n")
	got, said := check(t, c, Run{Name: "twin", Model: oneLock, Breaks: "one holder per fence"})
	require.NoError(t, got.Err)
	require.Contains(t, said, "as it has to")
	_, said = check(t, c, Run{Name: "protocol", Model: oneLock})
	require.Contains(t, said, "FAIL")
	require.Contains(t, said, "1 runs are not as expected")
}

func TestCheck_RunThatTakesTooLongSaysNothing(t *testing.T) {
	c := programs(t, "exec sleep 60", "")
	c.Limit = 50 * time.Millisecond
	got, said := check(t, c, Run{Model: oneLock})
	require.NotEmpty(t, got.Outcome.Incomplete)
	require.Contains(t, said, "FAIL")
}

func TestCheck_ProgramThatFailsIsAnError(t *testing.T) {
	c := programs(t, print(searched)+"exit 1", "")
	got, said := check(t, c, Run{Model: oneLock})
	require.ErrorContains(t, got.Err, "the verifier")
	require.Contains(t, said, "FAIL")
	got, _ = check(t, c, Run{Model: "none.pml"})
	require.ErrorIs(t, got.Err, os.ErrNotExist)
}

func TestCheck_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := programs(t, print(searched), "")
	for _, r := range Check(ctx, c, Runs()[:3]) {
		require.ErrorIs(t, r.Err, context.Canceled)
	}
}

func TestInstalled_SaysHowToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := Installed()
	require.ErrorIs(t, err, ErrNotInstalled)
	require.ErrorContains(t, err, "apt-get install spin")
	require.ErrorContains(t, err, "brew install spin")
}
