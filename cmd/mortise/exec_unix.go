//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mortise-go/mortise/lock"
)

// runExec is the command exec.
func runExec(ctx context.Context, c *call) error {
	s, err := c.settings()
	if err != nil {
		return err
	}
	t, err := c.timing(s)
	if err != nil {
		return err
	}
	path, err := exec.LookPath(c.argv[0])
	if err != nil {
		return notStarted(err)
	}
	signals, stop := catchSignals()
	defer stop()
	x := &execution{call: c, timing: t, path: path, signals: signals}
	if err := x.acquire(ctx, s); err != nil {
		return err
	}
	if err = x.run(); err == nil { //nolint:contextcheck // the lease's context ends it
		err = x.result()
	}
	switch released := x.giveUp(ctx); {
	case errors.Is(released, lock.ErrLost) && x.lost == nil: // x.run has not noticed the loss
		return &exit{exitLost, fmt.Errorf("%s was lost before the command had ended", c.targetName())}
	case released != nil && !errors.Is(released, lock.ErrLost):
		c.say("the lock could not be given up: it is free when its lease ends: %s", c.explain(released))
	}
	return err
}

// giveUp releases the lock, even if ctx has ended. It tries at most 10 s, and not beyond the lease, after which the lock is free.
func (x *execution) giveUp(ctx context.Context) error {
	limit := min(closing, max(x.lease.Remaining(), x.tick))
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	return errors.Join(x.lease.Release(bounded), x.store.closeWithin(ctx, limit))
}

func notStarted(err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return &exit{exitNoCommand, err}
	}
	return &exit{exitNotRunnable, err}
}

// signalled is the error of a program that a signal has ended while it waited for the lock.
type signalled struct{ signal syscall.Signal }

func (s signalled) Error() string {
	return "ended by the signal " + s.signal.String() + " while it waited"
}

// acquire opens the table and waits for the lock. A signal ends the wait.
func (x *execution) acquire(ctx context.Context, s settings) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, 1)
	go func() { done <- x.open(ctx, s) }()
	for {
		select {
		case sig := <-x.signals:
			switch sig {
			case syscall.SIGTSTP:
				suspend()
			case syscall.SIGCONT, syscall.SIGWINCH:
			default: // these signals end a program by default
				cancel(signalled{sig.(syscall.Signal)})
			}
		case err := <-done:
			var ended signalled
			if errors.As(context.Cause(ctx), &ended) { // even if the lock was acquired at the same moment
				if err == nil {
					err = x.store.close(ctx)
				}
				return &exit{exitSignal + int(ended.signal), errors.Join(ended, unlessCanceled(err))}
			}
			return err
		}
	}
}

func unlessCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// open opens the table and acquires the lock.
func (x *execution) open(ctx context.Context, s settings) error {
	var err error
	if x.store, err = s.open(ctx, true); err != nil {
		return err
	}
	return x.enter(ctx)
}

// leaving bounds the time for leaving the line after a wait without success. A place that is left behind delays others by a lease at most.
const leaving = time.Second

// enter acquires the lock, or leaves the line.
func (x *execution) enter(ctx context.Context) (err error) {
	if x.lease, err = x.lock(ctx); err == nil {
		return nil
	}
	if left := x.store.closeWithin(ctx, leaving); left != nil {
		x.say("the place in the line could not be given up: others pass it when its lease ends: %s", x.explain(left))
	}
	return err
}

// answering is how long a try without waiting, --wait 0, may take. Requests are repeated for 10 s and more if there is no answer, which
// is no try any more.
const answering = 5 * time.Second

// lock acquires the lock, within --wait.
func (x *execution) lock(ctx context.Context) (lease *lock.Lease, err error) {
	c, locks := x.call, x.store.locks
	var opts []lock.Option
	if c.permits != nil {
		opts = append(opts, lock.Permits(*c.permits))
	}
	defer x.announce(ctx)()
	switch {
	case c.maxWait == nil:
		lease, err = locks.Acquire(ctx, c.target(), opts...)
	case *c.maxWait == 0:
		bounded, cancel := context.WithTimeout(ctx, answering)
		defer cancel()
		lease, err = locks.TryAcquire(bounded, c.target(), opts...)
		if err != nil && bounded.Err() != nil && ctx.Err() == nil && !errors.Is(err, lock.ErrHeld) {
			return nil, fmt.Errorf("no clear answer from DynamoDB within %v: %w", answering, err)
		}
	default:
		bounded, cancel := context.WithTimeout(ctx, *c.maxWait)
		defer cancel()
		lease, err = locks.Acquire(bounded, c.target(), opts...)
	}
	if errors.Is(err, lock.ErrHeld) && ctx.Err() == nil {
		return nil, notAcquired(c.targetName(), err)
	}
	return lease, err
}

