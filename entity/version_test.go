package entity_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-go/mortise/internal/attrvalue"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/table"
)

// Crate is a row that another program writes, which counts no versions.
type Crate struct {
	*Stamp
	ID      string    `dynamo:"-"`
	Place   string    `dynamo:"place,omitempty"`
	Weight  int64     `dynamo:"weight"`
	Tags    []string  `dynamo:"tags,omitempty"`
	Packed  time.Time `dynamo:"packed,omitempty"`
	Version int64     `dynamo:"-"`
	Created time.Time `dynamo:"created,omitempty"`
	Updated time.Time `dynamo:"updated,omitempty"`
}

// Stamp has attributes whose fields cannot be named.
type Stamp struct {
	By string `dynamo:"by,omitempty"`
}

func crateSpec() entity.Spec[Crate] {
	return entity.Spec[Crate]{Type: "Crate", PK: "CRATE#{id}", SK: "CRATE", Version: "Version", Created: "created", Updated: "updated"}
}

// otherProgram writes rows through the raw SDK, whole or attribute by attribute.
type otherProgram struct {
	t      *testing.T
	client *dynamodb.Client
	name   string
}

func (p otherProgram) key(id string) table.Item {
	return table.Item{"PK": &types.AttributeValueMemberS{Value: "shop/CRATE#" + id}, "SK": &types.AttributeValueMemberS{Value: "CRATE"}}
}

func (p otherProgram) put(id string, attrs table.Item) {
	p.t.Helper()
	item := p.key(id)
	maps.Copy(item, attrs)
	_, err := p.client.PutItem(p.t.Context(), &dynamodb.PutItemInput{TableName: &p.name, Item: item})
	require.NoError(p.t, err)
}

func (p otherProgram) set(id, attr string, av types.AttributeValue) {
	p.t.Helper()
	_, err := p.client.UpdateItem(p.t.Context(), &dynamodb.UpdateItemInput{
		TableName: &p.name, Key: p.key(id), UpdateExpression: aws.String("SET #a = :v"),
		ExpressionAttributeNames: map[string]string{"#a": attr}, ExpressionAttributeValues: table.Item{":v": av},
	})
	require.NoError(p.t, err)
}

func (p otherProgram) delete(id string) {
	p.t.Helper()
	_, err := p.client.DeleteItem(p.t.Context(), &dynamodb.DeleteItemInput{TableName: &p.name, Key: p.key(id)})
	require.NoError(p.t, err)
}

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }

// row is one that the other program makes, in the form in which Crate would write it.
func (p otherProgram) row(id string) {
	p.t.Helper()
	p.put(id, table.Item{"place": str("A1"), "weight": num("5"), "by": str("ann"), "created": str("2024-03-01T12:00:00Z"), "unknown": str("kept")})
}

func newCrates(t *testing.T, e *engines.Engine) (fixture, otherProgram, *entity.Entity[Crate]) {
	t.Helper()
	f := newFixture(t, e)
	return f, otherProgram{t, e.Client(), f.Name()}, define(t, f.Table, crateSpec())
}

// crateWrites are all the ways in which a value that was read is written. Each makes the place to.
var crateWrites = map[string]func(context.Context, *entity.Entity[Crate], Crate, string) error{
	"Update": func(ctx context.Context, e *entity.Entity[Crate], c Crate, to string) error {
		return second(e.Update(ctx, c, entity.Set("place", to)))
	},
	"UpdateOp": func(ctx context.Context, e *entity.Entity[Crate], c Crate, to string) error {
		return e.Table().Write(ctx, e.UpdateOp(c, entity.Set("place", to)))
	},
	"Put": func(ctx context.Context, e *entity.Entity[Crate], c Crate, to string) error {
		c.Place = to
		return second(e.Put(ctx, c))
	},
	"PutOp": func(ctx context.Context, e *entity.Entity[Crate], c Crate, to string) error {
		c.Place = to
		return e.Table().Write(ctx, e.PutOp(c))
	},
	"ModifyOp": func(ctx context.Context, e *entity.Entity[Crate], c Crate, to string) error {
		is := c
		is.Place = to
		return e.Table().Write(ctx, e.ModifyOp(c, is))
	},
	"Delete": func(ctx context.Context, e *entity.Entity[Crate], c Crate, _ string) error { return e.Delete(ctx, c) },
	"DeleteOp": func(ctx context.Context, e *entity.Entity[Crate], c Crate, _ string) error {
		return e.Table().Write(ctx, e.DeleteOp(c))
	},
	// Modify reads for itself: it adds to what it finds.
	"Modify": func(ctx context.Context, e *entity.Entity[Crate], c Crate, to string) error {
		return second(e.Modify(ctx, c, func(c *Crate) error { c.Place += to; return nil }))
	},
}

