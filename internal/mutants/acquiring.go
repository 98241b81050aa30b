package mutants

// acquiring breaks the update that takes a lock, and what it leaves in the row.
func acquiring() []Mutant {
	const row, acquire, clock = "lock/row.go", "lock/acquire.go", "lock/clock.go"
	return []Mutant{
		{
			Name: "acquire-held", Part: Acquiring, File: row,
			Breaks: "takes a lock although its row names a holder",
			Old:    `table.And(s.attr(attrNonce).NotExists(), s.attr(attrReleasedNonce).NotEqual(paramNonce))`,
			New:    `s.attr(attrReleasedNonce).NotEqual(paramNonce)`,
		},
		{
			Name: "acquire-foreign-row", Part: Acquiring, File: row,
			Breaks: "overwrites a row that is no lock, or not in order",
			Old:    `table.And(whole(s), table.Or(takeable...))`,
			New:    `table.Or(takeable...)`,
		},
		{
			Name: "acquire-without-type", Part: Acquiring, File: row,
			Breaks: "takes a row of another type for a lock, if it has a fence",
			Old:    "return table.And(\n\t\ttable.Attr(s.Type).Equal(recordType),\n",
			New:    "return table.And(\n",
		},
		{
			Name: "fence-stays", Part: Acquiring, File: row,
			Breaks: "gives the next holder the fence of the one before",
			Old:    `fence.Set(fence.OrElse(paramSeed).Plus(1))`,
			New:    `fence.Set(fence.OrElse(paramSeed))`,
		},
		{
			Name: "fence-from-zero", Part: Acquiring, File: acquire,
			Breaks: "begins the fences of a row that was deleted at 1 again",
			Old:    `g.seed, g.ended, g.deadline = now.UnixMilli(), e,`,
			New:    `g.seed, g.ended, g.deadline = 0, e,`,
		},
		{
			Name: "fence-by-local-clock", Part: Acquiring, File: clock,
			Breaks: "begins the fences of a new row with the local clock, although it is known to be slow",
			Old:    "\t\treturn server, true\n",
			New:    "\t\treturn now, true\n",
		},
		{
			Name: "fence-unverified", Part: Acquiring, File: acquire,
			Breaks: "gives out a fence that began with a clock which nothing had confirmed",
			Old:    `err == nil && len(a.seeds) > 0 {`,
			New:    `err == nil && len(a.seeds) < 0 {`,
		},
		{
			Name: "ttl-in-milliseconds", Part: Acquiring, File: "lock/deletion.go",
			Breaks: "writes the time to live in milliseconds, which DynamoDB never comes to",
			Old:    `return d.after.Unix() + 1`,
			New:    `return d.after.UnixMilli() + 1`,
		},
		{
			Name: "ttl-of-the-past", Part: Acquiring, File: "lock/deletion.go",
			Breaks: "has rows deleted a retention too early",
			Old:    `next.after = latest(today.Add(lease+c.config.Retention),`,
			New:    `next.after = latest(today.Add(lease),`,
		},
		{
			Name: "edits-of-the-last-holder", Part: Acquiring, File: row,
			Breaks: "lets the next holder's first SetData meet the count of the last one's",
			Old:    "\t\ts.attr(attrEdits).Remove(),\n\t\ts.attr(attrForced).Remove(),\n",
			New:    "\t\ts.attr(attrForced).Remove(),\n",
		},
		{
			Name: "two-regions", Part: Acquiring, File: "lock/client.go",
			Breaks: "grants locks in a table that another region grants them in, too",
			Old:    "\tcase replicated:\n\t\treturn ErrMultiRegion\n",
			New:    "\tcase replicated:\n\t\treturn nil\n",
		},
		{
			Name: "end-of-an-unmeasured-clock", Part: Acquiring, File: acquire,
			Breaks: "records an end before DynamoDB's time is known",
			Old:    `if !o.known || o.most > c.config.Skew {`,
			New:    `if o.most > c.config.Skew {`,
		},
		{
			Name: "end-of-a-slow-clock", Part: Acquiring, File: acquire,
			Breaks: "records an end by a clock that may be slow by more than the bound",
			Old:    `if !o.known || o.most > c.config.Skew {`,
			New:    `if !o.known {`,
		},
	}
}
