package tabletest

import (
	"slices"
	"sort"
	"strings"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
)

// rowKey is the position of a row. Rows of one partition are adjacent, in the order of their sort keys.
type rowKey struct {
	part string // hash of the partition key, followed by the key
	sort string // encoded sort key; empty if there is none
	tie  string // in an index: the encoded primary key, since index keys need not be unique
}

// scattered returns a text whose order has nothing to do with that of the keys.
func (k rowKey) scattered() string { return partition(k.part + k.sort) }

func (k rowKey) compare(o rowKey) int {
	if c := strings.Compare(k.part, o.part); c != 0 {
		return c
	}
	if c := strings.Compare(k.sort, o.sort); c != 0 {
		return c
	}
	return strings.Compare(k.tie, o.tie)
}

// row is one stored item. It is replaced and never modified.
type row struct {
	rowKey
	item attr.Item
	size int
}

// chunkSize is the number of rows at which a chunk is split. It bounds the cost of an insertion.
const chunkSize = 256

// rows is an ordered list of rows in chunks, none of which is empty. Finding takes O(log n); inserting and deleting take
// O(chunkSize + n/chunkSize).
type rows struct {
	chunks [][]*row
	count  int
}

// position is a place in rows; chunk == len(chunks) is the end.
type position struct{ chunk, at int }

// seek returns the position of the first row for which reached is true. For all rows after it, reached must be true, too.
func (r *rows) seek(reached func(*row) bool) position {
	c := sort.Search(len(r.chunks), func(i int) bool {
		chunk := r.chunks[i]
		return reached(chunk[len(chunk)-1])
	})
	if c == len(r.chunks) {
		return position{chunk: c}
	}
	chunk := r.chunks[c]
	return position{chunk: c, at: sort.Search(len(chunk), func(i int) bool { return reached(chunk[i]) })}
}

func (r *rows) find(k rowKey) (position, *row) {
	p := r.seek(func(x *row) bool { return x.compare(k) >= 0 })
	if p.chunk < len(r.chunks) {
		if x := r.chunks[p.chunk][p.at]; x.rowKey == k {
			return p, x
		}
	}
	return p, nil
}

func (r *rows) get(k rowKey) *row {
	_, x := r.find(k)
	return x
}

// put stores the row and returns the row that it replaced, or nil.
func (r *rows) put(x *row) *row {
	p, old := r.find(x.rowKey)
	if old != nil {
		r.chunks[p.chunk][p.at] = x
		return old
	}
	r.count++
	switch {
	case len(r.chunks) == 0:
		r.chunks = append(r.chunks, append(make([]*row, 0, chunkSize), x))
		return nil
	case p.chunk == len(r.chunks):
		p.chunk--
		p.at = len(r.chunks[p.chunk])
	}
	chunk := slices.Insert(r.chunks[p.chunk], p.at, x)
	if len(chunk) < chunkSize {
		r.chunks[p.chunk] = chunk
		return nil
	}
	half := len(chunk) / 2
	right := append(make([]*row, 0, chunkSize), chunk[half:]...)
	clear(chunk[half:])
	r.chunks[p.chunk] = chunk[:half]
	r.chunks = slices.Insert(r.chunks, p.chunk+1, right)
	return nil
}

// remove deletes the row with the key and returns it, or nil.
func (r *rows) remove(k rowKey) *row {
	p, old := r.find(k)
	if old == nil {
		return nil
	}
	r.count--
	chunk := slices.Delete(r.chunks[p.chunk], p.at, p.at+1)
	if len(chunk) == 0 {
		r.chunks = slices.Delete(r.chunks, p.chunk, p.chunk+1)
	} else {
		r.chunks[p.chunk] = chunk
	}
	return old
}

// ascend calls f with the rows from p on until f returns false.
func (r *rows) ascend(p position, f func(*row) bool) {
	for c := p.chunk; c < len(r.chunks); c++ {
		for i := p.at; i < len(r.chunks[c]); i++ {
			if !f(r.chunks[c][i]) {
				return
			}
		}
		p.at = 0
	}
}

// descend calls f with the rows before p, last first, until f returns false.
func (r *rows) descend(p position, f func(*row) bool) {
	for c := p.chunk; c >= 0; c-- {
		if c < len(r.chunks) {
			at := len(r.chunks[c])
			if c == p.chunk {
				at = p.at
			}
			for i := at - 1; i >= 0; i-- {
				if !f(r.chunks[c][i]) {
					return
				}
			}
		}
	}
}

// clone copies the list. The copy shares the rows, which are never modified.
func (r *rows) clone() rows {
	out := rows{count: r.count, chunks: make([][]*row, len(r.chunks))}
	for i, c := range r.chunks {
		out.chunks[i] = append(make([]*row, 0, chunkSize), c...)
	}
	return out
}