// Two programs have read a row that has no version yet. What the first one writes is never lost.
func TestVersionZeroOfTwoReadersOneWrites(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		_, other, crates := newCrates(t, e)
		ctx := t.Context()
		for _, first := range slices.Sorted(maps.Keys(crateWrites)) {
			for _, then := range slices.Sorted(maps.Keys(crateWrites)) {
				name := first + " then " + then
				other.row("1")
				ann, err := crates.Get(ctx, Crate{ID: "1"}, entity.Consistent())
				require.NoError(t, err)
				require.Zero(t, ann.Version)
				bob := ann

				err = crateWrites[first](ctx, crates, ann, "by ann")
				if first == "Put" || first == "PutOp" {
					require.ErrorIs(t, err, entity.ErrStale, "%s: it cannot tell what was read", name)
					require.ErrorContains(t, err, "it has no version", name)
				} else {
					require.NoError(t, err, name)
				}
				before, missing := crates.Get(ctx, Crate{ID: "1"}, entity.Consistent())

				err = crateWrites[then](ctx, crates, bob, "by bob")
				switch after, getErr := crates.Get(ctx, Crate{ID: "1"}, entity.Consistent()); {
				case first == "Put" || first == "PutOp":
					continue // nothing was written yet
				case missing != nil && (then == "Put" || then == "PutOp"):
					require.NoError(t, err, "%s: version 0 is for a row that does not exist, too", name)
				case missing != nil:
					require.ErrorIs(t, err, entity.ErrNotFound, name)
				case then == "Modify":
					require.NoError(t, err, name)
					assert.Equal(t, before.Place+"by bob", after.Place, name)
					assert.EqualValues(t, 2, after.Version, name)
				default:
					require.ErrorIs(t, err, entity.ErrStale, name)
					require.NoError(t, getErr, name)
					assert.Equal(t, before, after, name)
					assert.EqualValues(t, 1, after.Version, name)
				}
			}
		}
	})
}

// A program that counts no versions is noticed all the same, as long as the row has none.
func TestVersionZeroNoticesProgramsThatCountNone(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		_, other, crates := newCrates(t, e)
		ctx := t.Context()
		for change, do := range map[string]func(){
			"an attribute":               func() { other.set("1", "weight", num("6")) },
			"a new attribute":            func() { other.set("1", "tags", &types.AttributeValueMemberL{Value: []types.AttributeValue{str("x")}}) },
			"one that cannot be named":   func() { other.set("1", "by", str("eve")) },
			"the attribute that is set":  func() { other.set("1", "place", str("late")) },
			"the whole row":              func() { other.put("1", table.Item{"place": str("late")}) },
			"nothing that Crate knows":   func() { other.set("1", "unknown", str("late")) },
			"what the entity maintains":  func() { other.set("1", "updated", str("2025-01-01T00:00:00Z")) },
			"the row, which is gone now": func() { other.delete("1") },
		} {
			for name, write := range crateWrites {
				if name == "Modify" || name == "Put" || name == "PutOp" {
					continue // which do not write what was read: see the other tests
				}
				other.row("1")
				c, err := crates.Get(ctx, Crate{ID: "1"}, entity.Consistent())
				require.NoError(t, err)
				do()
				err = write(ctx, crates, c, "mine")
				what := name + " after a change of " + change
				switch change {
				case "the row, which is gone now":
					require.ErrorIs(t, err, entity.ErrNotFound, what)
				case "nothing that Crate knows", "what the entity maintains":
					require.NoError(t, err, what)
				default:
					require.ErrorIs(t, err, entity.ErrStale, what)
					require.ErrorContains(t, err, "is not as it was read", what)
				}
			}
		}

		// Put in place, by that program: the version is gone, which is noticed.
		other.row("1")
		c, err := crates.Modify(ctx, Crate{ID: "1"}, func(c *Crate) error { c.Weight++; return nil })
		require.NoError(t, err)
		other.row("1")
		for name, write := range crateWrites {
			if name != "Modify" {
				require.ErrorIs(t, write(ctx, crates, c, "mine"), entity.ErrStale, name)
			}
		}
	})
}

