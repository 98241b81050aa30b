package main

import (
	"bytes"
	"flag"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/proof/speccheck"
)

func parsed(args ...string) (settings, error) {
	f := flag.NewFlagSet("speccheck", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	return parse(f, args)
}

func TestParse_ReadsArguments(t *testing.T) {
	s, err := parsed()
	require.NoError(t, err)
	usual := len(s.runs)
	assert.Less(t, usual, len(speccheck.Runs()))
	assert.LessOrEqual(t, s.Parallel*s.MB, 4000, "MB together")
	s, err = parsed("-deep")
	require.NoError(t, err)
	assert.Len(t, s.runs, len(speccheck.Runs()))
	s, err = parsed("-run", "^guard without fence$")
	require.NoError(t, err)
	require.Len(t, s.runs, 1)
	var out bytes.Buffer
	print(&out, s.runs)
	assert.Contains(t, out.String(), `breaks "a guarded write is based on the last one"`)
	for _, wrong := range [][]string{
		{"-run", "("}, {"-run", "no such run"}, {"-parallel", "0"}, {"-memory", "0"}, {"-limit", "0s"}, {"-unknown"}, {"more"},
	} {
		_, err := parsed(wrong...)
		assert.Error(t, err, wrong)
	}
}
