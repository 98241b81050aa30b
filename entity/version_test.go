package entity_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/engines/faulty"
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
	By      string `dynamo:"by,omitempty"`
	Fragile bool   `dynamo:"fragile"`
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
func TestVersionZero_OfTwoReadersOneWrites(t *testing.T) {
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
func TestVersionZero_NoticesProgramsThatCountNone(t *testing.T) {
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
func TestVersionZero_IsModifiedByItsAttributes(t *testing.T) {
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
func TestVersionZero_InAnotherForm(t *testing.T) {
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

// Two programs that use this package, and the one that filled the table and counts no versions.
func TestVersionZero_OfAnAdoptedTable(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		n := openNorthwind(t, e)
		ctx := t.Context()
		get := func() Supplier {
			s, err := n.suppliers.Get(ctx, Supplier{ID: "13"}, entity.Consistent())
			require.NoError(t, err)
			return s
		}
		ann, bob := get(), get()
		ann, err := n.suppliers.Update(ctx, ann, entity.Set("Company", "Fisch GmbH"))
		require.NoError(t, err)
		assert.EqualValues(t, 1, ann.Version)
		require.ErrorIs(t, second(n.suppliers.Update(ctx, bob, entity.Set("Company", "lost?"))), entity.ErrStale)
		is := bob
		is.City = "lost?"
		require.ErrorIs(t, n.Write(ctx, n.suppliers.ModifyOp(bob, is)), entity.ErrStale)
		require.ErrorIs(t, n.suppliers.Delete(ctx, bob), entity.ErrStale)

		// The other program puts whole rows, without a version.
		row := n.raw(t, "suppliers#13", "SUPPLIER")
		delete(row, "rev")
		row["data"] = str("Germany#Nord#Hamburg#Elbe #1")
		_, err = n.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(n.Name()), Item: row})
		require.NoError(t, err)
		require.ErrorIs(t, second(n.suppliers.Update(ctx, ann, entity.Set("Company", "lost?"))), entity.ErrStale)
		cid := get()
		assert.Zero(t, cid.Version)
		assert.Equal(t, "Hamburg", cid.City)
		is = cid
		is.City = "Kiel"
		require.NoError(t, n.Write(ctx, n.suppliers.ModifyOp(cid, is)))
		row["data"], row["rev"] = str("Germany#Nord#Kiel#Elbe #1"), num("1")
		assert.True(t, attrvalue.SameItem(row, n.raw(t, "suppliers#13", "SUPPLIER")))

		// Versions for all rows at once.
		given := 0
		for s, err := range n.suppliers.Scan(ctx) {
			require.NoError(t, err)
			if s.Version > 0 {
				continue
			}
			_, err = n.suppliers.Update(ctx, s)
			require.True(t, err == nil || errors.Is(err, entity.ErrStale))
			given++
		}
		assert.Equal(t, 3, given)
		for s, err := range n.suppliers.Scan(ctx) {
			require.NoError(t, err)
			assert.EqualValues(t, 1, s.Version, s.ID)
		}
	})
}

// Sheet is as wide as rows of other programs may be.
type Sheet struct {
	ID      string `dynamo:"id"`
	Version int64  `dynamo:"version"`
	Cells
}

// Cells are more than an expression has room for in the form in which a missing one is recognised without having been read.
type Cells struct {
	A0, A1, A2, A3, A4, A5, A6, A7, A8, A9, A10, A11, A12, A13, A14, A15, A16, A17, A18, A19 string `dynamo:",omitempty"`
	B0, B1, B2, B3, B4, B5, B6, B7, B8, B9, B10, B11, B12, B13, B14, B15, B16, B17, B18, B19 string `dynamo:",omitempty"`
	C0, C1, C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13, C14, C15, C16, C17, C18, C19 string `dynamo:",omitempty"`
	D0, D1, D2, D3, D4, D5, D6, D7, D8, D9, D10, D11, D12, D13, D14, D15, D16, D17, D18, D19 string `dynamo:",omitempty"`
	E0, E1, E2, E3, E4, E5, E6, E7, E8, E9, E10, E11, E12, E13, E14, E15, E16, E17, E18, E19 string `dynamo:",omitempty"`
}

