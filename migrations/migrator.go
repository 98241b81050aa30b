package migrations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// Policy says what to do about something that should not be.
type Policy int

const (
	// Fail ends the call with an error before anything is run.
	Fail Policy = iota
	// Warn logs it and goes on.
	Warn
)

// Order says what to do with a pending migration that comes before one that is applied.
type Order int

const (
	// Refuse ends the call with an *OrderError before anything is run.
	Refuse Order = iota
	// Skip leaves such migrations pending, and logs that.
	Skip
	// RunAnyway runs them, in the order of their IDs.
	RunAnyway
)

// Option changes how New sets a Migrator up.
type Option func(*Migrator) error

// InSet keeps this list of migrations apart from others in the same table: 1 to 64 bytes of
// UTF-8. Each set has its own lock. Defaults to "main".
func InSet(name string) Option {
	return func(m *Migrator) error {
		if name == "" || len(name) > 64 || !utf8.ValidString(name) {
			return fmt.Errorf("%w: InSet: want 1 to 64 bytes of UTF-8", ErrInvalid)
		}
		m.set = name
		return nil
	}
}

// OnDrift says what to do when an applied migration has another revision now. Defaults to Fail.
func OnDrift(p Policy) Option {
	return policy("OnDrift", p, func(m *Migrator) *Policy { return &m.onDrift })
}

// OnUnknown says what to do about records of migrations that the program does not have, as
// an older version of it meets them after a newer one has run. Defaults to Fail.
func OnUnknown(p Policy) Option {
	return policy("OnUnknown", p, func(m *Migrator) *Policy { return &m.onUnknown })
}

func policy(name string, p Policy, field func(*Migrator) *Policy) Option {
	return func(m *Migrator) error {
		if p != Fail && p != Warn {
			return fmt.Errorf("%w: %s(%d): want Fail or Warn", ErrInvalid, name, p)
		}
		*field(m) = p
		return nil
	}
}

// OutOfOrder says what to do with a pending migration that comes before one that is
// applied, as a branch that was merged late brings it. Defaults to Refuse.
func OutOfOrder(o Order) Option {
	return func(m *Migrator) error {
		if o < Refuse || o > RunAnyway {
			return fmt.Errorf("%w: OutOfOrder(%d): want Refuse, Skip or RunAnyway", ErrInvalid, o)
		}
		m.order = o
		return nil
	}
}

// WithLogger gets what people should know. Defaults to slog.Default().
func WithLogger(l *slog.Logger) Option {
	return func(m *Migrator) error {
		if l == nil {
			return fmt.Errorf("%w: WithLogger: nil logger", ErrInvalid)
		}
		m.logger = l
		return nil
	}
}

// WithProgress gets the progress of backfills, about once per second and at the end of each,
// from one goroutine at a time. It must not block for long: the backfill waits.
func WithProgress(f func(Progress)) Option {
	return func(m *Migrator) error {
		if f == nil {
			return fmt.Errorf("%w: WithProgress: nil function", ErrInvalid)
		}
		m.progress = f
		return nil
	}
}

// Migrator runs a list of migrations in one table. It is safe for concurrent use, by many
// processes too: the lock lets one of them run.
type Migrator struct {
	table *table.Table
	locks *lock.Client
	list  []Migration
	byID  map[string]*Migration
	rows  rows
	opts  []Option // that it was made with

	set       string
	target    lock.Target
	onDrift   Policy
	onUnknown Policy
	order     Order
	logger    *slog.Logger
	progress  func(Progress)
}

// New makes a Migrator for a list of migrations, in any order. It reports all that is wrong
// with the list at once, and sends nothing. locks is a client of the same table; what it is
// configured to do with locks that are held for long (lock.Config.MaxHold) ends migrations
// too, and its lock.Config.AttributePrefix is that of the records.
func New(t *table.Table, locks *lock.Client, list []Migration, opts ...Option) (*Migrator, error) {
	if t == nil || locks == nil {
		return nil, wrap("new", fmt.Errorf("%w: nil table or lock client", ErrInvalid))
	}
	m := &Migrator{table: t, locks: locks, set: "main", logger: slog.Default(), opts: slices.Clone(opts)}
	var all []error
	for _, opt := range opts {
		if opt == nil {
			all = append(all, fmt.Errorf("%w: nil option", ErrInvalid))
		} else if err := opt(m); err != nil {
			all = append(all, err)
		}
	}
	var err error
	if m.list, err = sorted(list); err != nil {
		all = append(all, err)
	}
	if err := errs.Join(all...); err != nil {
		return nil, wrap("new", err)
	}
	if at := locks.Records().Table(); at.Name() != t.Name() || at.Scheme() != t.Scheme() {
		return nil, wrap("new", fmt.Errorf("%w: the lock client is of another table, or another scheme", ErrInvalid))
	}
	m.byID = make(map[string]*Migration, len(m.list))
	for i := range m.list {
		m.byID[m.list[i].ID] = &m.list[i]
	}
	d := string(rune(t.Scheme().Delimiter))
	if m.rows, err = newRows(t, "MIGRATIONS"+d+"{set}", locks.AttributePrefix()); err != nil {
		return nil, wrap("new", err)
	}
	key := m.rows.records.Key(Record{Set: m.set, ID: "x"})
	if err := key.Validate(); err != nil {
		return nil, wrap("new", err)
	}
	m.target = lock.Beside(keys.NewKey(key.PK, "MIGRATIONS"))
	return m, nil
}

// With returns another Migrator for the same migrations, with further options; they come after
// those that m was made with, and override them. m stays as it is. It sends nothing.
func (m *Migrator) With(opts ...Option) (*Migrator, error) {
	return New(m.table, m.locks, m.list, slices.Concat(m.opts, opts)...)
}

// find returns the migration with an ID.
func (m *Migrator) find(id string) (*Migration, error) {
	if migration := m.byID[id]; migration != nil {
		return migration, nil
	}
	return nil, fmt.Errorf("%w: no migration %q", ErrInvalid, id)
}

// snapshot is what the table knows of the migrations.
type snapshot struct{ records map[string]Record }

// read reads all records, consistently.
func (m *Migrator) read(ctx context.Context) (*snapshot, error) {
	s := &snapshot{records: map[string]Record{}}
	for r, err := range m.rows.records.Query(ctx, keys.Values{"set": m.set}, entityConsistent) {
		if err == nil {
			err = r.check()
		}
		if err != nil {
			return nil, malformed(err)
		}
		s.records[r.ID] = r
	}
	return s, nil
}

// malformed says which row does not decode. Its key is this package's own, and no secret.
func malformed(err error) error {
	var bad *entity.DecodeError
	if errors.As(err, &bad) {
		return fmt.Errorf("%w: row %q: %w", ErrMalformed, bad.Key.SK, err)
	}
	return err
}

// short returns an error's text for a record: bounded, so that the row stays small.
func short(err error) string {
	const limit = 1000
	text := strings.ToValidUTF8(err.Error(), "\uFFFD")
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}
