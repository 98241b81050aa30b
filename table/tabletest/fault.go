package tabletest

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
)

// FaultKind says what goes wrong.
type FaultKind uint8

// The kinds of faults.
const (
	// DropRequest loses the request before it is applied: the client sees a connection reset. With For or AfterCalls the
	// request is only late: it is applied then, although the client was told nothing.
	DropRequest FaultKind = iota + 1
	// DropReply applies the request and loses the answer: the client sees a connection reset.
	DropReply
	// Delay holds the request for For before it is applied or, with After, holds the answer. With Hold, the items of a
	// delayed transaction are in flight meanwhile, and other writes of them meet a conflict.
	Delay
	// DuplicateLate applies and answers the request, and applies it once more after For or AfterCalls further requests.
	DuplicateLate
	// Throttle refuses the request with ProvisionedThroughputExceededException.
	Throttle
	// InternalError answers 500 without applying the request.
	InternalError
	// InternalErrorAfter applies the request and answers 500.
	InternalErrorAfter
	// TransactionConflict refuses a write or a transaction as if another transaction were using the items: those that
	// Key names, or all of them. BatchWriteItem hands them back unprocessed.
	TransactionConflict
	// StaleRead has an eventually consistent read miss the latest Writes writes of the table.
	StaleRead
	// SkewDate shifts the answer's Date header by For, which may be negative.
	SkewDate
	// Unprocessed has a batch take only its first Take requests and hand back the others.
	Unprocessed
	// ExpiredCredentials refuses the request with ExpiredTokenException, as where temporary credentials were used for
	// longer than they last: status 400, and nothing is applied. The SDK does not retry it.
	ExpiredCredentials
	// TransactionInProgress refuses a TransactWriteItems with TransactionInProgressException, as if an earlier request
	// with its token were still under way: status 400, and this one is not applied.
	TransactionInProgress
)

// String returns the constant's name.
func (k FaultKind) String() string {
	names := []string{
		"None", "DropRequest", "DropReply", "Delay", "DuplicateLate", "Throttle", "InternalError", "InternalErrorAfter",
		"TransactionConflict", "StaleRead", "SkewDate", "Unprocessed",
		"ExpiredCredentials", "TransactionInProgress",
	}
	if int(k) >= len(names) {
		return "Unknown"
	}
	return names[k]
}

// Fault is something that goes wrong, and when. Every condition that is set must hold; without any, each request that
// the kind applies to is hit. A request can be hit by several faults.
type Fault struct {
	Kind FaultKind

	// Call is the index of the one request that is hit, counted from 1 since the start or the last ResetRequests. The
	// client's retries are requests of their own.
	Call int
	// Operation is the name of an operation, such as "UpdateItem".
	Operation string
	// Table is the name of a table that the request uses.
	Table string
	// Key holds attributes that a primary key of the request must have; one of them is enough. Strings, numbers and
	// binary values are compared.
	Key map[string]types.AttributeValue
	// When is asked last. It must not call the engine. Code and Consumed of the request are not known yet.
	When func(Request) bool
	// Every hits each n-th request of those that meet the conditions above.
	Every int
	// Probability hits that share of them, decided by Seed and the request's number among them, so that a seed always
	// gives the same schedule.
	Probability float64
	Seed        uint64
	// Times ends the fault after that many hits. Zero means no limit.
	Times int

	// For is the length of a Delay, the lateness of a duplicate, or the offset of SkewDate.
	For time.Duration
	// AfterCalls is the lateness of a duplicate in further requests. What is late is applied at the beginning of the
	// first request, or of Requests, Snapshot or Sweep, that finds it due. Defaults to 1 if For is zero, too.
	AfterCalls int
	// After has Delay hold the answer instead of the request.
	After bool
	// Hold has Delay keep the items of a TransactWriteItems in flight.
	Hold bool
	// Writes is how many writes StaleRead misses, at most 1024. Defaults to 1.
	Writes int
	// Take is how many requests of a batch Unprocessed takes. Defaults to 1.
	Take int
}

// armed is a fault with its history.
type armed struct {
	Fault
	matched int
	hits    int
}

// Inject adds faults. They are tried in the order in which they were added.
func (e *Engine) Inject(faults ...Fault) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, f := range faults {
		e.faults = append(e.faults, &armed{Fault: f})
	}
}

// ClearFaults removes all faults. What is already under way, delayed or late, is not called back.
func (e *Engine) ClearFaults() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faults = nil
}

// applies reports whether the kind means anything to the operation.
func (k FaultKind) applies(op string) bool {
	switch k {
	case TransactionConflict:
		return slices.Contains([]string{"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems", "TransactGetItems"}, op)
	case StaleRead:
		return slices.Contains([]string{"GetItem", "BatchGetItem", "Query", "Scan"}, op)
	case Unprocessed:
		return op == "BatchGetItem" || op == "BatchWriteItem"
	case TransactionInProgress:
		return op == "TransactWriteItems"
	}
	return true
}

// hit decides about one request.
func (f *armed) hit(r Request) bool {
	if f.Times > 0 && f.hits >= f.Times || !f.Kind.applies(r.Operation) {
		return false
	}
	switch {
	case f.Call > 0 && f.Call != r.Index,
		f.Operation != "" && f.Operation != r.Operation,
		f.Table != "" && !slices.Contains(r.Tables, f.Table),
		f.Key != nil && !slices.ContainsFunc(r.Keys, func(k Key) bool { return f.names(k.Table, k.Attrs) }),
		f.When != nil && !f.When(r):
		return false
	}
	f.matched++
	if f.Every > 1 && f.matched%f.Every != 0 {
		return false
	}
	if f.Probability > 0 && rand.New(rand.NewPCG(f.Seed, uint64(f.matched))).Float64() >= f.Probability {
		return false
	}
	f.hits++
	return true
}

// names reports whether the fault's Table and Key fit a primary key.
func (f *Fault) names(table string, key map[string]types.AttributeValue) bool {
	if f.Table != "" && f.Table != table {
		return false
	}
	for name, want := range f.Key {
		w, v := fromSDK(want), fromSDK(key[name])
		if w == nil || v == nil || !attr.Equal(w, v) {
			return false
		}
	}
	return true
}

// fromSDK converts a key attribute; nil if it is none.
func fromSDK(v types.AttributeValue) *attr.Value {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return attr.String(v.Value)
	case *types.AttributeValueMemberB:
		return attr.Binary(string(v.Value))
	case *types.AttributeValueMemberN:
		if n, err := attr.ParseNumber(v.Value); err == nil {
			return attr.Numeric(n)
		}
	}
	return nil
}
