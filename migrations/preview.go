package migrations

import (
	"cmp"
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/internal/nilctx"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Preview is the result of a dry run of a backfill.
type Preview struct {
	Seen    int64    // items read
	Changes int64    // items that would be written
	Failed  int64    // items for which Transform returned an error, or something that cannot be written
	Samples []Sample // first items that would be written, or that failed
}

// Sample is one item of a dry run.
type Sample struct {
	Before, After table.Item // After is nil if Err is set
	Err           error
}

// DryRun runs a backfill over the table without writing. It counts the items and keeps some samples. It needs no lock.
// The limit of read units applies. An item that DynamoDB would refuse counts as failed: one that is too large, for example, or that has
// an attribute that cannot be the key of an index of the table's Schema.
//
// Cost: a consistent scan of the table.
func (m *Migrator) DryRun(ctx context.Context, b Backfill, samples int) (Preview, error) {
	ctx = nilctx.Checked(ctx, ErrInvalid)
	b = b.withDefaults()
	if err := b.check(); err != nil {
		return Preview{}, wrap("dry run", err)
	}
	var p Preview
	run := &Run{migrator: m, migration: &Migration{ID: "dry run"}}
	s := segment{filling: newFilling(run, b)}
	s.spec.Segments = 1
	s.at.Part = 1
	for !s.at.Done {
		page, err := s.read(ctx)
		if err != nil {
			return p, wrap("dry run", err)
		}
		items := run.own(page.Items, b.Toolkit)
		for _, item := range items {
			p.Seen++
			after, err := s.become(ctx, item)
			if after != nil {
				err = s.writable(ctx, item, after)
			}
			switch {
			case ctx.Err() != nil:
				return p, wrap("dry run", context.Cause(ctx))
			case err != nil:
				p.Failed++
			case after != nil:
				p.Changes++
			default:
				continue
			}
			if err != nil {
				after = nil
			}
			if len(p.Samples) < samples {
				p.Samples = append(p.Samples, Sample{Before: item, After: after, Err: err})
			}
		}
		s.at = s.advance(page.Next, len(items), 0)
	}
	return p, nil
}

// writable returns why the new state of an item could not be written, as far as that can be known without writing it.
func (s *segment) writable(ctx context.Context, item, next table.Item) error {
	if err := s.change(item, next).Err(); err != nil {
		return s.itemError(ctx, item, err)
	}
	for name, av := range next {
		if _, err := table.Encode(av); err != nil {
			return s.itemError(ctx, item, fmt.Errorf("attribute %q: %w", name, err))
		}
	}
	for _, x := range s.filling.run.Table().Schema().Indexes {
		if err := cmp.Or(checkIndexKey(next[x.PK], x.PKType, keys.MaxPK), checkIndexKey(next[x.SK], x.SKType, keys.MaxSK)); err != nil {
			return s.itemError(ctx, item, fmt.Errorf("%w: index %q: %w", ErrInvalid, x.Name, err))
		}
	}
	switch size, err := attrvalue.ItemSize(next); {
	case err != nil:
		return s.itemError(ctx, item, fmt.Errorf("%w: %w", ErrInvalid, err))
	case size > attrvalue.MaxItem:
		return s.itemError(ctx, item, fmt.Errorf("%w: the item would have %d bytes, at most %d are allowed", ErrInvalid, size, attrvalue.MaxItem))
	}
	return nil
}

// checkIndexKey returns why DynamoDB refuses an item whose attribute av is a key of an index, or nil. Without the attribute, the index
// leaves the item out.
func checkIndexKey(av types.AttributeValue, want table.AttributeType, longest int) error {
	if av == nil {
		return nil
	}
	if attrvalue.Kind(av) != string(want) {
		return fmt.Errorf("the key is not of type %s", want)
	}
	size, err := attrvalue.Size(av)
	if err == nil && (size == 0 || size > longest) {
		return fmt.Errorf("the key has %d bytes: want 1 to %d", size, longest)
	}
	return err
}

// String returns one line for people.
func (p Preview) String() string {
	return fmt.Sprintf("%d items read, %d would be written, %d would fail", p.Seen, p.Changes, p.Failed)
}
