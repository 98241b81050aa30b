package tabletest

import "time"

const (
	// defaultRecovery and maxRecovery are numbers of days.
	defaultRecovery = 35
	maxRecovery     = 35
	// recoveryLag is how far the latest time to which a table can be restored is behind the present.
	recoveryLag = 5 * time.Minute
)

// recovery is the setting of point-in-time recovery.
type recovery struct {
	since time.Time // time at which it was enabled; zero if it is disabled
	days  int
}

// backedUp returns the table of an operation on backups. These operations have their own error for a missing table.
func (c *call) backedUp() (*table, error) {
	return c.tableOr(func(name string) *apiError { return fail(codeNoTable, "Table not found: %s", name) })
}

func describeContinuousBackups(c *call) ([]byte, error) {
	t, err := c.backedUp()
	if err != nil {
		return nil, err
	}
	return t.recovery.describe(c.now), nil
}

func updateContinuousBackups(c *call) ([]byte, error) {
	t, err := c.backedUp()
	if err != nil {
		return nil, err
	}
	f := c.in.sub("PointInTimeRecoverySpecification")
	enable := f.flag("PointInTimeRecoveryEnabled")
	days, given := f.number("RecoveryPeriodInDays")
	switch {
	case !enable && given:
		return nil, invalid("Invalid Request: Cannot specify RecoveryPeriodInDays when disabling point-in-time recovery.")
	case !enable:
		t.recovery = recovery{}
	default:
		if t.recovery.since.IsZero() {
			t.recovery.since = c.now.Truncate(time.Second)
		}
		t.recovery.days = defaultRecovery
		if given {
			t.recovery.days = days
		}
	}
	return t.recovery.describe(c.now), nil
}

func (r recovery) describe(now time.Time) []byte {
	o := newObject()
	o.object("ContinuousBackupsDescription", func(o *object) {
		o.text("ContinuousBackupsStatus", "ENABLED")
		o.object("PointInTimeRecoveryDescription", func(o *object) {
			if r.since.IsZero() {
				o.text("PointInTimeRecoveryStatus", "DISABLED")
				return
			}
			o.text("PointInTimeRecoveryStatus", "ENABLED")
			o.int("RecoveryPeriodInDays", r.days)
			o.time("EarliestRestorableDateTime", r.notBefore(now.AddDate(0, 0, -r.days)))
			o.time("LatestRestorableDateTime", r.notBefore(now.Add(-recoveryLag)))
		})
	})
	return o.end()
}

// notBefore returns t, or the time at which recovery was enabled if that is later.
func (r recovery) notBefore(t time.Time) time.Time {
	if t.Before(r.since) {
		return r.since
	}
	return t.Truncate(time.Second)
}
