package tty_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mortise-go/mortise/internal/tty"
)

// A long cell is cut, so that the columns behind it are seen.
func TestGrid_CutsLongCellsBeforeColumns(t *testing.T) {
	write := func(limit int, note string) string {
		g := tty.Grid{Head: []string{"NAME", "OWNER", "STATE", "FENCE", "NOTE"}, Optional: []int{3}}
		g.Add("first", strings.Repeat("o", 40), "live", "17", note)
		g.Add(strings.Repeat("n", 40), "me", "late", "18", "")
		var b strings.Builder
		g.Write(&b, limit)
		for line := range strings.Lines(b.String()) {
			if limit > 0 {
				assert.LessOrEqual(t, tty.Columns(line)-1, limit, line)
			}
		}
		return b.String()
	}
	for limit, want := range map[int]string{
		0: "NAME                                      OWNER                                     STATE  FENCE\n" +
			"first                                     " + strings.Repeat("o", 40) + "  live   17\n" +
			strings.Repeat("n", 40) + "  me                                        late   18\n",
		80: "NAME                            OWNER                               STATE  FENCE\n" +
			"first                           " + strings.Repeat("o", 33) + "…  live   17\n" +
			strings.Repeat("n", 29) + "…  me                                  late   18\n",
		36: "NAME                            OWN…\n" +
			"first                           ooo…\n" +
			strings.Repeat("n", 29) + "…  me …\n",
	} {
		assert.Equal(t, want, write(limit, ""), limit)
	}
	assert.Equal(t, "NAME                            OWNER                            STATE  NOTE\n"+
		"first                           "+strings.Repeat("o", 30)+"…  live   "+strings.Repeat("x", 29)+"…\n"+
		strings.Repeat("n", 29)+"…  me                               late\n", write(102, strings.Repeat("x", 50)))
}

// Where nothing is cut, a row with a cell of 300 KB puts no 300 KB of spaces into the other rows.
func TestGrid_ALongCellThatIsNotCutMovesItsOwnRowAlone(t *testing.T) {
	long := strings.Repeat("o", 300_000)
	g := tty.Grid{Head: []string{"NAME", "OWNER", "STATE"}}
	g.Add("first", "me", "live")
	g.Add("second", long, "late")
	var b strings.Builder
	g.Write(&b, 0)
	lines := strings.Split(b.String(), "\n")
	assert.Equal(t, "second  "+long+"  late", lines[2], "it is whole")
	for i, column := range []string{"OWNER", "me"} {
		assert.Regexp(t, column+" {190,200}(STATE|live)$", lines[i])
	}
}
