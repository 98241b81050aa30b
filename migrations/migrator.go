package migrations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/internal/inside"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// Policy is how to treat records that do not fit the program.
type Policy int

const (
	// Fail returns an error before anything is run.
	Fail Policy = iota
	// Warn logs them and continues.
	Warn
)

// Order is how to treat a pending migration that comes before one that has begun.
type Order int

const (
	// Refuse returns an *[OrderError] before anything is run.
	Refuse Order = iota
	// Skip logs such migrations and leaves them pending.
	Skip
	// RunAnyway runs them, in the order of their IDs.
	RunAnyway
)

// Option changes how [New] sets up a Migrator.
type Option func(*Migrator) error

// InSet separates this list of migrations from others in the same table. The name has 1 to 64 bytes of UTF-8. Each set
// has its own lock, and its own records: under another name, all migrations are pending again. Defaults to "main".
func InSet(name string) Option {
	return func(m *Migrator) error {
		if name == "" || len(name) > 64 || !utf8.ValidString(name) {
			return fmt.Errorf("%w: InSet: want 1 to 64 bytes of UTF-8", ErrInvalid)
		}
		m.set = name
		return nil
	}
}

// OnDrift sets how to treat an applied migration whose revision has changed. Defaults to [Fail].
func OnDrift(p Policy) Option {
	return policy("OnDrift", p, func(m *Migrator) *Policy { return &m.onDrift })
}

// OnUnknown sets how to treat records of migrations that the program does not have. An older version of a program finds
// them after a newer version has run. Defaults to [Fail].
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

// OutOfOrder sets how to treat a pending migration that comes before one that has begun, for example from a branch that was
// merged late. Defaults to [Refuse].
func OutOfOrder(o Order) Option {
	return func(m *Migrator) error {
		if o < Refuse || o > RunAnyway {
			return fmt.Errorf("%w: OutOfOrder(%d): want Refuse, Skip or RunAnyway", ErrInvalid, o)
		}
		m.order = o
		return nil
	}
}

// WithLogger sets the logger. Defaults to slog.Default().
func WithLogger(l *slog.Logger) Option {
	return func(m *Migrator) error {
		if l == nil {
			return fmt.Errorf("%w: WithLogger: nil logger", ErrInvalid)
		}
		m.logger = l
		return nil
	}
}

// WithProgress sets a function that gets the progress of backfills, about once per second and at the end of each. Calls
// do not overlap. The function must not block for long, since the backfill waits for it.
func WithProgress(f func(Progress)) Option {
	return func(m *Migrator) error {
		if f == nil {
			return fmt.Errorf("%w: WithProgress: nil function", ErrInvalid)
		}
		m.progress = f
		return nil
	}
}

// Migrator runs a list of migrations in one table. It is safe for concurrent use, also by many processes: the lock
// admits one of them.
type Migrator struct {
	table *table.Table
	locks *lock.Client
	list  []Migration
	byID  map[string]*Migration
	rows  rows
	opts  []Option // passed to New; With needs them

	set       string
	target    lock.Target
	onDrift   Policy
	onUnknown Policy
	order     Order
	logger    *slog.Logger
	progress  func(Progress)
}

// New returns a Migrator for a list of migrations, in any order. It reports all problems of the list together, and
// sends no request. locks is a client of the same table. Its [lock.Config.MaxHold] ends migrations too, a
// [lock.Config.Backoff] that stops ends the wait for another instance ([lock.ErrHeld]), and its [lock.Config.AttributePrefix] is
// that of the records.
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
	if m.rows, err = newRows(t, locks.AttributePrefix()); err != nil {
		return nil, wrap("new", err)
	}
	key := m.rows.records.Key(Record{Set: m.set, ID: "x"})
	if err := key.Validate(); err != nil {
		return nil, wrap("new", err)
	}
	m.target = lock.Beside(keys.NewKey(key.PK, "MIGRATIONS"))
	return m, nil
}

// With returns a copy of m with further options, which override those of m. It sends no request.
func (m *Migrator) With(opts ...Option) (*Migrator, error) {
	return New(m.table, m.locks, m.list, slices.Concat(m.opts, opts)...)
}

// checkOnce refuses the ID of an unknown or repeatable migration.
func (m *Migrator) checkOnce(id string) error {
	switch migration := m.byID[id]; {
	case migration == nil:
		return fmt.Errorf("%w: no migration %q", ErrInvalid, id)
	case migration.Repeatable:
		return fmt.Errorf("%w: %q is repeatable", ErrInvalid, id)
	}
	return nil
}

// snapshot is the state of the migrations in the table.
type snapshot struct {
	records map[string]Record
	live    map[string]bool // IDs of the migrations that are known to run at this moment; only set by readLive
}

// read reads all records consistently.
func (m *Migrator) read(ctx context.Context) (*snapshot, error) {
	s := &snapshot{records: map[string]Record{}}
	for r, err := range m.rows.records.Query(ctx, keys.Values{"set": m.set}, entity.Consistent()) {
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

// readLive is read, and finds out which migrations run at this moment: those that the holder of the lock has begun. If one that was running
// is not the holder's, it reads the records again, since the migration may have ended before the lock was read.
func (m *Migrator) readLive(ctx context.Context) (*snapshot, error) {
	before, err := m.read(ctx)
	if err != nil {
		return nil, err
	}
	running := slices.DeleteFunc(slices.Collect(maps.Values(before.records)), func(r Record) bool { return !r.running() })
	if len(running) == 0 {
		return before, nil
	}
	holder, err := m.holder(ctx)
	if err != nil {
		return nil, err
	}
	s := before
	if slices.ContainsFunc(running, func(r Record) bool { return r.Fence != holder }) {
		if s, err = m.read(ctx); err != nil {
			return nil, err
		}
	}
	s.live = map[string]bool{}
	for id, r := range s.records {
		was := before.records[id]
		s.live[id] = r.running() && (r.Fence == holder || !was.running() || was.Fence != r.Fence) // or it was begun meanwhile
	}
	return s, nil
}

// holder returns the fence of the lease of the instance that holds the lock. It is 0 if there is none, or if that instance
// seems to be gone: its lease ended longer ago than clocks can differ. The time is that of DynamoDB's latest answer, since the local
// clock can be wrong.
func (m *Migrator) holder(ctx context.Context) (fence int64, err error) {
	r, err := m.locks.Inspect(ctx, m.target)
	if errors.Is(err, table.ErrNotFound) || err == nil && !r.Held() {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	list, err := m.locks.Sessions(ctx, r.Holder().Session)
	if err != nil {
		return 0, err
	}
	now, _ := m.table.Inside(inside.Key{}).LastServerTime()
	for _, s := range list {
		if s.Dead.IsZero() && (s.Expires.IsZero() || now.Server.Before(s.Expires.Add(s.Lease))) {
			return r.Fence, nil
		}
	}
	return 0, nil
}

// malformed adds the row's sort key to a decoding error. That key is this package's own, so an error may show it.
func malformed(err error) error {
	var bad *entity.DecodeError
	if errors.As(err, &bad) {
		return fmt.Errorf("%w: row %q: %w", ErrMalformed, bad.Key.SK, err)
	}
	return err
}

// short returns an error's text for a record. It is bounded to keep the row small.
func short(err error) string {
	const limit, more = 1000, "…"
	text := strings.ToValidUTF8(err.Error(), "\uFFFD")
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(more)], "") + more
}
