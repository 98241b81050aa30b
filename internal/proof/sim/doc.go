// Package sim runs lock and entity code in a simulated world: real clients, the real SDK and the in-process engine,
// in virtual time, with faults that a seed decides. The same seed gives the same history, byte for byte, with and
// without the race detector.
//
// # Why a run can be repeated
//
// Virtual time alone is not enough: goroutines that wake at the same instant run in any order. So in a world one
// thing happens at a time. A request does not go to the engine directly. It goes to the network, which is a single
// goroutine:
//
//   - It waits until all other goroutines are blocked.
//   - It sorts the requests that were sent at this instant, by process and contents and not by arrival.
//   - It decides by the seed what happens to each request.
//   - It delivers one request or one answer at a time, and waits until all goroutines are blocked again.
//
// Each process has a Machine of its own (internal/machine) for time, timers and random values. A timer is late by up
// to 50 µs, which the seed decides, so two timers of one process hardly ever fire at the same instant. Random values
// depend on the seed, the process and the instant. They do not depend on which goroutine asks first.
//
// # What can go wrong
//
// Profile describes faults of requests, Clock describes wrong clocks, and Process has pauses, suspensions, crashes
// and partitions. World.At does anything else at a given moment.
//
// Deletion by time to live needs rows that have expired. A world lasts minutes, and the retention of a lock's row is
// a day at least. So if the profile has sweeps, the world begins with old rows: of locks that were released, or whose
// holders have died. They are deleted while their locks are acquired again. In the workload deletion, locks are idle
// and held for days instead. That workload also restores the table from backups, in every third world.
//
// A fault is counted, and shown in the history, only if it has really happened. A fault that another one prevents is
// not drawn at all.
//
// # How to look at a run
//
// The history is a list of events (Event), each of a kind: a worker waits, holds, writes or releases, or a process
// stops or crashes. A worker reports what it does by Worker.Waits, GivesUp, Holds, Writes and Releases, and anything
// else by Note. A Picture shows which client held which lock when.
//
//	go run ./internal/proof/sim/cmd/replay -seed 4     # one world, as a picture and as text
//	go run ./internal/proof/sim/cmd/sim -seeds 100000  # many worlds, on all cores; make sim SEEDS=100000
package sim
