package migratecmd

import (
	"io"
	"strings"
)

// grid is an aligned table. Columns without content are omitted.
type grid struct {
	head     []string
	rows     [][]string
	optional []int // columns to omit if space is short, in this order
}

func (g *grid) add(cells ...string) { g.rows = append(g.rows, cells) }

const (
	gap      = 2  // spaces between two cells
	readable = 30 // minimum useful width of the last cell
)

// write writes the table, limited to a number of columns unless limit is 0. If the last column is too narrow, it omits
// optional columns, then cuts the last column, and finally cuts the line.
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

// widths returns the preferred width of each column, or 0 if it is omitted.
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

// extent returns the index of the last visible column and the total width.
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
