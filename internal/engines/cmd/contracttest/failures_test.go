package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFailures_AreRepeatedAtTheEnd(t *testing.T) {
	const output = `2000/01/01 a warning
--- FAIL: TestA (0.01s)
    --- FAIL: TestA/one (0.00s)
        a_test.go:3: 1 is not 2
    --- FAIL: TestA/two (0.00s)
        a_test.go:4: 3 is not 4
2000/01/01 a warning
--- FAIL: TestB (0.00s)
panic: no

goroutine 7 [running]:
FAIL	example/a	1.2s
ok  	example/b	1.0s
# example/c
c.go:1:1: undefined: x
FAIL	example/c [build failed]
cannot connect
exit status 1
FAIL	example/d	0.1s
--- FAIL: Example (0.00s)
got:
1
want:
2
FAIL
FAIL	example/e	0.1s
FAIL
`
	const kept = `
The failures once more:
--- FAIL: TestA (0.01s)
    --- FAIL: TestA/one (0.00s)
        a_test.go:3: 1 is not 2
    --- FAIL: TestA/two (0.00s)
        a_test.go:4: 3 is not 4
--- FAIL: TestB (0.00s)
panic: no

goroutine 7 [running]:
FAIL	example/a	1.2s
# example/c
c.go:1:1: undefined: x
FAIL	example/c [build failed]
cannot connect
exit status 1
FAIL	example/d	0.1s
--- FAIL: Example (0.00s)
got:
1
want:
2
FAIL	example/e	0.1s
`
	for _, size := range []int{1, 7, len(output)} { // however the output comes in pieces
		var out bytes.Buffer
		f := &failures{out: &out}
		for rest := output; rest != ""; {
			n, err := io.WriteString(f, rest[:min(size, len(rest))])
			assert.NoError(t, err)
			rest = rest[n:]
		}
		f.repeat()
		assert.Equal(t, output+kept, out.String(), "pieces of %d bytes", size)
	}
}

func TestFailures_KeepTheFirstAndTheLastLinesOfEach(t *testing.T) {
	f := &failures{out: io.Discard}
	for _, name := range []string{"a", "b"} {
		fmt.Fprintf(f, "    --- FAIL: TestA/%s (0.01s)\n%s        the reason of %s\n", name, strings.Repeat("        noise\n", 100), name)
	}
	fmt.Fprint(f, "FAIL\texample/a\t1.0s\n")
	assert.Len(t, f.kept, 2*(atBegin+1+atEnd)+1)
	for _, want := range []string{"    --- FAIL: TestA/a (0.01s)", "    … 67 lines", "        the reason of a", "        the reason of b"} {
		assert.Contains(t, f.kept, want)
	}
}

func TestFailures_SayNothingOfTestsThatPass(t *testing.T) {
	var out bytes.Buffer
	f := &failures{out: &out}
	fmt.Fprint(f, "ok  \texample/a\t1.0s\n?   \texample/b\t[no test files]\n")
	f.repeat()
	assert.Equal(t, "ok  \texample/a\t1.0s\n?   \texample/b\t[no test files]\n", out.String())
}
