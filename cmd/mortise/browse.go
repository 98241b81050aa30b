package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/internal/tty"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

func collectionCommand() command {
	return command{
		name: "collection", operands: "PK", least: 1, most: 1, pk: true, json: true,
		text: "show the rows with one partition key, and the locks among them",
		more: "Of each row: its sort key, its type, version and time to live where the scheme's attributes have them, and all other\n" +
			"attributes. With --json: rows in DynamoDB's JSON, whole. A terminal cuts long lines; output to a file has all.",
		run: func(ctx context.Context, c *call) error {
			return c.with(ctx, func(s *store) error { return c.collection(ctx, s) })
		},
	}
}

func (c *call) collection(ctx context.Context, s *store) error {
	rows, items := []json.RawMessage{}, []table.Item{}
	for item, err := range s.table.Query(ctx, table.Query{PK: c.operands[0], Consistent: true}) {
		if err != nil {
			return err
		}
		text, err := table.ItemToJSON(item)
		if err != nil {
			return err
		}
		rows, items = append(rows, text), append(items, item)
	}
	if len(rows) == 0 { // DynamoDB answers the same if the table has the partition key, but not the sort key
		if err := s.checkKeys(ctx); err != nil {
			return err
		}
	}
	malformed, err := s.malformed(ctx, c.operands[0], items)
	if err != nil {
		return err
	}
	return c.print(map[string]any{"pk": c.operands[0], "rows": rows}, func(w io.Writer) {
		if len(rows) == 0 {
			tty.Say(w, "no rows\n")
			return
		}
		g := tty.Grid{Head: []string{"SORT KEY", "TYPE", "VERSION", "EXPIRES", "ATTRIBUTES"}}
		for _, item := range items {
			g.Add(s.cells(item, malformed)...)
		}
		g.Write(w, c.columns())
	})
}

// malformed returns why rows of locks in a collection are malformed, by what the locks belong to. Records, with which cells decodes a row,
// does not check it: it would show a lock that a client with another attribute prefix holds as a free one.
func (s *store) malformed(ctx context.Context, pk string, items []table.Item) (map[string]error, error) {
	list := map[string]error{}
	if !slices.ContainsFunc(items, s.locks.Records().Owns) {
		return list, nil
	}
	for r, err := range s.locks.List(ctx, lock.In(pk)) {
		if errors.Is(err, lock.ErrMalformed) {
			list[r.Of] = err
		} else if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// checkKeys returns an error if the table has other keys than it was described with.
func (s *store) checkKeys(ctx context.Context) error {
	bare, err := table.Open(s.client, table.Schema{Name: s.schema.Name, Keys: s.schema.Keys, NoTTL: true, MustExist: true})
	if err != nil {
		return err
	}
	return bare.Verify(ctx)
}

// cells returns the columns for a row. For the row of a lock, the last column is about its line.
func (s *store) cells(item table.Item, malformed map[string]error) []string {
	scheme := s.table.Scheme()
	cells := []string{plain(item[scheme.SK]), plain(item[scheme.Type]), plain(item[scheme.Version]), expiry(item[scheme.TTL]), ""}
	if records := s.locks.Records(); records.Owns(item) {
		r, err := records.Decode(item)
		if err = cmp.Or(err, malformed[r.Of]); err != nil {
			cells[4] = "malformed: " + err.Error()
			return cells
		}
		d := s.document(r, nil)
		cells[4] = "free for " + s.ago(d.Since)
		if d.Held {
			cells[4] = fmt.Sprintf("held by %s for %s, %d waiting", d.holder(), s.ago(d.Since), d.waiting())
		}
		if d.Fence > 0 { // permits have none
			cells[4] += fmt.Sprintf(", fence %d", d.Fence)
		}
		return cells
	}
	var rest []string
	for _, name := range slices.Sorted(maps.Keys(item)) {
		if !slices.Contains([]string{scheme.PK, scheme.SK, scheme.Type, scheme.Version, scheme.TTL}, name) {
			rest = append(rest, name+"="+plain(item[name]))
		}
	}
	cells[4] = strings.Join(rest, " ")
	return cells
}

// plain formats a value for people: strings and numbers as they are, others as JSON.
func plain(av types.AttributeValue) string {
	switch v := av.(type) {
	case nil:
		return ""
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	case *types.AttributeValueMemberBOOL:
		return strconv.FormatBool(v.Value)
	case *types.AttributeValueMemberNULL:
		return "null"
	}
	text, err := table.ItemToJSON(table.Item{"": av})
	if err != nil {
		return "?"
	}
	return strings.TrimSuffix(strings.TrimPrefix(string(text), `{"":`), "}")
}

// expiry formats a time to live for people, as show formats times.
func expiry(av types.AttributeValue) string {
	n, ok := av.(*types.AttributeValueMemberN)
	if !ok {
		return plain(av)
	}
	seconds, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil {
		return n.Value
	}
	return time.Unix(seconds, 0).UTC().Format(time.RFC3339)
}

// tableDocument compares the table with its description.
type tableDocument struct {
	Table     string      `json:"table"`
	Agrees    bool        `json:"agrees"`
	Missing   []string    `json:"missing"`   // what the description has, and the table lacks
	Differs   []string    `json:"differs"`   // differences that Ensure could only resolve by destroying something
	Unchanged []string    `json:"unchanged"` // what both have, or only the table
	Items     int64       `json:"items"`
	Bytes     int64       `json:"bytes"`
	Keys      keys.Scheme `json:"keys"`
}

func tableCommand() command {
	return command{
		name: "table", text: "compare the table with its description, and tell its size", json: true,
		more: "Lists what the table has of the keys, indexes and settings that flags, environment and scheme describe, and what it lacks.\n" +
			"Changes nothing. DynamoDB counts items and bytes about every six hours. Exit code: 79 if the table lacks something or differs.",
		run: func(ctx context.Context, c *call) error {
			return c.with(ctx, func(s *store) error { return c.describe(ctx, s) })
		},
	}
}

func (c *call) describe(ctx context.Context, s *store) error {
	plan, err := s.table.Plan(ctx)
	if err != nil {
		return err
	}
	size, err := s.table.Estimate(ctx)
	if err != nil {
		return err
	}
	d := tableDocument{
		Table: s.table.Name(), Agrees: plan.IsEmpty(), Missing: []string{}, Differs: append([]string{}, plan.Refused...),
		Unchanged: append([]string{}, plan.Unchanged...), Items: size.Items, Bytes: size.Bytes, Keys: s.table.Scheme(),
	}
	for _, step := range plan.Steps {
		d.Missing = append(d.Missing, step.Text)
	}
	err = c.print(d, func(w io.Writer) {
		g := tty.Grid{}
		g.Add("table", d.Table)
		g.Add("size", fmt.Sprintf("about %d items, %s", d.Items, bytesText(d.Bytes)))
		for _, list := range []struct {
			name  string
			lines []string
		}{{"differs", d.Differs}, {"lacks", d.Missing}, {"has", d.Unchanged}} {
			for i, line := range list.lines {
				g.Add(map[bool]string{true: list.name}[i == 0], line)
			}
		}
		if d.Agrees {
			g.Add("", "the table and its description agree")
		}
		g.Write(w, 0)
	})
	if err == nil && !d.Agrees {
		return &exit{code: exitDiffers}
	}
	return err
}

func bytesText(n int64) string {
	const unit = 1024
	for _, name := range []string{"bytes", "KB", "MB"} {
		if n < 10*unit {
			return fmt.Sprintf("%d %s", n, name)
		}
		n /= unit
	}
	return fmt.Sprintf("%d GB", n)
}
