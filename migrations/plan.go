package migrations

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-go/mortise/internal/errs"
)

// Action is one step of [Migrator.Up].
type Action struct {
	ID, Name string
	State    State  // current state
	Text     string // for people
}

func (m *Migrator) statuses(s *snapshot) []Status {
	list := make([]Status, 0, len(m.list))
	for i := range m.list {
		list = append(list, m.list[i].status(s))
	}
	for _, id := range m.missing(s) {
		r := s.records[id]
		list = append(list, Status{ID: id, Name: r.Name, State: Missing, Record: &r, Live: s.live[id]})
	}
	return list
}

func (m *Migration) status(s *snapshot) Status {
	st := Status{ID: m.ID, Name: m.Name, State: Pending}
	r, ok := s.records[m.ID]
	if !ok {
		return st
	}
	st.Record, st.Live = &r, s.live[m.ID]
	switch {
	case r.State == Applied && r.Revision != m.Revision && m.Repeatable:
		// It stays Pending: Up repeats it.
	case r.State == Applied && r.Revision != m.Revision:
		st.State = Drifted
	default:
		st.State = r.State
	}
	st.Resumable = (st.State == Running || st.State == Failed) && (m.Idempotent || r.Approved)
	return st
}

// Plan lists what [Migrator.Up] would do, in order, and changes nothing. Besides the list it returns the error with
// which Up would refuse to run anything.
//
// Cost: one consistent query. If a migration is recorded as running, also reads of the lock and of a session, and a second
// query unless the holder of the lock runs it.
func (m *Migrator) Plan(ctx context.Context) ([]Action, error) {
	s, err := m.readLive(ctx)
	if err != nil {
		return nil, wrap("plan", err)
	}
	todo, err := m.todo(s, "", true, unsaid)
	list := make([]Action, len(todo))
	for i, st := range todo {
		list[i] = Action{ID: st.ID, Name: st.Name, State: st.State, Text: st.text()}
	}
	return list, wrap("plan", err)
}

func (st *Status) text() string {
	name := st.ID
	if st.Name != "" {
		name += " " + st.Name
	}
	switch {
	case st.Live && st.Record.Down:
		return fmt.Sprintf("wait for %s, which is being taken back, and run it", name)
	case st.Live:
		return fmt.Sprintf("wait for %s, which runs now: attempt %d", name, st.Record.Attempts)
	case st.State == Running:
		return fmt.Sprintf("resume %s, which was cut off in attempt %d", name, st.Record.Attempts)
	case st.State == Failed:
		return fmt.Sprintf("resume %s, which failed in attempt %d: %s", name, st.Record.Attempts, st.Record.Error)
	case st.Record != nil && st.Record.State == Applied:
		return "repeat " + name
	}
	return "run " + name
}

// Validate checks that the table's records and the program's list agree: that no migration is drifted, unknown, out of
// order or unfinished. It returns all problems as a joined error. Migrations that are pending, that another instance runs at
// this moment, or that Up continues, are no problem.
//
// Cost: one consistent query. If a migration is recorded as running, also reads of the lock and of a session, and a second
// query unless the holder of the lock runs it.
func (m *Migrator) Validate(ctx context.Context) error {
	s, err := m.readLive(ctx)
	if err != nil {
		return wrap("validate", err)
	}
	strict := *m
	strict.onDrift, strict.onUnknown, strict.order = Fail, Fail, Refuse
	_, err = strict.todo(s, "", true, unsaid)
	return wrap("validate", err)
}

// missing returns the IDs of records of migrations that the program does not have, in order.
func (m *Migrator) missing(s *snapshot) []string {
	var ids []string
	for id := range s.records {
		if m.byID[id] == nil {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(compareIDs(a, b), strings.Compare(a, b)) })
	return ids
}

// unknown returns the error for records of migrations that the program does not have, or nil. Migrations that were taken
// back do not count.
func (m *Migrator) unknown(s *snapshot) *UnknownError {
	ids := slices.DeleteFunc(m.missing(s), func(id string) bool { return s.records[id].State == Pending })
	if len(ids) == 0 {
		return nil
	}
	return &UnknownError{ids}
}

// last returns the greatest ID of all migrations that were begun, by this or another version of the program; "" for none.
func (m *Migrator) last(s *snapshot) (last string) {
	for i := range m.list {
		if m.begun(s, &m.list[i]) {
			last = m.list[i].ID
		}
	}
	for _, id := range m.missing(s) {
		if r := s.records[id]; r.State != Pending && !r.Repeatable && (last == "" || compareIDs(id, last) > 0) {
			last = id
		}
	}
	return last
}

// todo lists the migrations to run, up to and including upTo (empty: all), in order. Its error joins the reasons why
// none of them should run. Those that the policies allow are passed to allowed. alone means that no other instance runs, so that a migration
// recorded as running was interrupted, unless it is live.
func (m *Migrator) todo(s *snapshot, upTo string, alone bool, allowed func(error)) ([]Status, error) {
	var list []Status
	var drift DriftError
	var late OrderError
	var found []error
	last := m.last(s)
	for i := range m.list {
		migration := &m.list[i]
		st := migration.status(s)
		switch st.State {
		case Drifted:
			drift.Drifted = append(drift.Drifted, Drift{ID: st.ID, Applied: st.Record.Revision, Now: migration.Revision})
			continue
		case Applied:
			continue
		case Running, Failed:
			if (st.Record.Down || !st.Resumable) && (st.State == Failed || alone && !s.live[st.ID]) {
				found = append(found, &UnfinishedError{*st.Record, st.Resumable})
				continue
			}
		}
		if upTo != "" && (migration.Repeatable || compareIDs(st.ID, upTo) > 0) {
			continue
		}
		// An ID equal to last is last with other leading zeros.
		if st.State == Pending && !migration.Repeatable && last != "" && compareIDs(st.ID, last) <= 0 {
			late.Pending, late.Begun = append(late.Pending, st.ID), last
			if m.order == Skip {
				continue
			}
		}
		list = append(list, st)
	}
	judge := func(fail bool, err error) {
		if fail {
			found = append(found, err)
		} else {
			allowed(err)
		}
	}
	if unknown := m.unknown(s); unknown != nil {
		judge(m.onUnknown == Fail, unknown)
	}
	if len(drift.Drifted) > 0 {
		judge(m.onDrift == Fail, &drift)
	}
	if len(late.Pending) > 0 {
		judge(m.order == Refuse, &late)
	}
	return list, errs.Join(found...)
}

// unsaid logs nothing.
func unsaid(error) {}

// warnings returns a function that logs what the policies allow, each text once. The records are read several times in a call.
func (m *Migrator) warnings() func(error) {
	said := map[string]bool{}
	return func(err error) {
		if text := err.Error(); !said[text] {
			said[text] = true
			m.logger.Warn("migrations: " + text)
		}
	}
}
