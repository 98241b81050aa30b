package mutants

// waiting breaks queues, polls, and how a lock is handed over within the process.
func waiting() []Mutant {
	const row, room, look, parting, contest = "lock/row.go", "lock/room.go", "lock/look.go", "lock/parting.go", "lock/contest.go"
	return []Mutant{
		{
			Name: "handed-over-with-the-nonce", Part: Waiting, File: parting,
			Breaks: "hands a lock over under the nonce of the holder before",
			Old:    "\tg := p.heir.acquisition.grant(",
			New:    "\tp.heir.acquisition.nonce = l.nonce\n\tg := p.heir.acquisition.grant(",
		},
		{
			Name: "handed-over-with-the-fence", Part: Waiting, File: row,
			Breaks: "hands a lock over under the fence of the holder before",
			Old:    `nonce, fence, fence+1)...)`,
			New:    `nonce, fence, fence)...)`,
		},
		{
			Name: "handed-over-under-any-fence", Part: Waiting, File: row,
			Breaks: "hands a lock over whose fence somebody else has got",
			Old:    `)...).If(s.attr(attrNonce).Equal(from), s.attr(attrFence).Equal(fence))`,
			New:    `)...).If(s.attr(attrNonce).Equal(from), table.Or(s.attr(attrFence).Equal(fence), s.attr(attrFence).AtLeast(1)))`,
		},
		{
			Name: "handed-over-without-a-trace", Part: Waiting, File: row,
			Breaks: "leaves no trace in the row of the holder that handed it over",
			Old:    "\t\ts.attr(attrReleasedNonce).Set(from),\n",
			New:    "",
		},
		{
			Name: "own-hand-over-ignored", Part: Waiting, File: parting,
			Breaks: "does not recognise a hand-over whose answer was lost",
			Old:    `if p.heir == nil || !isString(p.lease.client.of(item, attrNonce), p.nonce) ||`,
			New:    `if p.heir == nil || !isString(p.lease.client.of(item, attrNonce), p.lease.nonce) ||`,
		},
		{
			Name: "blind-haste", Part: Waiting, File: look,
			Breaks: "looks again and again, and without a pause, at what cannot be read for now",
			Old:    "\t\t\tcontest.pause = true // or it would be looked at again at once\n",
			New:    "",
		},
		{
			Name: "too-late-ends-the-wait", Part: Waiting, File: parting,
			Breaks: "ends the wait for a lock since it was handed over too late",
			Old:    "\tif errors.Is(err, ErrLost) {\n",
			New:    "\tif errors.Is(err, ErrLost) && p.under != nil {\n",
		},
		{
			Name: "looks-for-nobody", Part: Waiting, File: "lock/room.go",
			Breaks: "goes on with the goroutine that looks when the last waiter has got its lock",
			Old:    "delete(r.contests, l.key)\n\t\tr.changed()\n\t\treturn",
			New:    "delete(r.contests, l.key)\n\t\treturn",
		},
		{
			Name: "acquirer-stays-in-line", Part: Waiting, File: "lock/room.go",
			Breaks: "hands a lock over to somebody who has just acquired it, and frees it then",
			Old:    "if c.remove(w); c.empty() {\n\t\tdelete(r.contests, l.key)\n",
			New:    "if len(c.queue) == 1 {\n",
		},
		{
			Name: "hand-overs-counted-anew", Part: Waiting, File: "lock/acquire.go",
			Breaks: "forgets how often in a row the lock was handed over where an answer was lost",
			Old:    `l.deletion, l.handed = a.client.deletionOf(item, l.written), by.handed`,
			New:    `l.deletion = a.client.deletionOf(item, l.written)`,
		},
		{
			Name: "handed-over-for-ever", Part: Waiting, File: parting,
			Breaks: "hands a lock over within the process while others wait for it for ever",
			Old:    `if l.handed < c.config.Handoffs && l.fence < maxFence`,
			New:    `if l.handed >= 0 && l.fence < maxFence`,
		},
		{
			Name: "handed-to-one-who-has-left", Part: Waiting, File: room,
			Breaks: "hands a lock to a waiter who has given up",
			Old:    `return !w.gone && w.tell(news{lease: l})`,
			New:    `return w.tell(news{lease: l})`,
		},
		{
			Name: "handed-lease-dropped", Part: Waiting, File: "lock/wait.go",
			Breaks: "drops a lease that was handed over just as the waiting ended",
			Old:    `if handed := room.leave(w); handed != nil {`,
			New:    `if handed := room.leave(w); handed != nil && err == nil {`,
		},
		{
			Name: "last-come-first-served", Part: Waiting, File: room,
			Breaks: "serves goroutines in the reverse of the order in which they came",
			Old:    `c.queue = append(c.queue, w)`,
			New:    `c.queue = append([]*waiter{w}, c.queue...)`,
			Seen:   []World{{"queue", 1}},
		},
		{
			Name: "everybody-tries", Part: Waiting, File: room,
			Breaks: "has every goroutine that waits send writes of its own",
			Old:    `first = r.contests[a.key] == nil`,
			New:    `first = true`,
		},
		{
			Name: "slept-past-the-end", Part: Waiting, File: contest,
			Breaks: "sleeps for a whole poll where the lock could be taken earlier",
			Old:    `d = min(d, max(r.until(c), 0))`,
			New:    `d = max(d, 0)`,
		},
		{
			Name: "stale-read-believed", Part: Waiting, File: look,
			Breaks: "takes a read that lags behind for how things are",
			Old:    `if row.Held() && c.newer(&row) {`,
			New:    `if row.Held() {`,
		},
		{
			Name: "own-ghost-waited-for", Part: Waiting, File: look,
			Breaks: "waits for its own session's lock to be handed over by a holder whom nobody knows",
			Old:    `if r.client.isGhost(nil, &c.holder) {`,
			New:    `if len(c.queue) == 0 && r.client.isGhost(nil, &c.holder) {`,
		},
		{
			Name: "looks-apart", Part: Waiting, File: look,
			Breaks: "looks at each lock with a request of its own",
			Old:    `if !c.pause && !now.Before(c.early) {`,
			New:    `if false {`,
		},
		{
			Name: "asked-one-by-one", Part: Waiting, File: look,
			Breaks: "asks a session that has enough questions to answer again and again",
			Old:    `w.busy = c.clock.soon(period)`,
			New:    `w.busy = c.clock.soon(0 * period)`,
		},
		{
			Name: "refused-hand-over-forgotten", Part: Waiting, File: parting,
			Breaks: "counts a lease from too late that a hand-over has begun which was refused, and delivered once more",
			Old:    "\ta.sending(p.request(), a.length)\n",
			New:    "",
		},
		{
			Name: "ghost-waited-for-by-fixed", Part: Waiting, File: "lock/acquire.go",
			Breaks: "has waiters for leases of their own wait for ever for a ghost of their process's session",
			Old:    "\tif s == nil {\n\t\ts = c.currentSession()\n\t}\n",
			New:    "",
		},
		{
			Name: "unread-taken-for-missing", Part: Waiting, File: look,
			Breaks: "takes a row that could not be read for one that is not there",
			Old:    "\t\tcase unread[key]:\n",
			New:    "",
		},
		{
			Name: "busy-row-waited-for-ever", Part: Waiting, File: look,
			Breaks: "never tells whoever waits for a lock that its row cannot be read",
			Old:    `vain[c] = c.patience.NextBackOff() == backoff.Stop`,
			New:    `vain[c] = c.patience.NextBackOff() == backoff.Stop && false`,
		},
		{
			Name: "busy-row-not-waited-for", Part: Waiting, File: look,
			Breaks: "tells whoever waits for any lock that a row cannot be read",
			Old:    "errors.As(err, &busy) {\n\t\t\treturn nil\n",
			New:    "errors.As(err, &busy) {\n\t\t\treturn err\n",
		},
		{
			Name: "taken-back-in-silence", Part: Waiting, File: "lock/acquire.go",
			Breaks: "has others wait for a hand-over by an acquisition that was given up",
			Old:    "\tc.room.gone(a.key, nonce)\n",
			New:    "",
		},
		{
			Name: "taken-back-together-in-silence", Part: Waiting, File: "lock/all.go",
			Breaks: "has others wait for a hand-over by an acquisition of several locks that was given up",
			Old:    `c.room.gone(a.key, a.nonce)`,
			New:    `_ = a`,
		},
		{
			Name: "closed-but-not-yet", Part: Waiting, File: "lock/until.go",
			Breaks: "campaigns on where a lease was released because its client is closed",
			Old:    `if other.Err() != nil {`,
			New:    `if other == nil {`,
		},
	}
}
