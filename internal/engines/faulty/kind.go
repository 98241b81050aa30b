package faulty

import (
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Kind is a kind of fault, for tests that try sequences of faults.
type Kind struct {
	Name   string
	Copies bool // a copy of a request that got an answer arrives late
	Of     func(cancel func()) []Outcome
}

// Times at which late copies arrive: during a call, after it, and after a lease.
const (
	soon   = 100 * time.Millisecond
	later  = 30 * time.Second
	latest = 70 * time.Second
)

// Kinds are the kinds of faults of one request, or of many in a row. They include all that leaves open whether a write was applied.
func Kinds() []Kind {
	list := []Kind{
		{Name: "cancelled", Of: func(cancel func()) []Outcome { return []Outcome{Pass.After(cancel)} }},
		{Name: "cancelled when it is applied", Of: func(cancel func()) []Outcome { return []Outcome{Pass.Then(cancel)} }},
		{Name: "lost, and cancelled", Of: func(cancel func()) []Outcome { return []Outcome{DropReply.Then(cancel)} }},
		{Name: "throttled, and cancelled", Of: func(cancel func()) []Outcome { return []Outcome{Throttle().After(cancel)} }},
		{Name: "throttled for long", Of: func(func()) []Outcome { return slices.Repeat([]Outcome{Throttle()}, 60) }},
		{Name: "conflicts for long", Of: func(func()) []Outcome {
			return slices.Repeat([]Outcome{Refuse(400, "TransactionConflictException")}, 60)
		}},
	}
	add := func(name string, copies bool, o Outcome) {
		list = append(list, Kind{Name: name, Copies: copies, Of: func(func()) []Outcome { return []Outcome{o} }})
	}
	add("pass", false, Pass)
	add("request lost", false, DropRequest)
	add("reply lost", false, DropReply)
	add("reply cut", false, CutReply)
	add("late", false, DropRequest.Copied(soon))
	add("late by half a minute", false, DropRequest.Copied(later))
	add("late by a minute", false, DropRequest.Copied(latest))
	add("reply lost, and a copy", false, DropReply.Copied(later))
	add("twice", true, Pass.Copied(soon))
	add("twice, after a minute", true, Pass.Copied(latest))
	for name, o := range refusals {
		add(name, false, o)
	}
	add("throttled, and a copy", true, Throttle().Copied(latest))
	add("throttled, and a copy soon", true, Throttle().Copied(time.Millisecond))
	add("conflict, and a copy soon", true, Refuse(400, "TransactionConflictException").Copied(time.Millisecond))
	for name, o := range map[string]Outcome{
		"500": Refuse(500, "InternalServerError"), "503": Refuse(503, "ServiceUnavailable"), "not JSON": Answer(502, "<html>bad gateway</html>"),
		"not JSON, with 200": Answer(200, "<html>hello</html>"), "not JSON, with 403": Answer(403, "<html>no</html>"),
		"408 of a proxy": Answer(408, ""), "429 of a proxy": Answer(429, `{"message":"slow down"}`),
	} {
		add(name, false, o)
		add(name+" after applying", false, o.Applied())
	}
	slices.SortFunc(list, func(a, b Kind) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// refusals are the answers of DynamoDB that say that nothing was done.
var refusals = map[string]Outcome{
	"throttled": Throttle(), "conflict": Refuse(400, "TransactionConflictException"), "cancelled by a conflict": Cancel("TransactionConflict", "None"),
	"cancelled by throttling": Cancel("None", "ThrottlingError"), "in progress": Refuse(400, "TransactionInProgressException"),
	"another token's": Refuse(400, "IdempotentParameterMismatchException"), "denied": Refuse(400, "AccessDeniedException"),
	"expired credentials": Refuse(400, "ExpiredTokenException"), "no table": Refuse(400, "ResourceNotFoundException"),
	"invalid": Refuse(400, "ValidationException"), "in use": Refuse(400, "ResourceInUseException"),
}

// Sequences are all sequences of one to n kinds.
func Sequences(n int) iter.Seq[[]Kind] {
	kinds := Kinds()
	var longer func(list []Kind, yield func([]Kind) bool) bool
	longer = func(list []Kind, yield func([]Kind) bool) bool {
		for _, k := range kinds {
			next := append(slices.Clip(list), k)
			if !yield(next) || len(next) < n && !longer(next, yield) {
				return false
			}
		}
		return true
	}
	return func(yield func([]Kind) bool) { longer(nil, yield) }
}

// ScriptOf returns the outcomes of a sequence, for [Client.Script]. copies tells whether a copy of a request that got an answer arrives late.
func ScriptOf(sequence []Kind, cancel func()) (script []Outcome, copies bool) {
	for _, k := range sequence {
		script = append(script, k.Of(cancel)...)
		copies = copies || k.Copies
	}
	return script, copies
}

// NameOf returns the names of a sequence.
func NameOf(sequence []Kind) string {
	names := make([]string, len(sequence))
	for i, k := range sequence {
		names[i] = k.Name
	}
	return strings.Join(names, ", ")
}

// Retries are ways to set the SDK's own retries, which a table switches off.
func Retries() []func(*dynamodb.Options) {
	list := []func(*dynamodb.Options){
		func(*dynamodb.Options) {},
		func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} },
		func(o *dynamodb.Options) { o.RetryMode, o.Retryer = aws.RetryModeAdaptive, retry.NewAdaptiveMode() },
	}
	for _, n := range []int{1, 3, 10} {
		list = append(list, func(o *dynamodb.Options) { o.RetryMaxAttempts = n })
	}
	return list
}