// A version and the time of creation tell a row; without a version the time of creation does not.
func TestVersionZeroIsModifiedByItsAttributes(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f, other, crates := newCrates(t, e)
		ctx := t.Context()
		for change, do := range map[string]func(){
			"another attribute":        func() { other.set("1", "weight", num("50")) },
			"a new one":                func() { other.set("1", "tags", &types.AttributeValueMemberL{Value: []types.AttributeValue{str("x")}}) },
			"one that cannot be named": func() { other.set("1", "by", str("eve")) },
		} {
			for _, create := range []bool{false, true} {
				other.row("1")
				f.faults.Before(func(op string) {
					if op == "UpdateItem" {
						f.faults.Before(nil)
						do()
					}
				})
				calls := 0
				count := func(c *Crate) error {
					calls++
					c.Place = fmt.Sprint(c.Weight, c.Tags, c.By) // made of what was seen
					return nil
				}
				write := crates.Modify
				if create {
					write = crates.Upsert
				}
				c, err := write(ctx, Crate{ID: "1"}, count)
				require.NoError(t, err, change)
				assert.Equal(t, 2, calls, change)
				assert.Equal(t, fmt.Sprint(c.Weight, c.Tags, c.By), c.Place, change)
				assert.EqualValues(t, 1, c.Version)
				assert.Equal(t, "kept", text(f.row(t, crates.Key(c)), "unknown"))
			}
		}
	})
}

// What the other program writes in another form than this one is known from the row, where it can be read.
func TestVersionZeroInAnotherForm(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f, other, crates := newCrates(t, e)
		ctx := t.Context()
		unlike := map[string]bool{"a time with milliseconds": true, "a list of NULL": true} // as Crate would write it
		for form, row := range map[string]table.Item{
			"a time with milliseconds": {"packed": str("2024-03-01T12:00:00.000Z"), "weight": num("5")},
			"an offset":                {"packed": str("2024-03-01T13:00:00+01:00"), "weight": num("5")},
			"an empty list":            {"tags": &types.AttributeValueMemberL{}, "weight": num("5")},
			"a list of NULL":           {"tags": &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberNULL{Value: true}}}, "weight": num("5")},
			"NULL":                     {"place": &types.AttributeValueMemberNULL{Value: true}, "weight": &types.AttributeValueMemberNULL{Value: true}},
			"an empty string":          {"place": str(""), "weight": num("5.0")},
			"nothing at all":           {},
		} {
			for name, write := range crateWrites {
				if name == "Put" || name == "PutOp" {
					continue
				}
				other.put("1", row)
				c, err := crates.Get(ctx, Crate{ID: "1"}, entity.Consistent())
				require.NoError(t, err)
				before := f.row(t, crates.Key(c))
				err = write(ctx, crates, c, "mine")
				if strings.HasSuffix(name, "Op") && unlike[form] {
					require.ErrorIs(t, err, entity.ErrStale, "%s of %s: it cannot read", name, form)
					assert.True(t, attrvalue.SameItem(before, f.row(t, crates.Key(c))))
					continue
				}
				require.NoError(t, err, "%s of %s", name, form)
			}
			// And somebody who writes between the read and the write is noticed there, too.
			other.put("1", row)
			c, err := crates.Get(ctx, Crate{ID: "1"}, entity.Consistent())
			require.NoError(t, err)
			f.faults.Before(func(op string) {
				if op != "GetItem" {
					f.faults.Before(nil)
					other.set("1", "weight", num("9"))
				}
			})
			require.ErrorIs(t, second(crates.Update(ctx, c, entity.Set("place", "mine"))), entity.ErrStale, form)
		}
	})
}
