package mutants

// death breaks how it is known that a holder is dead, and what is re-checked then.
func death() []Mutant {
	const row, acquire, takeover, contest, look = "lock/row.go", "lock/acquire.go", "lock/takeover.go", "lock/contest.go", "lock/look.go"
	return []Mutant{
		{
			Name: "skew-in-the-wrong-direction", Part: Death, File: acquire,
			Breaks: "takes a lock before its recorded end by the skew bound, instead of after",
			Old:    `now.Add(min(o.least, 0) - c.config.Skew)`,
			New:    `now.Add(min(o.least, 0) + c.config.Skew)`,
		},
		{
			Name: "fast-clock-judges", Part: Death, File: acquire,
			Breaks: "judges recorded ends by a fast local clock instead of DynamoDB's",
			Old:    `now.Add(min(o.least, 0) - c.config.Skew)`,
			New:    `now.Add(-c.config.Skew)`,
		},
		{
			Name: "unmeasured-clock-judges", Part: Death, File: acquire,
			Breaks: "judges recorded ends before DynamoDB's time is known",
			Old:    `if c.config.Expiry == ObservedOnly || !o.known {`,
			New:    `if c.config.Expiry == ObservedOnly {`,
		},
		{
			Name: "clock-that-is-off-judges", Part: Death, File: acquire,
			Breaks: "judges and records ends by a clock that is off by more than the bound",
			Old:    "\t\treturn offset{}, by\n",
			New:    "\t\treturn o, by\n",
		},
		{
			Name: "clock-that-was-set-judges", Part: Death, File: "lock/clock.go",
			Breaks: "trusts a wall clock that was set since DynamoDB has told its time",
			Old:    `if drift.Abs() > time.Second {`,
			New:    `if drift.Abs() > 1000*time.Hour {`,
		},
		{
			Name: "observed-only-ignored", Part: Death, File: acquire,
			Breaks: "judges recorded ends although the configuration forbids it",
			Old:    `if c.config.Expiry == ObservedOnly || !o.known {`,
			New:    `if !o.known {`,
		},
		{
			Name: "recorded-end-ignored", Part: Death, File: row,
			Breaks: "takes a lease of its own for ended, whatever end it records",
			Old:    `table.And(held, s.attr(attrExpires).Between(0, paramBefore))`,
			New:    `table.And(held, s.attr(attrExpires).AtLeast(0))`,
		},
		{
			Name: "recorded-end-compared-wrongly", Part: Death, File: row,
			Breaks: "takes leases of their own that have not ended, and leaves those that have",
			Old:    `table.And(held, s.attr(attrExpires).Between(0, paramBefore))`,
			New:    `table.And(held, s.attr(attrExpires).Greater(paramBefore))`,
		},
		{
			Name: "recorded-end-off-by-one", Part: Death, File: row,
			Breaks: "takes a lease of its own a millisecond before the bound has passed",
			Old:    `g.deadline-1,`,
			New:    `g.deadline,`,
		},
		{
			Name: "session-end-off-by-one", Part: Death, File: takeover,
			Breaks: "declares a session dead a millisecond before the bound has passed",
			Old:    `c.attr(attrExpires).Between(0, deadline-1)`,
			New:    `c.attr(attrExpires).Between(0, deadline)`,
		},
		{
			Name: "session-end-ignored", Part: Death, File: takeover,
			Breaks: "declares a session dead, whatever end it records",
			Old:    `c.attr(attrExpires).Between(0, deadline-1)`,
			New:    `c.attr(attrExpires).AtLeast(0)`,
		},
		{
			Name: "dead-without-the-beat", Part: Death, File: takeover,
			Breaks: "declares a session dead that has been renewed since it was seen",
			Old:    `c.attr(attrBeat).Equal(beat))`,
			New:    `c.attr(attrBeat).AtLeast(0))`,
		},
		{
			Name: "taken-from-a-live-session", Part: Death, File: takeover,
			Breaks: "takes a session's lock without declaring the session dead",
			Old:    `if e == nil || e.session == "" || e.dead {`,
			New:    `if e == nil || e.session == "" || e.dead || e.seen >= -1 {`,
		},
		{
			Name: "missing-is-dead", Part: Death, File: contest,
			Breaks: "believes an eventually consistent read that a session has no row",
			Old:    `e.dead = w.dead`,
			New:    `e.dead = w.dead || w.missing`,
		},
		{
			Name: "taken-over-from-anybody", Part: Death, File: row,
			Breaks: "takes a lock from whoever has acquired it since its session was declared dead",
			Old:    `table.And(s.attr(attrNonce).Equal(paramEnded), s.attr(attrSession).Equal(paramEndedSession))`,
			New:    `s.attr(attrNonce).Exists()`,
		},
		{
			Name: "taken-over-without-the-nonce", Part: Death, File: row,
			Breaks: "takes a lease of its own from a later holder than the one that was observed",
			Old:    `table.And(held, s.attr(attrNonce).Equal(paramEnded), s.attr(attrBeat).Equal(paramEndedBeat))`,
			New:    `table.And(held, s.attr(attrBeat).Equal(paramEndedBeat))`,
		},
		{
			Name: "taken-over-without-the-beat", Part: Death, File: row,
			Breaks: "takes a lease of its own that was renewed since it was observed",
			Old:    `table.And(held, s.attr(attrNonce).Equal(paramEnded), s.attr(attrBeat).Equal(paramEndedBeat))`,
			New:    `table.And(held, s.attr(attrNonce).Equal(paramEnded))`,
		},
		{
			Name: "beat-not-observed", Part: Death, File: contest,
			Breaks: "takes a lease of its own for silent although its beat has changed",
			Old:    `r.Nonce == c.holder.Nonce && r.Fence == c.holder.Fence && r.Beat == c.holder.Beat`,
			New:    `r.Nonce == c.holder.Nonce && r.Fence == c.holder.Fence`,
		},
		{
			Name: "ghost-taken-for-its-lease", Part: Death, File: contest,
			Breaks: "takes a ghost for the holder of that nonce, of whom it has asked already",
			Old:    `r.Nonce == c.holder.Nonce && r.Fence == c.holder.Fence && r.Beat == c.holder.Beat`,
			New:    `r.Nonce == c.holder.Nonce && r.Beat == c.holder.Beat`,
		},
		{
			Name: "restored-row-ignored", Part: Death, File: contest,
			Breaks: "waits for ever for a holder whom a restored table does not know",
			Old:    `return c.clock.ago(c.since) > max(`,
			New:    `return c.clock.ago(c.since) > forever-max(`,
		},
		{
			Name: "observed-since-it-was-acquired", Part: Death, File: contest,
			Breaks: "counts the observed lease from the acquisition, by the holder's clock, instead of the first sight",
			Old:    "\tc.holder = *r\n\tif same {\n",
			New:    "\tdefer func() { c.since = r.Since() }()\n\tc.holder = *r\n\tif same {\n",
		},
		{
			Name: "observed-for-a-poll", Part: Death, File: contest,
			Breaks: "takes a lease of its own for silent after one poll instead of a lease",
			Old:    "\tc.holder = *r\n\tif same {\n",
			New:    "\tc.holder = *r\n\tc.holder.Lease = minPoll.Milliseconds()\n\tif same {\n",
		},
		{
			Name: "session-observed-for-a-poll", Part: Death, File: look,
			Breaks: "takes a session for silent after one poll instead of a lease",
			Old:    "\tw.see(&row)\n",
			New:    "\trow.Lease = minPoll.Milliseconds()\n\tw.see(&row)\n",
		},
		{
			Name: "proof-of-life-ignored", Part: Death, File: takeover,
			Breaks: "does not count a session's lease anew although a refused write has proved it to live",
			Old:    `if row.Beat != w.row.Beat || w.since.IsZero() {`,
			New:    `if w.since.IsZero() {`,
		},
		{
			Name: "silence-never-seen", Part: Death, File: takeover,
			Breaks: "counts a session's lease anew with every look",
			Old:    `if w.since.IsZero() || row.Beat > w.row.Beat {`,
			New:    `if w.since.IsZero() || row.Beat >= w.row.Beat {`,
		},
		{
			Name: "long-dead-waited-for", Part: Death, File: acquire,
			Breaks: "waits a lease for a session that is long dead",
			Old:    `if a.client.mayBeLongDead(&a.seen) {`,
			New:    `if false && a.client.mayBeLongDead(&a.seen) {`,
		},
		{
			Name: "dead-by-its-number", Part: Death, File: takeover,
			Breaks: "tries for ever to declare a session dead whose row says that it is",
			Old:    `if c.isDead(failed.Item) {`,
			New:    `if isNumber(c.of(failed.Item, attrDead), 1) {`,
		},
	}
}
