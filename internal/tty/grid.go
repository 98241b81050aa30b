package tty

import (
	"io"
	"strings"
)

// Grid is an aligned table. Columns without content are omitted.
type Grid struct {
	Head     []string
	rows     [][]string
	Optional []int // columns to omit if space is short, in this order
}

// Add adds a row.
func (g *Grid) Add(cells ...string) { g.rows = append(g.rows, cells) }

const (
	gap      = 2  // spaces between two cells
	readable = 30 // minimum useful width of a long cell

	// widest is the width up to which a column is aligned where nothing is cut. Otherwise one row of 400 KB would put that many spaces
	// into each other row.
	widest = 200
)

// Write writes the table. Unless limit is 0, lines have at most limit columns of the terminal: while the table's last column would become
// too narrow, it omits optional columns; then it cuts the last column and, from the left, other long ones; finally the last column to
// nothing, and the line. So one long cell does not hide all columns behind it. If limit is 0, it cuts nothing, and a cell of more than 200
// columns moves only its own row.
func (g *Grid) Write(w io.Writer, limit int) {
	rows := g.rows
	if g.Head != nil {
		rows = append([][]string{g.Head}, rows...)
	}
	widths := g.widths(rows)
	last, total := extent(widths)
	if limit == 0 {
		for j := range widths {
			widths[j] = min(widths[j], widest)
		}
	} else {
		for _, j := range g.Optional {
			if total > limit && widths[last]-(total-limit) < min(readable, widths[last]) && j != last {
				widths[j] = 0
				last, total = extent(widths)
			}
		}
		shrink := func(j, least int) {
			by := min(max(0, total-limit), max(0, widths[j]-least))
			widths[j], total = widths[j]-by, total-by
		}
		shrink(last, readable)
		for j := range widths {
			shrink(j, readable)
		}
		shrink(last, 1)
	}
	for _, row := range rows {
		var b strings.Builder
		for j, cell := range row {
			if widths[j] == 0 {
				continue
			}
			cell = Clean(cell)
			if limit > 0 {
				cell = Cut(cell, widths[j])
			}
			b.WriteString(cell)
			if j < last {
				b.WriteString(strings.Repeat(" ", max(0, widths[j]-Columns(cell))+gap))
			}
		}
		line := strings.TrimRight(b.String(), " ")
		if limit > 0 {
			line = Cut(line, limit)
		}
		Say(w, "%s\n", line)
	}
}

// widths returns the preferred width of each column, or 0 if the column has no content.
func (g *Grid) widths(rows [][]string) []int {
	var widths []int
	for i, row := range rows {
		for j, cell := range row {
			if j == len(widths) {
				widths = append(widths, 0)
			}
			if cell != "" && (i > 0 || g.Head == nil) {
				widths[j] = max(widths[j], Columns(Clean(cell)))
				if g.Head != nil {
					widths[j] = max(widths[j], Columns(g.Head[j]))
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
