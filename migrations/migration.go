package migrations

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mortise-go/mortise/internal/errs"
)

// Limits of a Migration's texts.
const (
	MaxID       = 128 // in bytes
	MaxName     = 256 // in bytes
	MaxRevision = 256 // in bytes
)

// Migration is one change of schema or data. Do not change it after it has been applied anywhere. If its code has to
// change, change its Revision too. With another ID, it is another migration.
type Migration struct {
	// ID identifies the record and orders the migrations: 1 to 128 letters, digits, '.', '_' and '-'. Leading digits
	// compare as a number, so 9 comes before 10, and the rest as text.
	ID string

	// Name describes the migration for people: at most 256 bytes. Defaults to "".
	Name string

	// Revision identifies what the migration does, such as a number or a checksum of its statements. The author changes
	// it whenever the migration changes, because functions cannot be hashed. A migration that was interrupted, or has failed, is
	// continued whatever its revision is now: finished steps stay finished, and a backfill goes on from its position. A Repeatable one
	// starts anew if its revision has changed. Defaults to "".
	Revision string

	// Up makes the change. It has to use run for all writes to the table.
	Up func(ctx context.Context, run *Run) error

	// Down takes the change back. Defaults to nil: it cannot be taken back.
	Down func(ctx context.Context, run *Run) error

	// Idempotent allows the migration to run again after it was interrupted or has failed: everything outside of
	// finished steps can be repeated. Otherwise an operator has to decide ([Migrator.Repair]).
	Idempotent bool

	// Repeatable migrations run after all others, and again whenever their Revision has changed. An instance of an older version of
	// the program that starts later runs its own revision again.
	Repeatable bool
}

// compareIDs compares leading digits as a number of any length, then the rest as text.
func compareIDs(a, b string) int {
	na, ra := splitID(a)
	nb, rb := splitID(b)
	return cmp.Or(cmp.Compare(len(na), len(nb)), strings.Compare(na, nb), strings.Compare(ra, rb))
}

// splitID returns the leading number without leading zeros, and the rest.
func splitID(id string) (number, rest string) {
	i := 0
	for i < len(id) && id[i] >= '0' && id[i] <= '9' {
		i++
	}
	return strings.TrimLeft(id[:i], "0"), id[i:]
}

func (m *Migration) check() error {
	switch {
	case m.ID == "" || len(m.ID) > MaxID || strings.ContainsFunc(m.ID, foreignRune):
		return fmt.Errorf("ID %q: want 1 to %d letters, digits, '.', '_' and '-'", m.ID, MaxID)
	case len(m.Name) > MaxName || !utf8.ValidString(m.Name):
		return fmt.Errorf("%s: Name: want at most %d bytes of UTF-8", m.ID, MaxName)
	case len(m.Revision) > MaxRevision || !utf8.ValidString(m.Revision):
		return fmt.Errorf("%s: Revision: want at most %d bytes of UTF-8", m.ID, MaxRevision)
	case m.Up == nil:
		return fmt.Errorf("%s: Up is nil", m.ID)
	case m.Repeatable && m.Down != nil:
		return fmt.Errorf("%s: a repeatable migration has no Down", m.ID)
	}
	return nil
}

func foreignRune(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
}

// sorted checks a list and sorts it. It returns all problems together.
func sorted(list []Migration) ([]Migration, error) {
	var all []error
	for i := range list {
		if err := list[i].check(); err != nil {
			all = append(all, fmt.Errorf("%w: migration %w", ErrInvalid, err))
		}
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Migration) int {
		if a.Repeatable != b.Repeatable {
			if a.Repeatable {
				return 1
			}
			return -1
		}
		return compareIDs(a.ID, b.ID)
	})
	seen := map[string]string{} // by ID without leading zeros: 1_a and 01_a are the same ID
	for _, m := range list {
		number, rest := splitID(m.ID)
		id := number + " " + rest
		if other, ok := seen[id]; ok {
			all = append(all, fmt.Errorf("%w: migration %q: the ID of %q too", ErrInvalid, m.ID, other))
		}
		seen[id] = m.ID
	}
	return list, errs.Join(all...)
}
