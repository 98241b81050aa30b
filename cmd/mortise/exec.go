package main

import (
	"errors"
	"flag"
	"fmt"
	"strconv"
	"time"

	"github.com/mortise-go/mortise/lock"
)

func execCommand() command {
	return command{
		name: "exec", operands: "NAME -- CMD [ARGS…]", least: 1, most: 1, locks: true, ownCommand: true, ownSignals: true,
		text: "run a command under a lock",
		more: `Waits for the lock, runs CMD, and gives the lock up. First come, first served, among all who want the lock with this program
or with package lock. CMD is a program with its arguments; for a pipe or a redirection use: -- sh -c '…'

The command
  has standard input, output and error of this program, other files that it was given, and a process group of its own. It gets
  every signal that this program gets. So do the programs that it starts, unless they leave the group. Those that it leaves
  behind in the group when it ends are ended, too, before the lock is given up: SIGTERM, and SIGKILL after --grace.
  finds in its environment
    MORTISE_LOCK      the lock's NAME, or PK and SK of --beside
    MORTISE_FENCE     a number that is greater for every later holder: a resource outside the table can refuse smaller ones
                      (with --permits it puts those that hold at once into no order)
    MORTISE_GUARD     the guard token with which mortise write writes only while the lock is held
    MORTISE_ENGINE, MORTISE_TABLE, MORTISE_SCHEME   so that mortise in it finds the same table. The file of --scheme is read
                      again, so it must not be a pipe then

If the lock is lost
  The lease of the lock is renewed every quarter of its length. If that fails until less than --grace is left of it, the command
  gets SIGTERM, and SIGKILL before the lease ends and another can hold the lock. If an operator takes the lock by force it gets
  SIGTERM within a quarter of the lease, and SIGKILL after --grace. A second process of this program watches over the first: if
  that is stopped or killed, the command is killed before the lease ends, or at once.
  If the holder is asked to give the lock up (mortise revoke) the command gets SIGTERM, and as long as it wants to end. The lock
  is held until then.

Signals while it waits end the waiting. A wait that ends without the lock leaves the line. If DynamoDB does not answer, that is
tried for one second more, also beyond --wait. A place that is left behind is passed when its lease ends. With --wait 0, DynamoDB
has 5 seconds to answer.
SIGTSTP (Ctrl-Z) stops command and program; a lock is lost that way when its lease ends.

Exit codes
  of the command; 128 + n where signal n has ended it, or the waiting
  75   the lock was not acquired within --wait, since another holds it
  76   the lock was lost, or may have been, before the command had ended
  125  another error, such as a wrong call, or no answer that tells whether another holds the lock
  126  CMD cannot be run
  127  CMD was not found

Examples
  mortise exec nightly --wait 0 -- ./report.sh       # or else exit with 75 at once
  mortise exec --beside TENANT#acme ORDER#42 -- ./settle.sh
  mortise exec try --engine demo -- sh -c 'echo "[{\"Put\": {\"Item\": {\"pk\": {\"S\": \"a\"}, \"sk\": {\"S\": \"b\"}}}}]" |
    mortise write - && mortise collection a'`,
		flags: func(f *flag.FlagSet, c *call) {
			f.Var(optional{&c.maxWait}, "wait", "wait no longer than `DURATION` for the lock, 0 for not at all (default: for ever)")
			f.Var(optional{&c.leaseLength}, "lease", "`DURATION` of the lease, after which the lock of a crashed holder is free (default: 20s, or that of the scheme)")
			f.Var(optional{&c.graceLength}, "grace", "`DURATION` between SIGTERM and the end of the lease (default: a quarter of the lease)")
			f.Func("permits", "one of `N` permits, 2 to 100, in place of a lock: N commands run at once; all have to name the same N", func(text string) error {
				n, err := strconv.Atoi(text)
				if err != nil {
					return errors.New("want a whole number")
				}
				c.permits = &n
				return nil
			})
			f.StringVar(&c.onLost, "on-lost", "", "when the lock is lost, also run `COMMAND` with sh -c, with the reason in MORTISE_LOST")
		},
		run: runExec,
	}
}

// optional is a flag for a duration. The flag may be left out, and the duration must not be negative.
type optional struct{ to **time.Duration }

func (optional) String() string { return "" }

func (o optional) Set(text string) error {
	d, err := duration(text)
	if err == nil {
		*o.to = &d
	}
	return err
}

func duration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, errors.New("want a duration with its unit, such as 30s")
	}
	return d, nil
}

// timing defines when a command is ended if its lock cannot be renewed.
type timing struct {
	lease  time.Duration
	grace  time.Duration // before the end of the lease: SIGTERM
	margin time.Duration // before the end of the lease: SIGKILL
	tick   time.Duration // between two checks of the lease
}

// timing computes the times for the lease in s, and checks --grace.
func (c *call) timing(s settings) (t timing, err error) {
	t.lease = s.locks.Lease
	t.margin, t.tick, t.grace = t.lease/20, min(t.lease/40, time.Second), t.lease/4
	if c.graceLength != nil {
		t.grace = *c.graceLength
	}
	if t.grace < 2*t.margin || t.grace > t.lease/2 {
		return t, usagef("--grace %v: want %v to %v with a lease of %v", t.grace, 2*t.margin, t.lease/2, t.lease)
	}
	return t, nil
}

// notAcquired returns the error for a wait that ended without the lock.
func notAcquired(name string, err error) error {
	var held *lock.HeldError
	if errors.As(err, &held) {
		return &exit{exitNotAcquired, fmt.Errorf("%s was not acquired: %w", name, held)}
	}
	return &exit{exitNotAcquired, fmt.Errorf("%s was not acquired: %w", name, err)}
}