// patience is how long the program waits for the lock before it prints to the terminal who holds it.
const patience = 2 * time.Second

// announce prints to the terminal, once after patience, who holds the lock. stop prevents that.
func (x *execution) announce(ctx context.Context) (stop func() bool) {
	if _, terminal := x.width(x.stderr); !terminal {
		return func() bool { return false }
	}
	return time.AfterFunc(patience, func() {
		if d, err := x.call.look(ctx, x.store, x.target()); err == nil && d.Held {
			x.say("waiting for %s: held by %s for %s, %d wait", x.targetName(), d.holder(), x.store.ago(d.Since), d.waiting())
		}
	}).Stop
}

// execution is one command that runs under a lock.
type execution struct {
	*call
	timing
	path    string
	signals <-chan os.Signal
	store   *store
	lease   *lock.Lease

	group    *group
	watchdog *dog
	end      deadline    // margin before the end of the lease: the command has to be dead by then
	lost     error       // why the lock is lost; nil while it is held
	revoked  bool        // the command got SIGTERM, since somebody has asked for the lock
	kill     deadline    // when to send SIGKILL; zero until terminate is called
	killed   bool        // SIGKILL was sent
	onLost   chan error  // gets the result of the command of --on-lost; nil if it does not run
	lostPID  int         // process ID of that command, which leads its own group; 0 if it was not started
	leader   *exitStatus // how the command has ended; nil while it runs
}

// deadline is a time by the wall clock and by the monotonic clock. It needs both: the monotonic clock stands still while the
// machine is suspended, and the wall clock can be set.
type deadline struct{ at time.Time }

func in(d time.Duration) deadline { return deadline{time.Now().Add(d)} }

func (d deadline) isZero() bool { return d.at.IsZero() }

// passed reports whether either clock has reached it.
func (d deadline) passed() bool {
	now := time.Now()
	return !d.isZero() && (!now.Before(d.at) || !now.Round(0).Before(d.at.Round(0)))
}

// earlier returns the deadline that passes first.
func earlier(a, b deadline) deadline {
	if b.at.Before(a.at) {
		return b
	}
	return a
}

// run starts the command. It returns when the command has ended and no process of its group is left: before the command of --on-lost is
// waited for, this program has the terminal again, and no watchdog has the number of a group that another can get.
func (x *execution) run() error {
	env, err := x.environment()
	if err != nil {
		return err
	}
	x.end = in(x.lease.Remaining() - x.margin)
	if x.watchdog, err = startDog(x.stderr); err != nil {
		return err
	}
	defer func() { x.watchdog.stop() }()
	var begin func() error
	if x.group, begin, err = startGroup(x.path, x.argv, env); err != nil {
		return err
	}
	if x.look(); x.lost == nil { // otherwise it has ended the starter: starting processes can have taken longer than the lease
		if err := begin(); err != nil {
			x.say("the command was not started: %v", err)
		}
	}
	defer x.group.takeTerminalBack()
	tick := time.NewTicker(x.tick)
	defer tick.Stop()
	over := x.lease.Context().Done()
	var settle <-chan time.Time // fires soon after the command has ended, to check whether its group is empty
	zombies := false            // SIGKILL was sent, and what is left of the group runs nothing
	for x.leader == nil || x.group.exists() && !zombies {
		select {
		case sig := <-x.signals:
			x.forward(sig.(syscall.Signal))
		case change := <-x.group.changes:
			x.changed(change)
		case <-over:
			over = nil
		case <-tick.C:
			zombies = x.killed && x.group.onlyZombies()
		case <-settle:
		}
		x.look()
		if settle = nil; x.leader != nil {
			settle = time.After(settling)
		}
	}
	return nil
}

// settling is the time between two checks whether a group is empty, after its command has ended.
const settling = 5 * time.Millisecond

// environment returns the environment of the command.
func (x *execution) environment() ([]string, error) {
	found, err := x.store.inherited()
	if err != nil {
		return nil, err
	}
	return append(slices.Concat(x.environ, found),
		envLock+"="+x.targetName(), envFence+"="+strconv.FormatInt(x.lease.Fence(), 10), envGuard+"="+x.lease.GuardToken().String()), nil
}

// forward sends a signal to the group of the command, and to the group of the --on-lost command.
func (x *execution) forward(sig syscall.Signal) {
	x.group.signal(sig)
	x.forwardOnLost(sig)
}

