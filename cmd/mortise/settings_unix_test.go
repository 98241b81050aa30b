//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table/tabletest"
)

// A scheme from a pipe, as of a shell's <(…), can be read once. The text of an error needs it too.
func TestSettings_ASchemeFromAPipe(t *testing.T) {
	url, err := tabletest.New(t).Listen("127.0.0.1:0")
	require.NoError(t, err)
	out, in, err := os.Pipe()
	require.NoError(t, err)
	defer func() { require.NoError(t, out.Close()) }()
	_, err = io.WriteString(in, `{"table": "absent"}`)
	require.NoError(t, err)
	require.NoError(t, in.Close())
	o := invoke(t.Context(), fmt.Sprintf("ls --scheme /dev/fd/%d --engine %s", out.Fd(), url), nil, "")
	assert.Equal(t, exitFailure, o.code)
	assert.Contains(t, o.stderr, "no table absent, or not the index that is asked for, in "+url)
}

// An interrupt ends a write whose file is a pipe into which nobody writes.
func TestWrite_EndsWhileItReadsAPipe(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		name := filepath.Join(b.TempDir(), "pipe")
		require.NoError(b, syscall.Mkfifo(name, 0o600))
		ctx, cancel := context.WithCancel(b.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		var stderr bytes.Buffer
		code := run(ctx, []string{"write", name}, b.environ(envGuard+"="+b.acquire(report).GuardToken().String()), strings.NewReader(""), io.Discard, &stderr)
		assert.Equal(b, exitSignal+int(syscall.SIGINT), code)
		assert.Contains(b, stderr.String(), "interrupted")
		writer, err := os.OpenFile(name, os.O_WRONLY, 0) // so that the read ends, too
		require.NoError(b, err)
		require.NoError(b, writer.Close())
	})
}

// A device that never ends does not use up the memory.
func TestWrite_ReadsNoMoreThanDynamoDBTakes(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		environ := b.environ(envGuard + "=" + b.acquire(report).GuardToken().String())
		for _, name := range []string{"/dev/zero", "-"} {
			var stderr bytes.Buffer
			code := run(b.Context(), []string{"write", name}, environ, zeros{}, io.Discard, &stderr)
			assert.Equal(b, exitFailure, code)
			assert.Contains(b, stderr.String(), "more than 16 MB", name)
		}
	})
}

// zeros is an input that does not end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
