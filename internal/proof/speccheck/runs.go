package speccheck

// The models.
const (
	oneLock  = "lock.pml"
	twoLocks = "two-locks.pml"
	permits  = "permits.pml"
	shared   = "shared.pml"
	fixed    = "fixed.pml"
	session  = "session.pml"
	rowLife  = "row-life.pml"
)

// Runs returns all runs, first those that hold. Bounds that a run does not name are the model's.
func Runs() []Run {
	return []Run{
		// The protocol as it is.
		{Name: "three clients", Model: oneLock},
		{Name: "force", Model: oneLock, Bounds: []string{"FORCES 1", "GIVE_UPS 0"}},
		{Name: "pass", Model: oneLock, Bounds: []string{"TICKETS 2", "GIVE_UPS 0"}},
		{Name: "crash, lobby", Model: oneLock, Bounds: []string{"CRASHES 1", "CAP 2"}},
		{Name: "try", Model: oneLock, Bounds: []string{"TRIES(c) ((c) == 0)"}},
		{Name: "waiters that leave", Model: oneLock, Bounds: []string{"CLIENTS 2", "TICKETS 3"}},
		{Name: "two late copies", Model: oneLock, Bounds: []string{"CLIENTS 2", "LATE 2", "MARKS 2", "WRITES 2"}},
		{Name: "commit and pass", Model: oneLock, Bounds: []string{"CLIENTS 2", "TICKETS 2", "COMMITS true"}},
		{Name: "tokens end", Model: oneLock, Bounds: []string{"CLIENTS 2", "WRITES 2", "COMMITS true", "TOKENS_END"}},
		{Name: "two forces", Model: oneLock, Bounds: []string{"CLIENTS 2", "TICKETS 2", "FORCES 2"}},

		{Name: "two locks", Model: twoLocks, Bounds: []string{"FORCES 1"}},
		{Name: "two locks, three want both", Model: twoLocks, Bounds: []string{"WANTS(c) BOTH", "GIVE_UPS 1"}},
		{Name: "two locks, lobby", Model: twoLocks, Bounds: []string{"CAP 2", "CRASHES 1"}},

		{Name: "permits", Model: permits},
		{Name: "permits, two late copies", Model: permits, Bounds: []string{"LATE 2", "GIVE_UPS 0"}},
		{Name: "permits that are changed", Model: permits, Bounds: []string{"CHANGES 2", "GIVE_UPS 0"}},
		{Name: "permits, force", Model: permits, Bounds: []string{"FORCES 2", "GIVE_UPS 0", "MARKS 0"}},
		{Name: "permits, two tickets", Model: permits, Bounds: []string{"CLIENTS 2", "TICKETS 2", "PERMITS 1"}},
		{Name: "permits, one is kept for good", Model: permits, Bounds: []string{"KEEPS(c) ((c) == 1)", "CRASHES 1", "GIVE_UPS 0"}},

		{Name: "shared leases", Model: shared},
		{Name: "shared leases, two late copies", Model: shared, Bounds: []string{"LATE 2", "GIVE_UPS 0"}},
		{Name: "shared leases, two writers", Model: shared, Bounds: []string{"WRITES_ALONE(c) ((c) != 1)"}},
		{Name: "shared leases, force", Model: shared, Bounds: []string{"FORCES 2", "MARKS 0", "GIVE_UPS 0"}},
		{Name: "shared leases, crash", Model: shared, Bounds: []string{"CRASHES 1", "GIVE_UPS 0", "MARKS 0"}},

		{Name: "fixed leases", Model: fixed},
		{Name: "fixed leases, late copies", Model: fixed, Bounds: []string{"LATE 2", "WRITES 1"}},
		{Name: "fixed leases, longer", Model: fixed, Bounds: []string{"LENGTH 4", "END 9", "WRITES 0"}},
		{Name: "fixed leases, three clients", Model: fixed, Bounds: []string{"CLIENTS 3", "RENEWALS 1", "WRITES 1", "LATE 0"}},
		{Name: "session", Model: session},
		{Name: "life of the row", Model: rowLife},

		// The same with larger bounds.
		{Name: "force and give up", Model: oneLock, Bounds: []string{"FORCES 1"}, Deep: true},
		{Name: "pass and give up", Model: oneLock, Bounds: []string{"TICKETS 2"}, Deep: true},
		{Name: "numbered writes", Model: oneLock, Bounds: []string{"WRITES 2"}, Deep: true},
		{Name: "commit", Model: oneLock, Bounds: []string{"COMMITS true"}, Deep: true},
		{Name: "late copies across passes", Model: oneLock, Bounds: []string{"CLIENTS 2", "TICKETS 2", "LATE 2", "WRITES 2"}, Deep: true},
		{Name: "two locks, force and give up", Model: twoLocks, Bounds: []string{"FORCES 1", "GIVE_UPS 1"}, Deep: true},

		// Negative twins: conditions of the requests.
		{
			Name: "guard without fence", Model: oneLock, Bounds: []string{"CLIENTS 2"},
			Rules:  []string{"guard(t, f) (line[0] == (t))"},
			Breaks: "a guarded write is based on the last one",
		},
		{
			Name: "release without fence", Model: oneLock, Bounds: []string{"CLIENTS 2"},
			Rules:  []string{"may_release(t, f) (line[0] == (t))"},
			Breaks: "what is told as released was released",
		},
		{
			Name: "enter without NOT contains", Model: oneLock, Bounds: []string{"CLIENTS 2"},
			Rules:  []string{"may_enter(t) (!full)"},
			Breaks: "a ticket that is told as released is gone",
		},
		{
			Name: "evict without condition", Model: oneLock, Bounds: []string{"CLIENTS 2"},
			Rules:  []string{"may_evict(t, f) (line[0] != NOBODY)"},
			Breaks: "only the dead are evicted",
		},
		{
			Name: "leave the first place without fence", Model: oneLock, Bounds: []string{"CLIENTS 2"},
			Rules:  []string{"leave_first(t, f) send(LEAVE, t, 0, 0, 0)"},
			Breaks: "one holder per fence",
		},
		{
			Name: "evict another place without condition", Model: oneLock, Bounds: []string{"CLIENTS 2", "TICKETS 2"},
			Rules:  []string{"may_evict_beside(x, other) (line[x] != NOBODY)"},
			Breaks: "only the dead are evicted",
		},
		{
			Name: "replace the dead without fence", Model: oneLock, Bounds: []string{"CLIENTS 2", "TRIES(c) ((c) == 0)"},
			Rules:  []string{"may_replace(t, f) (line[0] != NOBODY && line[1] == NOBODY)"},
			Breaks: "what is told as released was released",
		},
		{
			Name: "replace the dead although others wait", Model: oneLock, Bounds: []string{"TRIES(c) ((c) == 0)"},
			Rules:  []string{"may_replace(t, f) holds(t, f)"},
			Breaks: "nobody is overtaken by a client that does not wait",
		},
		{
			Name: "leave a place whoever stands there", Model: oneLock,
			Rules:  []string{"may_leave(t, x) (line[x] != NOBODY)"},
			Breaks: "only the own place is left",
		},
		{
			Name: "writes without numbers [3]", Model: oneLock, Bounds: []string{"CLIENTS 2", "WRITES 2"},
			Rules:  []string{"is_next_write(n) true"},
			Breaks: "the writes of a lease are applied in their order",
		},
		{
			Name: "numbers that outlive a lease", Model: oneLock, Bounds: []string{"CLIENTS 2", "TICKETS 2"},
			Rules:  []string{"forget_writes skip"},
			Breaks: "an acknowledged write was applied",
		},

		// How answers are judged.
		{
			Name: "release judged without the session", Model: oneLock, Bounds: []string{"CLIENTS 2"},
			Rules:  []string{"is_alive_after true"},
			Breaks: "what is told as released was released",
		},
		{
			Name: "release judged by the session before", Model: oneLock, Bounds: []string{"CLIENTS 2"},
			Rules:  []string{"is_alive_after true", "in_doubt (!dead[c])"},
			Breaks: "what is told as released was released",
		},
		{
			Name: "release judged by its own force alone [1]", Model: oneLock, Bounds: []string{"CLIENTS 2", "FORCES 2"},
			Rules:  []string{"was_forced(f) (forced == (f))"},
			Breaks: "what is told as released was released",
		},
		{
			Name: "target of a pass in doubt forgotten [2]", Model: oneLock, Bounds: []string{"CLIENTS 2", "TICKETS 2"},
			Rules:  []string{"is_target(t) false"},
			Breaks: "nobody is left behind by a release",
		},
		{
			Name: "pass judged by the fence", Model: oneLock, Bounds: []string{"CLIENTS 2", "TICKETS 2"},
			Rules:  []string{"was_passed(f) (fence > (f))"},
			Breaks: "what is told as passed was passed",
		},
		{
			Name: "commit judged by the fence [7]", Model: oneLock, Bounds: []string{"CLIENTS 2", "COMMITS true"},
			Rules:  []string{"was_committed (answer == APPLIED || was_released(f))"},
			Breaks: "an acknowledged commit was applied",
		},
		{
			Name: "write tried again under another token", Model: oneLock, Bounds: []string{"CLIENTS 2"},
			Rules:  []string{"is_remembered(t, n) false", "shows_write(f, n) false"},
			Breaks: "a write that is told as refused was not applied",
		},
		{
			Name: "commit tried again under another token", Model: oneLock, Bounds: []string{"CLIENTS 2", "COMMITS true"},
			Rules:  []string{"is_remembered(t, n) false"},
			Breaks: "a commit that is told as refused was not applied",
		},
		{
			Name: "lost answer taken for a refusal", Model: oneLock, Bounds: []string{"CLIENTS 2"},
			Rules:  []string{"in_doubt false"},
			Breaks: "a release that was applied is not told as lost",
		},
		{
			Name: "refusal by an older number taken for a loss", Model: oneLock, Bounds: []string{"CLIENTS 2", "TICKETS 2"},
			Rules:  []string{"forget_writes skip", "shows_write(f, n) false"},
			Breaks: "a lock that is told as lost is not held",
		},

		// Who waits, and for whom.
		{
			Name: "passes without limit", Model: oneLock, Bounds: []string{"CLIENTS 2", "TICKETS 3", "MARKS 0"},
			Rules:  []string{"may_pass true"},
			Breaks: "a waiter is overtaken by HANDOFFS passes at most",
		},
		{
			Name: "ghosts stay", Model: oneLock, Bounds: []string{"CLIENTS 2"},
			Rules:  []string{"removes_ghosts false"},
			Breaks: Stuck,
		},
		{
			Name: "only who is in line evicts", Model: oneLock, Bounds: []string{"CLIENTS 2", "CAP 1", "CRASHES 1"},
			Rules:  []string{"sees_to_the_first entered"},
			Breaks: Stuck,
		},

		{
			Name: "two locks entered one by one", Model: twoLocks, Bounds: []string{"CLIENTS 2"},
			Rules: []string{
				"enters (stands(0, t) -> LOCK_1 : (stands(1, t) -> LOCK_0 : c + 1))", // each client begins with another lock
				"when_a_place_is_missing enter",
			},
			Breaks: Stuck,
		},
		{
			Name: "lost place entered again alone [4]", Model: twoLocks, Bounds: []string{"CLIENTS 2", "FORCES 1"},
			Rules: []string{
				"enters (stands(0, t) -> LOCK_1 : (stands(1, t) -> LOCK_0 : BOTH))",
				"when_a_place_is_missing enter",
			},
			Breaks: Stuck,
		},
		{
			Name: "two locks, one of them waited for in memory [4]", Model: twoLocks, Bounds: []string{"CLIENTS 1", "WAITS_IN_MEMORY"},
			Breaks: Stuck,
		},
		{
			Name: "write under two locks with one guard", Model: twoLocks, Bounds: []string{"CLIENTS 2", "WANTS(c) ((c) == 1 -> LOCK_1 : BOTH)"},
			Rules:  []string{"guard(x, f) (x == 1 || holds(x, t, f))"},
			Breaks: "a guarded write is based on the last one",
		},
		{
			Name: "two locks, ghosts stay", Model: twoLocks, Bounds: []string{"CLIENTS 2"},
			Rules:  []string{"removes_ghosts false"},
			Breaks: Stuck,
		},
		{
			Name: "two locks, only who is in line evicts", Model: twoLocks, Bounds: []string{"CLIENTS 2", "CAP 1", "CRASHES 1"},
			Rules:  []string{"sees_to_the_first entered"},
			Breaks: Stuck,
		},
		{
			Name: "two locks, evict without condition", Model: twoLocks, Bounds: []string{"CLIENTS 2"},
			Rules:  []string{"may_evict(x, t, f) (first(x) != NOBODY)"},
			Breaks: "only the dead are evicted",
		},

		// Permits.
		{
			Name: "permit guarded by its ticket alone [5]", Model: permits,
			Rules:  []string{"guard(t, k) among_the_first(t)"},
			Breaks: "a permit that was given to others writes no more",
		},
		{
			Name: "permit guarded by its ticket and its session", Model: permits, Bounds: []string{"LATE 2", "MARKS 0"},
			Rules:  []string{"guard(t, k) (among_the_first(t) && !dead[owner(t)])"},
			Breaks: "a permit that was given to others writes no more",
		},
		{
			Name: "permit guarded by its place", Model: permits, Bounds: []string{"CHANGES 1", "MARKS 0"},
			Rules:  []string{"guard(t, k) (stays(k) && among_the_first(t))"},
			Breaks: "a permit that is told as lost is not held",
		},
		{
			Name: "permit held by the number that its client knew", Model: permits, Bounds: []string{"CHANGES 1"},
			Rules:  []string{"holds(t) (place(t) < PERMITS)"},
			Breaks: "only the first n write",
		},
		{
			Name: "permit left at a place, whoever stands there", Model: permits,
			Rules:  []string{"may_leave(t, k, p) (line[p] != NOBODY)"},
			Breaks: "only the own place is left",
		},
		{
			Name: "permit left by its ticket alone", Model: permits, Bounds: []string{"LATE 2"},
			Rules:  []string{"may_leave(t, k, p) (line[p] == (t))"},
			Breaks: "what is told as released was released",
		},
		{
			Name: "permits, evict at a place, whoever stands there", Model: permits,
			Rules:  []string{"may_evict(t, k, p) (line[p] != NOBODY)"},
			Breaks: "only the dead are evicted",
		},
		{
			Name: "permits, release judged without the session", Model: permits,
			Rules:  []string{"is_alive_after true"},
			Breaks: "what is told as released was released",
		},
		{
			Name: "permits, release judged by its own force alone [1]", Model: permits, Bounds: []string{"FORCES 2"},
			Rules:  []string{"was_forced(k) (forced == (k) + 1)"},
			Breaks: "what is told as released was released",
		},
		{
			Name: "permits, lost answer taken for a refusal", Model: permits,
			Rules:  []string{"in_doubt false"},
			Breaks: "a release that was applied is not told as lost",
		},
		{
			Name: "permits, enter without NOT contains", Model: permits,
			Rules:  []string{"may_enter(t) (!full)"},
			Breaks: "a permit that was given to others writes no more",
		},
		{
			Name: "permits, ghosts stay", Model: permits, Bounds: []string{"PERMITS 1"},
			Rules:  []string{"removes_ghosts false"},
			Breaks: Stuck,
		},
		{
			Name: "permits, only the first holder is seen to", Model: permits, Bounds: []string{"KEEPS(c) ((c) == 1)", "CRASHES 1", "GIVE_UPS 0"},
			Rules:  []string{"sees_to(p) ((p) == 0)"},
			Breaks: Stuck,
		},

		// Shared leases.
		{
			Name: "reader guarded without fence [6]", Model: shared,
			Rules:  []string{"guard(t, f) (exclusive(t) -> (line[0] == (t) && fence == (f)) : stands(t))"},
			Breaks: "no other writer has held since a lease that writes was granted",
		},
		{
			Name: "writer guarded without fence", Model: shared, Bounds: []string{"WRITES_ALONE(c) ((c) != 1)"},
			Rules:  []string{"guard(t, f) (exclusive(t) -> line[0] == (t) : (stands(t) && fence == (f)))"},
			Breaks: "no other writer has held since a lease that writes was granted",
		},
		{
			Name: "last reader before a writer that does not raise the fence [6]", Model: shared,
			Rules:  []string{"raises_fence(t, next_is_shared) exclusive(t)"},
			Breaks: "no other writer has held since a lease that writes was granted",
		},
		{
			Name: "eviction of the last reader that does not raise the fence [6]", Model: shared,
			Rules:  []string{"eviction_raises_fence(t, next_is_shared) exclusive(t)"},
			Breaks: "no other writer has held since a lease that writes was granted",
		},
		{
			Name: "reader that leaves before another one, whatever comes next [6]", Model: shared,
			Rules:  []string{"is_as_seen(t, f, next_is_shared) (line[0] == (t) && (exclusive(t) -> fence == (f) : ((next_is_shared) || !is_shared(line[1]))))"},
			Breaks: "no other writer has held since a lease that writes was granted",
		},
		{
			Name: "last reader that leaves, whatever comes next", Model: shared,
			Rules:  []string{"is_as_seen(t, f, next_is_shared) (line[0] == (t) && (exclusive(t) -> fence == (f) : (!(next_is_shared) || is_shared(line[1]))))"},
			Breaks: "a lease that is told as lost is not held",
		},
		{
			Name: "fence that every reader raises", Model: shared,
			Rules:  []string{"raises_fence(t, next_is_shared) true"},
			Breaks: "a lease that is told as lost is not held",
		},
		{
			Name: "shared lease left at a place, whoever stands there", Model: shared,
			Rules:  []string{"may_leave(t, p) (line[p] != NOBODY)"},
			Breaks: "only the own place is left",
		},
		{
			Name: "reader that meets its ghost takes it for its lease", Model: shared, Bounds: []string{"LATE 2", "GIVE_UPS 0"},
			Rules:  []string{"is_released true"},
			Breaks: "what is told as released was released",
		},
		{
			Name: "shared leases, release judged without the session", Model: shared,
			Rules:  []string{"is_alive_after true"},
			Breaks: "what is told as released was released",
		},
		{
			Name: "shared leases, release judged by its own force alone [1]", Model: shared, Bounds: []string{"FORCES 2"},
			Rules:  []string{"was_forced(f) (forced == (f))"},
			Breaks: "what is told as released was released",
		},
		{
			Name: "shared leases, lost answer taken for a refusal", Model: shared,
			Rules:  []string{"in_doubt false"},
			Breaks: "a release that was applied is not told as lost",
		},
		{
			Name: "shared leases, enter without NOT contains", Model: shared,
			Rules:  []string{"may_enter(t) (!full)"},
			Breaks: "a ticket that is told as released is gone",
		},
		{
			Name: "shared leases, ghosts stay", Model: shared, Bounds: []string{"MARKS 0"},
			Rules:  []string{"removes_ghosts false"},
			Breaks: Stuck,
		},
		{
			Name: "shared leases, the dead stay", Model: shared, Bounds: []string{"CRASHES 1", "MARKS 0"},
			Rules:  []string{"sees_to(p) false"},
			Breaks: Stuck,
		},

		// Fixed leases, sessions, and the life of the row.
		{
			Name: "enter of a fixed ticket without NOT contains", Model: fixed,
			Rules:  []string{"may_enter(t) true"},
			Breaks: "no ticket is in the line twice",
		},
		{
			Name: "evict a lease that was renewed", Model: fixed, Bounds: []string{"CLIENTS 3", "RENEWALS 1", "WRITES 1", "LATE 0"},
			Rules:  []string{"may_evict(t, f, x) holds(t, f)"},
			Breaks: "who is evicted does not believe that it holds",
		},
		{
			Name: "fixed lease that ends by its stamp alone", Model: fixed,
			Rules:  []string{"end_of(t) (stamp(t) + LENGTH)"},
			Breaks: "who is evicted does not believe that it holds",
		},
		{
			Name: "renewal that sets the time back", Model: fixed, Bounds: []string{"LENGTH 3", "END 7", "WRITES 0"},
			Rules:  []string{"may_renew(t, f, x) holds(t, f)"},
			Breaks: "who is evicted does not believe that it holds",
		},
		{
			Name: "renewal with the time before", Model: fixed, Bounds: []string{"LENGTH 3", "END 7", "WRITES 0"},
			Rules:  []string{"next_stamp last"},
			Breaks: "who is evicted does not believe that it holds",
		},
		{
			Name: "fixed lease counted from the answer", Model: fixed, Bounds: []string{"LENGTH 4", "END 9", "WRITES 0"},
			Rules:  []string{"counted_from now"},
			Breaks: "who is evicted does not believe that it holds",
		},
		{
			Name: "renewal that removes the number of the last write", Model: fixed,
			Rules:  []string{"keep_writes writes = 0"},
			Breaks: "a guarded write is applied once",
		},
		{
			Name: "fixed lease released after its end", Model: fixed,
			Rules:  []string{"goes_on true"},
			Breaks: "what is told as released was released",
		},
		{
			Name: "fixed lease not renewed when first", Model: fixed, Bounds: []string{"CLIENTS 3", "LATE 0"},
			Rules:  []string{"renewed_when_first false"},
			Breaks: "who is evicted does not believe that it holds",
		},
		{
			Name: "renewal that sets the beat back [9]", Model: session,
			Rules:  []string{"may_renew(b) (!dead)"},
			Breaks: "a session that is marked dead has ended by its own clock",
		},
		{
			Name: "renewal tried again with the same beat", Model: session,
			Rules:  []string{"next_beat (b == answered -> b + 1 : b)"},
			Breaks: "a session that is marked dead has ended by its own clock",
		},
		{
			Name: "session marked whatever its beat", Model: session,
			Rules:  []string{"is_silent(b) true"},
			Breaks: "a session that is marked dead has ended by its own clock",
		},
		{
			Name: "session marked before its recorded end", Model: session,
			Rules:  []string{"has_ended (expires <= now + 1)"},
			Breaks: "a session that is marked dead has ended by its own clock",
		},
		{
			Name: "session counted from the answer", Model: session,
			Rules:  []string{"counted_from now"},
			Breaks: "a session that is marked dead has ended by its own clock",
		},
		{
			Name: "enter that outlives the row [8]", Model: rowLife,
			Rules:  []string{"is_valid(sent) true"},
			Breaks: "fences increase strictly",
		},
		{
			Name: "seed of the acquisition instead of the attempt", Model: rowLife,
			Rules:  []string{"seed(begun) (10 * (begun))"},
			Breaks: "fences increase strictly",
		},
		{
			Name: "deletion that nobody puts off [8]", Model: rowLife,
			Rules:  []string{"puts_off false"},
			Breaks: "a row in use is not deleted",
		},
	}
}
