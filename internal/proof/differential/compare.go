package differential

import (
	"context"
	"fmt"
	"reflect"

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
