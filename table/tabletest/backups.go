package tabletest

func describeContinuousBackups(c *call) ([]byte, error) {
	t, err := c.table(&c.in)
	if err != nil {
		return nil, err
	}
	return t.describeBackups(), nil
}

func updateContinuousBackups(c *call) ([]byte, error) {
	t, err := c.table(&c.in)
	if err != nil {
		return nil, err
	}
	if !c.in.has("PointInTimeRecoverySpecification") {
		return nil, errNull("pointInTimeRecoverySpecification")
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
