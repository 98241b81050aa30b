package migrations

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/table"
)

// Limits of a Backfill.
const (
	MaxSegments = 1000
	MaxWriters  = 100
	MinRate     = 0.01 // units per second

	maxReads = 100
)

// Backfill describes a transformation of many items of the table. See [Run.Backfill].
type Backfill struct {
	// Name is the name of its step, 1 to 128 bytes.
	Name string

	// Transform returns the new state of an item. Nil, or an equal item, leaves it unchanged. It may modify the item
	// that it gets, but not its key. Several goroutines call it concurrently. A panic is an error like any other.
	//
	// It is called again with the new state of an item that another program has changed meanwhile. Unless Exact is set,
	// it can also be called for items that it has transformed before, after an interruption or a lost answer, and has
	// to recognise them.
	//
	// It gets rows, not values. If it changes attributes from which index keys are made, it has to change these keys
	// too.
	Transform func(ctx context.Context, item table.Item) (table.Item, error)

	// Filter selects the items to transform. The others are read and paid for too. An item that another program changes
	// meanwhile is transformed only if it still matches. To find that out, DynamoDB evaluates the Filter again in an
	// update of the item that changes nothing. Defaults to all items.
	Filter table.Cond

	// Reads names attributes on which Transform depends even if an item does not have them. If one is added between the
	// read and the write, the item is transformed again. Attributes that an item has are compared in any case, up to
	// 140 in all, or 100 with a Filter (fewer if it is large). At most 100 names. It is not needed if all writers count a
	// version. Defaults to none.
	Reads []string

	// Segments is the number of parts of the table that are read concurrently, each with its own position: 1 to 1000.
	// It must not change while a backfill is unfinished. Defaults to 4.
	Segments int

	// Writers is the number of concurrent writes per segment: 1 to 100. Defaults to 8.
	Writers int

	// PageSize is the number of items that a segment reads and writes between two checkpoints. At most that many are
	// repeated after an interruption. Defaults to 500.
	PageSize int

	// Exact transforms each item exactly once, whatever happens, and only while the lock is held. It writes up to 98
	// items in a transaction together with the new position, at twice the write units, and one transaction at a time.
	// Defaults to false: items are written one by one, and some may be transformed again after an interruption.
	Exact bool

	// ReadUnits and WriteUnits are the average units per second to use at most, as DynamoDB reports them: at least
	// 0.01. Default to 0: no limit.
	ReadUnits, WriteUnits float64

	// Toolkit includes the rows of this module: locks, sessions, records of migrations, sentinels of unique values.
	// Their types begin with "mortise.". With Exact, Transform has to leave the lock of the migrations and the checkpoints of this one
	// unchanged, since each transaction contains them already. Defaults to false.
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

// Backfill transforms the items of the table in parallel segments. Each segment records its position under the guard,
// so that a run after a crash continues from there. It returns the progress, even with an error. An error of Transform,
// or of writing an item, is an *[ItemError].
//
// Each write is conditional on the item that was read. An item that another program has changed meanwhile is
// transformed again, so no write is lost. If an item has a version (the scheme's attribute), the version is
// incremented, so that programs that have read the item before do not overwrite it.
//
// Items that are created while it runs can be missed: deploy an application that writes the new form first. Two changes
// between the read and the write of an item are not noticed. One is a new attribute. The other is a change of an
// attribute that Transform leaves unchanged, if more than 140 would have to be compared (100 with a Filter, fewer if it is large). Both
// survive the write. Use Reads to notice them.
//
// Cost: a consistent scan of the table, a write for each item that changes (two with Exact), and a guarded write per
// page. For each write that another program's change has prevented, one more; with a Filter, two more.
func (r *Run) Backfill(ctx context.Context, b Backfill) (Progress, error) {
	b = b.withDefaults()
	f := newFilling(r, b)
	f.recall(r.steps[b.Name][0])
	err := r.once(b.Name, true, func() error {
		if err := b.check(); err != nil {
			return err
		}
		return f.fill(ctx)
	})
	return f.progress(), err
}
