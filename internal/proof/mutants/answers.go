package mutants

// answers breaks how an answer, or a missing answer, is judged.
func answers() []Mutant {
	return []Mutant{
		{
			Name: "own-place-is-a-refusal", Part: Answers, File: "lock/enter.go",
			Breaks: "does not recognise the own ticket where it waits behind others",
			Old:    `case row.Place(e.ticket.ID) >= 0:`,
			New:    `case row.Granted(e.ticket.ID):`,
		},
		{
			Name: "waiting-is-holding", Part: Answers, File: "lock/internal/lockrow/classify.go",
			Breaks: "takes a ticket that waits for one that holds",
			Old:    `return place >= 0 && place < r.Holders()`,
			New:    `return place >= 0`,
		},
		{
			Name: "force-is-a-release", Part: Answers, File: "lock/internal/lockrow/classify.go",
			Breaks: "takes a lock that was taken by force for one that it has released",
			Old:    `case !r.ForcedSince(h):`,
			New:    `default:`,
		},
		{
			Name: "own-force-alone", Part: Answers, File: "lock/internal/lockrow/classify.go",
			Breaks: "looks for a force of the own ticket alone, and not for a later one",
			Old:    `return r.ForcedFence > h.Fence || r.ForcedFence == h.Fence && h.Kind != Permit`,
			New:    `return r.ForcedFence == h.Fence && h.Kind != Permit`,
		},
		{
			Name: "target-of-a-pass-forgotten", Part: Answers, File: "lock/internal/lockrow/classify.go",
			Breaks: "does not recognise the target of a pass whose answer was lost",
			Old:    `held && r.Fence == h.Fence+1 && first.ID == target`,
			New:    `!held && first.ID == target`,
		},
		{
			Name: "pass-by-the-fence-alone", Part: Answers, File: "lock/internal/lockrow/classify.go",
			Breaks: "takes a pass for applied whoever is first",
			Old:    `held && r.Fence == h.Fence+1 && first.ID == target`,
			New:    `held && r.Fence == h.Fence+1 && first.ID != "" && target != ""`,
		},
		{
			Name: "pass-by-the-ticket-alone", Part: Answers, File: "lock/internal/lockrow/classify.go",
			Breaks: "takes a pass for applied under whatever fence its target is first",
			Old:    `held && r.Fence == h.Fence+1 && first.ID == target`,
			New:    `held && first.ID == target`,
		},
		{
			Name: "release-without-the-session", Part: Answers, File: "lock/release.go",
			Breaks: "takes a release for applied without asking whether the session lives",
			Old:    `return l.session.Confirm(ctx)`,
			New:    `return true, nil`,
		},
		{
			Name: "release-by-a-session-that-lags", Part: Answers, File: "lock/internal/session/session.go",
			Breaks: "confirms a session by a read that lags behind",
			Old:    `Get(ctx, s.key, true)`,
			New:    `Get(ctx, s.key, false)`,
		},
		{
			Name: "dead-session-confirms", Part: Answers, File: "lock/internal/session/session.go",
			Breaks: "takes a session that is marked dead for alive",
			Old:    `alive = bad == nil && !row.Dead`,
			New:    `alive = bad == nil && row.Beat >= 0`,
		},
		{
			Name: "lost-answer-is-a-refusal", Part: Answers, File: "lock/internal/attempt/attempt.go",
			Breaks: "takes an attempt without an answer for one that was not applied",
			Old:    `inDoubt = inDoubt || unanswered(err)`,
			New:    `inDoubt = false`,
		},
		{
			Name: "doubt-of-the-last-attempt", Part: Answers, File: "lock/internal/attempt/attempt.go",
			Breaks: "forgets that an earlier attempt may have been applied",
			Old:    `inDoubt = inDoubt || unanswered(err)`,
			New:    `inDoubt = unanswered(err)`,
		},
		{
			Name: "repeated-below", Part: Answers, File: "lock/internal/attempt/attempt.go",
			Breaks: "has the table repeat what it repeats itself",
			Old:    `f(table.WithoutRetry(bounded))`,
			New:    `f(bounded)`,
		},
		{
			Name: "ghost-stays", Part: Answers, File: "lock/takeover.go",
			Breaks: "leaves a ticket of its own process alone that nobody answers for",
			Old:    "\t\treturn ghost\n",
			New:    "\t\treturn fine\n",
		},
		{
			Name: "absence-in-a-look", Part: Answers, File: "lock/entry.go",
			Breaks: "believes a look that lags behind and does not show the own ticket",
			Old:    `case err != nil, e.older(&row):`,
			New:    "case err == nil && row.Place(e.ticket.ID) < 0:\n\t\treturn errAnew\n\tcase err != nil, e.older(&row):",
		},
		{
			Name: "refusal-is-a-release", Part: Answers, File: "lock/internal/lockrow/classify.go",
			Breaks: "takes a refused release for applied although no attempt was without an answer",
			Old:    `case !inDoubt || !r.isAfter(h):`,
			New:    `case !r.isAfter(h):`,
		},
		{
			Name: "release-of-a-row-made-anew", Part: Answers, File: "lock/internal/lockrow/classify.go",
			Breaks: "takes a release for applied to a row that was deleted, and made anew under an old fence",
			Old:    `case !inDoubt || !r.isAfter(h):`,
			New:    `case !inDoubt:`,
		},
		{
			Name: "echo-by-the-fence-alone", Part: Answers, File: "lock/internal/lockrow/classify.go",
			Breaks: "takes what somebody else has changed for a release that was delivered twice",
			Old:    `r.Fence == h.Fence+1 && r.Since == c.Since`,
			New:    `r.Fence == h.Fence+1 && c.Since > 0`,
		},
	}
}
