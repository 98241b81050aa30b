package tabletest

import (
	"slices"
	"strings"
	"time"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
	"github.com/mortise-go/mortise/table/tabletest/internal/jsontree"
)

// Limits of transactions.
const (
	maxActions          = 100
	maxTransactionBytes = 4 << 20
	maxToken            = 36
	// tokenWindow is how long a ClientRequestToken is remembered after its transaction has finished.
	tokenWindow = 10 * time.Minute
	// transactionFactor is the cost of an item in a transaction relative to the same read or write as a single request: the service
	// prepares and commits each of them. It updates indexes as usual, at the usual cost.
	transactionFactor = 2
)

// The codes of cancellation reasons.
const (
	reasonNone       = "None"
	reasonCondition  = "ConditionalCheckFailed"
	reasonValidation = "ValidationError"
	reasonConflict   = "TransactionConflict"
)

// pastTransaction is a finished TransactWriteItems that can be repeated by its token.
type pastTransaction struct {
	token   string
	request string // canonical form
	sizes   []int  // of each action, as it was paid for
	at      time.Time
}

func canceled(reasons []reason) error {
	codes := make([]string, len(reasons))
	for i, r := range reasons {
		codes[i] = r.code
	}
	e := fail(codeCanceled, "Transaction cancelled, please refer cancellation reasons for specific reasons [%s]", strings.Join(codes, ", "))
	e.reasons = reasons
	return e
}

func transactWriteItems(c *call) ([]byte, error) {
	items := c.in.items("TransactItems")
	token := c.in.text("ClientRequestToken")
	for i := range items {
		if err := checkAction(&items[i]); err != nil {
			return nil, err
		}
	}
	writes := make([]*write, len(items))
	size := 0
	for i := range items {
		var err error
		if writes[i], err = c.readAction(&items[i]); err != nil {
			return nil, err
		}
		if size += writes[i].payload(); size > maxTransactionBytes {
			return nil, errPayload(size)
		}
	}
	for _, w := range writes {
		var err error
		if w.t, err = c.table(w.in); err != nil {
			return nil, err
		}
	}
	past, err := c.repeated(token)
	if err != nil {
		return nil, err
	}
	if past != nil {
		return c.answerAgain(writes, past.sizes)
	}
	seen := map[placed]bool{}
	for i, w := range writes {
		if err := w.locate(c); err != nil {
			api := asAPI(err)
			if !api.mismatch {
				return nil, err
			}
			writes[i] = &write{refused: api}
			continue
		}
		if err := w.checkCondition(); err != nil {
			return nil, err
		}
		p := placed{writes[i].t, writes[i].place}
		if seen[p] {
			return nil, invalid("Transaction request cannot include multiple operations on one item")
		}
		seen[p] = true
	}
	if err := c.runTransaction(writes); err != nil {
		return nil, err
	}
	used, order := map[*table]*usage{}, []*table(nil)
	sizes := make([]int, len(writes))
	for i, w := range writes {
		u := used[w.t]
		if u == nil {
			u = &usage{}
			used[w.t] = u
			order = append(order, w.t)
		}
		cost := w.commit()
		cost.table *= transactionFactor
		u.add(cost)
		sizes[i] = w.size
	}
	c.remember(token, sizes)
	return c.transactOutput(writeKind, order, used, writes), nil
}

func (c *call) transactOutput(k unitKind, order []*table, used map[*table]*usage, written []*write) []byte {
	o := newObject()
	c.consumedByTable(o, k, order, used)
	c.collectionMetricsByTable(o, written)
	return o.end()
}

// checkAction refuses an action that is not exactly one of the four kinds.
func checkAction(n *jsontree.Node) error {
	f := fields{n: n}
	count := 0
	for _, name := range []string{"ConditionCheck", "Put", "Delete", "Update"} {
		if f.has(name) {
			count++
		}
	}
	switch {
	case count == 0:
		return invalid("Invalid Request: TransactWriteRequest should contain Delete or Put or Update request")
	case count > 1:
		return invalid("TransactItems can only contain one of Check, Put, Update or Delete")
	}
	return nil
}

