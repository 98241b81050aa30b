package mutants

// around breaks several locks, intervals, operators, the index, and Close.
func around() []Mutant {
	return []Mutant{
		{
			Name: "several-one-by-one", Part: Around, File: "lock/wait.go",
			Breaks: "keeps the places in other lines where one was lost, and enters that line alone",
			Old:    "\t\tfor _, e := range a.entries {\n\t\t\tis, err := e.proceed(ctx)\n\t\t\tswitch {\n\t\t\tcase err != nil:\n\t\t\t\treturn err\n\t\t\tcase is:\n",
			New: `
		for i, e := range a.entries {
			is, err := e.proceed(ctx)
			switch {
			case errors.Is(err, errAnew) && len(a.entries) > 1:
				one := &acquisition{client: a.client, request: a.request, entries: a.entries[i : i+1]}
				if err := one.enter(ctx, false); err != nil {
					return err
				}
			case err != nil:
				return err
			case is:
`,
		},
		{
			Name: "lost-place-ends-the-wait", Part: Around, File: "lock/wait.go",
			Breaks: "ends a wait whose place was lost",
			Old:    `case errors.Is(err, errAnew), errors.Is(err, ErrLost)`,
			New:    `case errors.Is(err, ErrLost)`,
		},
		{
			Name: "interval-twice", Part: Around, File: "lock/internal/lockrow/enter.go",
			Breaks: "begins the run of an interval that was recorded",
			Old:    `cond = table.And(cond, below(n.Ran, argRun))`,
			New:    `cond = table.And(cond)`,
		},
		{
			Name: "run-is-not-recorded", Part: Around, File: "lock/internal/lockrow/rows.go",
			Breaks: "does not record that a run has finished",
			Old:    `return append(changes, ran, running.Remove())`,
			New:    `return append(changes, running.Remove())`,
		},
		{
			Name: "force-whoever-holds", Part: Around, File: "lock/operator.go",
			Breaks: "forces a lock whoever holds it by now",
			Old:    `case place < 0 || place >= row.Holders():`,
			New:    `case place < 0:`,
		},
		{
			Name: "force-is-not-recorded", Part: Around, File: "lock/internal/lockrow/leave.go",
			Breaks: "does not record under which fence a lock was forced",
			Old:    `forced := param(argFence)`,
			New:    `forced := param(argSince)`,
		},
		{
			Name: "view-hides-the-holder", Part: Around, File: "lock/view.go",
			Breaks: "shows rows although somebody holds their lock",
			Old:    `if !how.evenIfHeld && !first.Shared() {`,
			New:    `if !how.evenIfHeld && first.ID == "" {`,
		},
		{
			Name: "view-of-several-moments", Part: Around, File: "lock/view.go",
			Breaks: "views rows by a batch, which a transaction may meet half-way",
			Old:    `c.table.TransactGet(ctx, append(slices.Clip(list), key))`,
			New:    `c.table.BatchGet(ctx, append(slices.Clip(list), key), true)`,
		},
		{
			Name: "view-in-any-region", Part: Around, File: "lock/view.go",
			Breaks: "views rows in a region where a transaction may have arrived in part",
			Old:    `err = c.checkRegion(ctx)`,
			New:    `err = ctx.Err()`,
		},
		{
			Name: "held-lock-is-not-listed", Part: Around, File: "lock/internal/lockrow/leave.go",
			Breaks: "takes a row out of the index although others wait",
			Old:    `case s.exit.Last:`,
			New:    `case s.op != "":`,
		},
		{
			Name: "close-forgets-leases", Part: Around, File: "lock/client.go",
			Breaks: "does not release what is held on Close",
			Old:    `release = l.releaseWhileHeld`,
			New:    `release = func(context.Context) error { return nil }`,
		},
		{
			Name: "question-to-the-dead", Part: Around, File: "lock/internal/session/mailbox.go",
			Breaks: "asks a session that is marked dead",
			Old:    "table.Attr(n.Type).Equal(Type), table.Attr(n.Dead).NotExists(),\n\t\ttable.Or(ask.NotExists()",
			New:    "table.Attr(n.Type).Equal(Type),\n\t\ttable.Or(ask.NotExists()",
		},
		{
			Name: "mailbox-without-bound", Part: Around, File: "lock/internal/session/mailbox.go",
			Breaks: "asks a session however many questions it has",
			Old:    `table.Or(ask.NotExists(), ask.Size().AtMost(maxQuestions-len(texts)))`,
			New:    `table.Or(ask.NotExists(), ask.Exists())`,
		},
		{
			Name: "first-edition-is-taken-over", Part: Around, File: "lock/internal/lockrow/row.go",
			Breaks: "takes a row of an older format for a lock that is free",
			Old:    `case item[n.Nonce] != nil:`,
			New:    `case false:`,
		},
		{
			Name: "row-leaves-the-index-with-others", Part: Around, File: "lock/internal/lockrow/leave.go",
			Breaks: "takes a row out of the index although others have come",
			Old:    `Remove()}, rest.NotExists()`,
			New:    `Remove()}, cond`,
		},
		{
			Name: "later-interval-is-forgotten", Part: Around, File: "lock/run.go",
			Breaks: "runs an interval although a later one has run",
			Old:    `r != nil && row.Ran >= r.at`,
			New:    `r != nil && row.Ran == r.at`,
		},
		{
			Name: "run-begins-whoever-holds", Part: Around, File: "lock/internal/lockrow/holder.go",
			Breaks: "begins the run of an interval although others hold the lock",
			Old:    `If(isFirst(r.names), below(r.names.Ran, argRun))`,
			New:    `If(below(r.names.Ran, argRun))`,
		},
		{
			Name: "question-is-dropped-unanswered", Part: Around, File: "lock/internal/session/mailbox.go",
			Breaks: "drops questions that were not answered",
			Old:    `!s.keeper.config.Hooks.Asked(ctx, q) {`,
			New:    `!s.keeper.config.Hooks.Asked(ctx, q) && false {`,
		},
		{
			Name: "answered-questions-stay", Part: Around, File: "lock/internal/session/renew.go",
			Breaks: "leaves questions in the mailbox that were answered",
			Old:    `if len(s.answered) > 0 {`,
			New:    `if len(s.answered) < 0 {`,
		},
	}
}
