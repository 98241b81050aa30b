package mutants

// around breaks what is built on leases: bundles, operators, intervals, and closing.
func around() []Mutant {
	const row, all, client, question, run, every = "lock/row.go", "lock/all.go", "lock/client.go", "lock/question.go", "lock/run.go", "lock/every.go"
	return []Mutant{
		{
			Name: "one-of-all-unconditional", Part: Around, File: all,
			Breaks: "takes one of several locks without its condition",
			Old:    "\t\tt.ops[i] = a.op(start, s, a.from)\n",
			New: "\t\tt.ops[i] = a.op(start, s, a.from)\n\t\tif i == 1 {\n\t\t\tfence := table.Attr(attrFence)\n" +
				"\t\t\tt.ops[i] = table.Update(a.key, table.Attr(attrNonce).Set(a.nonce), fence.Set(fence.OrElse(0).Plus(1)))\n\t\t}\n",
		},
		{
			Name: "own-gathering-ignored", Part: Around, File: all,
			Breaks: "takes its own locks for somebody else's when the transaction's answer was lost",
			Old:    `case isString(g.client.of(f.Item, attrNonce), a.nonce):`,
			New:    `case isString(g.client.of(f.Item, attrNonce), ""):`,
		},
		{
			Name: "gathering-left-behind", Part: Around, File: all,
			Breaks: "leaves locks behind that a cancelled AcquireAll may have taken",
			Old:    "\t\tg.takeBack(ctx, left)\n",
			New:    "\t\t_, _ = ctx, left\n",
		},
		{
			Name: "gathering-lets-go", Part: Around, File: all,
			Breaks: "takes a transaction that comes in late for nobody's, while its sender recognises it",
			Old:    `defer func() { g.keep(s, g.nonces()...) }()`,
			New:    "nonces := g.nonces()\n\t\tdefer func() {\n\t\t\tfor _, nonce := range nonces {\n\t\t\t\ts.unreserve(nonce)\n\t\t\t}\n\t\t}()",
		},
		{
			Name: "bundle-from-answer", Part: Around, File: all,
			Breaks: "counts the leases of several locks from the answer instead of before the request",
			Old:    `a.named(items[i], began, s)`,
			New:    `a.named(items[i], doubt{instant: c.clock.instant(), handed: began.handed}, s)`,
		},
		{
			Name: "gathering-keeps-for-ever", Part: Around, File: all,
			Breaks: "keeps what a late transaction has taken for as long as it waits for the rest",
			Old:    `g.client.clock.NewTimer(g.length())`,
			New:    `g.client.clock.NewTimer(24 * time.Hour)`,
		},
		{
			Name: "revoked-holds-for-ever", Part: Around, File: "lock/lease.go",
			Breaks: "lets who was asked to release hold the lock for longer than it may",
			Old:    `if next == isOver {`,
			New:    `if next >= isAskedBack {`,
		},
		{
			Name: "overdue-forgotten", Part: Around, File: "lock/lease.go",
			Breaks: "closes without what is still to be released since it was held for too long",
			Old:    `if !errors.Is(cause, ErrMaxHold) {`,
			New:    `if cause != nil {`,
		},
		{
			Name: "later-interval-unseen", Part: Around, File: "lock/run.go",
			Breaks: "does not see that a later interval has begun, and was broken off",
			Old:    `row.Running > at && row.Running <= latest`,
			New:    `row.Running > at && row.Running > latest`,
		},
		{
			Name: "bundle-from-the-first", Part: Around, File: all,
			Breaks: "counts the leases of several locks from a transaction that was not applied",
			Old:    `began := g.written(c.of(items[0], attrAcquired))`,
			New:    `began := g.doubts()[0]`,
		},
		{
			Name: "scattered-given-out", Part: Around, File: all,
			Breaks: "gives out several locks although some rows name others meanwhile",
			Old:    `if !isString(c.of(items[i], attrNonce), a.nonce) || `,
			New:    `if len(a.nonce) == 0 || `,
		},
		{
			Name: "bundle-guards-all-but-one", Part: Around, File: "lock/bundle.go",
			Breaks: "writes under several locks without the guard of the last",
			Old:    `return b.client.guarded(ctx, b.leases, b.Guards(), ops)`,
			New:    `return b.client.guarded(ctx, b.leases, b.Guards()[:len(b.leases)-1], ops)`,
		},
		{
			Name: "force-whoever-holds", Part: Around, File: row,
			Breaks: "takes a lock by force from a later holder than the one the operator saw",
			Old:    `)...).If(named, whole(s), heldInOrder(s), fence.Less(int64(maxFence))))`,
			New:    `)...).If(whole(s), heldInOrder(s), fence.Less(int64(maxFence))))`,
		},
		{
			Name: "force-keeps-the-fence", Part: Around, File: row,
			Breaks: "leaves the fence as it is when a lock is taken by force",
			Old:    "\t\tfence.Set(fence.Plus(1)),\n",
			New:    "",
		},
		{
			Name: "force-untold", Part: Around, File: question,
			Breaks: "does not tell the holder that its lock was taken by force",
			Old:    "\t\tcase q.kind == tellTaken && !l.isNamed(items[i]):\n\t\t\tl.stolen()\n",
			New:    "",
		},
		{
			Name: "taken-by-hearsay", Part: Around, File: question,
			Breaks: "ends a lease since the lock was taken from an earlier attempt of it",
			Old:    `case q.kind == tellTaken && !l.isNamed(items[i]):`,
			New:    `case q.kind == tellTaken:`,
		},
		{
			Name: "nobodys-given-back", Part: Around, File: "lock/all.go",
			Breaks: "gives locks back one by one that nobody waits for any more, while its caller waits for that",
			Old:    `return l.began.IsZero() })`,
			New:    `return l.fence < 0 })`,
		},
		{
			Name: "revoke-releases", Part: Around, File: question,
			Breaks: "releases a lock that is asked back while its holder still works under it",
			Old:    "\t\t\tl.revoke()\n",
			New:    "\t\t\tl.revoke()\n\t\t\ts.reclaim(q)\n",
		},
		{
			Name: "max-hold-ignored", Part: Around, File: "lock/lease.go",
			Breaks: "lets a lock be held for longer than its maximum",
			Old:    "\tl.limitHold()\n",
			New:    "",
		},
		{
			Name: "interval-recorded-before-its-run", Part: Around, File: run,
			Breaks: "records an interval before it has run",
			Old:    `op.Changing(running.Set(r.at))`,
			New:    `op.Changing(running.Set(r.at), ran.Set(r.at))`,
		},
		{
			Name: "interval-not-recorded", Part: Around, File: run,
			Breaks: "releases after a run without recording its interval",
			Old:    `op.Changing(ran.Set(r.at), running.Remove())`,
			New:    `op.Changing(running.Remove())`,
		},
		{
			Name: "interval-run-again", Part: Around, File: run,
			Breaks: "takes the lock for an interval that has been run since it looked",
			Old:    "\t\ttable.Or(ran.NotExists(), ran.Less(r.at)),\n\t\ttable.Or(running",
			New:    "\t\ttable.Or(running",
		},
		{
			Name: "broken-off-run-left-out", Part: Around, File: run,
			Breaks: "does not take up a run that was broken off",
			Old:    `return row.Running > row.Ran && row.Running < at && row.Running >= before`,
			New:    `return row.Running > row.Ran && row.Running < before`,
		},
		{
			Name: "commit-does-not-record", Part: Around, File: run,
			Breaks: "commits the work of a run without recording its interval",
			Old:    `case commits || ending == finished || ending == failed:`,
			New:    `case ending == finished || ending == failed:`,
		},
		{
			Name: "intervals-by-local-clock", Part: Around, File: every,
			Breaks: "numbers intervals by the local clock",
			Old:    `if now, ok = s.client.clock.server(); !ok {`,
			New:    `if now, ok = s.client.clock.wall(), true; !ok {`,
		},
		{
			Name: "run-of-a-release-after-a-revocation", Part: Around, File: every,
			Breaks: "runs an interval again and again whose job has released the lock when that was asked back",
			Old:    `(alive || askedBack && err == nil)`,
			New:    `(alive || askedBack && cause == nil)`,
		},
		{
			Name: "alive-by-the-wall-clock", Part: Around, File: client,
			Breaks: "knows a session to live for as long as the clock was ahead",
			Old:    `return c.clock.since(s.at) > s.lease`,
			New:    `return c.clock.wall().Sub(s.at.wall) > s.lease`,
		},
		{
			Name: "close-lets-waiters-wait", Part: Around, File: client,
			Breaks: "ends no waiting before everything is closed",
			Old:    "\tc.close()\n\tdefer c.instruments.stop()\n",
			New:    "\tdefer c.close()\n\tdefer c.instruments.stop()\n",
		},
		{
			Name: "close-ends-the-session-first", Part: Around, File: client,
			Breaks: "stops renewing before the last lock is released",
			Old:    "\tvar failed error\n\tfor _, err := range each(list,",
			New:    "\tif s := c.currentSession(); s != nil {\n\t\ts.retire()\n\t}\n\tvar failed error\n\tfor _, err := range each(list,",
		},
		{
			Name: "close-waits-for-nothing", Part: Around, File: client,
			Breaks: "closes while acquisitions are still to be taken back",
			Old:    "\t\tc.work.Wait()\n",
			New:    "",
		},
		{
			Name: "close-stops-at-an-error", Part: Around, File: client,
			Breaks: "leaves the locks held that come after one whose release failed",
			Old:    "\tfor _, err := range each(list, func(l *Lease) error { return l.release(ctx) }) {\n",
			New: "\tstopped := false\n\tfor _, err := range each(list, func(l *Lease) error {\n\t\tif stopped {\n\t\t\treturn nil\n\t\t}\n" +
				"\t\terr := l.release(ctx)\n\t\tstopped = err != nil\n\t\treturn err\n\t}) {\n",
		},
		{
			Name: "refused-commit-recorded", Part: Around, File: run,
			Breaks: "runs a job again and again whose commit was refused and that has given the lock up",
			Old:    `r.commits.Store(tried)`,
			New:    `r.commits.Store(true)`,
		},
		{
			Name: "committed-leader-campaigns", Part: Around, File: "lock/lead.go",
			Breaks: "has a leader that has committed run once more, since it had been asked back",
			Old:    `case l.committed.Load(), cause == nil`,
			New:    `case cause == nil`,
		},
	}
}
