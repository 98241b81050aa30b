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
// are late by up to 50 µs that the seed decides, so that those of one process hardly
// ever meet, and what is random depends on the seed, the process and the instant, not on who
// asks first.
//
// # What a world can do
//
// See Profile for what happens to requests, Clock for what is wrong with clocks, and Process
// for pauses, suspensions, crashes and partitions. World.At does the rest.
//
// Deletion by time to live strikes what has expired. Worlds last minutes and retention is a
// day at least: where a profile has sweeps, a world begins with rows of long ago (released,
// or held by the dead), which are deleted while their locks are acquired again. In the
// workload named deletion locks are idle and held for days instead. It alone restores the
// table from backups, in the worlds of every third seed.
//
// What is counted as a fault, and what the history says beside a request, has happened to it:
// a fault that another one keeps from happening is not drawn.
//
// # How to look at a run
//
// The history consists of events (Event), each of a kind: who waits, holds, writes, releases,
// is stopped, crashes. Workers tell what they do by Worker.Waits, GivesUp, Holds, Writes and
// Releases, and the rest by Note. A Picture draws who held what when.
//
//	go run ./internal/proof/sim/cmd/replay -seed 4     # one world, in a picture and in words
//	go run ./internal/proof/sim/cmd/sim -seeds 100000  # many, on all cores; make sim SEEDS=100000
package sim
