package mutants

// death breaks when a holder counts as dead.
func death() []Mutant {
	return []Mutant{
		{
			Name: "dead-whatever-its-beat", Part: Death, File: "lock/internal/session/others.go",
			Breaks: "marks a session dead that was renewed since it was seen",
			Old:    `table.Attr(n.Beat).Equal(look.beat)`,
			New:    `table.Attr(n.Beat).AtLeast(look.beat)`,
		},
		{
			Name: "silent-for-half-a-lease", Part: Death, File: "lock/internal/session/others.go",
			Breaks: "takes a session for dead after half a lease of silence",
			Old:    `look.Wait = max(lease-look.Silent, 0)`,
			New:    `look.Wait = max(lease/2-look.Silent, 0)`,
		},
		{
			Name: "recorded-end-without-skew", Part: Death, File: "lock/internal/clock/clock.go",
			Breaks: "takes a recorded end for past without the bound of clocks that are off",
			Old:    `return earliest.Add(-c.Skew).UnixMilli() - 1`,
			New:    `return earliest.UnixMilli() - 1`,
		},
		{
			Name: "recorded-end-though-observed-only", Part: Death, File: "lock/internal/clock/clock.go",
			Breaks: "uses recorded ends although only observation is to count",
			Old:    `UnixMilli() - 1, ok && !c.ObservedOnly`,
			New:    `UnixMilli() - 1, ok`,
		},
		{
			Name: "recorded-by-the-earliest-time", Part: Death, File: "lock/internal/session/renew.go",
			Breaks: "records the end of the own lease by a clock that may be behind",
			Old:    `_, latest, known := c.Bounds()`,
			New:    `latest, _, known := c.Bounds()`,
		},
		{
			Name: "judged-by-the-latest-time", Part: Death, File: "lock/internal/clock/clock.go",
			Breaks: "judges the ends of others by the latest time that it can be",
			Old:    `return earliest.Add(-max(behind, 0))`,
			New:    `return earliest.Add(-min(behind, 0))`,
		},
		{
			Name: "dead-is-not-for-good", Part: Death, File: "lock/internal/session/others.go",
			Breaks: "takes a session that was marked dead for alive again",
			Old:    "\tif s.row.Dead { // a session that is marked dead stays dead\n\t\treturn\n\t}\n",
			New:    ``,
		},
		{
			Name: "foreign-row-is-marked", Part: Death, File: "lock/internal/session/others.go",
			Breaks: "marks a row dead that is no session",
			Old:    `table.And(table.Attr(n.Type).Equal(Type), table.Attr(n.Dead).NotExists(), table.Or(evidence...))`,
			New:    `table.And(table.Attr(n.Dead).NotExists(), table.Or(evidence...))`,
		},
		{
			Name: "session-elsewhere-is-dead", Part: Death, File: "lock/internal/session/session.go",
			Breaks: "looks for a session with the keys of its own client, where that of another layout never is",
			Old:    `return text != "" && mark == c.Mark`,
			New:    `return text != "" && mark != "-"`,
		},
		{
			Name: "evict-without-marking", Part: Death, File: "lock/takeover.go",
			Breaks: "evicts a holder whose session was not marked dead",
			Old:    `err != nil || !isDead {`,
			New:    `err != nil && !isDead {`,
		},
		{
			Name: "evict-a-renewed-lease", Part: Death, File: "lock/internal/lockrow/first.go",
			Breaks: "evicts a Fixed lease that was renewed since it was seen",
			Old:    `return table.Attr(attr).Equal(seen)`,
			New:    `return table.Attr(attr).Exists()`,
		},
		{
			Name: "evict-others-whoever-stands-there", Part: Death, File: "lock/internal/lockrow/leave.go",
			Breaks: "evicts other places although they have moved",
			Old:    `out = out.Changing(ticket.Remove()).If(ticket.HasPrefix(prefix(seen.Line[p].ID)))`,
			New:    `out = out.Changing(ticket.Remove())`,
		},
		{
			Name: "replace-before-those-who-wait", Part: Death, File: "lock/internal/lockrow/first.go",
			Breaks: "takes the place of a dead holder although others wait",
			Old:    `).If(table.Attr(r.names.Line).At(1).NotExists())`,
			New:    `)`,
		},
		{
			Name: "takes-over-from-a-living-fixed-lease", Part: Death, File: "lock/client.go",
			Breaks: "takes a Fixed lease for over at its end, without the bound of clocks that are off",
			Old:    `return ok && end <= past`,
			New:    `return ok && end <= past+c.config.Skew.Milliseconds()`,
		},
		{
			Name: "who-is-behind-acts-first", Part: Death, File: "lock/takeover.go",
			Breaks: "has all who wait act at once where the holder is dead",
			Old:    `s.ahead > 0 && s.silent < s.turn():`,
			New:    `s.ahead < 0 && s.silent < s.turn():`,
		},
		{
			Name: "who-is-behind-counts-from-the-grant", Part: Death, File: "lock/takeover.go",
			Breaks: "has all who wait act at once where a holder has died that held the lock for long",
			Old:    `s.ahead > 0 && s.silent < s.turn():`,
			New:    `s.ahead > 0 && s.since < s.turn():`,
		},
		{
			Name: "seen-long-ago-is-silent", Part: Death, File: "lock/internal/session/others.go",
			Breaks: "takes a session for silent that was not looked at for a lease",
			Old:    `look.Known = look.Age <= lease`,
			New:    `look.Known = look.Age >= 0`,
		},
		{
			Name: "evict-the-living-too", Part: Death, File: "lock/internal/lockrow/classify.go",
			Breaks: "evicts everybody who waits, together with a dead holder",
			Old:    `session != "" && t.Session() == session`,
			New:    `session != "" && t.ID != ""`,
		},
		{
			Name: "evict-all-leases-of-their-own", Part: Death, File: "lock/internal/lockrow/classify.go",
			Breaks: "evicts all Fixed leases that wait, together with one that has ended",
			Old:    `session != "" && t.Session() == session`,
			New:    `t.Session() == session`,
		},
		{
			Name: "replace-a-renewed-lease", Part: Death, File: "lock/internal/lockrow/first.go",
			Breaks: "takes the place of a Fixed lease that was renewed since it was seen",
			Old:    "At(1).NotExists())\n\tif first.Length > 0 {",
			New:    "At(1).NotExists())\n\tif first.Length < 0 {",
		},
		{
			Name: "lagging-look-shows-life", Part: Death, File: "lock/internal/session/others.go",
			Breaks: "takes an older beat, which a read has shown that lags behind, for a renewal",
			Old:    `row.Beat > s.row.Beat)`,
			New:    `row.Beat != s.row.Beat)`,
		},
	}
}
