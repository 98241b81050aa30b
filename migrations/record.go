package migrations

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/mortise-go/mortise/internal/inside"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/toolkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// State is the state of a migration.
type State string

// States of a migration.
const (
	// Pending means that the migration has not run, or was taken back.
	Pending State = "pending"
	// Running means that the migration was begun. If no instance holds the lock, it was interrupted.
	Running State = "running"
	// Applied means that the migration is finished, or was recorded so by [Migrator.Baseline].
	Applied State = "applied"
	// Failed means that the migration ended with an error.
	Failed State = "failed"
	// Drifted means that the migration was applied with another revision than the program now has.
	Drifted State = "drifted"
	// Missing means that the program does not have the migration.
	Missing State = "missing"
)

// Record is the row of one migration. Its State is never [Drifted] or [Missing]; these result only from a comparison
// with the program's list.
type Record struct {
	Set string `dynamo:"-"`
	ID  string `dynamo:"-"`

	Name       string        `dynamo:"name,omitempty"`
	Revision   string        `dynamo:"revision,omitempty"`
	State      State         `dynamo:"state"`
	Down       bool          `dynamo:"down,omitempty"`     // the current or failed run is that of Down
	Baseline   bool          `dynamo:"baseline,omitempty"` // recorded as applied without having run
	Owner      string        `dynamo:"owner,omitempty"`    // instance that last ran it, for people
	Fence      int64         `dynamo:"fence,omitempty"`    // fencing token of the lease of the last run
	Base       int64         `dynamo:"base,omitempty"`     // fencing token of the lease under which it was begun; checkpoints with another base do not count
	Attempts   int           `dynamo:"attempts,omitempty"` // number of attempts since it was pending
	Started    time.Time     `dynamo:"started,omitempty"`
	Finished   time.Time     `dynamo:"finished,omitempty"`
	Took       time.Duration `dynamo:"took,omitempty"`     // duration of the last attempt
	Approved   bool          `dynamo:"approved,omitempty"` // Repair allows another run although it is not idempotent
	Step       string        `dynamo:"step,omitempty"`     // step that failed
	Error      string        `dynamo:"error,omitempty"`
	Repeatable bool          `dynamo:"repeatable,omitempty"` // [Migration.Repeatable] at the last run
}

// checkpoint is the row of a finished step, or of one segment of a backfill.
type checkpoint struct {
	Set  string `dynamo:"-"`
	ID   string `dynamo:"-"`
	Step string `dynamo:"-"`
	Part uint32 `dynamo:"-"` // 0 for the step itself; segments count from 1

	Done     bool      `dynamo:"done"`
	Segments int       `dynamo:"segments,omitempty"`
	AfterPK  string    `dynamo:"after_pk,omitempty"` // key after which the segment continues; empty at its beginning and its end
	AfterSK  string    `dynamo:"after_sk,omitempty"`
	Seen     int64     `dynamo:"seen,omitempty"`
	Changed  int64     `dynamo:"changed,omitempty"`
	Fence    int64     `dynamo:"fence"`
	Base     int64     `dynamo:"base"` // Record.Base of the run that has written it
	Seq      int64     `dynamo:"seq"`  // counts the writes of this row; each requires the one before it, so a late write is refused
	At       time.Time `dynamo:"at"`
}

func (r Record) running() bool { return r.State == Running }

// check refuses a record that this version of the package cannot have written.
func (r *Record) check() error {
	begun := r.State == Running || r.State == Failed
	switch {
	case !begun && r.State != Pending && r.State != Applied:
		return fmt.Errorf("%w of %q: state %.40q", ErrMalformed, r.ID, string(r.State))
	case r.Attempts < 0, begun && (r.Attempts == 0 || r.Base <= 0):
		return fmt.Errorf("%w of %q: state %q with base %d and %d attempts", ErrMalformed, r.ID, string(r.State), r.Base, r.Attempts)
	}
	return nil
}

// maxCount is more items than any table has. The percentage of a sum of MaxSegments such counts does not overflow.
const maxCount = 1 << 46

// check refuses an invalid row. An unfinished segment without a position, for example, would begin again unnoticed.
func (c *checkpoint) check() error {
	begun := c.AfterPK != "" && c.AfterSK != ""
	if c.Part > 0 && (int64(c.Part) > int64(c.Segments) || c.Done == begun) || c.Segments > MaxSegments ||
		c.Seq < 1 || min(c.Seen, c.Changed) < 0 || max(c.Seen, c.Changed) > maxCount {
		return fmt.Errorf("%w: checkpoint of step %q of %q, part %d", ErrMalformed, c.Step, c.ID, c.Part)
	}
	return nil
}

// position returns the key after which the segment continues, or nil at its beginning.
func (c *checkpoint) position(s keys.Scheme) table.Item {
	if c.AfterPK == "" {
		return nil
	}
	return table.Item{s.PK: &types.AttributeValueMemberS{Value: c.AfterPK}, s.SK: &types.AttributeValueMemberS{Value: c.AfterSK}}
}

// move sets the key after which the segment continues. A nil key means that the segment is done.
func (c *checkpoint) move(to table.Item, s keys.Scheme) {
	text := func(name string) string {
		v, ok := to[name].(*types.AttributeValueMemberS)
		if !ok {
			return ""
		}
		return v.Value
	}
	c.AfterPK, c.AfterSK, c.Done = text(s.PK), text(s.SK), to == nil
}

// rows are the entities of this package. All are in the partition of the lock.
type rows struct {
	records     *entity.Entity[Record]
	checkpoints *entity.Entity[checkpoint]
}

// newRows defines the entities. prefix begins the names of their attributes.
func newRows(t *table.Table, prefix string) (r rows, err error) {
	toolkit.Claim(t.Inside(inside.Key{}), toolkit.Migration, toolkit.Checkpoint)
	if err := checkNames(t.Schema(), prefix); err != nil {
		return r, err
	}
	d := string(rune(t.Scheme().Delimiter))
	partition := "MIGRATIONS" + d + "{set}"
	if r.records, err = entity.Define(t, entity.Spec[Record]{
		Type: toolkit.Migration, PK: partition, SK: "MIGRATION" + d + "{id}", AttributePrefix: prefix,
	}); err != nil {
		return r, err
	}
	r.checkpoints, err = entity.Define(t, entity.Spec[checkpoint]{
		Type: toolkit.Checkpoint, PK: partition, SK: "CHECKPOINT" + d + "{id}" + d + "{step}" + d + "{part:uint6}",
		AttributePrefix: prefix,
	})
	return r, err
}

// checkNames refuses names of attributes that have another meaning in the table.
func checkNames(schema table.Schema, prefix string) error {
	var names []string
	for _, row := range []reflect.Type{reflect.TypeFor[Record](), reflect.TypeFor[checkpoint]()} {
		for i := range row.NumField() {
			if name, _, _ := strings.Cut(row.Field(i).Tag.Get("dynamo"), ","); name != "-" {
				names = append(names, prefix+name)
			}
		}
	}
	if name, what := toolkit.Conflict(schema, names); name != "" {
		return fmt.Errorf("%w: attribute %q of the records is %s of the table: "+
			"set lock.Config.AttributePrefix, the same for all clients of the table", ErrInvalid, name, what)
	}
	return nil
}
