package soak

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// record is a line of a worker's output.
type record struct {
	Kind kind `json:"kind"`

	// Of begun: what is about to be written. Its Op is the operation's name, which no other
	// has, also where a process is started again.
	Operation *operation `json:"operation,omitempty"`

	// Of ended: which operation, and what came of it.
	Op      string  `json:"op,omitempty"`
	Outcome outcome `json:"outcome,omitempty"`

	Workload string `json:"workload,omitempty"` // of idle and odd
	Error    string `json:"error,omitempty"`
}

type kind string

const (
	begun kind = "begun"
	ended kind = "ended"
	idle  kind = "idle" // a round that ended before it had anything to write
	odd   kind = "odd"  // an error that must not be
)

// outcome is what a worker knows of a write.
type outcome string

const (
	acknowledged outcome = "acknowledged"
	refused      outcome = "refused" // and not applied
	unknown      outcome = "unknown"
)

// operation is a guarded write.
type operation struct {
	Op       string    `json:"op"`
	Workload string    `json:"workload"`
	Row      string    `json:"row"`            // which of the workload's
	Lease    string    `json:"lease"`          // no other acquisition has the same
	Held     []holding `json:"held"`           // in the order of the targets
	Long     bool      `json:"long,omitempty"` // will take its time: the moment for trouble

	Value    int64     `json:"value,omitempty"`    // counter: what is written; every: the interval's start, epoch milliseconds
	Transfer *transfer `json:"transfer,omitempty"` // bank
}

// holding is a lock and the fence under which it is held.
type holding struct {
	Lock  string `json:"lock"`
	Fence int64  `json:"fence"`
}

// maxErrorText keeps a line shorter than what a pipe takes at once (4096 bytes, PIPE_BUF):
// such lines are whole or missing, whenever their writer is killed.
const maxErrorText = 1500

// journal writes a worker's records. It is safe for concurrent use: each is a single write.
type journal struct {
	to   io.Writer
	fail func(error) // nobody reads any more
	gone atomic.Bool
}

func (j *journal) write(r record) {
	if len(r.Error) > maxErrorText {
		r.Error = strings.ToValidUTF8(r.Error[:maxErrorText], "") + "…"
	}
	line, err := json.Marshal(r)
	if err == nil {
		_, err = j.to.Write(append(line, '\n'))
	}
	if err != nil && j.gone.CompareAndSwap(false, true) {
		j.fail(fmt.Errorf("soak: journal: %w", err))
	}
}

// outcomeOf says what an error of a write under a lease means. What was repeated may have
// been applied before it was refused for another reason than the guard's: nothing is known
// then.
func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return acknowledged
	case errors.Is(err, lock.ErrLost):
		return refused // a lease that was lost never comes back
	}
	return unknown
}

// unexpected says that no fault explains an error.
func unexpected(err error) bool {
	for _, known := range []error{
		lock.ErrNotLock, lock.ErrMalformed, lock.ErrMultiRegion, lock.ErrInvalid, errNotAsWritten,
		table.ErrSchema, table.ErrNoTable, table.ErrDenied, table.ErrCredentials, table.ErrCondition,
	} {
		if errors.Is(err, known) && !errors.Is(err, lock.ErrLost) && !errors.Is(err, lock.ErrReleased) {
			return true
		}
	}
	return false
}

// errNotAsWritten says that a row is not as the workloads write it.
var errNotAsWritten = errors.New("the row is not as it was written")
