package mutants

// renewal breaks how a lease is kept, and how its end is known.
func renewal() []Mutant {
	return []Mutant{
		{
			Name: "late-renewal-sets-the-beat-back", Part: Renewal, File: "lock/internal/session/renew.go",
			Breaks: "renews whatever beat the row has, so that a late copy sets it back",
			Old:    `table.Attr(n.Beat).Less(s.beat)`,
			New:    `table.Attr(n.Beat).Exists()`,
		},
		{
			Name: "renewed-although-dead", Part: Renewal, File: "lock/internal/session/renew.go",
			Breaks: "renews a session that is marked dead",
			Old:    `table.Attr(n.Dead).NotExists(), table.Attr(n.Beat).Less`,
			New:    `table.Attr(n.Beat).Less`,
		},
		{
			Name: "same-beat-again", Part: Renewal, File: "lock/internal/session/renew.go",
			Breaks: "repeats a renewal with the same beat",
			Old:    "\ts.beat++\n",
			New:    "\tif s.Term == nil || s.Remaining() < k.config.Lease*2/3 {\n\t\ts.beat++\n\t}\n",
		},
		{
			Name: "term-from-the-answer", Part: Renewal, File: "lock/internal/session/renew.go",
			Breaks: "counts a renewed lease from the answer",
			Old:    `case err == nil && s.Extend(start):`,
			New:    `case err == nil && !start.Mono.IsZero() && s.Extend(k.repeater.Clock.Instant()):`,
		},
		{
			Name: "term-of-the-whole-lease", Part: Renewal, File: "lock/internal/session/session.go",
			Breaks: "takes no margin off the lease",
			Old:    `k.terms.Begin(start, k.config.Own,`,
			New:    `k.terms.Begin(start, k.config.Lease,`,
		},
		{
			Name: "ended-term-is-extended", Part: Renewal, File: "lock/internal/clock/terms.go",
			Breaks: "extends a term that has ended",
			Old:    `return t.update(start, nil) == nil`,
			New:    `return t.update(start, nil) == nil || t.length > 0`,
		},
		{
			Name: "monotonic-clock-alone", Part: Renewal, File: "lock/internal/clock/clock.go",
			Breaks: "goes by the monotonic clock alone, which stands still in a suspended machine",
			Old:    `return max(i.Mono.Sub(earlier.Mono), i.Wall.Sub(earlier.Wall))`,
			New:    `return i.Mono.Sub(earlier.Mono)`,
		},
		{
			Name: "late-copy-renews-a-fixed-lease", Part: Renewal, File: "lock/internal/lockrow/holder.go",
			Breaks: "sets a Fixed lease back by a late copy of a renewal",
			Old:    `below(r.names.Renewed, argSince)`,
			New:    `table.Attr(r.names.Fence).Exists()`,
		},
		{
			Name: "renewal-that-does-not-show", Part: Renewal, File: "lock/renew.go",
			Breaks: "takes a renewal for done that has changed nothing, since the clock was set back",
			Old:    `case refused && row.Renewed > at:`,
			New:    `case refused && row.Renewed < at:`,
		},
		{
			Name: "fixed-lease-ends-by-its-ticket", Part: Renewal, File: "lock/internal/lockrow/row.go",
			Breaks: "takes a Fixed lease for over although it was renewed",
			Old:    `max(first.At, r.Since, r.Renewed) + first.Length`,
			New:    `max(first.At, r.Since) + first.Length`,
		},
		{
			Name: "fixed-lease-ends-by-its-time", Part: Renewal, File: "lock/internal/lockrow/row.go",
			Breaks: "counts a Fixed lease from when its ticket was taken, although it waited",
			Old:    `max(first.At, r.Since, r.Renewed) + first.Length`,
			New:    `max(first.At, r.Renewed) + first.Length`,
		},
		{
			Name: "loss-is-not-told", Part: Renewal, File: "lock/internal/lease/state.go",
			Breaks: "does not end the context of a lease that has expired",
			Old:    "Held: {\n\t\tAsk:      {Revoked, Cancel | Tell},\n\t\tEnd:      {Expired, Cancel | Tell | Forget},",
			New:    "Held: {\n\t\tAsk:      {Revoked, Cancel | Tell},\n\t\tEnd:      {Expired, Tell | Forget},",
		},
		{
			Name: "held-row-is-deleted", Part: Renewal, File: "lock/renew.go",
			Breaks: "does not put off the deletion of a row that is held for long",
			Old:    `c.layout.rows.Prolong(key, h, c.ttl(keep))`,
			New:    `c.layout.rows.Prolong(key, h, c.ttl(-c.config.Retention))`,
		},
		{
			Name: "retention-by-the-local-clock", Part: Renewal, File: "lock/internal/clock/clock.go",
			Breaks: "dates deletion by the local clock although DynamoDB has told the time",
			Old:    "\t\treturn latest\n\t}\n\tif told",
			New:    "\t\t_ = latest\n\t\treturn wall\n\t}\n\tif told",
		},
		{
			Name: "renew-whoever-holds", Part: Renewal, File: "lock/internal/lockrow/holder.go",
			Breaks: "renews a Fixed lease although others hold the lock",
			Old:    `If(isFirst(r.names), below(r.names.Renewed, argSince))`,
			New:    `If(below(r.names.Renewed, argSince))`,
		},
		{
			Name: "prolonged-by-a-clock-that-stops", Part: Renewal, File: "lock/renew.go",
			Breaks: "puts a row's deletion off by the monotonic clock, which stands still while the machine is suspended",
			Old:    `kept := l.client.clk().Instant().Since(s.kept)`,
			New:    `kept := l.client.clk().Ago(s.kept.Mono)`,
		},
		{
			Name: "prolong-whoever-holds", Part: Renewal, File: "lock/internal/lockrow/holder.go",
			Breaks: "puts off the deletion of a row although others hold the lock",
			Old:    `table.Attr(r.names.TTL).Set(param(argTTL))).If(h.Kind.holds(r.names))`,
			New:    `table.Attr(r.names.TTL).Set(param(argTTL))).If(table.Attr(r.names.Fence).Exists())`,
		},
	}
}
