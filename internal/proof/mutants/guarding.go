package mutants

// guarding breaks the writes that commit only while the lock is held.
func guarding() []Mutant {
	return []Mutant{
		{
			Name: "late-write", Part: Guarding, File: "lock/internal/lockrow/holder.go",
			Breaks: "applies a write that comes late after a later one",
			Old:    `If(isFirst(r.names), below(attr, argCount))`,
			New:    `If(isFirst(r.names))`,
		},
		{
			Name: "write-without-guard", Part: Guarding, File: "lock/internal/lockrow/holder.go",
			Breaks: "applies a numbered write whoever holds the lock",
			Old:    `If(isFirst(r.names), below(attr, argCount))`,
			New:    `If(below(attr, argCount))`,
			Seen:   []World{{"overslept", 5}, {"lockset", 13}},
		},
		{
			Name: "guard-of-anybody", Part: Guarding, File: "lock/internal/lockrow/holder.go",
			Breaks: "takes any holder for the own one",
			Old:    `table.Check(keys.Key{}, h.Kind.holds(r.names))`,
			New:    `table.Check(keys.Key{}, table.Attr(r.names.Line).At(0).Exists())`,
		},
		{
			Name: "writes-are-not-numbered", Part: Guarding, File: "lock/guard.go",
			Breaks: "gives all writes of a lease one number",
			Old:    "\t\t\tl.turn.writes++\n",
			New:    "\t\t\tl.turn.writes = 1\n",
		},
		{
			Name: "written-is-refused", Part: Guarding, File: "lock/guard.go",
			Breaks: "does not recognise the own write by its number",
			Old:    `rows[i].Writes == l.turn.writes`,
			New:    `rows[i].Writes < 0`,
		},
		{
			Name: "written-under-another-fence", Part: Guarding, File: "lock/guard.go",
			Breaks: "recognises the own write although others hold the lock by now",
			Old:    `case !rows[i].Holds(l.holding): // others`,
			New:    "case !rows[i].Holds(l.holding):\n\t\t\t\twritten++\n\t\t\tcase false: // others",
		},
		{
			Name: "commit-keeps-the-lock", Part: Guarding, File: "lock/guard.go",
			Breaks: "commits under the guard, and does not give the lock up",
			Old:    `gives[i], _ = l.give(to, true)`,
			New:    `gives[i] = l.Guard()`,
		},
		{
			Name: "writes-under-a-lost-lease", Part: Guarding, File: "lock/guard.go",
			Breaks: "sends writes under a lease that is over",
			Old:    "\t\tif l.is().Over() {\n\t\t\treturn over(l)\n",
			New:    "\t\tif false {\n\t\t\treturn over(l)\n",
		},
		{
			Name: "pending-refusal-is-final", Part: Guarding, File: "table/errors.go",
			Breaks: "takes a refusal for final although an earlier attempt may have been applied",
			Old:    "\tcase may, slices.ContainsFunc(failed, func(f *ConditionError) bool { return f.Repeated || f.Pending }):\n",
			New:    "\tcase may && len(failed) == 0, slices.ContainsFunc(failed, func(*ConditionError) bool { return false }):\n",
		},
		{
			Name: "refused-for-now-is-final", Part: Guarding, File: "lock/guard.go",
			Breaks: "tells of a loss, and so that nothing was written, although a late copy of a throttled write can be applied",
			Old:    `|| !refused && ctx.Err() != nil && saysOver(err)`,
			New:    `|| refused && false`,
		},
		{
			Name: "refused-condition-is-final", Part: Guarding, File: "lock/guard.go",
			Breaks: "tells of a loss, and so that nothing was written, although a late copy of a write under a condition can be applied",
			Old:    `return f.Index >= len(ops) })`,
			New:    `return true })`,
		},
		{
			Name: "copied-release-is-a-loss", Part: Guarding, File: "lock/release.go",
			Breaks: "tells of a loss although a copy of the own release, which was throttled, has released the lock",
			Old:    "\t\t\tl.turn.inDoubt = true\n\t\t\treturn err\n\t\t}\n\t\tl.turn.saw(&row)",
			New:    "\t\t\tl.turn.inDoubt = l.turn.inDoubt || table.RequestMayBeApplied(err)\n\t\t\treturn err\n\t\t}\n\t\tl.turn.saw(&row)",
		},
		{
			Name: "late-commit", Part: Guarding, File: "lock/release.go",
			Breaks: "applies a commit that comes late after a later write",
			Old:    `if commit && l.holding.Kind == lockrow.Exclusive {`,
			New:    `if false {`,
		},
	}
}