func TestVersionZero_OfWideRows(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		sheets := define(t, f.Table, entity.Spec[Sheet]{Type: "Sheet", PK: "SHEET#{id}", SK: "SHEET", Version: "version"})
		ctx := t.Context()
		for _, n := range []int{0, 10, 20} { // cells in each line, of 100 in all
			row := f.KeyItem(sheets.Key(Sheet{ID: "1"}))
			for i := range n {
				for _, line := range "ABCDE" {
					row[fmt.Sprint(string(line), i)] = str("x")
				}
			}
			put := func() Sheet {
				require.NoError(t, f.raw.Write(ctx, table.Put(row)))
				s, err := sheets.Get(ctx, Sheet{ID: "1"}, entity.Consistent())
				require.NoError(t, err)
				return s
			}
			s, err := sheets.Update(ctx, put(), entity.Set("C3", "y"))
			require.NoError(t, err)
			assert.EqualValues(t, 1, s.Version)
			require.NoError(t, second(sheets.Modify(ctx, put(), func(s *Sheet) error { s.C3 = "y"; return nil })))
			require.NoError(t, sheets.Delete(ctx, put()))
			err = f.Table.Write(ctx, sheets.UpdateOp(put(), entity.Set("C3", "y")))
			if n == 20 {
				require.NoError(t, err, "equal to a value, each of them")
			} else {
				require.ErrorIs(t, err, entity.ErrInvalid)
			}
		}
	})
}

// Some programs begin to count at 0.
func TestVersionZero_ThatIsWritten(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f, other, crates := newCrates(t, e)
		ctx := t.Context()
		for name, write := range crateWrites {
			other.put("1", table.Item{"_v": num("0"), "weight": num("5")})
			c, err := crates.Get(ctx, Crate{ID: "1"}, entity.Consistent())
			require.NoError(t, err)
			require.Zero(t, c.Version)
			err = write(ctx, crates, c, "mine")
			switch name {
			case "Put", "PutOp":
				require.ErrorIs(t, err, entity.ErrStale, name)
				continue
			case "Delete", "DeleteOp":
				assert.Nil(t, f.row(t, crates.Key(c)))
			default:
				assert.Equal(t, "1", string(number(f.row(t, crates.Key(c)), "_v")), name)
			}
			require.NoError(t, err, name)
		}
	})
}

