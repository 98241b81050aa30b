// Package lockrow describes the row of a lock: its attributes, the updates that change it, and the meaning of their answers. It is pure:
// it sends nothing, reads no clock and starts no goroutine.
//
// The row holds a line of tickets, in the order of their arrival. The first ticket holds the lock. If the line is empty or missing, the
// lock is free. The fence is the fencing token of the first ticket. It begins with a seed, and increases by 1 when the first ticket
// leaves or is replaced. Below, t is the caller's ticket, t' another one, and f its fence:
//
//	update        change                                condition
//	Enter         append t to the line                  the row is new, or a lock with room in its line and without t
//	... IfFree    the same                              the row is new, or a lock with an empty line
//	Release       remove line[0], fence + 1             line[0] is t, and the fence is f
//	Pass          line[0] = t', fence + 1               line[0] is t, and the fence is f
//	Replace       line[0] = t', fence + 1               line[0] is a dead ticket, the fence is f, and the line has no other ticket
//	Remove        remove line[i]                        line[i] is the ticket that was seen there; if i is 0, as for Release
//	Evict         remove line[0] and others, fence + 1  each is the dead ticket that was seen there, and the fence is f
//	Guard         none                                  line[0] is t, and the fence is f
//	GuardedWrite  writes = n                            line[0] is t, the fence is f, and writes is missing or less than n
//	Renew         renewed = ms                          line[0] is t, the fence is f, and renewed is missing or earlier
//
// Readers hold together, and so do permits ([Kind]). All readers before the first writer hold. Their guard is that t is in the line,
// under fence f. The fence increases when the last of them leaves, so a reader that leaves the first place demands that the next ticket
// still is, or is not, a reader's. With n permits the first n tickets hold, each with the number of its stay, k, in place of a fence:
//
//	Enter         append t, and the next stay           the row is new, or has n permits, room in its line, and not t
//	Release       remove line[i] and its stay           line[i] is t, and its stay is k
//	Guard         none                                  t is in the line, and k is one of the stays
//
// Every update names its ticket, and a refusal returns the row. So if an answer was lost, the client repeats the request, and the row in
// the refusal shows whether the first attempt was applied ([Row.Released] has the exceptions).
package lockrow
