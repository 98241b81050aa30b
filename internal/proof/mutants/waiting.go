package mutants

// waiting breaks queues, polls and passes.
func waiting() []Mutant {
	return []Mutant{
		{
			Name: "passes-without-limit", Part: Waiting, File: "lock/internal/waitqueue/queues.go",
			Breaks: "passes the lock within the process for ever while others wait",
			Old:    `return !others || p.passes < limit`,
			New:    `return !others || p.passes >= 0`,
		},
		{
			Name: "one-pass-more", Part: Waiting, File: "lock/internal/waitqueue/queues.go",
			Breaks: "passes the lock once more than it may",
			Old:    `return !others || p.passes < limit`,
			New:    `return !others || p.passes <= limit`,
		},
		{
			Name: "passes-are-not-counted", Part: Waiting, File: "lock/internal/waitqueue/queues.go",
			Breaks: "does not count passes",
			Old:    `if p.passes++; !others {`,
			New:    `if !others {`,
		},
		{
			Name: "waiter-that-left-is-handed-the-lock", Part: Waiting, File: "lock/internal/waitqueue/queues.go",
			Breaks: "hands the lock to a waiter that has left",
			Old:    `|| p.first() != to {`,
			New:    `|| to.turn == nil {`,
		},
		{
			Name: "busy-polling", Part: Waiting, File: "lock/internal/waitqueue/estimate.go",
			Breaks: "looks again after the shortest time, however long the line is",
			Old:    `return between(m, 0.96*d, 1.04*d, most)`,
			New:    `return between(m, 0*d, 0*d, most)`,
		},
		{
			Name: "look-counts-from-its-request", Part: Waiting, File: "lock/internal/waitqueue/poller.go",
			Breaks: "counts from the request of a look for how long a holder has been seen, and not from its answer",
			Old:    "\titems, err := p.config.Read(ctx, list)\n\tat := p.config.Machine.Now()\n",
			New:    "\tat := p.config.Machine.Now()\n\titems, err := p.config.Read(ctx, list)\n",
			Seen:   []World{{"brief", 1}, {"brief", 2}},
		},
		{
			Name: "looks-do-not-become-fewer", Part: Waiting, File: "lock/internal/waitqueue/estimate.go",
			Breaks: "looks as often at a holder that stays as at one that has just come",
			Old:    `float64(max(present, e.Unchanged))`,
			New:    `float64(present)`,
		},
		{
			Name: "lobby-in-step", Part: Waiting, File: "lock/internal/waitqueue/estimate.go",
			Breaks: "has all who found the line full try again at one time",
			Old:    `return between(m, d/2, d, longest)`,
			New:    `return between(m, d, d, longest)`,
		},
		{
			Name: "place-is-kept-after-giving-up", Part: Waiting, File: "lock/wait.go",
			Breaks: "keeps the place of a caller that has given up",
			Old:    "\t\ta.leave(ctx)\n\t\tvar wait time.Duration\n",
			New:    "\t\ta.drop()\n\t\tvar wait time.Duration\n",
		},
		{
			Name: "commits-pass-without-end", Part: Waiting, File: "lock/release.go",
			Breaks: "lets commits pass the lock on while others wait",
			Old:    `l.turn.blind || len(l.turn.row.Line) > 1`,
			New:    `len(l.turn.row.Line) > 1`,
		},
		{
			Name: "who-held-is-not-told", Part: Waiting, File: "lock/wait.go",
			Breaks: "ends a wait without a word of who held the lock",
			Old:    "\t\tcase ctx.Err() != nil:\n\t\t\treturn nil, a.gaveUp(ctx)\n\t\tcase full:",
			New:    "\t\tcase full:",
		},
		{
			Name: "looks-as-if-nobody-gave-up", Part: Waiting, File: "lock/entry.go",
			Breaks: "looks only after a call has given up, where others have given up before it",
			Old:    `est.Longest = min(est.Longest, max(left/2, minLook))`,
			New:    `_ = left`,
		},
		{
			Name: "cancelled-calls-are-forgotten", Part: Waiting, File: "lock/wait.go",
			Breaks: "does not expect that calls without a deadline give up",
			Old:    `vain > 0 {`,
			New:    `false && vain > 0 {`,
		},
		{
			Name: "does-not-see-others-give-up", Part: Waiting, File: "lock/entry.go",
			Breaks: "looks as late as if those before it had their turns, although they give up",
			Old:    `if e.client.skips.before(e.client.clk().Now()) {`,
			New:    `if false {`,
		},
		{
			Name: "waits-for-a-run-as-for-a-lock", Part: Waiting, File: "lock/wait.go",
			Breaks: "lets instances of Every notice late that a run has ended",
			Old:    `if a.run != nil {`,
			New:    `if false {`,
		},
		{
			Name: "place-is-given-up", Part: Waiting, File: "lock/withdraw.go",
			Breaks: "gives up the place of a process with each call that gives up",
			Old:    `if ctx.Err() != nil && gone.bequeath() {`,
			New:    `if false && gone.bequeath() {`,
		},
		{
			Name: "fixed-lease-takes-any-place", Part: Waiting, File: "lock/withdraw.go",
			Breaks: "hands a ticket over to a call that wants a Fixed lease of another length",
			Old:    `to != nil && to.Request.fixed == a.fixed; `,
			New:    `to != nil; `,
		},
		{
			Name: "taken-over-ticket-is-not-renewed", Part: Waiting, File: "lock/wait.go",
			Breaks: "counts a Fixed lease from when the call before it took the ticket",
			Old:    `err = a.stand(ctx, a.entries[0].stale.Load())`,
			New:    `err = a.stand(ctx, false)`,
		},
		{
			Name: "outage-ends-the-wait", Part: Waiting, File: "lock/entry.go",
			Breaks: "ends a wait with an outage",
			Old:    `return err != nil && (c.table.Retryable(err) || errors.Is(err, context.DeadlineExceeded))`,
			New:    `return errors.Is(err, context.DeadlineExceeded)`,
		},
	}
}
