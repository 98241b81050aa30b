package migratecmd

import (
	"io"
	"strings"
)

// grid is an aligned table. Columns that are empty below their head are left out.
type grid struct {
	head     []string
	rows     [][]string
	optional []int // columns that go first where there is little room, in this order
}

func (g *grid) add(cells ...string) { g.rows = append(g.rows, cells) }

const (
	gap      = 2  // columns between two cells
	readable = 30 // what the last cell needs to be of use
)

// write writes the table, into a number of columns if that is not 0. Optional columns are
// left out while the last one has too little room; then that is cut, and at last the line.
func (g *grid) write(w io.Writer, limit int) {
	rows := g.rows
	if g.head != nil {
		rows = append([][]string{g.head}, rows...)
	}
	widths := g.widths(rows)
	last, total := extent(widths)
	if limit > 0 {
		for _, j := range g.optional {
			if total > limit && widths[last]-(total-limit) < min(readable, widths[last]) && j != last {
				widths[j] = 0
				last, total = extent(widths)
			}
		}
		widths[last] = max(1, widths[last]-max(0, total-limit))
	}
	for _, row := range rows {
		var b strings.Builder
		for j, cell := range row {
			if widths[j] == 0 {
				continue
			}
			cell = cut(clean(cell), widths[j])
			b.WriteString(cell)
			if j < last {
				b.WriteString(strings.Repeat(" ", widths[j]-columns(cell)+gap))
			}
		}
		line := strings.TrimRight(b.String(), " ")
		if limit > 0 {
			line = cut(line, limit)
		}
		say(w, "%s\n", line)
	}
}

// widths returns how wide each column wants to be; 0 where it is left out.
func (g *grid) widths(rows [][]string) []int {
	var widths []int
	for i, row := range rows {
		for j, cell := range row {
			if j == len(widths) {
				widths = append(widths, 0)
			}
			if cell != "" && (i > 0 || g.head == nil) {
				widths[j] = max(widths[j], columns(clean(cell)))
				if g.head != nil {
					widths[j] = max(widths[j], columns(g.head[j]))
				}
			}
		}
	}
	return widths
}

// extent returns the last column that is there, and how wide all are.
func extent(widths []int) (last, total int) {
	total = -gap
	for j, width := range widths {
		if width > 0 {
			last = j
			total += width + gap
		}
	}
	return last, total
}