// readAction reads the parts of an action that do not depend on its table.
func (c *call) readAction(n *jsontree.Node) (*write, error) {
	f := fields{n: n}
	read := func(kind string, read func(*call, *fields) (*write, error)) (*write, error) {
		in := f.sub(kind)
		in.action = true
		return read(c, &in)
	}
	switch {
	case f.has("ConditionCheck"):
		return read("ConditionCheck", (*call).readCheck)
	case f.has("Put"):
		return read("Put", (*call).readPut)
	case f.has("Delete"):
		return read("Delete", (*call).readDelete)
	}
	return read("Update", (*call).readUpdate)
}

// runTransaction evaluates every action against the state before the transaction. If an action fails, the error has one reason for each
// action, in their order. If an action does not fit its table's schema, none is evaluated, and only the first such action has a reason.
func (c *call) runTransaction(writes []*write) error {
	if reasons := firstInvalid(len(writes), func(i int) *apiError { return writes[i].refused }); reasons != nil {
		return canceled(reasons)
	}
	reasons := make([]reason, len(writes))
	failed := false
	for i, w := range writes {
		reasons[i] = reason{code: reasonNone}
		if c.conflicting(w) {
			reasons[i] = reason{code: reasonConflict, message: conflictMessage}
			failed = true
			continue
		}
		if err := w.run(); err != nil {
			api := asAPI(err)
			if api.whole {
				return err
			}
			failed = true
			if api.code == codeCondition {
				reasons[i] = reason{code: reasonCondition, message: api.message, item: api.item}
			} else {
				reasons[i] = reason{code: reasonValidation, message: api.message}
			}
		}
	}
	if failed {
		for _, w := range writes {
			c.spent(w.t, &usage{table: transactionFactor * w.refusedUnits()})
		}
		return canceled(reasons)
	}
	return nil
}

// firstInvalid returns the reasons for cancelling a transaction in which an action does not fit its table's schema: a ValidationError
// for the first such action, and None for all others. It returns nil if all actions fit.
func firstInvalid(n int, refused func(i int) *apiError) []reason {
	for i := range n {
		if e := refused(i); e != nil {
			reasons := make([]reason, n)
			for j := range reasons {
				reasons[j].code = reasonNone
			}
			reasons[i] = reason{code: reasonValidation, message: e.message}
			return reasons
		}
	}
	return nil
}

// payload returns the size with which an action counts towards the limit of its transaction. This is the size of what the request says,
// not of the item that it changes.
func (w *write) payload() int {
	size := w.given.Size() + len(w.in.text("UpdateExpression")) + len(w.in.text("ConditionExpression"))
	for _, name := range w.env.Names {
		size += len(name)
	}
	for _, v := range w.env.Values {
		size += v.Size()
	}
	return size
}

func errPayload(size int) error {
	return invalid("Transaction payload size cannot exceed 4MB. Payload Size: %d", size)
}

// repeated returns the transaction with the token, if it is still remembered.
func (c *call) repeated(token string) (*pastTransaction, error) {
	if token == "" {
		return nil, nil
	}
	for e := c.e; len(e.past) > 0 && c.now.Sub(e.past[0].at) >= tokenWindow; e.past = e.past[1:] {
		delete(e.tokens, e.past[0].token)
	}
	past := c.e.tokens[token]
	if past == nil {
		return nil, nil
	}
	if past.request != c.canonical() {
		return nil, fail(codeMismatch, "")
	}
	return past, nil
}

// remember records a finished transaction with its token.
func (c *call) remember(token string, sizes []int) {
	if token == "" {
		return
	}
	e, p := c.e, &pastTransaction{token: token, request: c.canonical(), sizes: sizes, at: c.now}
	e.tokens[token] = p
	place := len(e.past)
	for place > 0 && e.past[place-1].at.After(p.at) { // the clock was set back
		place--
	}
	e.past = slices.Insert(e.past, place, p)
}