func TestVersionZero_OfAnyVersion(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f, other, crates := newCrates(t, e)
		ctx := t.Context()
		blind := crates.AnyVersion()
		key := Crate{ID: "1", Version: 70}

		for _, make := range []func(){
			func() { other.row("1") },
			func() { other.put("1", table.Item{"_v": num("0")}) },
			func() { other.put("1", table.Item{"_v": num("4")}) },
		} {
			make()
			was, err := crates.Get(ctx, key, entity.Consistent())
			require.NoError(t, err)
			c, err := blind.Update(ctx, key, entity.Set("place", "u"))
			require.NoError(t, err)
			assert.Equal(t, was.Version+1, c.Version)
			require.NoError(t, f.Table.Write(ctx, blind.UpdateOp(key, entity.Set("place", "o"))))
			c, err = blind.Put(ctx, Crate{ID: "1", Version: 70, Place: "p"})
			require.NoError(t, err)
			assert.Equal(t, was.Version+3, c.Version, "counted on")
			got, err := crates.Get(ctx, key, entity.Consistent())
			require.NoError(t, err)
			got.Stamp = nil
			assert.Equal(t, c, got)
			if !was.Created.IsZero() {
				assert.Equal(t, was.Created, got.Created, "the row was written first before that")
			}

			make()
			c, err = blind.Put(ctx, Crate{ID: "1", Place: "p"})
			require.NoError(t, err)
			assert.Equal(t, was.Version+1, c.Version)
			make()
			require.NoError(t, blind.Delete(ctx, key))
			make()
			require.NoError(t, f.Table.Write(ctx, blind.DeleteOp(key)))
		}
		require.ErrorIs(t, second(blind.Update(ctx, key, entity.Set("place", "u"))), entity.ErrNotFound)
		require.NoError(t, blind.Delete(ctx, key), "a row that does not exist is no error")
		require.NoError(t, f.Table.Write(ctx, blind.DeleteOp(key)))
		f.faults.Script()
		require.ErrorIs(t, f.Table.Write(ctx, blind.PutOp(key)), entity.ErrInvalid)
		assert.Empty(t, f.faults.Sent())

		c, err := blind.Put(ctx, key)
		require.NoError(t, err)
		assert.EqualValues(t, 1, c.Version)
		races := 2
		f.faults.Before(func(op string) { // others count while it is replaced, and delete and create it
			if op == "PutItem" && races > 0 {
				if races--; races == 1 {
					other.put("1", table.Item{"_v": num("9")})
				} else {
					other.delete("1")
				}
			}
		})
		c, err = blind.Put(ctx, Crate{ID: "1", Place: "r"})
		require.NoError(t, err)
		assert.EqualValues(t, 1, c.Version)
		assert.Zero(t, races)
		f.faults.Before(nil)

		// ModifyOp has a row to compare with.
		c, err = crates.Update(ctx, c, entity.Set("weight", 6))
		require.NoError(t, err)
		was, is := c, c
		was.Version, is.Version, is.Weight = 0, 0, 7
		require.ErrorIs(t, f.Table.Write(ctx, crates.ModifyOp(was, is)), entity.ErrStale)
		was.Weight = 5
		require.ErrorIs(t, f.Table.Write(ctx, blind.ModifyOp(was, is)), entity.ErrStale)
		was.Weight = 6
		require.NoError(t, f.Table.Write(ctx, blind.ModifyOp(was, is)))
		got, err := crates.Get(ctx, key, entity.Consistent())
		require.NoError(t, err)
		assert.EqualValues(t, 7, got.Weight)
		assert.Equal(t, c.Version+1, got.Version)
	})
}

// What cannot be written is refused before the row is read.
func TestVersionZero_OfBadInput(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f, _, crates := newCrates(t, e)
		spec := crateSpec()
		spec.ReadOnly = true
		tbl, err := table.Open(e.Client(f.faults.Options), f.Schema())
		require.NoError(t, err)
		key := Crate{ID: "1"}
		f.faults.Script()
		for name, c := range map[string]*entity.Entity[Crate]{"read-only": define(t, tbl, spec), "a condition": crates.If(crates.Field("nope").Exists())} {
			for _, c := range []*entity.Entity[Crate]{c, c.AnyVersion()} {
				require.ErrorIs(t, second(c.Update(t.Context(), key, entity.Set("place", "x"))), entity.ErrInvalid, name)
				require.ErrorIs(t, second(c.Put(t.Context(), key)), entity.ErrInvalid, name)
				require.ErrorIs(t, c.Delete(t.Context(), key), entity.ErrInvalid, name)
			}
		}
		require.ErrorIs(t, second(crates.Update(t.Context(), Crate{ID: "1", Version: -1}, entity.Set("place", "x"))), entity.ErrInvalid)
		require.ErrorIs(t, crates.Delete(t.Context(), Crate{ID: "1", Version: -1}), entity.ErrInvalid)
		require.ErrorIs(t, second(crates.Update(t.Context(), Crate{}, entity.Set("place", "x"))), entity.ErrInvalid)
		assert.Empty(t, f.faults.Sent())
	})
}

func TestVersionZero_SurvivesLostAnswers(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f, other, crates := newCrates(t, e)
		ctx := t.Context()
		for name, write := range crateWrites {
			for _, outcome := range []faulty.Outcome{faulty.DropReply, faulty.DropRequest, faulty.Throttle()} {
				if name == "Put" || strings.HasSuffix(name, "Op") {
					continue // table.Write recognises nothing: see table.ConditionError
				}
				other.row("1")
				c, err := crates.Get(ctx, Crate{ID: "1"}, entity.Consistent())
				require.NoError(t, err)
				calls := []faulty.Outcome{outcome}
				if name == "Modify" {
					calls = []faulty.Outcome{faulty.Pass, outcome}
				}
				f.faults.Script(calls...)
				require.NoError(t, write(ctx, crates, c, "mine"), name)
				if row := f.row(t, crates.Key(c)); row != nil {
					assert.Equal(t, "1", string(number(row, "_v")), "%s: applied once", name)
				}
			}
		}
	})
}

