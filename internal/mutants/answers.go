package mutants

// answers breaks how answers are understood that were lost, came late or twice, and what
// becomes of calls that nobody waits for any more.
func answers() []Mutant {
	const row, acquire, lease, question, look = "lock/row.go", "lock/acquire.go", "lock/lease.go", "lock/question.go", "lock/look.go"
	return []Mutant{
		{
			Name: "own-acquisition-ignored", Part: Answers, File: acquire,
			Breaks: "takes its own success, whose answer was lost, for somebody else's lock",
			Old:    "\t\tcase isString(failed.Item[attrNonce], a.nonce):\n",
			New:    "\t\tcase a.client == nil:\n",
		},
		{
			Name: "own-acquisition-young", Part: Answers, File: acquire,
			Breaks: "counts a lease from the last attempt, although an earlier one may have written it",
			Old:    `began := a.written(failed.Item)`,
			New:    `began := doubt{instant: start}`,
		},
		{
			Name: "own-duplicate-young", Part: Answers, File: acquire,
			Breaks: "counts a lease from the last attempt, although one that was refused has come in once more",
			Old:    `began := a.written(failed.Item)`,
			New:    `began := append(a.doubts(), doubt{instant: start}).of(failed.Item)`,
		},
		{
			Name: "acquire-what-it-released", Part: Answers, File: row,
			Breaks: "lets a late attempt take the lock again that its own acquisition has released",
			Old:    `table.And(table.Attr(attrNonce).NotExists(), table.Attr(attrReleasedNonce).NotEqual(paramNonce))`,
			New:    `table.Attr(attrNonce).NotExists()`,
		},
		{
			Name: "released-nonce-not-written", Part: Answers, File: row,
			Breaks: "leaves no trace of who has released",
			Old:    "\t\ttable.Attr(attrReleasedNonce).Set(table.Param(0)),\n\t\ttable.Attr(attrSession).Remove(),\n",
			New:    "\t\ttable.Attr(attrSession).Remove(),\n",
		},
		{
			Name: "released-nonce-ignored", Part: Answers, File: row,
			Breaks: "takes its own release, whose answer was lost, for a theft",
			Old:    `if isString(item[attrReleasedNonce], nonce) {`,
			New:    `if isString(item[attrReleasedNonce], nonce+" ") {`,
		},
		{
			Name: "release-anybody", Part: Answers, File: row,
			Breaks: "releases whoever holds the lock",
			Old:    ")...).If(named, table.Attr(s.Type).Equal(recordType))\n",
			New:    ")...).If(table.Attr(s.Type).Equal(recordType))\n",
		},
		{
			Name: "release-foreign-row", Part: Answers, File: row,
			Breaks: "releases a row that is no lock, when asked to",
			Old:    ")...).If(named, table.Attr(s.Type).Equal(recordType))\n",
			New:    ")...).If(named)\n",
		},
		{
			Name: "release-under-any-fence", Part: Answers, File: row,
			Breaks: "releases the row for an old lease whose acquisition has come in late once more",
			Old:    `releasing.If(fence.Equal(table.Param(3)))`,
			New:    `releasing`,
		},
		{
			Name: "release-under-an-ended-context", Part: Answers, File: lease,
			Breaks: "does not release once the caller's context has ended",
			Old:    "\tctx, cancel := l.client.clock.detach(ctx)\n",
			New:    "\tctx, cancel := context.WithCancel(ctx)\n",
		},
		{
			Name: "stolen-passes-for-released", Part: Answers, File: lease,
			Breaks: "reports success of the release of a lock that somebody else has taken",
			Old:    "return l.parted && err == nil && fence > l.fence && (!ok || forced < l.fence) &&\n\t\tl.term.cause() == nil",
			New:    `return err == nil && fence > l.fence && (!ok || forced < l.fence)`,
		},
		{
			Name: "unclear-release-is-stolen", Part: Answers, File: lease,
			Breaks: "takes a lock for stolen that it has released without an answer, once others have had it",
			Old:    `return l.parted && err == nil && fence > l.fence`,
			New:    `return l.parted && err == nil && fence < l.fence`,
		},
		{
			Name: "orphans-forgotten", Part: Answers, File: "lock/session.go",
			Breaks: "renews a lock for ever whose release has failed",
			Old:    "\t\ts.freeOrphans()\n",
			New:    "",
		},
		{
			Name: "doubted-nonce-let-go", Part: Answers, File: acquire,
			Breaks: "lets a session end, and a nonce be taken for a ghost's, that an acquisition is about to recognise",
			Old:    `defer func() { a.keep(s, a.nonce) }()`,
			New:    `defer s.unreserve(a.nonce)`,
		},
		{
			Name: "given-back-nonce-kept", Part: Answers, File: acquire,
			Breaks: "keeps a nonce for its own that it has given back",
			Old:    "\t\t\ta.abandon(ctx)\n\t\t}\n\t\ta.letGo()\n",
			New:    "\t\t\ta.abandon(ctx)\n\t\t}\n",
		},
		{
			Name: "own-nonce-not-told", Part: Answers, File: look,
			Breaks: "has a waiter wait for itself that the row names already",
			Old:    `if c.holder.Held() && r.recognise(c) {`,
			New:    `if false && r.recognise(c) {`,
		},
		{
			Name: "own-fixed-nonce-not-told", Part: Answers, File: look,
			Breaks: "has a waiter for a lease of its own wait for itself",
			Old:    `if c.holder.Held() && r.recognise(c) {`,
			New:    `if c.holder.Session != "" && r.recognise(c) {`,
		},
		{
			Name: "ended-session-recognised", Part: Answers, File: acquire,
			Breaks: "grants a lock that was taken under a session which has ended since",
			Old:    `if s != nil && !isString(failed.Item[attrSession], s.id) {`,
			New:    `if s == nil && !isString(failed.Item[attrSession], "") {`,
		},
		{
			Name: "row-made-without-the-time", Part: Answers, File: acquire,
			Breaks: "makes a row before it knows DynamoDB's time, and corrects its fence later",
			Old:    `g.existing = !verified && !a.blind; !verified && a.blind {`,
			New:    `g.existing = false; !verified {`,
		},
		{
			Name: "question-taken-back", Part: Answers, File: "lock/session.go",
			Breaks: "takes a question back unanswered that was asked again meanwhile",
			Old:    `done := s.answer(again)`,
			New:    `done := again`,
		},
		{
			Name: "question-answered-once", Part: Answers, File: "lock/session.go",
			Breaks: "forgets a question that was asked again where the answer could not be sent",
			Old:    `again = slices.DeleteFunc(again, func(q string) bool { return slices.Contains(done, q) })`,
			New:    `again = slices.DeleteFunc(again, func(string) bool { return done != nil || true })`,
		},
		{
			Name: "vain-release-forgotten", Part: Answers, File: lease,
			Breaks: "holds a lock for ever whose release has waited for a write in vain",
			Old:    "\t\tl.orphan(false)\n",
			New:    "",
		},
		{
			Name: "vain-release-cuts-writes", Part: Answers, File: lease,
			Breaks: "frees a lock under a guarded write, for which its release has waited in vain",
			Old:    `l.orphan(false)`,
			New:    `l.orphan(true)`,
		},
		{
			Name: "heir-from-the-release", Part: Answers, File: "lock/parting.go",
			Breaks: "counts an heir's lease from the release that finds it handed over already",
			Old:    `p.start, p.handed = by.instant, by.handed`,
			New:    `p.handed = by.handed`,
		},
		{
			Name: "held-unseen", Part: Answers, File: question,
			Breaks: "answers that a lock is held without looking whether a late request has taken it since",
			Old:    `case i < len(items) && q.lease.isOvertaken(items[i]):`,
			New:    `case i > len(items) && q.lease.isOvertaken(items[i]):`,
		},
		{
			Name: "abandoned-left-behind", Part: Answers, File: acquire,
			Breaks: "leaves a lock behind that a cancelled acquisition may have taken",
			Old:    `a.client.work.Go(func() { a.takeBack(ctx, nonce) }) // which Close waits for`,
			New:    `_ = nonce`,
		},
		{
			Name: "abandoned-under-an-ended-context", Part: Answers, File: acquire,
			Breaks: "takes a cancelled acquisition back under the context that was cancelled",
			Old:    "\tctx, cancel := a.client.clock.detached(ctx)\n",
			New:    "\tctx, cancel := context.WithCancel(ctx)\n",
		},
		{
			Name: "ghost-not-asked-about", Part: Answers, File: look,
			Breaks: "waits for ever for a holder whom nobody knows",
			Old:    `r.ask(dubious)`,
			New:    `_ = dubious`,
		},
		{
			Name: "ask-set-ignored", Part: Answers, File: "lock/session.go",
			Breaks: "renews without looking at what others ask",
			Old:    `handled = s.answer(ask)`,
			New:    `_, handled = ask, nil`,
		},
		{
			Name: "ask-set-kept", Part: Answers, File: "lock/session.go",
			Breaks: "never takes a question back that was answered, until the set is full",
			Old:    `table.Attr(attrAsk).DeleteFrom(stringSet(handled))`,
			New:    `table.Attr(attrAsk).DeleteFrom(stringSet([]string{"-"}))`,
		},
		{
			Name: "ghost-that-is-held", Part: Answers, File: question,
			Breaks: "frees a row that it was asked about, although it holds it",
			Old:    `case !known && (q.kind == askOwned || q.kind == askRelease):`,
			New:    `case q.kind == askOwned || !known && q.kind == askRelease:`,
		},
		{
			Name: "ghost-that-is-being-acquired", Part: Answers, File: "lock/session.go",
			Breaks: "takes an acquisition under way for a ghost",
			Old:    `return nil, s.trying[nonce]+s.waiting[nonce] > 0`,
			New:    `return nil, false`,
		},
		{
			Name: "ghost-that-is-waited-for", Part: Answers, File: "lock/session.go",
			Breaks: "takes a waiter whose refused attempt has come in once more for a ghost",
			Old:    `return nil, s.trying[nonce]+s.waiting[nonce] > 0`,
			New:    `return nil, s.trying[nonce] > 0`,
		},
		{
			Name: "own-ghost-kept", Part: Answers, File: acquire,
			Breaks: "waits for a ghost of its own session, whom nobody else would free",
			Old:    `if !reclaimed && c.isGhost(s, &r) {`,
			New:    `if reclaimed && c.isGhost(s, &r) {`,
		},
		{
			Name: "late-edit-counts", Part: Answers, File: row,
			Breaks: "lets a late duplicate of an earlier SetData replace a later one's payload",
			Old:    `fence.Equal(table.Param(3)), table.Or(edits.NotExists(), edits.Less(table.Param(1)))))`,
			New:    `fence.Equal(table.Param(3))))`,
		},
		{
			Name: "conflict-is-lost", Part: Answers, File: "table/write.go",
			Breaks: "takes a transaction conflict for a failed condition, and so for a lost lock",
			Old:    `if deref(reason.Code) == "ConditionalCheckFailed" && i < len(list) {`,
			New:    `if code := deref(reason.Code); (code == "ConditionalCheckFailed" || code == "TransactionConflict") && i < len(list) {`,
		},
		{
			Name: "conflict-not-repeated", Part: Answers, File: "table/retry.go",
			Breaks: "gives up at a transaction conflict",
			Old:    `if errors.Is(kind, ErrConflict) || errors.Is(kind, ErrThrottled) {`,
			New:    `if errors.Is(kind, ErrThrottled) {`,
		},
		{
			Name: "token-per-attempt", Part: Answers, File: "table/write.go",
			Breaks: "gives each attempt at a transaction a token of its own",
			Old:    "\t\tout, err := t.client.TransactWriteItems(ctx, in, once)\n",
			New:    "\t\ttoken = t.newToken()\n\t\tout, err := t.client.TransactWriteItems(ctx, in, once)\n",
		},
	}
}
