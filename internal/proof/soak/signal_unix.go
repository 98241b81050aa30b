//go:build unix

package soak

import (
	"fmt"
	"syscall"
)

// stop suspends the process, and resume lets it continue.
func (p *process) stop() error   { return p.signal(syscall.SIGSTOP) }
func (p *process) resume() error { return p.signal(syscall.SIGCONT) }

// dump makes a hanging Go process print its goroutines and end.
func (p *process) dump() error { return p.signal(syscall.SIGQUIT) }

func (p *process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("soak: worker: %v: %w", s, err)
	}
	return nil
}
