package migrations

import (
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/toolkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// State is what has become of a migration.
type State string

// The states.
const (
	// Pending: has not been run, or was taken back.
	Pending State = "pending"
	// Running: was begun. Where nobody holds the lock it was cut off.
	Running State = "running"
	// Applied: done, or taken for done by Baseline.
	Applied State = "applied"
	// Failed: ended with an error.
	Failed State = "failed"
	// Drifted: applied, with another revision than the program has now.
	Drifted State = "drifted"
	// Missing: recorded, and not known to the program.
	Missing State = "missing"
)

// Record is the row of one migration. Its State is never Drifted or Missing, which only a
// comparison with the program's list can tell.
type Record struct {
	Set string `dynamo:"-"`
	ID  string `dynamo:"-"`

	Name      string        `dynamo:"name,omitempty"`
	Revision  string        `dynamo:"revision,omitempty"`
	State     State         `dynamo:"state"`
	Down      bool          `dynamo:"down,omitempty"`     // what runs, or has failed, takes the migration back
	Baseline  bool          `dynamo:"baseline,omitempty"` // was not run, but taken for applied
	Owner     string        `dynamo:"owner,omitempty"`    // who ran it last, for people
	Fence     int64         `dynamo:"fence,omitempty"`    // of the lease it ran under
	Base      int64         `dynamo:"base,omitempty"`     // of the lease it was begun under: checkpoints of other bases do not count
	Attempts  int           `dynamo:"attempts,omitempty"` // to run it since it was pending
	Started   time.Time     `dynamo:"started,omitempty"`
	Finished  time.Time     `dynamo:"finished,omitempty"`
	Took      time.Duration `dynamo:"took,omitempty"`     // of the last attempt
	Approved  bool          `dynamo:"approved,omitempty"` // Repair lets it run again although it is not idempotent
	Step      string        `dynamo:"step,omitempty"`     // in which it failed
	Error     string        `dynamo:"error,omitempty"`
	Repeating bool          `dynamo:"repeatable,omitempty"`
}

// checkpoint is the row of a finished step, or of one segment of a backfill.
type checkpoint struct {
	Set  string `dynamo:"-"`
	ID   string `dynamo:"-"`
	Step string `dynamo:"-"`
	Part uint32 `dynamo:"-"` // 0 for the step itself; segments count from 1

	Done     bool      `dynamo:"done"`
	Segments int       `dynamo:"segments,omitempty"`
	AfterPK  string    `dynamo:"after_pk,omitempty"` // the last key that is done
	AfterSK  string    `dynamo:"after_sk,omitempty"`
	Seen     int64     `dynamo:"seen,omitempty"`
	Changed  int64     `dynamo:"changed,omitempty"`
	Fence    int64     `dynamo:"fence"`
	Base     int64     `dynamo:"base"` // the record's
	Seq      int64     `dynamo:"seq"`  // counts the writes of this row: none is lost, or comes late
	At       time.Time `dynamo:"at"`
}

// check refuses what this version of the package cannot have written.
func (r *Record) check() error {
	begun := r.State == Running || r.State == Failed
	switch {
	case !begun && r.State != Pending && r.State != Applied:
		return fmt.Errorf("%w of %q: state %q", ErrMalformed, r.ID, string(r.State))
	case r.Attempts < 0, begun && (r.Attempts == 0 || r.Base <= 0):
		return fmt.Errorf("%w of %q: state %q with base %d and %d attempts", ErrMalformed, r.ID, string(r.State), r.Base, r.Attempts)
	}
	return nil
}

// check refuses a row that would begin a segment anew.
func (c *checkpoint) check() error {
	begun := c.AfterPK != "" && c.AfterSK != ""
	if c.Part > 0 && (int64(c.Part) > int64(c.Segments) || c.Done == begun) || c.Seq < 1 || c.Seen < 0 || c.Changed < 0 {
		return fmt.Errorf("%w: checkpoint of step %q of %q, part %d", ErrMalformed, c.Step, c.ID, c.Part)
	}
	return nil
}

// position returns where the segment goes on; nil at its beginning.
func (c *checkpoint) position(s keys.Scheme) table.Item {
	if c.AfterPK == "" {
		return nil
	}
	return table.Item{s.PK: &types.AttributeValueMemberS{Value: c.AfterPK}, s.SK: &types.AttributeValueMemberS{Value: c.AfterSK}}
}

// move takes in where the segment goes on: nil at its end.
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

const (
	recordType     = toolkit.Migration
	checkpointType = toolkit.Checkpoint
)

// rows are the entities of this package, all in the partition of the lock.
type rows struct {
	records     *entity.Entity[Record]
	checkpoints *entity.Entity[checkpoint]
}

// newRows defines them, with a prefix of their attributes' names.
func newRows(t *table.Table, partition, prefix string) (r rows, err error) {
	if err := toolkit.Claim(t, recordType, checkpointType); err != nil {
		return r, err
	}
	d := string(rune(t.Scheme().Delimiter))
	if r.records, err = entity.Define(t, entity.Spec[Record]{
		Type: recordType, PK: partition, SK: "MIGRATION" + d + "{id}", AttributePrefix: prefix,
	}); err != nil {
		return r, err
	}
	r.checkpoints, err = entity.Define(t, entity.Spec[checkpoint]{
		Type: checkpointType, PK: partition, SK: "CHECKPOINT" + d + "{id}" + d + "{step}" + d + "{part:uint6}",
		AttributePrefix: prefix,
	})
	return r, err
}
