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
	err = x.run() //nolint:contextcheck // the lease's context ends it
	switch released := x.giveUp(ctx); {
	case errors.Is(released, lock.ErrLost) && x.lost == nil: // also where this program has not heard of it yet
		return &exit{exitLost, fmt.Errorf("%s was lost before the command had ended", c.targetName())}
	case released != nil && !errors.Is(released, lock.ErrLost):
		c.say("the lock could not be given up: it is free when its lease ends: %s", c.explain(released))
	}
	return err
}

// giveUp releases the lock, also where ctx has ended. It tries for as long as the lease lasts: then the lock frees itself.
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

// signalled is the end of the program by a signal while it waits.
type signalled struct{ signal syscall.Signal }

func (s signalled) Error() string {
	return "ended by the signal " + s.signal.String() + " while it waited"
}

// acquire opens the table and waits for the lock. A signal ends that.
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
			default: // would end a program that does not know of it
				cancel(signalled{sig.(syscall.Signal)})
			}
		case err := <-done:
			var ended signalled
			if errors.As(context.Cause(ctx), &ended) { // also where the lock was acquired at that moment
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
	if x.lease, err = x.lock(ctx); err != nil {
		return errors.Join(err, x.store.close(ctx))
	}
	return nil
}

// lock acquires within --wait.
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
		lease, err = locks.TryAcquire(ctx, c.target(), opts...)
	default:
		bounded, cancel := context.WithTimeout(ctx, *c.maxWait)
		defer cancel()
		lease, err = locks.Acquire(bounded, c.target(), opts...)
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, notAcquired(c.targetName(), err)
		}
	}
	if errors.Is(err, lock.ErrHeld) && ctx.Err() == nil {
		return nil, notAcquired(c.targetName(), err)
	}
	return lease, err
}

// patience is how long somebody who looks at a terminal is left without a word.
const patience = 2 * time.Second

// announce tells people whom the program waits for, until stop is called.
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
	end      deadline    // shortly before the lease ends unless it is renewed: the command is dead by then
	lost     error       // why the lock is lost; nil while it is held
	revoked  bool        // the command was told that somebody wants the lock
	kill     deadline    // zero until the command is to be ended
	killed   bool        // SIGKILL was sent
	onLost   chan error  // gets how the command of --on-lost has ended; nil for none
	lostPID  int         // of that command, which leads a group
	leader   *exitStatus // how the command has ended; nil while it runs
}

// deadline is a moment by the wall clock and by the monotonic one. The monotonic clock stands still while the machine is
// suspended, and the wall clock can be set.
type deadline struct{ at time.Time }

func in(d time.Duration) deadline { return deadline{time.Now().Add(d)} }

func (d deadline) isZero() bool { return d.at.IsZero() }

// passed reports whether either clock has reached it.
func (d deadline) passed() bool {
	now := time.Now()
	return !d.isZero() && (!now.Before(d.at) || !now.Round(0).Before(d.at.Round(0)))
}

// earlier is the one that passes first.
func earlier(a, b deadline) deadline {
	if b.at.Before(a.at) {
		return b
	}
	return a
}

// run starts the command and returns when nothing is left of it.
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
	x.tellDog()
	if err := begin(); err != nil {
		x.say("the command was not started: %v", err)
	}
	defer x.group.takeTerminalBack()
	tick := time.NewTicker(x.tick)
	defer tick.Stop()
	over := x.lease.Context().Done()
	var settle <-chan time.Time // quick looks at a group whose command has ended
	for x.leader == nil || x.group.exists() {
		select {
		case sig := <-x.signals:
			x.forward(sig.(syscall.Signal))
		case change := <-x.group.changes:
			x.changed(change)
		case <-over:
			over = nil
		case <-tick.C:
		case <-settle:
		}
		x.look()
		if settle = nil; x.leader != nil {
			settle = time.After(settling)
		}
	}
	return x.result()
}

// settling is how long the last processes of a group are given between two looks.
const settling = 5 * time.Millisecond

// environment is that of the command.
func (x *execution) environment() ([]string, error) {
	found, err := x.store.inherited()
	if err != nil {
		return nil, err
	}
	return append(slices.Concat(x.environ, found),
		envLock+"="+x.targetName(), envFence+"="+strconv.FormatInt(x.lease.Fence(), 10), envGuard+"="+x.lease.GuardToken().String()), nil
}

// forward passes a signal on to the command and what it has started.
func (x *execution) forward(sig syscall.Signal) {
	x.group.signal(sig)
	if x.lostPID > 0 {
		_ = syscall.Kill(-x.lostPID, sig) // it may have ended
	}
}

// changed is told that the command has stopped or ended.
func (x *execution) changed(change exitStatus) {
	if !change.Stopped() {
		x.leader, x.group.ended = &change, true
		return
	}
	switch change.StopSignal() {
	case syscall.SIGTTIN, syscall.SIGTTOU: // it wants the terminal, which its group does not have
		x.group.giveTerminal()
	case syscall.SIGTSTP: // by Ctrl-Z: the shell that waits for this program is to hear of it
		x.group.takeTerminalBack()
		suspend()
	}
}

// look compares the lease with the clocks, and does what is due.
func (x *execution) look() {
	if x.lost == nil {
		x.lookAtLease()
	}
	if x.leader != nil && x.kill.isZero() { // it has left others behind
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

// lose ends the command: the lock is lost, or may be soon.
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

// terminate sends SIGTERM now, and SIGKILL at a moment.
func (x *execution) terminate(kill deadline) {
	if x.kill.isZero() {
		x.kill = kill
		x.group.signal(syscall.SIGTERM)
	}
	x.kill = earlier(x.kill, kill)
}

// runOnLost starts the command of --on-lost. It has as long as it needs.
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

// result is what the end of the command means. It waits for the command of --on-lost.
func (x *execution) result() error {
	for x.onLost != nil {
		select {
		case sig := <-x.signals:
			_ = syscall.Kill(-x.lostPID, sig.(syscall.Signal)) // it may have ended
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

// tellDog tells the watchdog which group it watches over, and until when.
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
