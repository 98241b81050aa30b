package tabletest

import (
	"context"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/mortise-go/mortise/table/tabletest/internal/jsontree"
)

// incoming is a request that has not been applied yet.
type incoming struct {
	op     string
	root   *jsontree.Node // null if the body is no JSON
	index  int            // number in the request log
	faults []*armed       // faults that hit it
	tables []string       // that it names, if there are faults
	keys   []touchedKey   // primary keys in it, if there are faults
	late   bool           // delivered later, by a fault
}

// lateRequest is a request to be applied later, for the first time or again.
type lateRequest struct {
	incoming
	due     time.Time
	dueCall int // number of the request before which it is applied; 0 if the time due decides
}

// kinds lists the faults for the log.
func (in *incoming) kinds() []FaultKind {
	var out []FaultKind
	for _, f := range in.faults {
		out = append(out, f.Kind)
	}
	return out
}

// has returns the first fault of that kind, or nil.
func (in *incoming) has(k FaultKind) *armed {
	for _, f := range in.faults {
		if f.Kind == k {
			return f
		}
	}
	return nil
}

// all returns the faults of that kind.
func (in *incoming) all(k FaultKind) (out []*armed) {
	for _, f := range in.faults {
		if f.Kind == k {
			out = append(out, f)
		}
	}
	return out
}

// readsEventually reports whether the request, a read, reads a table without ConsistentRead.
func (in *incoming) readsEventually() bool {
	eventual := func(n *jsontree.Node) bool { return !n.Get("ConsistentRead").Bool }
	if in.op == "BatchGetItem" {
		return slices.ContainsFunc(in.root.Get("RequestItems").Members, func(m jsontree.Member) bool { return eventual(&m.Value) })
	}
	return eventual(in.root)
}

// refused returns the error with which a fault refuses the request before it is applied, or nil.
func (in *incoming) refused() *apiError {
	switch {
	case in.has(Throttle) != nil:
		return fail(codeThrottled, "The level of configured provisioned throughput for the table was exceeded. Consider increasing your provisioning level with the UpdateTable API.")
	case in.has(InternalError) != nil:
		return errInternal()
	case in.has(ExpiredCredentials) != nil:
		return fail(codeExpired, "The security token included in the request is expired")
	case in.has(TransactionInProgress) != nil:
		return fail(codeInProgress, "The transaction with the given request token is already in progress")
	}
	return nil
}

// errReset returns the transport error for a dropped request or answer. The SDK retries it.
func errReset() error {
	return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
}

// serve handles one request. It returns an error only for a failure of the transport.
func (e *Engine) serve(ctx context.Context, op string, body []byte) (*answer, error) {
	in := incoming{op: op}
	var err error
	if in.root, err = jsontree.Parse(body); err != nil {
		in.root = &jsontree.Node{}
	}
	if a := e.arrive(&in); a != nil {
		return a, nil
	}
	return e.serveFaulty(ctx, &in)
}

// arrive counts a request and chooses its faults. It answers the request if there are none, and otherwise returns nil.
func (e *Engine) arrive(in *incoming) *answer {
	e.mu.Lock()
	defer e.mu.Unlock() // deferred, because an assertion in a Fault.When can end the goroutine
	e.log.count++
	in.index = e.log.count
	e.deliver()
	if len(e.faults) > 0 {
		e.choose(in)
	}
	if in.faults == nil {
		return e.execute(in)
	}
	return nil
}

// choose finds the faults that hit the request.
func (e *Engine) choose(in *incoming) {
	r := Request{Index: in.index, Operation: in.op, Time: e.now()}
	in.keys, in.tables = e.named(in)
	r.Tables = slices.Clone(in.tables)
	for _, k := range in.keys {
		r.Keys = append(r.Keys, Key{Table: k.table, Attrs: sdkItem(k.attrs)})
	}
	for _, f := range e.faults {
		if f.hit(in, r) {
			in.faults = append(in.faults, f)
		}
	}
	e.faults = slices.DeleteFunc(e.faults, (*armed).over)
}

func (e *Engine) serveFaulty(ctx context.Context, in *incoming) (*answer, error) {
	for _, f := range in.all(Delay) {
		if f.After {
			continue
		}
		if err := e.hold(ctx, in, f); err != nil {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.log.lost(in, e.now())
			return nil, err
		}
	}
	a := e.apply(in)
	if a == nil {
		return nil, errReset()
	}
	for _, f := range in.all(Delay) {
		if !f.After {
			continue
		}
		if err := sleep(ctx, f.For); err != nil {
			return nil, err
		}
	}
	if in.has(DropReply) != nil {
		return nil, errReset()
	}
	if in.has(InternalErrorAfter) != nil {
		api := errInternal()
		a.status, a.body = api.status, api.body()
	}
	a.cut = in.has(CutReply) != nil
	for _, f := range in.all(SkewDate) {
		a.date = a.date.Add(f.For)
	}
	return a, nil
}

