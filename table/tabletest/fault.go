package tabletest

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
)

// FaultKind is a kind of failure.
type FaultKind uint8

// Kinds of faults.
const (
	// DropRequest loses the request before it is applied. The client sees a connection reset. With For or AfterCalls,
	// the request is late instead of lost: it is applied then, although the client has seen the reset.
	DropRequest FaultKind = iota + 1
	// DropReply applies the request and loses the answer. The client sees a connection reset.
	DropReply
	// CutReply applies the request and sends half of the answer. Then the connection breaks. The SDK does not retry it.
	CutReply
	// Delay holds the request for the duration For before it is applied. With After, it holds the answer instead. With
	// Hold, the items of a delayed transaction are in flight meanwhile, and other writes of them get a conflict.
	Delay
	// DuplicateLate applies and answers the request, and applies it again after For, or before one of the next requests
	// (AfterCalls).
	DuplicateLate
	// Throttle refuses the request with ProvisionedThroughputExceededException.
	Throttle
	// InternalError answers 500 without applying the request.
	InternalError
	// InternalErrorAfter applies the request and answers 500.
	InternalErrorAfter
	// TransactionConflict refuses a write or a transaction as if another transaction were using its items. Key selects
	// the items; without it, all are. BatchWriteItem returns them as unprocessed.
	TransactionConflict
	// StaleRead makes an eventually consistent read miss the latest Writes writes of the table.
	StaleRead
	// SkewDate shifts the answer's Date header by For, which can be negative.
	SkewDate
	// Unprocessed makes a batch process only its first Take requests and return the others as unprocessed.
	Unprocessed
	// ExpiredCredentials refuses the request with ExpiredTokenException (status 400), as for temporary credentials
	// after their end. Nothing is applied. The SDK does not retry it.
	ExpiredCredentials
	// TransactionInProgress refuses a TransactWriteItems with TransactionInProgressException (status 400), as if an
	// earlier request with the same token were still running. This one is not applied.
	TransactionInProgress
)

// String returns the constant's name.
func (k FaultKind) String() string {
	names := []string{
		"None", "DropRequest", "DropReply", "CutReply", "Delay", "DuplicateLate", "Throttle", "InternalError", "InternalErrorAfter",
		"TransactionConflict", "StaleRead", "SkewDate", "Unprocessed",
		"ExpiredCredentials", "TransactionInProgress",
	}
	if int(k) >= len(names) {
		return "Unknown"
	}
	return names[k]
}

// Fault is a failure and the requests that it hits. Every condition that is set must hold. Without conditions, each
// request to which the kind applies is hit. Several faults can hit one request.
type Fault struct {
	Kind FaultKind

	// Call is the index of the request that is hit, counted from 1 since the start or the last [Engine.ResetRequests].
	// Each retry of the client is a request of its own.
	Call int
	// Operation is the name of an operation, such as "UpdateItem".
	Operation string
	// Table is the name of a table that the request uses.
	Table string
	// Key contains attributes of a primary key in the request; it suffices if one of the request's keys has them.
	// Strings, numbers and binary values can be compared.
	Key map[string]types.AttributeValue
	// When is called last. It must not call the engine. Code and Consumed of the request are not known yet.
	When func(Request) bool
	// Every hits each n-th of the requests that meet the conditions above.
	Every int
	// Probability hits that share of them. Seed and the request's number among them decide, so a seed always gives the
	// same schedule.
	Probability float64
	Seed        uint64
	// Times ends the fault after that many hits. Defaults to 0: no limit.
	Times int

	// For is the duration of a Delay, the lateness of a late request, or the offset of SkewDate.
	For time.Duration
	// AfterCalls is the lateness of a late request if For is zero: 1 applies it at the beginning of the next request, 2 at
	// that of the one after it, and so on. What is due is also applied at the beginning of [Engine.Requests],
	// [Engine.Snapshot], [Engine.Restore] and [Engine.Sweep]. For DuplicateLate, 0 means 1.
	AfterCalls int
	// After makes Delay hold the answer instead of the request.
	After bool
	// Hold makes Delay keep the items of a TransactWriteItems in flight.
	Hold bool
	// Writes is the number of writes that StaleRead misses, at most 1024. Defaults to 1.
	Writes int
	// Take is the number of requests of a batch that Unprocessed processes. Defaults to 1.
	Take int
}

// armed is an injected fault with its counts.
type armed struct {
	Fault
	matched int // requests that met all conditions before Every and Probability
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

// ClearFaults removes all faults. Requests that are delayed or late stay so.
func (e *Engine) ClearFaults() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faults = nil
}

// applies reports whether the kind can hit the request.
func (k FaultKind) applies(in *incoming) bool {
	switch op := in.op; k {
	case TransactionConflict:
		return slices.Contains([]string{"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems", "TransactGetItems"}, op)
	case StaleRead:
		return slices.Contains([]string{"GetItem", "BatchGetItem", "Query", "Scan"}, op) && in.readsEventually()
	case Unprocessed:
		return op == "BatchGetItem" || op == "BatchWriteItem"
	case TransactionInProgress:
		return op == "TransactWriteItems"
	}
	return true
}

// over reports whether the fault can hit no further request.
func (f *armed) over() bool { return f.Times > 0 && f.hits >= f.Times }

// hit reports whether the fault hits a request, and counts it. r is what the log will say about the request.
func (f *armed) hit(in *incoming, r Request) bool {
	switch {
	case !f.Kind.applies(in),
		f.Call > 0 && f.Call != r.Index,
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

// names reports whether the fault's Table and Key match the primary key of an item in a table.
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

// fromSDK converts a key attribute. It returns nil for a value that cannot be one.
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
