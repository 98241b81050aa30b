// Package lockrow is the row of a lock: what it says, the updates that change it, and what their
// answers mean. It is pure: it sends nothing, reads no clock and starts no goroutine.
//
// The row holds a line of tickets, in the order of their arrival. The first ticket holds the lock;
// a line that is empty or missing is free. The fence counts how often the first place has changed,
// from a seed: it is the fencing token of the ticket that is first.
//
//	update        change                                condition
//	Enter         append t to the line                  the row is new, or a lock with room in its line and without t
//	... IfFree    the same                              the row is new, or a lock with an empty line
//	Release       remove line[0], fence + 1             line[0] is t, and the fence is f
//	Pass          line[0] = t', fence + 1               line[0] is t, and the fence is f
//	Replace       line[0] = t', fence + 1               line[0] is a dead ticket, under fence f, and there is no other
//	Remove        remove line[i] and others             each is the ticket that was seen there; of line[0] as Release
//	Evict         remove line[0] and others, fence + 1  each is the dead ticket that was seen there, and the fence is f
//	Guard         none                                  line[0] is t, and the fence is f
//	GuardedWrite  writes = n                            line[0] is t, the fence is f, and writes is missing or less than n
//	Renew         renewed = ms                          line[0] is t, the fence is f, and renewed is missing or earlier
//
// Readers and permits hold together ([Kind]). All readers before the first writer hold; a reader that leaves as the last one raises
// the fence, and its request demands what was seen next. In a row of permits the first n tickets hold, and each ticket has the number
// of its stay in place of a fence:
//
//	Enter         append t, and the next stay           the row has n permits, and room in its line
//	Release       remove line[i] and its stay           line[i] is t, and its stay is k
//	Guard         none                                  of a reader: t is in the line, and the fence is f; of a permit: stay k is
//
// Every update names its ticket, and a refused one returns the row. So what has become of a request
// whose answer was lost can be read from the row that its repetition returns.
package lockrow