// apply executes a request with faults. It returns nil for a request that is dropped.
func (e *Engine) apply(in *incoming) *answer {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f := in.has(DropRequest); f != nil {
		e.log.lost(in, e.now())
		if f.For > 0 || f.AfterCalls > 0 {
			e.schedule(in, f)
		}
		return nil
	}
	a := e.execute(in)
	for _, f := range in.all(DuplicateLate) {
		e.schedule(in, f)
	}
	return a
}

// hold delays a request. With Fault.Hold, the items of a transaction are in flight meanwhile.
func (e *Engine) hold(ctx context.Context, in *incoming, f *armed) error {
	if !f.Hold || in.op != "TransactWriteItems" {
		return sleep(ctx, f.For)
	}
	e.mu.Lock()
	var held []placed
	for _, k := range in.keys {
		if t := e.tables[k.table]; t != nil && t.keys.checkKey(k.attrs) == nil {
			held = append(held, placed{t, t.keys.place(k.attrs)})
		}
	}
	if e.inflight == nil {
		e.inflight = map[placed]int{}
	}
	for _, p := range held {
		e.inflight[p]++
	}
	e.mu.Unlock()
	err := sleep(ctx, f.For)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range held {
		if e.inflight[p]--; e.inflight[p] == 0 {
			delete(e.inflight, p)
		}
	}
	return err
}

// sleep waits for d. It returns the context's error if the context ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// schedule stores a request to be applied later.
func (e *Engine) schedule(in *incoming, f *armed) {
	l := lateRequest{incoming: *in, due: e.now().Add(f.For)}
	l.faults, l.late = nil, true
	if f.For == 0 {
		l.dueCall = e.log.count + max(1, f.AfterCalls)
	}
	e.late = append(e.late, l)
}

// deliver applies the late requests that are due, in the order in which they were scheduled. The caller holds e.mu.
func (e *Engine) deliver() {
	if len(e.late) == 0 {
		return
	}
	now := e.now()
	var rest, due []lateRequest
	for _, l := range e.late {
		if l.dueCall > 0 && e.log.count >= l.dueCall || l.dueCall == 0 && !now.Before(l.due) {
			due = append(due, l)
		} else {
			rest = append(rest, l)
		}
	}
	e.late = rest
	for _, l := range due {
		e.execute(&l.incoming)
	}
}

// named returns the primary keys and tables in a request, for faults. It skips what it cannot read, and checks nothing else.
func (e *Engine) named(in *incoming) (keys []touchedKey, tables []string) {
	c := &call{e: e}
	visit := func(table string, n *jsontree.Node, member string) {
		if table == "" {
			return
		}
		name := tableOfARN(table)
		c.noteTable(name)
		k := n.Get(member)
		t := e.tables[name]
		if t == nil || k.IsNull() {
			return
		}
		if item, ok := t.keys.peek(k); ok {
			keys = append(keys, touchedKey{name, item})
		}
	}
	single := func(n *jsontree.Node) {
		if !n.Get("Item").IsNull() {
			visit(n.Get("TableName").Text, n, "Item")
			return
		}
		visit(n.Get("TableName").Text, n, "Key")
	}
	switch in.op {
	case "TransactWriteItems", "TransactGetItems":
		items := in.root.Get("TransactItems").Items
		for i := range items {
			for j := range items[i].Members {
				single(&items[i].Members[j].Value)
			}
		}
	case "BatchGetItem", "BatchWriteItem":
		for _, m := range in.root.Get("RequestItems").Members {
			for _, n := range m.Value.Get("Keys").Items {
				visit(m.Name, &jsontree.Node{Kind: jsontree.Object, Members: []jsontree.Member{{Name: "Key", Value: n}}}, "Key")
			}
			for i := range m.Value.Items {
				visit(m.Name, m.Value.Items[i].Get("PutRequest"), "Item")
				visit(m.Name, m.Value.Items[i].Get("DeleteRequest"), "Key")
			}
		}
	default:
		single(in.root)
		visit(in.root.Get("ResourceArn").Text, in.root, "Key") // of an operation on tags, which has no key
	}
	return keys, c.tables
}
