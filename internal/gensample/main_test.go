package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSample_IsWhatTheGeneratorWrites(t *testing.T) {
	want, err := os.ReadFile("../../example/app/sample.jsonl")
	require.NoError(t, err)
	var got bytes.Buffer
	require.NoError(t, generate(&got))
	assert.Equal(t, string(want), got.String(), "run go generate in example/app")
}
