package tabletest

// backedUp returns the table of an operation on backups. These operations have their own error for a missing table.
func (c *call) backedUp() (*table, error) {
	t, err := c.table(&c.in)
	if err != nil && c.in.err == nil {
		return nil, fail(codeNoTable, "Table not found: %s", tableOfARN(c.in.text("TableName")))
	}
	return t, err
}

func describeContinuousBackups(c *call) ([]byte, error) {
	t, err := c.backedUp()
	if err != nil {
		return nil, err
	}
	return t.describeBackups(), nil
}

func updateContinuousBackups(c *call) ([]byte, error) {
	t, err := c.backedUp()
	if err != nil {
		return nil, err
	}
	f := c.in.sub("PointInTimeRecoverySpecification")
	enable := f.flag("PointInTimeRecoveryEnabled")
	if err := firstError(c.in.err, f.err); err != nil {
		return nil, err
	}
	t.recovery = enable
	return t.describeBackups(), nil
}

func (t *table) describeBackups() []byte {
	status := "DISABLED"
	if t.recovery {
		status = "ENABLED"
	}
	o := newObject()
	o.object("ContinuousBackupsDescription", func(o *object) {
		o.text("ContinuousBackupsStatus", "ENABLED")
		o.object("PointInTimeRecoveryDescription", func(o *object) { o.text("PointInTimeRecoveryStatus", status) })
	})
	return o.end()
}
