//go:build unix

package tty

import "golang.org/x/sys/unix"

// Unread reports whether a stream is a pipe, or something like one, whose reader has gone. A write to it would fail.
func Unread(stream any) bool {
	f, ok := stream.(interface{ Fd() uintptr })
	if !ok {
		return false
	}
	polled := []unix.PollFd{{Fd: int32(f.Fd())}}
	n, err := unix.Poll(polled, 0)
	return err == nil && n > 0 && polled[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}
