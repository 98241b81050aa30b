package mutants

// renewal breaks how a lease is kept, and how its end is known.
func renewal() []Mutant {
	const row, lease, session, term, clock = "lock/row.go", "lock/lease.go", "lock/session.go", "lock/term.go", "lock/clock.go"
	return []Mutant{
		{
			Name: "renew-anybody", Part: Renewal, File: row,
			Breaks: "renews a lease of its own under a condition that is true for everybody",
			Old:    `).If(named, fence.Equal(table.Param(4)), table.Attr(attrBeat).Less(table.Param(1))))`,
			New:    `).If(table.Or(named, fence.AtMost(table.Param(4)), fence.AtLeast(table.Param(4))), table.Attr(attrBeat).Less(table.Param(1))))`,
		},
		{
			Name: "renew-backwards", Part: Renewal, File: row,
			Breaks: "lets a late duplicate of a renewal shorten a lease of its own",
			Old:    `).If(named, fence.Equal(table.Param(4)), table.Attr(attrBeat).Less(table.Param(1))))`,
			New:    `).If(named, fence.Equal(table.Param(4))))`,
		},
		{
			Name: "renew-under-any-fence", Part: Renewal, File: row,
			Breaks: "renews an old lease whose acquisition has come in late once more",
			Old:    `).If(named, fence.Equal(table.Param(4)), table.Attr(attrBeat).Less(table.Param(1))))`,
			New:    `).If(named, fence.AtLeast(table.Param(4)), table.Attr(attrBeat).Less(table.Param(1))))`,
		},
		{
			Name: "suspension-unnoticed", Part: Renewal, File: "lock/clock.go",
			Breaks: "goes by what it knew of DynamoDB's time before its machine was suspended",
			Old:    `apart.Abs() > minRetention/2`,
			New:    `apart.Abs() > maxRetention`,
		},
		{
			Name: "own-beat-ignored", Part: Renewal, File: row,
			Breaks: "takes its own renewal, whose answer was lost, for a theft",
			Old:    `return errOwnBeat`,
			New:    `return ErrStolen`,
		},
		{
			Name: "dead-renews", Part: Renewal, File: session,
			Breaks: "renews a session that was declared dead",
			Old:    "\t\ttable.Attr(attrDead).NotExists(),\n\t\ttable.Attr(attrBeat).Less(beat),\n",
			New:    "\t\ttable.Attr(attrBeat).Less(beat),\n",
		},
		{
			Name: "session-renews-backwards", Part: Renewal, File: session,
			Breaks: "lets a late duplicate of a session's renewal take its beat back",
			Old:    "\t\ttable.Attr(attrDead).NotExists(),\n\t\ttable.Attr(attrBeat).Less(beat),\n",
			New:    "\t\ttable.Attr(attrDead).NotExists(),\n",
		},
		{
			Name: "own-session-beat-ignored", Part: Renewal, File: session,
			Breaks: "gives a session up when a renewal's answer was lost",
			Old:    `row.Dead != 0 || row.Beat < beat {`,
			New:    `row.Dead != 0 || row.Beat <= beat {`,
		},
		{
			Name: "dead-goes-on", Part: Renewal, File: session,
			Breaks: "goes on with a session that was declared dead until its lease has ended",
			Old:    "\t\t\ts.term.end(ErrStolen)\n\t\t\treturn nil, ErrStolen\n",
			New:    "\t\t\treturn nil, ErrStolen\n",
		},
		{
			Name: "session-from-answer", Part: Renewal, File: session,
			Breaks: "counts a session's lease from the answer instead of before the request",
			Old:    `newTerm(c.clock, began,`,
			New:    `newTerm(c.clock, c.clock.instant(),`,
		},
		{
			Name: "session-from-last-attempt", Part: Renewal, File: session,
			Breaks: "counts a session's lease from the last attempt, although an earlier one may have opened it",
			Old:    "\t\tif began.mono.IsZero() {\n",
			New:    "\t\tif !start.mono.IsZero() {\n",
		},
		{
			Name: "renewal-from-answer", Part: Renewal, File: session,
			Breaks: "counts a renewed session's lease from the answer instead of before the request",
			Old:    `if !s.term.extend(start) {`,
			New:    `if !s.term.extend(c.clock.instant()) {`,
		},
		{
			Name: "fixed-from-answer", Part: Renewal, File: "lock/acquire.go",
			Breaks: "counts a lease of its own from the answer instead of before the request",
			Old:    `lease, refused = a.granted(ctx, item, doubt{instant: start}, s)`,
			New:    `lease, refused = a.granted(ctx, item, doubt{instant: c.clock.instant()}, s)`,
		},
		{
			Name: "fixed-renewal-from-answer", Part: Renewal, File: "lock/renew.go",
			Breaks: "counts a renewed lease of its own from the answer instead of before the request",
			Old:    `if !l.term.extend(start) {`,
			New:    `if !l.term.extend(c.clock.instant()) {`,
		},
		{
			Name: "late-grant-given-out", Part: Renewal, File: lease,
			Breaks: "gives out a lease that ended before the answer came",
			Old:    `if l.term.remaining() == 0 { // the answer took longer than the lease`,
			New:    `if l.session != nil && l.term.remaining() == 0 {`,
		},
		{
			Name: "end-unwatched", Part: Renewal, File: term,
			Breaks: "leaves the end of a lease to the renewals, which may hang",
			Old:    `t.timer.Reset(t.wait())`,
			New:    `t.timer.Stop()`,
		},
		{
			Name: "wall-clock-ignored", Part: Renewal, File: clock,
			Breaks: "goes by the monotonic clock alone, which stands still in a suspended machine",
			Old:    `return max(c.ago(i.mono), c.wall().Sub(i.wall))`,
			New:    `return c.ago(i.mono)`,
		},
		{
			Name: "monotonic-clock-ignored", Part: Renewal, File: clock,
			Breaks: "goes by the wall clock alone, which can be set back",
			Old:    `return max(c.ago(i.mono), c.wall().Sub(i.wall))`,
			New:    `return c.wall().Sub(i.wall)`,
		},
		{
			Name: "margin-on-the-wrong-side", Part: Renewal, File: session,
			Breaks: "has a session's holder count on more than the lease",
			Old:    `c.config.Lease-c.config.margin(c.config.Lease)`,
			New:    `c.config.Lease+c.config.margin(c.config.Lease)`,
		},
		{
			Name: "fixed-margin-on-the-wrong-side", Part: Renewal, File: lease,
			Breaks: "has the holder of a lease of its own count on more than the lease",
			Old:    `a.length-c.config.margin(a.length)`,
			New:    `a.length+c.config.margin(a.length)`,
		},
		{
			Name: "idle-although-leases-hang-on-it", Part: Renewal, File: session,
			Breaks: "lets a session end that has nothing to do but to keep its leases",
			Old:    `len(s.leases)+len(s.trying)+len(s.orphans) == 0`,
			New:    `len(s.trying)+len(s.orphans) == 0`,
		},
		{
			Name: "hung-renewal-waited-for", Part: Renewal, File: session,
			Breaks: "waits for a hung renewal until the lease has ended",
			Old:    `timeout := min(max(s.term.remaining()/3, minPoll), maxAttempt)`,
			New:    `timeout := s.term.remaining()`,
		},
		{
			Name: "deletion-brought-forward", Part: Renewal, File: session,
			Breaks: "has a session's row deleted earlier than it said before, by a wrong date",
			Old:    `s.kept = c.putOff(s.kept, c.config.Lease)`,
			New:    `s.kept = c.putOff(deletion{}, c.config.Lease)`,
		},
		{
			Name: "held-row-brought-forward", Part: Renewal, File: "lock/renew.go",
			Breaks: "has the row of a lock that is held deleted earlier than it said before, by a wrong date",
			Old:    `d := c.putOff(l.kept(), l.length)`,
			New:    `d := c.putOff(deletion{}, l.length)`,
		},
		{
			Name: "held-row-stands-still", Part: Renewal, File: "lock/deletion.go",
			Breaks: "puts off the row of a lock that is held by no more than dates say, which may be behind",
			Old:    `goesOn := d.after.Add(c.clock.ago(d.at))`,
			New:    `goesOn := d.after`,
		},
		{
			Name: "session-of-a-fast-clock", Part: Renewal, File: "lock/deletion.go",
			Breaks: "keeps a session's row for as long as a clock said that was not known to be fast",
			Old:    `if !d.after.IsZero() && !d.guess {`,
			New:    `if !d.after.IsZero() {`,
		},
		{
			Name: "held-row-put-off-for-good", Part: Renewal, File: "lock/deletion.go",
			Breaks: "goes by a date that was ahead, where a late duplicate has brought the row back since",
			Old:    `return c.isShort(d, today, lease) || c.clock.ago(d.at) >= c.config.Retention/2`,
			New:    `return c.isShort(d, today, lease)`,
		},
		{
			Name: "spare-by-the-lease", Part: Renewal, File: "lock/session.go",
			Breaks: "has no time left between renewals, where the margin is half of the lease",
			Old:    `if s.term.remaining() < length/2 {`,
			New:    `if s.term.remaining() < s.client.config.Lease/2 {`,
		},
		{
			Name: "recorded-run-forgotten", Part: Renewal, File: "lock/parting.go",
			Breaks: "lets the row of a recorded run be deleted before its interval has ended",
			Old:    `ttl := c.deleteAfter(l.run.told())`,
			New:    `ttl := c.deleteAfter(0)`,
		},
		{
			Name: "broken-off-run-forgotten", Part: Renewal, File: "lock/acquire.go",
			Breaks: "lets the row of a run that is broken off be deleted while it may be begun again",
			Old:    `ttl: c.deleteAfter(a.length + a.run.told()),`,
			New:    `ttl: c.deleteAfter(a.length),`,
		},
		{
			Name: "held-row-of-a-slow-clock", Part: Renewal, File: "lock/acquire.go",
			Breaks: "leaves a lease of its own with the time to live of a clock that was not known to be slow",
			Old:    `err = l.preserve(ctx)`,
			New:    ``,
		},
		{
			Name: "calendar-jumps", Part: Renewal, File: clock,
			Breaks: "goes by dates alone once they are an hour behind the clock",
			Old:    `return most, true`,
			New:    `return server, true`,
		},
		{
			Name: "held-row-refreshed-early", Part: Renewal, File: "lock/acquire.go",
			Breaks: "writes each row once more with the first renewal, not knowing when it is to be deleted",
			Old:    `	l.deletion = a.client.deletionOf(item, l.written)`,
			New:    ``,
		},
		{
			Name: "held-row-not-refreshed", Part: Renewal, File: session,
			Breaks: "lets the time to live of a row run out that is held for long",
			Old:    "\t\ts.refresh()\n",
			New:    "",
		},
		{
			Name: "fixed-renewed-by-itself", Part: Renewal, File: "lock/acquire.go",
			Breaks: "renews a lease of its own in the background, with the session",
			Old:    "\tif !a.fixed {\n\t\tvar err error\n",
			New:    "\tif a.length > 0 {\n\t\tvar err error\n",
		},
	}
}
