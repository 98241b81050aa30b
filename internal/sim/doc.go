// Package sim runs lock and entity code in a simulated world: real clients, the real SDK and
// the in-process engine, in virtual time, with faults that a seed decides. The same seed gives
// the same history, byte for byte, with and without the race detector.
//
// # How a run repeats itself
//
// Virtual time alone does not do it: goroutines that wake at the same instant run in any
// order. A world therefore lets one thing happen at a time. Requests do not go to the engine
// directly: they are handed to the network, a single goroutine, which waits until everybody
// else is blocked, puts what was handed in at this instant in order (by process and by what
// is asked for, not by arrival), decides by the seed what becomes of each, and then delivers
// one request, or one answer, after the other, waiting in between until its consequences have
// come to rest.
//
// Time, timers and chance of a process come from its own Machine (internal/machine): timers
// are late by some nanoseconds that the seed decides, so that those of one process hardly
// ever meet, and what is random depends on the seed, the process and the instant, not on who
// asks first.
//
// # What a world can do
//
// See Profile for what happens to requests, Clock for what is wrong with clocks, and Process
// for pauses, suspensions, crashes and partitions. World.At does the rest: deletion by time to
// live, restoring a backup, and whatever a test thinks of.
package sim