// forwardOnLost sends a signal to the group of the --on-lost command. If it is that of Ctrl-Z, this program stops, too, so that the shell has
// the terminal again. Before the command has ended, changed does that when the command stops.
func (x *execution) forwardOnLost(sig syscall.Signal) {
	if x.lostPID > 0 {
		_ = syscall.Kill(-x.lostPID, sig) // an error means that it has ended
	}
	if sig == syscall.SIGTSTP && x.leader != nil {
		suspend()
	}
}

// changed handles a command that has stopped or ended.
func (x *execution) changed(change exitStatus) {
	if !change.Stopped() {
		x.leader, x.group.ended = &change, true
		return
	}
	switch change.StopSignal() {
	case syscall.SIGTTIN, syscall.SIGTTOU: // the command uses the terminal, which its group does not have
		x.group.giveTerminal()
	case syscall.SIGTSTP: // by Ctrl-Z: this program stops, too, so that its shell notices
		x.group.takeTerminalBack()
		suspend()
	}
}

// look checks the lease and the deadlines, and sends the signals that are due.
func (x *execution) look() {
	if x.lost == nil {
		x.lookAtLease()
	}
	if x.leader != nil && x.kill.isZero() { // the command has ended: end what it may have left behind
		x.terminate(in(x.grace))
	}
	if x.kill.passed() && !x.killed {
		x.killed = true
		x.group.signal(syscall.SIGKILL)
	}
}

func (x *execution) lookAtLease() {
	left := x.lease.Remaining()
	cause := context.Cause(x.lease.Context())
	switch {
	case errors.Is(cause, lock.ErrLost):
		x.lose(cause)
	case left <= x.grace:
		x.lose(fmt.Errorf("it could not be renewed, and its lease ends in %v", left.Round(time.Millisecond)))
	default:
		x.end = in(left - x.margin)
		x.tellDog()
		if errors.Is(cause, lock.ErrRevoked) && !x.revoked {
			x.revoked = true
			x.say("somebody asks for %s: the command gets SIGTERM, and holds the lock until it has ended", x.targetName())
			x.group.signal(syscall.SIGTERM)
		}
	}
}

// lose ends the command, because the lock is lost or may soon be.
func (x *execution) lose(cause error) {
	x.lost = cause
	if x.leader == nil {
		x.say("%s is lost: %s: the command gets SIGTERM", x.targetName(), strings.TrimPrefix(cause.Error(), lock.ErrLost.Error()+": "))
	}
	x.terminate(earlier(in(x.grace), x.end))
	if x.call.onLost != "" {
		x.runOnLost(cause)
	}
}

// terminate sends SIGTERM, and sets the deadline for SIGKILL. A second call can only make the deadline earlier.
func (x *execution) terminate(kill deadline) {
	if x.kill.isZero() {
		x.kill = kill
		x.group.signal(syscall.SIGTERM)
	}
	x.kill = earlier(x.kill, kill)
}

// runOnLost starts the command of --on-lost. It may take as long as it needs.
func (x *execution) runOnLost(cause error) {
	cmd := &exec.Cmd{
		Path: "/bin/sh", Args: []string{"sh", "-c", x.call.onLost}, Stdout: os.Stdout, Stderr: os.Stderr,
		Env: append(slices.Clone(x.environ), envLock+"="+x.targetName(), envFence+"="+strconv.FormatInt(x.lease.Fence(), 10), envLost+"="+cause.Error()),
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		x.say("--on-lost: %v", err)
		return
	}
	x.lostPID, x.onLost = cmd.Process.Pid, make(chan error, 1)
	go func() { x.onLost <- cmd.Wait() }()
}

// result waits for the command of --on-lost. Then it returns the error with the exit code of the program.
func (x *execution) result() error {
	for x.onLost != nil {
		select {
		case sig := <-x.signals:
			x.forwardOnLost(sig.(syscall.Signal))
		case err := <-x.onLost:
			if x.onLost = nil; err != nil {
				x.say("--on-lost: %v", err)
			}
		}
	}
	switch {
	case x.lost != nil:
		return &exit{exitLost, fmt.Errorf("%s was lost before the command had ended", x.targetName())}
	case x.leader.Signaled():
		return &exit{exitSignal + int(x.leader.Signal()), nil}
	case x.leader.ExitStatus() != 0:
		return &exit{x.leader.ExitStatus(), nil}
	}
	return nil
}

// tellDog tells the watchdog which group to watch, and the group's deadline. If the watchdog is dead, it starts another.
func (x *execution) tellDog() {
	if x.watchdog.tell(x.group.id, x.end) == nil {
		return
	}
	next, err := startDog(x.stderr) // somebody has killed it
	if err == nil {
		x.watchdog.stop()
		x.watchdog = next
		err = next.tell(x.group.id, x.end)
	}
	if err != nil {
		x.say("nothing watches over this program: %v", err)
	}
}
