package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// record is a line of a worker's output.
type record struct {
	Kind kind `json:"kind"`

	// Of begun: the write that begins. Its Op is the operation's name, which is unique, also if a process is started
	// again.
	Operation *operation `json:"operation,omitempty"`

	// Of ended: the operation and its outcome.
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
	odd   kind = "odd"  // an error that must not occur
)

// outcome is what a worker knows of a write.
type outcome string

const (
	acknowledged outcome = "acknowledged"
	refused      outcome = "refused" // it was not applied
	unknown      outcome = "unknown"
)

// operation is a guarded write.
type operation struct {
	Op       string    `json:"op"`
	Workload string    `json:"workload"`
	Row      string    `json:"row"`            // which row of the workload
	Lease    string    `json:"lease"`          // unique for each acquisition
	Held     []holding `json:"held"`           // in the order of the targets
	Long     bool      `json:"long,omitempty"` // it will take long, which is the moment for trouble

	Value    int64     `json:"value,omitempty"`    // counter: what is written; set: the element's place, from 1; every: the interval's start, epoch milliseconds
	Transfer *transfer `json:"transfer,omitempty"` // bank
}

// holding is a lock and the fence under which it is held.
type holding struct {
	Lock  string `json:"lock"`
	Fence int64  `json:"fence"`
}

// maxErrorText keeps lines shorter than what a pipe takes at once (4096 bytes, PIPE_BUF). Such a line is whole or
// missing, whenever its writer is killed.
const maxErrorText = 1500

// journal writes a worker's records. It is safe for concurrent use: each record is a single write.
type journal struct {
	to   io.Writer
	fail func(error) // called if nobody reads any more
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

// outcomeOf returns what an error of a write under a lease means. A repeated write may have been applied before it
// was refused. Unless the guard refused it, the outcome is unknown then.
func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return acknowledged
	case errors.Is(err, lock.ErrLost):
		return refused // a lost lease never comes back
	}
	return unknown
}

// unexpected reports whether no fault explains an error. An error of no known kind is unexpected, too.
func unexpected(err error) bool {
	if err == nil {
		return false
	}
	for _, explained := range []error{
		lock.ErrLost, lock.ErrReleased, lock.ErrHeld, lock.ErrClosed, context.Canceled, context.DeadlineExceeded,
		table.ErrUnreachable, table.ErrThrottled, table.ErrConflict,
	} {
		if errors.Is(err, explained) {
			return false
		}
	}
	var internal *types.InternalServerError
	return !errors.As(err, &internal)
}

// errNotAsWritten means that a row is not as the workloads write it.
var errNotAsWritten = errors.New("the row is not as it was written")
