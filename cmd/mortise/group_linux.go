package main

import (
	"bytes"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// bind makes the kernel kill a child when this program dies, even if the watchdog dies, too. Processes that the command leaves
// behind become children of this program. So reap can wait for them, even if the first process of a container reaps nothing.
func bind(a *syscall.SysProcAttr) {
	a.Pdeathsig = syscall.SIGKILL
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // fails on a kernel before 3.4
}

// self returns a path of this program that is valid even if its file was replaced meanwhile.
func self() (string, error) { return "/proc/self/exe", nil }

// onlyZombies reports whether all processes of the group are zombies: they have ended, but their parent, which has left the group, does not
// wait for them. They run nothing, and no signal ends them.
func (g *group) onlyZombies() bool {
	list, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	found := false
	for _, process := range list {
		text, err := os.ReadFile("/proc/" + process.Name() + "/stat")
		if err != nil {
			continue // it is no process, or not there any more
		}
		const state, group, threads, all = 0, 2, 17, 18                 // indexes of fields, and their number
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:]) // before it is the name, which can contain anything
		if len(fields) < all || string(fields[group]) != strconv.Itoa(g.id) {
			continue
		}
		if string(fields[state]) != "Z" || string(fields[threads]) != "1" { // other threads can go on when the first one has ended
			return false
		}
		found = true
	}
	return found
}
