package sim

import (
	"errors"
	"fmt"
	"path"
	"runtime"
	"strings"
)

// errBroken ends a workload whose world is broken.
var errBroken = errors.New("sim: the world is broken")

// guarded calls a function of the world. A panic of it is a violation, and breaks the world. A workload that waits
// for a broken world is ended.
func (w *World) guarded(who string, do func()) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if err, ok := v.(error); ok && errors.Is(err, errBroken) {
			return
		}
		w.Violation("%s broke down: %v\n%s", who, v, stack())
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.isBroken() {
			close(w.broken)
		}
	}()
	do()
}

// intact panics if the world is broken.
func (w *World) intact() {
	if w.isBroken() {
		panic(errBroken)
	}
}

func (w *World) isBroken() bool {
	select {
	case <-w.broken:
		return true
	default:
		return false
	}
}

// stack returns where the panic that is being recovered began: functions, files and lines, without anything that
// differs between runs.
func stack() string {
	pc := make([]uintptr, 64)
	frames := runtime.CallersFrames(pc[:runtime.Callers(0, pc)])
	var b strings.Builder
	within := false
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			within = true
			b.Reset()
		case within && !strings.HasPrefix(f.Function, "runtime."):
			fmt.Fprintf(&b, "  %s (%s:%d)\n", f.Function, path.Base(f.File), f.Line)
		}
	}
	return b.String()
}
