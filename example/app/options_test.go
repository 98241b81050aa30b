package main

import (
	"bytes"
	"flag"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseOptions_HasDefaults(t *testing.T) {
	o, err := parseOptions(nil, nil)
	require.NoError(t, err)
	assert.Equal(t, options{workers: 4, stall: 1, tableName: "mortise-example", scheme: o.scheme}, o)
	assert.Equal(t, "pk", o.scheme.PK)
	assert.Equal(t, "sk", o.scheme.SK)
	assert.Equal(t, "inprocess", o.target.String())
}

func TestParseOptions_ReadsEveryFlag(t *testing.T) {
	o, err := parseOptions(strings.Fields("-orders f -workers 2 -processes 4 -stall 8 -endpoint http://localhost:8000 -table shop -pk PartKey -sk SortKey -prefix shop/ -json"), nil)
	require.NoError(t, err)
	assert.Equal(t, "f", o.file)
	assert.Equal(t, []int{2, 4, 8}, []int{o.workers, o.processes, o.stall})
	assert.Equal(t, "http://localhost:8000", o.target.String())
	assert.Equal(t, []string{"shop", "PartKey", "SortKey", "shop/"}, []string{o.tableName, o.scheme.PK, o.scheme.SK, o.scheme.Prefix})
	assert.True(t, o.json)
	o, err = parseOptions([]string{"-aws"}, nil)
	require.NoError(t, err)
	assert.Equal(t, "aws", o.target.String())
}

func TestParseOptions_RefusesWhatDoesNotFit(t *testing.T) {
	for args, reason := range map[string]string{
		"-bogus":                               "not defined: -bogus",
		"-workers x":                           "-workers",
		"-workers":                             "needs an argument: -workers",
		"-workers 0":                           "-workers: want 1 to 256, not 0",
		"-workers 257":                         "-workers: want 1 to 256",
		"-processes -1":                        "-processes: want 0 to 64, not -1",
		"-processes 65":                        "-processes: want 0 to 64",
		"-stall -1":                            "-stall: want 0 to 4",
		"-stall 5":                             "-stall: want 0 to 4, the number of workers, not 5",
		"-processes 2 -stall 9":                "-stall: want 0 to 8",
		"-aws -endpoint http://x":              "exclude each other",
		"-data x -aws":                         "-data excludes -aws and -endpoint",
		"-data x -endpoint http://x":           "-data excludes -aws and -endpoint",
		"-endpoint localhost:8000":             "-endpoint: want a URL",
		"-endpoint /x":                         "-endpoint: want a URL",
		"-endpoint ftp://x":                    "-endpoint: want a URL",
		"-endpoint http://":                    "-endpoint: want a URL",
		"-endpoint http://user:secret@x":       "-endpoint: want a URL",
		"-table ab":                            "-table, -pk, -sk, -prefix: ",
		"-table a/b/c":                         "-table, -pk, -sk, -prefix: ",
		"-pk=":                                 "-pk, -sk: empty",
		"-sk=":                                 "-pk, -sk: empty",
		"-pk a -sk a":                          "-table, -pk, -sk, -prefix: ",
		"-pk type":                             "-table, -pk, -sk, -prefix: ",
		"-pk " + strings.Repeat("x", 256):      "-table, -pk, -sk, -prefix: ",
		"-prefix " + strings.Repeat("x", 257):  "-prefix: longer than 256 bytes",
		"-prefix \xff":                         "-table, -pk, -sk, -prefix: ",
		"-workers 2 orders.jsonl":              `unexpected argument "orders.jsonl"`,
		"-table " + strings.Repeat("x", 256):   "-table, -pk, -sk, -prefix: ",
		"-endpoint http://x/?secret=1":         "-endpoint: want a URL",
		"-processes 1 -workers 1 -stall 2":     "-stall: want 0 to 1",
		"-processes 99999999999999999999":      "-processes",
		"-endpoint http://x -aws -workers 200": "exclude each other",
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), strings.Fields(args), nil, &stdout, &stderr)
		assert.Equal(t, exitUsage, code, args)
		assert.Empty(t, stdout.String(), args)
		assert.Contains(t, stderr.String(), reason, args)
		assert.Equal(t, 1, strings.Count(stderr.String(), "\n"), "one line: %s", stderr.String())
		assert.NotContains(t, stderr.String(), "secret", args)
	}
}

func TestHelp_NamesEveryFlag(t *testing.T) {
	var stdout, stderr bytes.Buffer
	assert.Zero(t, run(t.Context(), []string{"-h"}, nil, &stdout, &stderr))
	assert.Empty(t, stderr.String())
	for name := range strings.FieldsSeq("-orders -workers -processes -stall -endpoint -aws -data -table -pk -sk -prefix -json") {
		assert.Contains(t, stdout.String(), "\n  "+name)
	}
	// One worker freezes by default, also where there is only one.
	_, err := parseOptions([]string{"-workers", "1"}, nil)
	require.NoError(t, err)
	_, err = parseOptions([]string{"-h"}, &stdout)
	assert.ErrorIs(t, err, flag.ErrHelp)
}
