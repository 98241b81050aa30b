package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFailures_AreRepeatedAtTheEnd(t *testing.T) {
	const output = `2000/01/01 a warning
--- FAIL: TestA (0.01s)
    a_test.go:3: 1 is not 2
        --- FAIL: TestA/sub (0.00s)
--- PASS: TestB (0.01s)
    b_test.go:4: noise
panic: no

goroutine 7 [running]:
FAIL	example/a	1.2s
ok  	example/b	1.0s
noise
FAIL
`
	const kept = `
the failures once more:
--- FAIL: TestA (0.01s)
    a_test.go:3: 1 is not 2
        --- FAIL: TestA/sub (0.00s)
panic: no

goroutine 7 [running]:
FAIL	example/a	1.2s
`
	for _, size := range []int{1, 7, len(output)} { // however the output comes in pieces
		var out bytes.Buffer
		f := &failures{out: &out}
		for rest := output; rest != ""; {
			n, err := f.Write([]byte(rest[:min(size, len(rest))]))
			assert.NoError(t, err)
			rest = rest[n:]
		}
		f.repeat()
		assert.Equal(t, output+kept, out.String(), "pieces of %d bytes", size)
	}
}

func TestFailures_KeepABoundedPartOfEach(t *testing.T) {
	var out bytes.Buffer
	f := &failures{out: &out}
	fmt.Fprintf(f, "--- FAIL: TestA (0.01s)\n%s", strings.Repeat("    a_test.go:3: no\n", 2*perFailure))
	assert.Len(t, f.kept, 1+perFailure)
}

func TestFailures_SayNothingOfTestsThatPass(t *testing.T) {
	var out bytes.Buffer
	f := &failures{out: &out}
	fmt.Fprint(f, "ok  \texample/a\t1.0s\n")
	f.repeat()
	assert.Equal(t, "ok  \texample/a\t1.0s\n", out.String())
}