// A row that has expired is not in the way, whether or not another program gave it a type.
func TestVersionZero_OfExpiredRows(t *testing.T) {
	type lot struct {
		ID      string    `dynamo:"id"`
		Name    string    `dynamo:"name"`
		Version int64     `dynamo:"version"`
		Until   time.Time `dynamo:"until"`
	}
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		for _, spec := range []entity.Spec[lot]{
			{Type: "Lot", PK: "LOT#{id}", SK: "LOT", Version: "version", TTL: "until"},
			{Type: "Bid", PK: "BID#{id}", SK: "BID", Version: "version", TTL: "until", Unique: []entity.Unique[lot]{{Name: "name", Key: "{name}"}}},
		} {
			lots := define(t, f.Table, spec)
			ctx := t.Context()
			for name, write := range map[string]func() error{
				"create": func() error { return second(lots.Create(ctx, lot{ID: "1", Name: "n"})) },
				"put":    func() error { return second(lots.Put(ctx, lot{ID: "1", Name: "n"})) },
				"any":    func() error { return second(lots.AnyVersion().Put(ctx, lot{ID: "1", Name: "n"})) },
				"upsert": func() error {
					return second(lots.Upsert(ctx, lot{ID: "1", Name: "n"}, func(*lot) error { return nil }))
				},
			} {
				item := f.KeyItem(lots.Key(lot{ID: "1"}))
				item["_ttl"] = num("1000")
				require.NoError(t, f.raw.Write(ctx, table.Put(item)))
				require.NoError(t, write(), "%s of %s", name, spec.Type)
				l, err := lots.Get(ctx, lot{ID: "1"}, entity.Consistent())
				require.NoError(t, err)
				assert.EqualValues(t, 1, l.Version)
				require.NoError(t, lots.Delete(ctx, l))
			}
		}
	})
}

// Predicates and unique values of a row without a version, which depend on all of it.
func TestVersionZero_OfPredicatesAndUniqueValues(t *testing.T) {
	type part struct {
		ID      string `dynamo:"id"`
		Code    string `dynamo:"code"`
		State   string `dynamo:"state"`
		Weight  int64  `dynamo:"weight"`
		Version int64  `dynamo:"version"`
	}
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		parts := define(t, f.Table, entity.Spec[part]{
			Type: "Part", PK: "PART#{id}", SK: "PART", Version: "version",
			Indexes: []entity.Index[part]{{Name: "gsi1", PK: "STATE#{state}", SK: "{id}", When: func(p part) bool { return p.Weight > 10 }}},
			Unique:  []entity.Unique[part]{{Name: "code", Key: "{code}", When: func(p part) bool { return p.State != "old" }}},
		})
		ctx := t.Context()
		put := func(weight string) part {
			item := f.KeyItem(parts.Key(part{ID: "1"}))
			item["state"], item["weight"], item["code"] = str("new"), num(weight), str("x")
			require.NoError(t, f.raw.Write(ctx, table.Put(item)))
			p, err := parts.Get(ctx, part{ID: "1"}, entity.Consistent())
			require.NoError(t, err)
			return p
		}
		p := put("20")
		is := p
		is.State, is.Code = "used", "y"
		for name, write := range map[string]func(part) error{
			"update": func(p part) error {
				return second(parts.Update(ctx, p, entity.Set("state", "used"), entity.Set("code", "y")))
			},
			"updateOp": func(p part) error {
				return f.Table.Write(ctx, parts.UpdateOp(p, entity.Set("state", "used"), entity.Set("code", "y")))
			},
			"modifyOp": func(p part) error {
				is := p
				is.State, is.Code = "used", "y"
				return f.Table.Write(ctx, parts.ModifyOp(p, is))
			},
		} {
			p := put("20")
			put("5")
			require.ErrorIs(t, write(p), entity.ErrStale, name)
			p = put("20")
			require.NoError(t, write(p), name)
			row := f.row(t, parts.Key(p))
			assert.Equal(t, "shop/STATE#used", text(row, "g1pk"), name)
			assert.Equal(t, "1", string(number(row, "_v")))
			assert.Equal(t, map[string]string{"shop/UNIQUE#Part#code#y": "shop/PART#1|PART"}, f.sentinels(t), name)
			require.NoError(t, parts.AnyVersion().Delete(ctx, p))
			assert.Empty(t, f.sentinels(t), name)
		}
		p = put("20")
		put("5")
		require.ErrorIs(t, parts.Delete(ctx, p), entity.ErrStale)
		require.ErrorIs(t, f.Table.Write(ctx, parts.DeleteOp(p)), entity.ErrStale)
		p = put("20")
		require.NoError(t, f.Table.Write(ctx, parts.DeleteOp(p)))
	})
}

