package tty_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/tty"
)

func TestCut_LeavesCleanTextThatFits(t *testing.T) {
	assert.Equal(t, "a b \uFFFD[0m", tty.Clean("a\nb\t\x1b[0m"))
	assert.Equal(t, "abcdef", tty.Cut("abcdef", 6))
	assert.Equal(t, "abcd…", tty.Cut("abcdef", 5))
	assert.Equal(t, "…", tty.Cut("abcdef", 1))
	assert.Empty(t, tty.Cut("abcdef", 0))
	assert.Equal(t, 5, tty.Columns("日本e\u0301"))
	assert.Equal(t, "日…", tty.Cut("日本語", 4))
}

func TestWidth_IsThatOfATerminalAlone(t *testing.T) {
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer func() { require.NoError(t, null.Close()) }()
	for _, stream := range []any{null, &bytes.Buffer{}, nil} {
		width, ok := tty.Width(stream)
		assert.False(t, ok)
		assert.Zero(t, width)
	}
}
