package mutants

// guarding breaks the writes that commit only while their lock is held.
func guarding() []Mutant {
	const row, guard = "lock/row.go", "lock/guard.go"
	return []Mutant{
		{
			Name: "guard-without-nonce", Part: Guarding, File: row,
			Breaks: "guards by the fence alone, which a row keeps that was released",
			Old:    `table.And(named, fence.Equal(table.Param(1)))`,
			New:    `fence.Equal(table.Param(1))`,
		},
		{
			Name: "guard-without-fence", Part: Guarding, File: row,
			Breaks: "guards by the nonce alone, which an acquisition that came in late has, too",
			Old:    `table.And(named, fence.Equal(table.Param(1)))`,
			New:    `named`,
		},
		{
			Name: "write-without-guard", Part: Guarding, File: guard,
			Breaks: "writes without the guard",
			Old:    `append(ops[:at:at], guards...)...)`,
			New:    `ops[:at:at]...)`,
			Seen:   []World{{"overslept", 1}},
		},
		{
			Name: "refusal-untold", Part: Guarding, File: guard,
			Breaks: "does not tell the holder whose guarded write was refused",
			Old:    "\tl.stolen()\n\treturn failed.Err\n",
			New:    "\treturn failed.Err\n",
		},
		{
			Name: "renewal-knows-no-commit", Part: Guarding, File: "lock/renew.go",
			Breaks: "takes a lock for stolen that a commit without an answer has released, as a renewal is refused",
			Old:    "\t\treturn l.refusedBeside(ctx, failed)\n",
			New:    "\t\tl.stolen()\n\t\treturn failed.Err\n",
		},
		{
			Name: "writes-at-once", Part: Guarding, File: guard,
			Breaks: "sends guarded writes of one lease at the same time, and releases meanwhile",
			Old:    "\tif err := l.takeTurn(ctx); err != nil {\n\t\treturn wrap(\"write\", err)\n\t}\n\tdefer l.endTurn()\n",
			New:    "",
		},
		{
			Name: "commit-keeps-the-lock", Part: Guarding, File: guard,
			Breaks: "commits without giving the lock up",
			Old:    `l.guarded(ctx, p.op, ops)`,
			New:    `l.guarded(ctx, l.Guard(), ops)`,
		},
		{
			Name: "unclear-commit-is-not-applied", Part: Guarding, File: "lock/parting.go",
			Breaks: "takes a commit without an answer for one that was not applied",
			Old:    "\tp.keep(unclear)\n}",
			New:    "\tp.keep(false)\n}",
		},
		{
			Name: "taken-and-released", Part: Guarding, File: "lock/lease.go",
			Breaks: "says that a lock was released which was taken by force, once a ghost under its nonce was freed",
			Old:    `l.taken.Store(true)`,
			New:    ``,
		},
		{
			Name: "unclear-commit-is-forgotten", Part: Guarding, File: "lock/parting.go",
			Breaks: "takes a lock for stolen that a commit without an answer has released, once others have had it",
			Old:    `p.lease.parted = p.lease.parted || unclear`,
			New:    `p.lease.parted = p.lease.parted && unclear`,
		},
		{
			Name: "pending-commit-is-refused", Part: Guarding, File: guard,
			Breaks: "takes a refused commit for settled although an attempt of it may come in yet",
			Old:    `return failed[0].Pending`,
			New:    `return false`,
		},
		{
			Name: "refusal-is-unclear", Part: Guarding, File: guard,
			Breaks: "takes a commit that was refused for one that may have been applied",
			Old:    `&& !errors.As(err, new(refusal))`,
			New:    ``,
		},
		{
			Name: "forced-passes-for-released", Part: Guarding, File: "lock/lease.go",
			Breaks: "says that a commit without an answer was applied although the lock was taken by force",
			Old:    `(!ok || forced < l.fence)`,
			New:    `(!ok || forced > 0)`,
		},
	}
}