// answerAgain answers a repeated request of a finished transaction. It changes nothing, and costs as much as reading, in a transaction,
// what the finished one paid for.
func (c *call) answerAgain(writes []*write, sizes []int) ([]byte, error) {
	reads, order := map[*table]*usage{}, []*table(nil)
	for i, w := range writes {
		if err := w.locate(c); err != nil {
			return nil, err
		}
		u := reads[w.t]
		if u == nil {
			u = &usage{}
			reads[w.t] = u
			order = append(order, w.t)
		}
		u.table += transactionFactor * readUnits(sizes[i], true)
	}
	return c.transactOutput(readKind, order, reads, nil), nil
}

// canonical returns the part of a request that must be the same each time a token is used, whatever the order of members.
func (c *call) canonical() string {
	return string(c.in.n.Get("TransactItems").AppendSorted(nil))
}

func transactGetItems(c *call) ([]byte, error) {
	items := c.in.items("TransactItems")
	type action struct {
		t       *table
		g       *get
		refused *apiError
	}
	actions := make([]action, len(items))
	for i := range items {
		in := fields{n: items[i].Get("Get"), action: true}
		var err error
		if actions[i].g, err = c.readGet(&in); err != nil {
			return nil, err
		}
	}
	for i := range items {
		in := fields{n: items[i].Get("Get")}
		var err error
		if actions[i].t, err = c.table(&in); err != nil {
			return nil, err
		}
	}
	seen := map[placed]bool{}
	for i := range actions {
		a := &actions[i]
		if err := a.g.locate(c, a.t); err != nil {
			api := asAPI(err)
			if !api.mismatch {
				return nil, err
			}
			a.refused = api
			continue
		}
		if seen[placed{a.t, a.g.place}] {
			return nil, invalid("Transaction request cannot include multiple operations on one item")
		}
		seen[placed{a.t, a.g.place}] = true
	}
	if reasons := firstInvalid(len(actions), func(i int) *apiError { return actions[i].refused }); reasons != nil {
		return nil, canceled(reasons)
	}
	if reasons := c.readConflicts(len(actions), func(i int) (*table, *get) { return actions[i].t, actions[i].g }); reasons != nil {
		return nil, canceled(reasons)
	}
	used, order := map[*table]*usage{}, []*table(nil)
	answers := make([]attr.Item, len(actions))
	size := 0
	for i, a := range actions {
		u := used[a.t]
		if u == nil {
			u = &usage{}
			used[a.t] = u
			order = append(order, a.t)
		}
		bytes := 0
		if r := a.t.rows.get(a.g.place); r != nil {
			bytes = r.size
			answers[i] = a.g.pick(r.item)
		}
		size += bytes
		u.table += transactionFactor * readUnits(bytes, true)
	}
	if size > maxTransactionBytes {
		return nil, errPayload(size)
	}
	o := newObject()
	c.consumedByTable(o, readKind, order, used)
	o.list("Responses", len(answers), func(b []byte, i int) []byte {
		inner := object{b: append(b, '{')}
		if len(answers[i]) > 0 { // unlike GetItem, no Item if the projection selects nothing
			inner.item("Item", answers[i])
		}
		return inner.end()
	})
	return o.end(), nil
}

// readConflicts returns the reasons for cancelling a TransactGetItems, or nil.
func (c *call) readConflicts(n int, action func(i int) (*table, *get)) []reason {
	reasons := make([]reason, n)
	found := false
	for i := range reasons {
		reasons[i].code = reasonNone
		if t, g := action(i); c.busy(t, g.key, g.place) {
			reasons[i] = reason{code: reasonConflict, message: conflictMessage}
			found = true
		}
	}
	if !found {
		return nil
	}
	return reasons
}
