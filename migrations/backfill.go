package migrations

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/table"
)

// Bounds of a Backfill.
const (
	MaxSegments = 1000
	MaxWriters  = 100
	MinRate     = 0.01 // units per second

	maxReads = 100
)

// Backfill transforms many items of the table: see Run.Backfill.
type Backfill struct {
	// Name of its step, 1 to 128 bytes.
	Name string

	// Transform returns what an item should become; nil or an equal item leaves it as it is.
	// It may change the item that it gets, and must not change its key. It is called again
	// with the new state of an item that somebody else has changed meanwhile, by several
	// goroutines at once, and, unless Exact, also for items that it has transformed before
	// in an attempt that was cut off or whose answer was lost: it has to recognise those.
	// It sees rows as they are, so it has to keep attributes of index keys in step with
	// what they are made of. A panic is an error like others.
	Transform func(ctx context.Context, item table.Item) (table.Item, error)

	// Filter is which items to transform: others are read and paid for all the same. An
	// item that somebody changes meanwhile is transformed only if it still fits.
	// Defaults to all.
	Filter table.Cond

	// Reads names attributes that Transform decides by although an item may not have them:
	// should somebody add one between the read and the write, the item is transformed anew.
	// Attributes that an item has are compared anyway, up to 140 of them in all. At most
	// 100, and no need of it where all writers count up a version. Defaults to none.
	Reads []string

	// Segments is how many parts of the table are read at once, each with a position of
	// its own: 1 to 1000. It must not change while a backfill is unfinished. Defaults to 4.
	Segments int

	// Writers is how many writes of a segment are under way at once: 1 to 100. Defaults to 8.
	Writers int

	// PageSize is how many items a segment reads, and writes, between two checkpoints: what
	// is repeated at most after it was cut off. Defaults to 500.
	PageSize int

	// Exact writes items together with the position that follows from them, in transactions:
	// each is transformed exactly once, whatever happens, for twice the write units, and
	// only while the lock is held. Transactions of one run take turns, up to 98 items each.
	// Defaults to false: items are written one by one, and some may be transformed again
	// after the backfill was cut off.
	Exact bool

	// ReadUnits and WriteUnits per second to use at most, on average, as DynamoDB reports
	// them: at least 0.01. Default to 0: no limit.
	ReadUnits, WriteUnits float64

	// Toolkit includes rows of the toolkit itself: locks, sessions, records of migrations.
	// Defaults to false.
	Toolkit bool
}

func (b Backfill) withDefaults() Backfill {
	if b.Segments == 0 {
		b.Segments = 4
	}
	if b.Writers == 0 {
		b.Writers = 8
	}
	if b.PageSize == 0 {
		b.PageSize = 500
	}
	return b
}

func (b *Backfill) check() error {
	var all []error
	bad := func(format string, args ...any) {
		all = append(all, fmt.Errorf("%w: Backfill."+format, append([]any{ErrInvalid}, args...)...))
	}
	if b.Transform == nil {
		bad("Transform: nil")
	}
	if b.Segments < 1 || b.Segments > MaxSegments {
		bad("Segments %d: want 1 to %d", b.Segments, MaxSegments)
	}
	if b.Writers < 1 || b.Writers > MaxWriters {
		bad("Writers %d: want 1 to %d", b.Writers, MaxWriters)
	}
	if len(b.Reads) > maxReads || slices.Contains(b.Reads, "") {
		bad("Reads: want at most %d names", maxReads)
	}
	if b.PageSize < 1 {
		bad("PageSize %d: want at least 1", b.PageSize)
	}
	for name, rate := range map[string]float64{"ReadUnits": b.ReadUnits, "WriteUnits": b.WriteUnits} {
		if !(rate == 0 || rate >= MinRate) || math.IsInf(rate, 0) {
			bad("%s %v: want 0, for no limit, or at least %v", name, rate, MinRate)
		}
	}
	return errs.Join(all...)
}

// Backfill transforms the items of the table, in parallel segments. Each write is conditional
// on what was read, and an item that somebody else has changed meanwhile is transformed anew:
// nobody's write is lost. Where an item has a version (the scheme's attribute) that is counted
// up, so that whoever has read the item before does not overwrite it. Each segment records
// its position under the guard, so that a run that follows a crash goes on from there.
//
// Items that others make while it runs may be missed: have the application write the new
// form first. What is not noticed between the read and the write of an item is a new
// attribute (see Reads) and, where there are more than 140 to compare, a change of one that
// the transformation leaves as it is (Reads, again); both survive the write.
//
// An error of Transform, or of writing an item, is an *ItemError. It returns the progress
// in any case.
//
// Cost: a consistent scan of the table, a write per item that changes (two in Exact mode),
// and a guarded write per page.
func (r *Run) Backfill(ctx context.Context, b Backfill) (Progress, error) {
	b = b.withDefaults()
	f := newFilling(r, b)
	f.recall(r.steps[b.Name][0])
	if err := b.check(); err != nil {
		return f.progress(), err
	}
	err := r.once(b.Name, func() error { return f.fill(ctx) })
	return f.progress(), err
}
