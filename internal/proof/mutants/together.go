package mutants

// together breaks the rules for permits and readers, which hold at once.
func together() []Mutant {
	return []Mutant{
		{
			Name: "permit-guarded-by-anybody", Part: Together, File: "lock/internal/lockrow/rows.go",
			Breaks: "applies the write of a permit that has left the line",
			Old:    `return table.And(table.Attr(n.Line).Contains(param(argTicket)), table.Attr(n.Stays).Contains(param(argFence)))`,
			New:    `return table.Attr(n.Stays).At(0).Exists()`,
		},
		{
			Name: "permit-guarded-by-a-number", Part: Together, File: "lock/internal/lockrow/rows.go",
			Breaks: "applies the write of a permit whose number was given out again, after the table was restored",
			Old:    `return table.And(table.Attr(n.Line).Contains(param(argTicket)), table.Attr(n.Stays).Contains(param(argFence)))`,
			New:    `return table.Attr(n.Stays).Contains(param(argFence))`,
		},
		{
			Name: "permit-left-by-its-ticket", Part: Together, File: "lock/internal/lockrow/leave.go",
			Breaks: "takes a late copy of its own ticket for its permit",
			Old:    `conds = append(conds, stay.Equal(param(argFence)), rest)`,
			New:    `conds = append(conds, rest)`,
		},
		{
			Name: "stay-is-left-behind", Part: Together, File: "lock/internal/lockrow/leave.go",
			Breaks: "removes the ticket of a permit and not its stay",
			Old:    `append(r.changed(s), stay.Remove())`,
			New:    `r.changed(s)`,
		},
		{
			Name: "permits-of-any-number", Part: Together, File: "lock/internal/lockrow/enter.go",
			Breaks: "enters permits whatever their number",
			Old:    `permits.Equal(param(argPermits))`,
			New:    `permits.Exists()`,
		},
		{
			Name: "one-permit-more", Part: Together, File: "lock/internal/lockrow/holders.go",
			Breaks: "has one ticket more hold than there are permits",
			Old:    `n := int(r.Permits)`,
			New:    `n := int(r.Permits) + 1`,
		},
		{
			Name: "stay-given-twice", Part: Together, File: "lock/internal/lockrow/enter.go",
			Breaks: "gives two tickets the same stay",
			Old:    `next.At(0).Set(next.At(0).Plus(1))`,
			New:    `next.At(0).Set(next.At(0).Plus(0))`,
		},
		{
			Name: "permit-taken-though-none-is-free", Part: Together, File: "lock/internal/lockrow/enter.go",
			Breaks: "does not wait, and enters although no permit is free",
			Old:    `line.Size().Less(param(argPermits))`,
			New:    `line.Size().AtMost(param(argPermits))`,
		},
		{
			Name: "permits-out-of-order-are-entered", Part: Together, File: "lock/internal/lockrow/enter.go",
			Breaks: "gives a ticket the stay of another one",
			Old:    `line.Size().Equal(stays.Size())`,
			New:    `line.Size().AtLeast(stays.Size())`,
		},
		{
			Name: "permit-forced-is-a-release", Part: Together, File: "lock/internal/lockrow/leave.go",
			Breaks: "records the force of a permit so that it does not tell",
			Old:    `forced = table.Attr(n.Next).At(0)`,
			New:    `forced = param(argFence)`,
		},
		{
			Name: "permits-changed-by-a-late-copy", Part: Together, File: "lock/internal/lockrow/first.go",
			Breaks: "applies a late copy of an earlier change of the number",
			Old:    `permits.Equal(seen.Permits), still(r.names.Edits, seen.Edits))`,
			New:    `permits.Equal(seen.Permits))`,
		},
		{
			Name: "evict-permits-whoever-has-them", Part: Together, File: "lock/internal/lockrow/leave.go",
			Breaks: "evicts whatever stay a place has",
			Old:    `out = out.Changing(stay.Remove()).If(stay.Equal(seen.Stays[p]))`,
			New:    `out = out.Changing(stay.Remove())`,
		},
		{
			Name: "evict-more-than-fits", Part: Together, File: "lock/internal/lockrow/leave.go",
			Breaks: "puts more tickets into an eviction than a request holds",
			Old:    `const maxRemoved = 25`,
			New:    `const maxRemoved = 250`,
		},
		{
			Name: "only-the-first-holder-is-seen-to", Part: Together, File: "lock/takeover.go",
			Breaks: "leaves dead holders behind the first one alone",
			Old:    `place < row.Blocking() && after == nil && err == nil`,
			New:    `place < 1 && after == nil && err == nil`,
		},
		{
			Name: "dead-writer-stops-readers", Part: Together, File: "lock/internal/lockrow/holders.go",
			Breaks: "lets a writer that died while it waited stop the readers behind it",
			Old:    `r.Line[n].Length == 0 {`,
			New:    `false {`,
		},
		{
			Name: "reader-guarded-without-fence", Part: Together, File: "lock/internal/lockrow/rows.go",
			Breaks: "applies the write of a reader after a writer has held",
			Old:    `return table.And(table.Attr(n.Line).Contains(param(argTicket)), table.Attr(n.Fence).Equal(param(argFence)))`,
			New:    `return table.Attr(n.Line).Contains(param(argTicket))`,
		},
		{
			Name: "last-reader-keeps-the-fence", Part: Together, File: "lock/internal/lockrow/leave.go",
			Breaks: "does not raise the fence where the reader that was next has left",
			Old:    `conds = append(conds, under, line.At(s.next).HasPrefix(mark))`,
			New:    `conds = append(conds, under)`,
		},
		{
			Name: "fence-raised-while-others-read", Part: Together, File: "lock/internal/lockrow/leave.go",
			Breaks: "raises the fence although another reader has come",
			Old:    `conds = append(conds, table.Not(line.At(s.next).HasPrefix(mark)))`,
			New:    ``,
		},
		{
			Name: "reader-leaves-under-any-fence", Part: Together, File: "lock/internal/lockrow/leave.go",
			Breaks: "takes a ghost under another fence for the lease",
			Old:    "case place > 0: // other readers hold on\n\t\tconds = append(conds, under)\n",
			New:    "case place > 0:\n",
		},
		{
			Name: "readers-are-ousted-in-silence", Part: Together, File: "lock/internal/lockrow/leave.go",
			Breaks: "does not record that a reader was taken out",
			Old:    `s.ousts = op != "remove" && `,
			New:    `s.ousts = op == "" && `,
		},
		{
			Name: "ghost-of-a-reader-is-its-lease", Part: Together, File: "lock/release.go",
			Breaks: "tells a release that may have met a ghost as one",
			Old:    `l.turn.row.Ousted != l.row.Ousted`,
			New:    `l.turn.row.Ousted < l.row.Ousted`,
		},
		{
			Name: "refused-reader-is-not-in-doubt", Part: Together, File: "lock/internal/lockrow/classify.go",
			Breaks: "takes a release of a reader that was refused for one that is never applied",
			Old:    `return h.Kind != Exclusive || r.Fence == h.Fence+1`,
			New:    `return r.Fence == h.Fence+1`,
		},
		{
			Name: "commit-of-a-place-that-has-moved", Part: Together, File: "lock/guard.go",
			Breaks: "does not send a commit again whose place has moved",
			Old:    `again = again && refused`,
			New:    `again = again && leases[0].holding.Kind == lockrow.Exclusive && refused`,
		},
		{
			Name: "readers-hold-behind-a-writer", Part: Together, File: "lock/internal/lockrow/holders.go",
			Breaks: "has all readers hold, whoever stands before them",
			Old:    `writer := slices.IndexFunc(r.Line, func(t Ticket) bool { return !t.Shared() })`,
			New:    `writer := slices.IndexFunc(r.Line[min(1, len(r.Line)):], func(t Ticket) bool { return !t.Shared() })`,
		},
	}
}
