package mutants

// acquiring breaks the writes by which tickets enter and leave the line.
func acquiring() []Mutant {
	return []Mutant{
		{
			Name: "enter-twice", Part: Acquiring, File: "lock/internal/lockrow/enter.go",
			Breaks: "enters a ticket that is in the line already",
			Old:    `table.Not(line.Contains(param(argTicket)))`,
			New:    `line.At(Cap).NotExists()`,
		},
		{
			Name: "enter-foreign-row", Part: Acquiring, File: "lock/internal/lockrow/enter.go",
			Breaks: "enters the line of a row of another type, if it has a fence",
			Old:    `table.And(table.Attr(n.Type).Equal(ofType), fence.Exists())`,
			New:    `table.And(fence.Exists())`,
		},
		{
			Name: "enter-row-of-other-names", Part: Acquiring, File: "lock/internal/lockrow/enter.go",
			Breaks: "enters a lock row that has no fence under the own name",
			Old:    `table.And(table.Attr(n.Type).Equal(ofType), fence.Exists())`,
			New:    `table.And(table.Attr(n.Type).Equal(ofType))`,
		},
		{
			Name: "enter-over-the-cap", Part: Acquiring, File: "lock/internal/lockrow/enter.go",
			Breaks: "lets one more ticket into the line than it has places",
			Old:    `line.At(Cap-1).NotExists()`,
			New:    `line.At(Cap).NotExists()`,
		},
		{
			Name: "try-behind-others", Part: Acquiring, File: "lock/internal/lockrow/enter.go",
			Breaks: "enters a line that is not empty, although the lock has to be free",
			Old:    `cond = table.And(cond, line.At(0).NotExists())`,
			New:    `cond = table.And(cond, line.At(1).NotExists())`,
		},
		{
			Name: "existing-makes-a-row", Part: Acquiring, File: "lock/internal/lockrow/enter.go",
			Breaks: "makes a row although it has to be there",
			Old:    "\tif !s.exists {\n",
			New:    "\tif true {\n",
		},
		{
			Name: "newcomer-first", Part: Acquiring, File: "lock/internal/lockrow/enter.go",
			Breaks: "puts a new ticket in the place of all that are in the line",
			Old:    `line.Set(line.OrElse(list()).Append(param(argList)))`,
			New:    `line.Set(param(argList))`,
		},
		{
			Name: "fence-seeded-anew", Part: Acquiring, File: "lock/internal/lockrow/enter.go",
			Breaks: "begins the fence anew with every ticket",
			Old:    `fence.Set(fence.OrElse(param(argSeed)))`,
			New:    `fence.Set(param(argSeed))`,
		},
		{
			Name: "fence-stays", Part: Acquiring, File: "lock/internal/lockrow/rows.go",
			Breaks: "leaves the fence as it is where the first place changes",
			Old:    `num(h.Fence), num(h.Fence+1)`,
			New:    `num(h.Fence), num(h.Fence)`,
		},
		{
			Name: "fence-of-a-new-row-from-zero", Part: Acquiring, File: "lock/enter.go",
			Breaks: "begins the fences of a row that was deleted at 0 again",
			Old:    `Seed: a.client.clk().Stamp().UnixMilli()`,
			New:    `Seed: 0`,
		},
		{
			Name: "first-by-ticket-alone", Part: Acquiring, File: "lock/internal/lockrow/rows.go",
			Breaks: "takes a ticket for the holder under whatever fence",
			Old:    `return table.And(table.Attr(n.Line).At(0).HasPrefix(param(argID)), table.Attr(n.Fence).Equal(param(argFence)))`,
			New:    `return table.And(table.Attr(n.Line).At(0).HasPrefix(param(argID)), table.Attr(n.Fence).AtLeast(param(argFence)))`,
		},
		{
			Name: "first-by-fence-alone", Part: Acquiring, File: "lock/internal/lockrow/rows.go",
			Breaks: "takes the fence for enough, whoever is first",
			Old:    `return table.And(table.Attr(n.Line).At(0).HasPrefix(param(argID)), table.Attr`,
			New:    `return table.And(table.Attr`,
		},
		{
			Name: "prefix-of-another-ticket", Part: Acquiring, File: "lock/internal/lockrow/ticket.go",
			Breaks: "takes a ticket for another one whose ID begins with its own",
			Old:    `return id + "@"`,
			New:    `return id`,
		},
		{
			Name: "leave-whatever-stands-there", Part: Acquiring, File: "lock/internal/lockrow/leave.go",
			Breaks: "removes a place whoever stands there",
			Old:    `conds := []table.Cond{line.At(place).HasPrefix(param(argID))}`,
			New:    `conds := []table.Cond{line.At(place).Exists()}`,
		},
		{
			Name: "leave-the-first-place-without-fence", Part: Acquiring, File: "lock/internal/lockrow/leave.go",
			Breaks: "leaves the first place without a change of the fence",
			Old:    `case place > 0 && (s.op == "remove"`,
			New:    `case place >= 0 && (s.op == "remove"`,
		},
		{
			Name: "numbers-begin-anew", Part: Acquiring, File: "lock/lease.go",
			Breaks: "does not count on from the number of the last holder's last write",
			Old:    "\t\t\twrites: row.Writes, edits: row.Edits,\n",
			New:    ``,
		},
		{
			Name: "numbers-begin-anew-with-a-pass", Part: Acquiring, File: "lock/release.go",
			Breaks: "has the next goroutine of the process count on from what the row had before the own writes",
			Old:    `row.Fence, row.Writes, row.Edits = l.holding.Fence+1, l.turn.writes, l.turn.edits`,
			New:    `row.Fence = l.holding.Fence + 1`,
		},
		{
			Name: "row-not-in-order-grants", Part: Acquiring, File: "lock/internal/lockrow/row.go",
			Breaks: "takes elements of the line that are no tickets for tickets",
			Old:    "t, err := ParseTicket(text.Value)\n\t\tif err != nil {",
			New:    "t, err := ParseTicket(text.Value)\n\t\tif false {\n\t\t\treturn err\n\t\t}\n\t\tif t.ID == \"\" {",
		},
		{
			Name: "retract-whatever-stands-there", Part: Acquiring, File: "lock/internal/lockrow/enter.go",
			Breaks: "takes the place of somebody else out of a row that is not in order",
			Old:    `If(at.Equal(text))`,
			New:    `If(at.NotEqual(text + text))`,
		},
		{
			Name: "reset-whatever-was-seen", Part: Acquiring, File: "lock/internal/lockrow/first.go",
			Breaks: "empties a row that has changed since it was seen",
			Old:    `op = op.If(table.Attr(name).Equal(av))`,
			New:    `op = op.If(table.Attr(name).Exists())`,
		},
		{
			Name: "several-entered-one-by-one", Part: Acquiring, File: "lock/enter.go",
			Breaks: "enters several lines by a request for each",
			Old:    "if err := c.table.Write(ctx, ops...); err != nil {\n",
			New:    "var failed error\n\tfor i := 0; i < len(ops) && failed == nil; i++ {\n\t\tfailed = c.table.Write(ctx, ops[i])\n\t}\n\tif err := failed; err != nil {\n",
		},
	}
}
