package differential

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Rule excuses one known difference between the answers of two engines.
type Rule struct {
	Name string
	// Reason is why the difference is no mistake of the tested engine.
	Reason string
	// Forgive removes the difference from the answers, which are copies, and reports whether it was there. Rules
	// apply one after the other. If the answers are equal afterwards, the difference is explained.
	Forgive func(in any, tested, reference *Answer) bool
}

// Difference is a difference that no rule explains.
type Difference struct {
	Stream            uint64
	Round             int
	Request           any
	Tested, Reference Answer
	// Before are the requests that lead to the difference, after shrinking. The last one is not among them: it is
	// Request.
	Before []any
}

// Place tells where the answers differ, without the particulars of the request, so that differences with one cause
// are shown together.
func (d Difference) Place() string {
	a, b := normal(d.Request, d.Tested), normal(d.Request, d.Reference)
	if a.Code != b.Code || a.Message != b.Message {
		return Kind(d.Request) + ": " + text(a) + " | " + text(b)
	}
	var places []string
	differing("", map[string]any{"o": a.Output, "d": a.Detail}, map[string]any{"o": b.Output, "d": b.Detail}, func(p string) {
		if !slices.Contains(places, p) {
			places = append(places, p)
		}
	})
	slices.Sort(places)
	return Kind(d.Request) + ": " + strings.Join(places, " ")
}

func text(a Answer) string {
	var b strings.Builder
	for word := range strings.FieldsSeq(a.Code + " " + a.Message) {
		if strings.ContainsAny(word, "0123456789[]{}:;\",#") {
			word = "~"
		}
		b.WriteString(word + " ")
	}
	return b.String()
}

// differing reports the places where two trees differ, at most one level below the fields that all answers of an
// operation have.
func differing(at string, a, b any, report func(string)) {
	if reflect.DeepEqual(a, b) {
		return
	}
	ma, ok := a.(map[string]any)
	mb, okb := b.(map[string]any)
	if !ok || !okb || strings.Count(at, ".") > 2 {
		report(at)
		return
	}
	for k := range ma {
		if _, have := mb[k]; !have {
			report(at + "." + k + "-")
		} else {
			differing(at+"."+k, ma[k], mb[k], report)
		}
	}
	for k := range mb {
		if _, have := ma[k]; !have {
			report(at + "." + k + "+")
		}
	}
}

// String returns the requests and both answers.
func (d Difference) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "stream %d, round %d:\n", d.Stream, d.Round)
	for _, in := range d.Before {
		fmt.Fprintf(&b, "    before:    %s\n", Render(in))
	}
	fmt.Fprintf(&b, "    request:   %s\n", Render(d.Request))
	fmt.Fprintf(&b, "    tested:    %s\n", d.Tested)
	fmt.Fprintf(&b, "    reference: %s", d.Reference)
	return b.String()
}

// Report counts what a comparison did.
type Report struct {
	mu          sync.Mutex
	Compared    int            // requests whose answers were compared
	Refused     int            // those of them that the reference answered with an error
	Kinds       map[string]int // by operation
	Codes       map[string]int // by error code of the reference, "" for success
	Explained   map[string]int // by rule
	Interrupted int            // rounds that ended early with an error of the transport
	Differences []Difference
	Unexplained int
}

// NewReport returns an empty report.
func NewReport() *Report {
	return &Report{Kinds: map[string]int{}, Codes: map[string]int{}, Explained: map[string]int{}}
}

// String returns the counts as a few lines.
func (r *Report) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%d generated operations compared, %d of them refused by the reference\n", r.Compared, r.Refused)
	fmt.Fprintf(&b, "by operation: %s\n", counts(r.Kinds))
	fmt.Fprintf(&b, "by answer: %s\n", counts(r.Codes))
	explained := 0
	for _, n := range r.Explained {
		explained += n
	}
	if r.Interrupted > 0 {
		fmt.Fprintf(&b, "%d rounds given up because a connection broke\n", r.Interrupted)
	}
	fmt.Fprintf(&b, "%d explained differences: %s\n", explained, counts(r.Explained))
	fmt.Fprintf(&b, "%d unexplained differences", r.Unexplained)
	return b.String()
}

func counts(m map[string]int) string {
	if len(m) == 0 {
		return "none"
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		name := k
		if name == "" {
			name = "success"
		}
		parts = append(parts, fmt.Sprintf("%s %d", name, m[k]))
	}
	return strings.Join(parts, ", ")
}

// Comparison sends the same requests to two engines.
type Comparison struct {
	Tested, Reference *dynamodb.Client
	Rules             []Rule
	Report            *Report
	// Shrink looks for a short list of requests that repeats a difference. It does not look for long.
	Shrink bool
}

