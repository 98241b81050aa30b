package tabletest

import (
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
)

// Request is one entry of the request log.
type Request struct {
	Index     int         // 1 for the first request since the start or ResetRequests
	Operation string      // name of the operation, such as "UpdateItem"
	Tables    []string    // tables in the order in which the request used them
	Keys      []Key       // primary keys in the request; none for Query and Scan
	Consumed  float64     // capacity units, whether or not the request asked for them
	Code      string      // error code with which it was refused, or empty; what a fault makes of the answer does not count
	Time      time.Time   // time by the engine's clock at which it was applied, or lost
	Faults    []FaultKind // faults that hit it
	Late      bool        // set for a late delivery; Index is that of the original request
}

// Key is the primary key of an item in the request log.
type Key struct {
	Table string
	Attrs map[string]types.AttributeValue
}

// touchedKey is a Key that has not been converted to the SDK's types yet.
type touchedKey struct {
	table string
	attrs attr.Item
}

// logLimit is the length at which the log drops its older half.
const logLimit = 1 << 20

type logEntry struct {
	index  int
	op     string
	tables []string
	keys   []touchedKey
	units  float64
	code   string
	time   time.Time
	faults []FaultKind
	late   bool
}

type requestLog struct {
	count   int
	entries []logEntry
}

func (l *requestLog) add(c *call, code string) {
	l.append(logEntry{c.request.index, c.op, c.tables, c.keys, c.units, code, c.now, c.request.kinds(), c.request.late})
}

// lost records a request that a DropRequest has dropped, or whose context ended during a Delay.
func (l *requestLog) lost(in *incoming, now time.Time) {
	l.append(logEntry{index: in.index, op: in.op, tables: in.tables, keys: in.keys, time: now, faults: in.kinds()})
}

func (l *requestLog) append(entry logEntry) {
	if len(l.entries) >= logLimit {
		l.entries = append(l.entries[:0], l.entries[logLimit/2:]...)
	}
	l.entries = append(l.entries, entry)
}

// Requests returns the log since the start or the last [Engine.ResetRequests]: at most the last million entries, in the
// order in which the requests were applied. Index continues to count beyond a million. It is not in order if requests
// were delayed.
func (e *Engine) Requests() []Request {
	e.mu.Lock()
	e.deliver()
	entries := append([]logEntry(nil), e.log.entries...)
	e.mu.Unlock()
	out := make([]Request, len(entries))
	for i, l := range entries {
		out[i] = l.request()
	}
	return out
}

func (l *logEntry) request() Request {
	r := Request{Index: l.index, Operation: l.op, Tables: slices.Clone(l.tables), Consumed: l.units, Code: l.code, Time: l.time, Faults: slices.Clone(l.faults), Late: l.late}
	for _, k := range l.keys {
		r.Keys = append(r.Keys, Key{Table: k.table, Attrs: sdkItem(k.attrs)})
	}
	return r
}

// ResetRequests empties the log and restarts counting at 1.
func (e *Engine) ResetRequests() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range e.late { // keep the number of requests after which a late one is due
		if l := &e.late[i]; l.dueCall > 0 {
			l.dueCall = max(1, l.dueCall-e.log.count)
		}
	}
	e.log = requestLog{}
}

// sdkItem converts key attributes to the SDK's types, for the log and for faults.
func sdkItem(it attr.Item) map[string]types.AttributeValue {
	out := make(map[string]types.AttributeValue, len(it))
	for name, v := range it {
		switch v.Kind {
		case attr.N:
			out[name] = &types.AttributeValueMemberN{Value: v.Num.String()}
		case attr.B:
			out[name] = &types.AttributeValueMemberB{Value: []byte(v.Str)}
		default:
			out[name] = &types.AttributeValueMemberS{Value: v.Str}
		}
	}
	return out
}