// Whatever two readers, and a program that counts no versions, do to a row in whatever order: a write that
// succeeds was made by somebody who had seen all that T knows of the row; one who had is not refused.
func TestVersionZero_NothingUnseenIsOverwritten(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		_, other, crates := newCrates(t, e)
		ctx := context.Background()
		n := 0
		rapid.Check(t, func(rt *rapid.T) {
			n++
			id := fmt.Sprint("r", n)
			read := func() *Crate {
				c, err := crates.Get(ctx, Crate{ID: id}, entity.Consistent())
				if errors.Is(err, entity.ErrNotFound) {
					return nil
				}
				require.NoError(rt, err)
				return &c
			}
			same := func(a, b *Crate) bool {
				if a == nil || b == nil {
					return a == b
				}
				if a.Version > 0 || b.Version > 0 {
					return a.Version == b.Version
				}
				return a.Place == b.Place && a.Weight == b.Weight && a.By == b.By
			}
			seen := [2]*Crate{}
			other.row(id)
			for range rapid.IntRange(2, 7).Draw(rt, "steps") {
				who := rapid.IntRange(0, 1).Draw(rt, "who")
				switch rapid.IntRange(0, 5).Draw(rt, "what") {
				case 0, 1:
					seen[who] = read()
				case 2: // the other program, which changes rows in place only while they have no version
					if now := read(); now != nil && now.Version == 0 {
						other.set(id, "weight", num(fmt.Sprint(rapid.IntRange(5, 7).Draw(rt, "weight"))))
					} else {
						other.put(id, table.Item{"place": str("A1"), "weight": num(fmt.Sprint(rapid.IntRange(5, 7).Draw(rt, "weight")))})
						seen = [2]*Crate{} // a row that begins to count again: what was read before is not told from it
					}
				default:
					if seen[who] == nil {
						continue
					}
					name := rapid.SampledFrom([]string{"Update", "UpdateOp", "Put", "ModifyOp", "Delete", "DeleteOp"}).Draw(rt, "write")
					to := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(rt, "to")
					if name == "ModifyOp" && to == seen[who].Place {
						continue
					}
					before := read()
					err := crateWrites[name](ctx, crates, *seen[who], to)
					// Put with version 0 is for rows that do not exist.
					allowed := same(seen[who], before)
					if name == "Put" && seen[who].Version == 0 {
						allowed = before == nil
					}
					if allowed {
						require.NoError(rt, err, name)
					} else {
						require.True(rt, errors.Is(err, entity.ErrStale) || errors.Is(err, entity.ErrNotFound), "%s: %v", name, err)
						require.True(rt, before == nil == (read() == nil) && (before == nil || assert.ObjectsAreEqual(*before, *read())), "%s changed nothing", name)
					}
					if errors.Is(err, entity.ErrNotFound) || err == nil && (name == "Delete" || name == "DeleteOp") {
						seen = [2]*Crate{} // as above
					}
				}
			}
		})
	})
}