// maxRound is the number of requests between two comparisons of whole tables.
const maxRound = 400

// Run compares about n requests of a stream.
func (c *Comparison) Run(ctx context.Context, seed, stream uint64, n int) error {
	g := New(seed, stream, fmt.Sprintf("d%d", stream))
	for n > 0 {
		size := min(maxRound, n)
		done, err := c.round(ctx, g, stream, size)
		if err != nil {
			return err
		}
		n -= max(done, 1)
	}
	return nil
}

// round compares requests until an answer differs in a way that makes the tables differ, too. Otherwise it then
// compares the contents of the tables.
func (c *Comparison) round(ctx context.Context, g *Generator, stream uint64, n int) (int, error) {
	tables := g.Tables()
	for _, t := range tables {
		if t.Big {
			n = min(n, 60)
		}
	}
	if err := c.create(ctx, tables); err != nil {
		return 0, err
	}
	defer c.drop(ctx, tables)
	var history []any
	for i := range n {
		in := g.Next()
		history = append(history, in)
		tested, reference, err := c.both(ctx, in)
		if err != nil {
			return i, c.Report.interrupt(ctx, err)
		}
		g.Observe(in, reference)
		if c.judge(in, tested, reference, true) {
			if tested.OK() != reference.OK() {
				// One of the engines, for a good reason, did something that the other did not do. Their tables
				// may differ from here on.
				return i + 1, nil
			}
			continue
		}
		d := Difference{Stream: stream, Round: g.round, Request: in, Tested: tested, Reference: reference}
		same, err := c.sameContents(ctx, tables)
		if err != nil {
			return i, c.Report.interrupt(ctx, err)
		}
		if c.Shrink {
			if d.Before, err = c.shrink(ctx, tables, history); err != nil {
				return i, c.Report.interrupt(ctx, err)
			}
		}
		c.Report.add(d)
		if !same || c.Shrink {
			return i + 1, nil // shrinking has changed the tables
		}
	}
	for _, t := range tables {
		for _, in := range contents(t) {
			tested, reference, err := c.both(ctx, in)
			if err != nil {
				return n, c.Report.interrupt(ctx, err)
			}
			if !c.judge(in, tested, reference, true) {
				c.Report.add(Difference{Stream: stream, Round: g.round, Request: in, Tested: tested, Reference: reference})
			}
		}
	}
	return n, nil
}

// maxInterrupted is how many rounds may be given up because a connection broke. It is not known then whether the
// request was applied.
const maxInterrupted = 5

func (r *Report) interrupt(ctx context.Context, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Interrupted++
	if ctx.Err() != nil || r.Interrupted > maxInterrupted {
		return err
	}
	return nil
}

func (r *Report) add(d Difference) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Unexplained++
	r.Differences = append(r.Differences, d)
}

func (c *Comparison) both(ctx context.Context, in any) (tested, reference Answer, err error) {
	if tested, err = send(ctx, c.Tested, in); err != nil {
		return tested, reference, fmt.Errorf("tested engine: %w: %s", err, Render(in))
	}
	if reference, err = send(ctx, c.Reference, in); err != nil {
		return tested, reference, fmt.Errorf("reference engine: %w: %s", err, Render(in))
	}
	return tested, reference, nil
}

// judge reports whether the answers are equal or their difference is explained.
func (c *Comparison) judge(in any, tested, reference Answer, count bool) bool {
	var applied []string
	a, b := normal(in, tested), normal(in, reference)
	for _, r := range c.Rules {
		if a.Equal(b) {
			break
		}
		if r.Forgive(in, &a, &b) {
			applied = append(applied, r.Name)
		}
	}
	ok := a.Equal(b)
	if count {
		c.Report.mu.Lock()
		defer c.Report.mu.Unlock()
		c.Report.Compared++
		c.Report.Kinds[Kind(in)]++
		c.Report.Codes[reference.Code]++
		if !reference.OK() {
			c.Report.Refused++
		}
		if ok {
			for _, name := range applied {
				c.Report.Explained[name]++
			}
		}
	}
	return ok
}

