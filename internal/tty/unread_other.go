//go:build !unix

package tty

// Unread always returns false: a program finds out when it writes.
func Unread(any) bool { return false }
