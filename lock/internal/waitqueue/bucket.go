package waitqueue

import "time"

// bucket is a token bucket that bounds how many rows are read. It is kept as the time at which it is full again, so that
// nothing is rounded.
type bucket struct {
	row   time.Duration // how long one row takes to be earned
	burst int           // rows that a full bucket pays
	least int           // rows that it has to pay before anything is read
	full  time.Time
}

// newBucket allows rows a second in the long run, and three tenths of a second's at once. A bucket that is nearly empty
// is left alone until it has a twentieth of a second's: many rows share a request then, instead of one request for each
// row as soon as it can be paid.
func newBucket(rows int) bucket {
	return bucket{
		row:   time.Second / time.Duration(rows),
		burst: max(rows*3/10, 1),
		least: min(max(rows/20, 1), batchSize),
	}
}

// ready is when something can be read.
func (b *bucket) ready() time.Time { return b.full.Add(-time.Duration(b.burst-b.least) * b.row) }

// rows is how many rows can be read at once.
func (b *bucket) rows(now time.Time) int {
	return b.burst - int((max(b.full.Sub(now), 0)+b.row-1)/b.row)
}

// spend pays for n rows.
func (b *bucket) spend(now time.Time, n int) {
	if b.full.Before(now) {
		b.full = now
	}
	b.full = b.full.Add(time.Duration(n) * b.row)
}