// normal returns an answer without what may differ: the order of lists without an order, and identities and times of
// tables.
func normal(in any, a Answer) Answer {
	if a.normalized {
		return a
	}
	a.normalized = true
	a.Output, _ = copied(a.Output).(map[string]any)
	a.Detail, _ = copied(a.Detail).(map[string]any)
	switch in := in.(type) {
	case *dynamodb.ScanInput:
		// Partitions are scanned in no particular order.
		sortList(a.Output["Items"])
	case *dynamodb.QueryInput:
		if in.IndexName != nil {
			sortTies(a.Output["Items"], indexRange(*in.IndexName))
		}
	case *dynamodb.BatchGetItemInput:
		if r, ok := a.Output["Responses"].(map[string]any); ok {
			for _, items := range r {
				sortList(items)
			}
		}
	}
	if cc, ok := a.Output["ConsumedCapacity"].([]any); ok {
		slices.SortFunc(cc, func(a, b any) int {
			ma, _ := a.(map[string]any)
			mb, _ := b.(map[string]any)
			return strings.Compare(fmt.Sprint(ma["TableName"]), fmt.Sprint(mb["TableName"]))
		})
	}
	for _, description := range []string{"Table", "TableDescription"} {
		if d, ok := a.Output[description].(map[string]any); ok {
			withoutIdentity(d)
		}
	}
	return a
}

func withoutIdentity(d map[string]any) {
	// DynamoDB Local never returns a TableId or a WarmThroughput.
	for _, name := range []string{"CreationDateTime", "TableId", "ItemCount", "TableSizeBytes", "IndexSizeBytes", "TableArn", "IndexArn", "LastUpdateToPayPerRequestDateTime", "LastDecreaseDateTime", "LastIncreaseDateTime", "WarmThroughput"} {
		delete(d, name)
	}
	if _, index := d["IndexName"]; index {
		// DynamoDB Local leaves out the zeros of an on-demand index.
		delete(d, "ProvisionedThroughput")
	}
	// The service sorts these two, DynamoDB Local does not.
	sortList(d["AttributeDefinitions"])
	sortList(d["NonKeyAttributes"])
	for _, v := range d {
		switch v := v.(type) {
		case map[string]any:
			withoutIdentity(v)
		case []any:
			for _, e := range v {
				if m, ok := e.(map[string]any); ok {
					withoutIdentity(m)
				}
			}
		}
	}
	for _, name := range []string{"GlobalSecondaryIndexes", "LocalSecondaryIndexes"} {
		sortList(d[name])
	}
}

func sortList(v any) {
	l, _ := v.([]any)
	slices.SortFunc(l, func(a, b any) int { return strings.Compare(sortForm(a), sortForm(b)) })
}

// sortForm is the same for values that differ only in how numbers are written.
func sortForm(v any) string {
	c := copied(v)
	Spell(c)
	return render(c)
}

// sortTies sorts runs of items with the same sort key, or all items if there
// is none: an index does not order them.
func sortTies(v any, key []string) {
	l, _ := v.([]any)
	same := func(a, b any) bool {
		ma, _ := a.(map[string]any)
		mb, _ := b.(map[string]any)
		return !slices.ContainsFunc(key, func(k string) bool { return sortForm(ma[k]) != sortForm(mb[k]) })
	}
	for from := 0; from < len(l); {
		to := from + 1
		for to < len(l) && same(l[from], l[to]) {
			to++
		}
		sortList(l[from:to])
		from = to
	}
}

// copied returns a deep copy of a tree.
func copied(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if v == nil {
			return v
		}
		m := make(map[string]any, len(v))
		for k, e := range v {
			m[k] = copied(e)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, e := range v {
			l[i] = copied(e)
		}
		return l
	}
	return v
}

// contents returns the requests that read a whole table and its indexes.
func contents(t *Table) []any {
	reads := []any{&dynamodb.ScanInput{TableName: aws.String(t.Name), ConsistentRead: aws.Bool(true)}}
	for _, ix := range t.Indexes {
		reads = append(reads, &dynamodb.ScanInput{TableName: aws.String(t.Name), IndexName: aws.String(ix.Name)})
	}
	return reads
}

func (c *Comparison) sameContents(ctx context.Context, tables []*Table) (bool, error) {
	for _, t := range tables {
		for _, in := range contents(t) {
			tested, reference, err := c.both(ctx, in)
			if err != nil {
				return false, err
			}
			if !reflect.DeepEqual(normal(in, tested), normal(in, reference)) {
				return false, nil
			}
		}
	}
	return true, nil
}

func (c *Comparison) create(ctx context.Context, tables []*Table) error {
	for _, t := range tables {
		for _, client := range []*dynamodb.Client{c.Tested, c.Reference} {
			if _, err := client.CreateTable(ctx, t.Create()); err != nil {
				return fmt.Errorf("differential: create %s: %w", Render(t.Create()), err)
			}
		}
	}
	return nil
}

// drop deletes tables. A table that it cannot delete only uses memory.
func (c *Comparison) drop(ctx context.Context, tables []*Table) {
	for _, t := range tables {
		for _, client := range []*dynamodb.Client{c.Tested, c.Reference} {
			_, _ = client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String(t.Name)})
		}
	}
}
