package mutants

// readers are mistakes of somebody who had read the tests, and looked for what none of them notices.
func readers() []Mutant {
	const session, lease, room, all, takeover, every, lead = "lock/session.go", "lock/lease.go", "lock/room.go", "lock/all.go", "lock/takeover.go", "lock/every.go", "lock/lead.go"
	return []Mutant{
		{
			Name: "old-end-of-a-session-kept", Part: Renewal, File: session,
			Breaks: "leaves the end that was recorded last, when the clock is found to be off: others take a session for dead that is renewed",
			Old:    `return append(changes, c.attr(attrExpires).Remove())`,
			New:    `return changes`,
		},
		{
			Name: "idle-while-it-acquires", Part: Renewal, File: session,
			Breaks: "ends a session as idle while an acquisition under it is under way, which then fails with ErrReleased",
			Old:    "\ts.trying[nonce]++\n\ts.idle = time.Time{}\n",
			New:    "\ts.trying[nonce]++\n",
		},
		{
			Name: "orphan-remembered-for-good", Part: Answers, File: session,
			Breaks: "renews a session for ever after a release that failed once, although the next one succeeded",
			Old:    "\tdelete(s.orphans, nonce)\n",
			New:    "",
		},
		{
			Name: "hung-orphans-first", Part: Answers, File: session,
			Breaks: "tries the same releases first each time: what hangs keeps the others held for ever",
			Old:    `range inTurn(list, s.freed)`,
			New:    `range inTurn(list, keys.Key{})`,
		},
		{
			Name: "renewals-in-step", Part: Renewal, File: session,
			Breaks: "has all clients that started together renew at the same moments for ever",
			Old:    `return d - d/10 + c.N(d/5+1)`,
			New:    `return d`,
		},
		{
			Name: "overtaken-row-put-off-untold", Part: Renewal, File: session,
			Breaks: "does not tell the holder of a row that was deleted by hand, when that is to be put off",
			Old:    "\t\t\tl.overtaken(failed.Item)\n",
			New:    "\t\t\t_ = failed.Item\n",
		},
		{
			Name: "vain-release-told-as-lost", Part: Answers, File: lease,
			Breaks: "calls OnLost for a lease that Release has tried to give up, while a guarded write was under way",
			Old:    "\t\tl.parting.Store(true)\n\t\tl.orphan(false)\n",
			New:    "\t\tl.orphan(false)\n",
		},
		{
			Name: "stolen-lease-kept", Part: Guarding, File: lease,
			Breaks: "keeps a lease that was taken by force until somebody releases it: the session is renewed for ever",
			Old:    "\tl.end(ErrStolen)\n\tl.forget()\n",
			New:    "\tl.end(ErrStolen)\n",
		},
		{
			Name: "forestalled-by-its-own-release", Part: Guarding, File: lease,
			Breaks: "says ErrClosed of a client that is open, to whoever has released after a commit without an answer",
			Old:    `if l.unsure && (err == nil || unclear) && l.client.closing.Err() != nil {`,
			New:    `if l.unsure && (err == nil || unclear) {`,
		},
		{
			Name: "heir-names-an-old-holder", Part: Waiting, File: room,
			Breaks: "has an heir that went back to the line say, when its waiting ends, that somebody of long ago holds the lock",
			Old:    "\tw.heirOf = Record{}\n",
			New:    "",
		},
		{
			Name: "lock-handed-to-a-run", Part: Around, File: room,
			Breaks: "hands a lock to a run of Every, whose interval the row then does not say to have begun, nor checks",
			Old:    `c.holder.Fence > l.fence || c.queue[0].acquisition.run != nil {`,
			New:    `c.holder.Fence > l.fence {`,
		},
		{
			Name: "held-since-nobody-knows", Part: Waiting, File: room,
			Breaks: "leaves HeldError.Since empty where the holder is of the same client and was handed the lock",
			Old:    `Acquired: l.since.UnixMilli(), `,
			New:    ``,
		},
		{
			Name: "held-with-what-nobody-knows", Part: Waiting, File: room,
			Breaks: "leaves HeldError.Data empty where the holder is of the same client and was handed the lock",
			Old:    `, Data: l.lastData(),`,
			New:    `,`,
		},
		{
			Name: "suspected-together-again-and-again", Part: Death, File: all,
			Breaks: "has each TryAcquireAll ask whether a session lives that has just proved to",
			Old:    "\t\t\t\tg.client.sawAlive(e.session, row)\n",
			New:    "",
		},
		{
			Name: "buried-for-each-lock", Part: Death, File: all,
			Breaks: "declares a session dead once for each of its locks, instead of once",
			Old:    `!e.dead && !dead[e.session] && alive[e.session] == nil {`,
			New:    `!e.dead && alive[e.session] == nil {`,
		},
		{
			Name: "buried-for-ever", Part: Death, File: takeover,
			Breaks: "leaves a row without a time to live for a session that was missing",
			Old:    "\t\ttable.Attr(c.scheme.TTL).Set(c.deleteAfter(0, 0)),\n",
			New:    "",
		},
		{
			Name: "own-session-suspected", Part: Death, File: takeover,
			Breaks: "asks in its own session's row whether that lives, where a lock of its own has been held for long",
			Old:    `left <= 0 && !c.owns(r.Session) && `,
			New:    `left <= 0 && `,
		},
		{
			Name: "suspected-within-its-lease", Part: Death, File: takeover,
			Breaks: "spends a second request on a lock that has been held for less than a lease",
			Old:    `r.Since().Add(time.Duration(r.Lease) * time.Millisecond)`,
			New:    `r.Since()`,
		},
		{
			Name: "reason-one-byte-shorter", Part: Around, File: "lock/operator.go",
			Breaks: "refuses a reason of exactly MaxReason bytes",
			Old:    `len(given[0]) > MaxReason || `,
			New:    `len(given[0]) >= MaxReason || `,
		},
		{
			Name: "forced-for-no-reason", Part: Around, File: "lock/operator.go",
			Breaks: "writes an empty reason into the row instead of the default",
			Old:    `case len(given) == 0 || given[0] == "":`,
			New:    `case len(given) == 0:`,
		},
		{
			Name: "schedule-sleeps-through-a-suspension", Part: Around, File: every,
			Breaks: "has Every sleep on for hours after its machine was suspended: intervals are left out",
			Old:    `if clk.since(start)-clk.ago(start.mono) > time.Second {`,
			New:    `if clk.since(start)-clk.ago(start.mono) > forever/2 {`,
		},
		{
			Name: "schedule-sleeps-at-a-stretch", Part: Around, File: every,
			Breaks: "has Every look at the wall clock only when its sleep is over anyway",
			Old:    `min(left, time.Minute)`,
			New:    `left`,
		},
		{
			Name: "recorded-run-keeps-the-lock", Part: Around, File: every,
			Breaks: "leaves the row held where it says already that the interval has been run",
			Old:    "\t\t\terr = s.client.giveUp(bounded, l.key, l.nonce, l.length)\n",
			New:    "",
		},
		{
			Name: "waits-of-a-campaign-never-reset", Part: Around, File: lead,
			Breaks: "pauses for half a lease before campaigning again, since there was an outage before it last led for days",
			Old:    `if p.client.clock.ago(began) > p.client.config.Lease {`,
			New:    `if p.client.clock.ago(began) == forever {`,
		},
		{
			Name: "replicated-campaigns", Part: Around, File: lead,
			Breaks: "has Lead and Every campaign for ever in a table with replicas instead of saying so",
			Old:    `ErrClosed, ErrMultiRegion, errNoTime,`,
			New:    `ErrClosed, errNoTime,`,
		},
		{
			Name: "timeless-campaigns", Part: Around, File: lead,
			Breaks: "has Every read for ever from what does not tell the time, instead of saying so",
			Old:    `ErrClosed, ErrMultiRegion, errNoTime,`,
			New:    `ErrClosed, ErrMultiRegion,`,
		},
		{
			Name: "failure-of-long-ago", Part: Renewal, File: "lock/term.go",
			Breaks: "blames a renewal that failed long ago, and was repeated, for the end of a lease",
			Old:    "\tt.renewal = nil\n",
			New:    "",
		},
		{
			Name: "throttled-is-anything", Part: Around, File: "lock/instruments.go",
			Breaks: "does not tell in error.type that requests were throttled",
			Old:    "\t\t{table.ErrThrottled, \"throttled\"},\n",
			New:    "",
		},
		{
			Name: "owner-without-the-process", Part: Around, File: "lock/config.go",
			Breaks: "tells people the host that holds a lock, and not which of its processes",
			Old:    `c.Owner = fmt.Sprintf("%s/%d", host, os.Getpid())`,
			New:    `c.Owner = host`,
		},
		{
			Name: "impatient-write-is-exhaustion", Part: Around, File: "lock/guard.go",
			Breaks: "counts retries as exhausted for a guarded write whose caller has given up",
			Old:    `if err != nil && ctx.Err() == nil && c.table.Retryable(err) {`,
			New:    `if err != nil && c.table.Retryable(err) {`,
		},
	}
}
