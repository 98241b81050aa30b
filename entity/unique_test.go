package entity_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/engines/faulty"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// User has an address that is unique within a tenant and a handle that is so everywhere.
type User struct {
	Tenant  string    `dynamo:"tenant"`
	ID      string    `dynamo:"id"`
	Email   string    `dynamo:"email,omitempty"`
	Handle  string    `dynamo:"handle,omitempty"`
	Name    string    `dynamo:"name,omitempty"`
	Logins  int       `dynamo:"logins"`
	Version int64     `dynamo:"version"`
	Expires time.Time `dynamo:"expires,omitempty"`
}

func userSpec() entity.Spec[User] {
	return entity.Spec[User]{
		Type: "User", PK: "TENANT#{tenant}", SK: "USER#{id}", Version: "version", TTL: "expires",
		Unique: []entity.Unique[User]{{Name: "email", Key: "{tenant}#{email}"}, {Name: "handle", Key: "{handle}"}},
	}
}

// sentinels lists the owners of unique values that count, by the sentinels' partition keys.
func (f fixture) sentinels(t require.TestingT) map[string]string {
	list := map[string]string{}
	for item, err := range f.raw.Scan(context.Background(), table.Scan{Consistent: true}) {
		require.NoError(t, err)
		owner, ok := item["uniqueowner"].(*types.AttributeValueMemberM)
		if !ok || f.expired(t, item) {
			continue
		}
		require.Equal(t, "UNIQUE", text(item, "SK"))
		list[text(item, "PK")] = text(owner.Value, "PK") + "|" + text(owner.Value, "SK")
	}
	return list
}

func (f fixture) expired(t require.TestingT, item table.Item) bool {
	at := number(item, "_ttl")
	if at == "" {
		return false
	}
	n, err := at.Int64()
	require.NoError(t, err)
	return n <= f.clock.now().Unix()
}

func TestUnique_ValuesBelongToOneRow(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		users := define(t, f.Table, userSpec())
		ctx := t.Context()
		ann, err := users.Create(ctx, User{Tenant: "acme", ID: "ann", Email: "a@x", Handle: "ann"})
		require.NoError(t, err)
		assert.Equal(t, map[string]string{
			"shop/UNIQUE#User#email#acme#a@x": "shop/TENANT#acme|USER#ann",
			"shop/UNIQUE#User#handle#ann":     "shop/TENANT#acme|USER#ann",
		}, f.sentinels(t))
		sentinel := f.row(t, keys.NewKey("shop/UNIQUE#User#handle#ann", "UNIQUE"))
		assert.Equal(t, "mortise.Unique.User.handle", text(sentinel, "_t"))

		_, err = users.Create(ctx, User{Tenant: "acme", ID: "bob", Email: "a@x"})
		var taken *entity.UniqueError
		require.ErrorAs(t, err, &taken)
		require.ErrorIs(t, err, entity.ErrUnique)
		require.NotErrorIs(t, err, entity.ErrExists)
		assert.Equal(t, "User", taken.Type)
		assert.Equal(t, "email", taken.Constraint)
		assert.Equal(t, users.Key(ann), taken.Owner)
		assert.NotContains(t, err.Error(), "a@x")
		assert.Nil(t, f.row(t, users.Key(User{Tenant: "acme", ID: "bob"})))
		_, err = users.Create(ctx, User{Tenant: "acme", ID: "ann", Email: "a@x"})
		require.ErrorIs(t, err, entity.ErrExists, "the row itself is in the way")
		require.NotErrorIs(t, err, entity.ErrUnique)

		bob, err := users.Create(ctx, User{Tenant: "other", ID: "bob", Email: "a@x"})
		require.NoError(t, err, "another tenant, and no handle at all")
		require.Len(t, f.sentinels(t), 3)
		_, err = users.Update(ctx, bob, entity.Set("handle", "ann"))
		require.ErrorAs(t, err, &taken)
		assert.Equal(t, "handle", taken.Constraint)

		f.faults.Script()
		bob, err = users.Update(ctx, bob, entity.Set("name", "Bob"), entity.Add("logins", 1))
		require.NoError(t, err)
		bob, err = users.Update(ctx, bob, entity.Set("email", "a@x"))
		require.NoError(t, err)
		_, err = users.AnyVersion().Update(ctx, User{Tenant: "other", ID: "bob"}, entity.Set("name", "Bob"))
		require.NoError(t, err)
		assert.Equal(t, []string{"UpdateItem", "UpdateItem", "UpdateItem"}, f.faults.Sent(), "what does not change costs nothing extra")
		bob.Version++

		f.faults.Script()
		bob, err = users.Update(ctx, bob, entity.Set("email", "b@x"), entity.Add("logins", 1))
		require.NoError(t, err)
		assert.Equal(t, []string{"TransactWriteItems"}, f.faults.Sent(), "the old value is the one that was read")
		assert.Equal(t, User{Tenant: "other", ID: "bob", Email: "b@x", Name: "Bob", Logins: 2, Version: 5}, bob)
		got, err := users.Get(ctx, bob, entity.Consistent())
		require.NoError(t, err)
		assert.Equal(t, bob, got, "what is returned is what is kept")

		f.faults.Script()
		bob, err = users.Update(ctx, User{Tenant: "other", ID: "bob", Version: bob.Version}, entity.Set("email", "c@x"))
		require.NoError(t, err, "a value that is not the whole row does not lose track either")
		assert.Equal(t, "Bob", bob.Name)
		assert.Equal(t, []string{"TransactWriteItems", "GetItem", "TransactWriteItems"}, f.faults.Sent())
		bob, err = users.Update(ctx, User{Tenant: "other", ID: "bob", Version: bob.Version, Email: "c@x"}, entity.Set("email", "c2@x"))
		require.NoError(t, err)
		assert.Equal(t, "Bob", bob.Name, "what is returned is the row, not what was given")
		bob, err = users.AnyVersion().Update(ctx, User{Tenant: "other", ID: "bob"}, entity.Set("email", "d@x"), entity.Set("handle", "bob"))
		require.NoError(t, err)
		_, err = users.Update(ctx, got, entity.Set("email", "e@x"))
		require.ErrorIs(t, err, entity.ErrStale)
		assert.Equal(t, map[string]string{
			"shop/UNIQUE#User#email#acme#a@x":  "shop/TENANT#acme|USER#ann",
			"shop/UNIQUE#User#handle#ann":      "shop/TENANT#acme|USER#ann",
			"shop/UNIQUE#User#email#other#d@x": "shop/TENANT#other|USER#bob",
			"shop/UNIQUE#User#handle#bob":      "shop/TENANT#other|USER#bob",
		}, f.sentinels(t))

		bob.Email, bob.Handle = "a@x", ""
		put, err := users.Put(ctx, bob)
		require.NoError(t, err)
		_, err = users.Put(ctx, bob)
		require.ErrorIs(t, err, entity.ErrStale)
		_, err = users.Put(ctx, User{Tenant: "other", ID: "bob"})
		require.ErrorIs(t, err, entity.ErrStale)
		_, err = users.Put(ctx, User{Tenant: "other", ID: "none", Version: 4})
		require.ErrorIs(t, err, entity.ErrNotFound)
		f.faults.Script()
		put.Name = "Robert"
		put, err = users.Put(ctx, put)
		require.NoError(t, err)
		assert.Equal(t, []string{"GetItem", "PutItem"}, f.faults.Sent(), "unchanged values")
		_, err = users.Put(ctx, User{Tenant: "other", ID: "cid", Handle: "ann"})
		require.ErrorIs(t, err, entity.ErrUnique)
		put, err = users.Update(ctx, put, entity.Remove("email"))
		require.NoError(t, err)
		assert.Len(t, f.sentinels(t), 2)

		require.ErrorIs(t, users.Delete(ctx, bob), entity.ErrStale)
		require.NoError(t, users.Delete(ctx, put))
		require.ErrorIs(t, users.Delete(ctx, put), entity.ErrNotFound)
		f.faults.Script()
		require.NoError(t, users.AnyVersion().Delete(ctx, User{Tenant: "acme", ID: "ann"}), "what it had is read")
		require.NoError(t, users.AnyVersion().Delete(ctx, User{Tenant: "acme", ID: "ann"}), "nothing there")
		assert.Equal(t, []string{"GetItem", "TransactWriteItems", "GetItem"}, f.faults.Sent())
		assert.Empty(t, f.sentinels(t))
		_, err = users.Create(ctx, User{Tenant: "acme", ID: "new", Email: "a@x", Handle: "ann"})
		require.NoError(t, err, "free again")
	})
}

func TestUnique_InTransactions(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		users, plain := define(t, f.Table, userSpec()), define(t, f.Table, plainSpec())
		ctx := t.Context()
		ann, bob := User{Tenant: "acme", ID: "ann", Email: "a@x", Handle: "ann"}, User{Tenant: "acme", ID: "bob", Email: "b@x"}
		require.NoError(t, f.Write(ctx, users.CreateOp(ann), users.PutOp(bob)))
		ann.Version, bob.Version = 1, 1
		require.Len(t, f.sentinels(t), 3)

		err := f.Write(ctx, plain.CreateOp(Plain{ID: "1"}), users.UpdateOp(bob, entity.Set("email", "a@x")))
		list := table.Conditions(err)
		require.Len(t, list, 1)
		assert.Equal(t, 1, list[0].Index, "of the caller's operation")
		require.ErrorIs(t, err, entity.ErrUnique)
		assert.Nil(t, f.row(t, plain.Key(Plain{ID: "1"})))

		is := bob
		is.Email, is.Handle = "", "bob"
		require.NoError(t, f.Write(ctx, users.UpdateOp(ann, entity.Set("handle", "ann2")), users.ModifyOp(bob, is)))
		assert.Equal(t, map[string]string{
			"shop/UNIQUE#User#email#acme#a@x": "shop/TENANT#acme|USER#ann",
			"shop/UNIQUE#User#handle#ann2":    "shop/TENANT#acme|USER#ann",
			"shop/UNIQUE#User#handle#bob":     "shop/TENANT#acme|USER#bob",
		}, f.sentinels(t))
		require.ErrorIs(t, f.Write(ctx, users.ModifyOp(bob, is)), entity.ErrStale)
		require.ErrorIs(t, f.Write(ctx, users.ModifyOp(is, is)), entity.ErrInvalid, "nothing differs")
		is.Version = 2
		require.ErrorIs(t, f.Write(ctx, users.PutOp(is)), entity.ErrInvalid, "an Op cannot know what is there")

		wrong := is
		wrong.Handle = "other"
		require.ErrorIs(t, f.Write(ctx, users.DeleteOp(wrong)), entity.ErrStale, "not as it was read")
		require.ErrorIs(t, f.Write(ctx, users.UpdateOp(wrong, entity.Set("handle", "z"))), entity.ErrStale)
		wrong = is
		wrong.Expires = f.clock.now().Add(time.Hour)
		require.ErrorIs(t, f.Write(ctx, users.UpdateOp(wrong, entity.Set("handle", "z"))), entity.ErrStale, "the sentinel would expire and the row not")
		require.NoError(t, f.Write(ctx, users.DeleteOp(is), users.AnyVersion().DeleteOp(User{Tenant: "acme", ID: "ann", Email: "a@x", Handle: "ann2"})))
		assert.Empty(t, f.sentinels(t))

		var ops []table.Op
		for i := range 34 {
			ops = append(ops, users.CreateOp(User{Tenant: "acme", ID: fmt.Sprint(i), Email: fmt.Sprint(i), Handle: fmt.Sprint(i)}))
		}
		require.ErrorContains(t, f.Write(ctx, ops...), "102 actions")
		require.NoError(t, f.Write(ctx, ops[:33]...))
		assert.Len(t, f.sentinels(t), 66)
	})
}

func TestUnique_TellsWhyTwoOperationsOfATransactionAreOnOneItem(t *testing.T) {
	users := define(t, offline(t, schema("app")), userSpec())
	ann := User{Tenant: "acme", ID: "ann", Email: "a@x"}
	for name, c := range map[string]struct {
		other User
		text  string
	}{
		"the row":   {User{Tenant: "acme", ID: "ann", Email: "b@x"}, "operations 0 and 1 are on one item"},
		"the value": {User{Tenant: "acme", ID: "bob", Email: "a@x"}, "operations 0 and 1 are on one item, which one of them changes beside its own, such as the row of a unique value"},
	} {
		err := users.Table().Write(t.Context(), users.CreateOp(ann), users.CreateOp(c.other))
		require.ErrorIs(t, err, entity.ErrInvalid, name)
		assert.True(t, strings.HasSuffix(err.Error(), c.text), "%s: %v", name, err)
	}
}

// What other toolkits were told by their users.
func TestUnique_ValuesThatOthersGetWrong(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		users := define(t, f.Table, userSpec())
		ctx := t.Context()
		t.Run("a row without a value can be deleted", func(t *testing.T) {
			_, err := users.Create(ctx, User{Tenant: "acme", ID: "1"})
			require.NoError(t, err)
			require.NoError(t, users.AnyVersion().Delete(ctx, User{Tenant: "acme", ID: "1"}))
		})
		t.Run("the same row is written twice", func(t *testing.T) {
			upsert := func() error {
				_, err := users.Upsert(ctx, User{Tenant: "acme", ID: "2"}, func(u *User) error {
					u.Email, u.Logins = "2@x", u.Logins+1
					return nil
				})
				return err
			}
			require.NoError(t, upsert())
			require.NoError(t, upsert())
			u, err := users.Get(ctx, User{Tenant: "acme", ID: "2"}, entity.Consistent())
			require.NoError(t, err)
			assert.Equal(t, 2, u.Logins)
		})
		t.Run("an update within a scope meets another row's value", func(t *testing.T) {
			u, err := users.Create(ctx, User{Tenant: "acme", ID: "3", Email: "3@x"})
			require.NoError(t, err)
			before := f.sentinels(t)
			_, err = users.Update(ctx, u, entity.Set("email", "2@x"))
			require.ErrorIs(t, err, entity.ErrUnique)
			_, err = users.AnyVersion().Update(ctx, User{Tenant: "acme", ID: "3"}, entity.Set("email", "2@x"))
			require.ErrorIs(t, err, entity.ErrUnique)
			assert.Equal(t, before, f.sentinels(t), "no row to no purpose")
		})
		t.Run("a value with delimiters does not forge a scope", func(t *testing.T) {
			_, err := users.Create(ctx, User{Tenant: "a", ID: "4", Email: "b#c"})
			require.NoError(t, err)
			_, err = users.Create(ctx, User{Tenant: "a#b", ID: "5", Email: "c"})
			require.NoError(t, err)
		})
		t.Run("a predicate turns false", func(t *testing.T) {
			spec := entity.Spec[User]{
				Type: "Account", PK: "ACCOUNT#{id}", SK: "ACCOUNT", Version: "version",
				Unique: []entity.Unique[User]{{Name: "email", Key: "{email}", When: func(u User) bool { return u.Name != "deleted" }}},
			}
			accounts := define(t, f.Table, spec)
			a, err := accounts.Create(ctx, User{ID: "1", Email: "z@x"})
			require.NoError(t, err)
			_, err = accounts.Create(ctx, User{ID: "2", Email: "z@x"})
			require.ErrorIs(t, err, entity.ErrUnique)
			a, err = accounts.Update(ctx, a, entity.Set("name", "deleted"))
			require.NoError(t, err)
			_, err = accounts.Create(ctx, User{ID: "2", Email: "z@x"})
			require.NoError(t, err)
			_, err = accounts.Update(ctx, a, entity.Set("name", "back"))
			require.ErrorIs(t, err, entity.ErrUnique)
			_, err = accounts.AnyVersion().Update(ctx, User{ID: "1"}, entity.Remove("name"))
			require.ErrorIs(t, err, entity.ErrUnique)
			require.ErrorIs(t, accounts.AnyVersion().UpdateOp(User{ID: "1"}, entity.Remove("name")).Err(), entity.ErrInvalid)
			require.ErrorIs(t, accounts.AnyVersion().DeleteOp(User{ID: "1"}).Err(), entity.ErrInvalid)
			_, err = accounts.Update(ctx, a, entity.Set("logins", 1))
			require.NoError(t, err)
		})
	})
}

func TestUnique_ReadersStepOverSentinels(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		users, plain := define(t, f.Table, userSpec()), define(t, f.Table, plainSpec())
		ann, err := users.Create(t.Context(), User{Tenant: "acme", ID: "ann", Email: "a@x", Handle: "ann"})
		require.NoError(t, err)
		assert.Equal(t, []User{ann}, collect(t, users.Scan(t.Context())))
		var into []User
		var others []Plain
		n := 0
		for image, err := range f.raw.Scan(t.Context(), table.Scan{}) { // as a stream would bring them
			require.NoError(t, err)
			n++
			require.NoError(t, entity.Sort(f.Table, image, entity.Into(plain, &others), entity.Into(users, &into)))
			if text(image, "_t") != "User" {
				keysOnly := table.Item{"PK": image["PK"], "SK": image["SK"]}
				require.NoError(t, entity.Sort(f.Table, keysOnly, entity.Into(users, &into)))
				require.NoError(t, entity.Sort(f.Table, image, entity.Into(plain, &others)), "another entity's, which its type tells")
				require.ErrorIs(t, entity.Sort(f.Table, keysOnly, entity.Into(plain, &others)), entity.ErrType)
			}
		}
		assert.Equal(t, 3, n)
		assert.Equal(t, []User{ann}, into)
		assert.Empty(t, others)
		written, err := users.PutAll(t.Context(), []User{ann, {Tenant: "acme", ID: "bob", Email: "a@x"}})
		require.ErrorIs(t, err, entity.ErrUnique)
		assert.Equal(t, int64(2), written[0].Version)
		assert.Len(t, f.sentinels(t), 2)
	})
}

func TestUnique_ExpiresWithItsRow(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		users := define(t, f.Table, userSpec())
		ctx := t.Context()
		ann, err := users.Create(ctx, User{Tenant: "acme", ID: "ann", Email: "a@x", Expires: f.clock.now().Add(time.Minute)})
		require.NoError(t, err)
		sentinel := keys.NewKey("shop/UNIQUE#User#email#acme#a@x", "UNIQUE")
		assert.Equal(t, number(f.row(t, users.Key(ann)), "_ttl"), number(f.row(t, sentinel), "_ttl"))
		ann, err = users.Update(ctx, ann, entity.Set("expires", f.clock.now().Add(time.Hour)))
		require.NoError(t, err)
		assert.Equal(t, number(f.row(t, users.Key(ann)), "_ttl"), number(f.row(t, sentinel), "_ttl"), "the sentinel lives as long")
		f.clock.advance(30 * time.Minute)
		_, err = users.Create(ctx, User{Tenant: "acme", ID: "bob", Email: "a@x"})
		require.ErrorIs(t, err, entity.ErrUnique)
		f.clock.advance(time.Hour)
		f.faults.Script()
		bob, err := users.Create(ctx, User{Tenant: "acme", ID: "bob", Email: "a@x"})
		require.NoError(t, err, "an expired sentinel is none")
		assert.Equal(t, []string{"TransactWriteItems"}, f.faults.Sent())
		require.NoError(t, users.AnyVersion().Delete(ctx, User{Tenant: "acme", ID: "ann"}), "a row that expired has nothing to give up any more")
		_, err = users.Get(ctx, User{Tenant: "acme", ID: "ann"}, entity.Consistent(), entity.WithExpired())
		require.ErrorIs(t, err, entity.ErrNotFound, "deleted")
		assert.Equal(t, map[string]string{sentinel.PK: "shop/TENANT#acme|USER#bob"}, f.sentinels(t))
		bob, err = users.Update(ctx, bob, entity.Set("expires", f.clock.now().Add(time.Minute)))
		require.NoError(t, err)
		f.clock.advance(time.Hour)
		again, err := users.Put(ctx, User{Tenant: "acme", ID: "bob", Email: "c@x"})
		require.NoError(t, err, "over the expired row")
		assert.Equal(t, map[string]string{"shop/UNIQUE#User#email#acme#c@x": "shop/TENANT#acme|USER#bob"}, f.sentinels(t))
		assert.Equal(t, int64(1), again.Version)
		_, err = users.Update(ctx, bob, entity.Set("email", "d@x"))
		require.ErrorIs(t, err, entity.ErrStale)
	})
}

func TestUnique_SentinelsWithoutARightDoNotBlock(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		users := define(t, f.Table, userSpec())
		ctx := t.Context()
		ann, err := users.Create(ctx, User{Tenant: "acme", ID: "ann", Email: "a@x", Handle: "ann"})
		require.NoError(t, err)
		require.NoError(t, f.raw.Write(ctx, table.Delete(users.Key(ann)))) // by another program
		require.Len(t, f.sentinels(t), 2)

		// The owner comes back between the look at it and the write: then it is one.
		f.faults.Before(func(op string) {
			if op == "GetItem" {
				f.faults.Before(func(string) {
					f.faults.Before(nil)
					_, err := define(t, f.raw, userSpec()).Create(ctx, User{Tenant: "acme", ID: "ann"})
					require.NoError(t, err)
				})
			}
		})
		_, err = users.Create(ctx, User{Tenant: "acme", ID: "bob", Email: "a@x"})
		require.ErrorIs(t, err, entity.ErrUnique)
		require.NoError(t, users.Delete(ctx, ann))
		require.NoError(t, f.raw.Write(ctx, users.CreateOp(ann)))
		require.NoError(t, f.raw.Write(ctx, table.Delete(users.Key(ann))))

		f.faults.Script()
		_, err = users.Create(ctx, User{Tenant: "acme", ID: "bob", Email: "a@x", Handle: "ann"})
		require.NoError(t, err)
		assert.Equal(t, []string{"TransactWriteItems", "GetItem", "GetItem", "TransactWriteItems"}, f.faults.Sent())
		assert.Equal(t, map[string]string{
			"shop/UNIQUE#User#email#acme#a@x": "shop/TENANT#acme|USER#bob",
			"shop/UNIQUE#User#handle#ann":     "shop/TENANT#acme|USER#bob",
		}, f.sentinels(t))

		// The owner was created again with another value.
		require.NoError(t, f.raw.Write(ctx, users.CreateOp(User{Tenant: "acme", ID: "eve", Email: "e@x", Handle: "eve"})))
		require.NoError(t, f.raw.Write(ctx, table.Delete(users.Key(User{Tenant: "acme", ID: "eve"}))))
		eve, err := users.Create(ctx, User{Tenant: "acme", ID: "eve", Email: "new@x"})
		require.NoError(t, err)
		f.faults.Before(func(op string) { // who takes the old value back in the moment before the write
			if op == "GetItem" {
				f.faults.Before(func(string) {
					f.faults.Before(nil)
					eve, err = define(t, f.raw, userSpec()).Update(ctx, eve, entity.Set("email", "e@x"))
					require.NoError(t, err)
				})
			}
		})
		_, err = users.Create(ctx, User{Tenant: "acme", ID: "dan", Email: "e@x"})
		require.ErrorIs(t, err, entity.ErrUnique)
		_, err = users.Create(ctx, User{Tenant: "acme", ID: "dan", Email: "e@x"})
		require.ErrorIs(t, err, entity.ErrUnique)
		eve, err = users.Update(ctx, eve, entity.Remove("email"))
		require.NoError(t, err)
		dan, err := users.Create(ctx, User{Tenant: "acme", ID: "dan", Email: "e@x", Handle: "eve"})
		require.NoError(t, err, "the handle is nobody's")
		for _, u := range []User{eve, dan} {
			require.NoError(t, users.Delete(ctx, u))
		}

		// A row that is older than the constraint, with a value that another row has.
		bare := userSpec()
		bare.Type, bare.Unique = "User", nil
		other, err := table.Open(e.Client(), f.raw.Schema(), table.WithClock(f.clock.now))
		require.NoError(t, err)
		twin, err := define(t, other, bare).Create(ctx, User{Tenant: "acme", ID: "twin", Email: "a@x"})
		require.NoError(t, err)
		twin, err = users.Update(ctx, twin, entity.Set("email", "t@x"))
		require.NoError(t, err)
		assert.Equal(t, "shop/TENANT#acme|USER#bob", f.sentinels(t)["shop/UNIQUE#User#email#acme#a@x"], "not its own to delete")
		assert.Equal(t, "shop/TENANT#acme|USER#twin", f.sentinels(t)["shop/UNIQUE#User#email#acme#t@x"])
		require.NoError(t, users.Delete(ctx, twin))

		foreign := f.KeyItem(keys.NewKey("shop/UNIQUE#User#handle#zed", "UNIQUE"))
		require.NoError(t, f.raw.Write(ctx, table.Put(foreign)))
		_, err = users.Create(ctx, User{Tenant: "acme", ID: "zed", Handle: "zed"})
		require.ErrorIs(t, err, entity.ErrType, "a row of something else is never touched")
		foreign["_t"], foreign["uniqueowner"] = str("mortise.Unique.User.handle"), &types.AttributeValueMemberM{Value: table.Item{"PK": num("1")}}
		require.NoError(t, f.raw.Write(ctx, table.Put(foreign)))
		_, err = users.Create(ctx, User{Tenant: "acme", ID: "zed", Handle: "zed"})
		require.ErrorIs(t, err, entity.ErrType, "its owner is no key")

		f.faults.Script(faulty.Pass, faulty.Refuse(400, "ResourceNotFoundException"))
		_, err = users.Create(ctx, User{Tenant: "acme", ID: "zed", Handle: "ann"})
		require.ErrorIs(t, err, entity.ErrUnique)
		require.ErrorIs(t, err, table.ErrNoTable, "why the owner could not be looked at")
	})
}

// A row that is older than the constraint can have a value of which no sentinel can be made. It has none then, and can be mended.
func TestUnique_AnOldRowWithAValueThatNoKeyHolds(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		users := define(t, f.Table, userSpec())
		bare := userSpec()
		bare.Unique = nil
		older, err := table.Open(e.Client(), f.raw.Schema(), table.WithClock(f.clock.now))
		require.NoError(t, err)
		ctx := t.Context()
		long := strings.Repeat("x", keys.MaxPK)
		old := func(id string) User {
			u, err := define(t, older, bare).Create(ctx, User{Tenant: "acme", ID: id, Email: long})
			require.NoError(t, err)
			return u
		}
		for name, write := range map[string]func(User) error{
			"update":   func(u User) error { return second(users.Update(ctx, u, entity.Set("email", "a@x"))) },
			"updateOp": func(u User) error { return f.Write(ctx, users.UpdateOp(u, entity.Set("email", "b@x"))) },
			"modify": func(u User) error {
				return second(users.Modify(ctx, u, func(u *User) error { u.Email = "c@x"; return nil }))
			},
			"put":    func(u User) error { u.Email = "d@x"; return second(users.Put(ctx, u)) },
			"delete": func(u User) error { return users.Delete(ctx, u) },
		} {
			require.NoError(t, write(old(name)), name)
		}
		assert.Len(t, f.sentinels(t), 4)
		err = second(users.Create(ctx, User{Tenant: "acme", ID: "new", Email: long}))
		require.ErrorIs(t, err, keys.ErrTooLong)
		require.ErrorContains(t, err, "constraint email")

		// Nor does such a row have the value of a sentinel that names it.
		eve, err := users.Create(ctx, User{Tenant: "acme", ID: "eve", Email: "e@x"})
		require.NoError(t, err)
		require.NoError(t, f.raw.Write(ctx, table.Delete(users.Key(eve))))
		old("eve")
		require.NoError(t, second(users.Create(ctx, User{Tenant: "acme", ID: "dan", Email: "e@x"})))
	})
}

func TestDefine_ChecksUnique(t *testing.T) {
	base := func() entity.Spec[User] {
		return entity.Spec[User]{Type: "User", PK: "TENANT#{tenant}", SK: "USER#{id}"}
	}
	tbl := offline(t, schema("app"))
	for name, c := range map[string]struct {
		unique []entity.Unique[User]
		change func(*entity.Spec[User])
		want   string
	}{
		"no name":         {unique: []entity.Unique[User]{{Key: "{email}"}}, want: "Unique[0].Name: empty"},
		"no such field":   {unique: []entity.Unique[User]{{Name: "x", Key: "{nope}"}}, want: `Unique[0].Key: template names "nope"`},
		"no field":        {unique: []entity.Unique[User]{{Name: "x", Key: "x"}}, want: "names no field"},
		"twice":           {unique: []entity.Unique[User]{{Name: "x", Key: "{email}"}, {Name: "x", Key: "{handle}"}}, want: "declared twice"},
		"a shard":         {unique: []entity.Unique[User]{{Name: "x", Key: "{email:shard4}"}}, want: "a shard is not unique"},
		"overlap":         {unique: []entity.Unique[User]{{Name: "x", Key: "{email}#{handle}"}, {Name: "x#y", Key: "{handle}"}}, want: "could have the keys of those of"},
		"a predicate":     {unique: []entity.Unique[User]{{Name: "x", Key: "{email}", When: func(User) bool { return true }}}, want: "needs a Version"},
		"the version":     {unique: []entity.Unique[User]{{Name: "x", Key: "{version:int10}"}}, change: func(s *entity.Spec[User]) { s.Version = "version" }, want: "maintained by the entity"},
		"keys of rows":    {unique: []entity.Unique[User]{{Name: "x", Key: "{email}"}}, change: func(s *entity.Spec[User]) { s.PK, s.SK = "UNIQUE#User#x#{id}", "UNIQUE" }, want: "keys of rows"},
		"no template":     {unique: []entity.Unique[User]{{Name: "x", Key: "{email"}}, want: "Unique[0].Key: keys: "},
		"too long a type": {unique: []entity.Unique[User]{{Name: strings.Repeat("x", 255), Key: "{email}"}}, want: "longer than 255 bytes"},
	} {
		spec := base()
		spec.Unique = c.unique
		if c.change != nil {
			c.change(&spec)
		}
		_, err := entity.Define(tbl, spec)
		assert.ErrorContains(t, err, c.want, name)
	}
	s := schema("app")
	s.Indexes = append(s.Indexes, table.Index{Name: "owner", PK: "uniqueowner"})
	_, err := entity.Define(offline(t, s), userSpec())
	require.ErrorContains(t, err, `attribute "uniqueowner", which sentinels need`)

	_, err = entity.Define(tbl, userSpec())
	require.NoError(t, err)
	_, err = entity.Define(tbl, userSpec())
	require.NoError(t, err, "the same again")
	_, err = entity.Define(tbl, base())
	require.ErrorContains(t, err, `Type "User" is taken`, "without the constraints its writes would break them")
	type row struct {
		ID string `dynamo:"id"`
	}
	_, err = entity.Define(tbl, entity.Spec[row]{Type: "mortise.Unique.User.email", PK: "X#{id}", SK: "X"})
	require.ErrorContains(t, err, `names that begin with "mortise." are the toolkit's own`)
	_, err = entity.Define(tbl, entity.Spec[row]{Type: "Row", PK: "UNIQUE#{id}#email#a#b", SK: "UNIQUE"})
	require.ErrorContains(t, err, `could be the key of a "mortise.Unique.User.email"`)
}

// Badge has unique values and no version.
type Badge struct {
	ID    string `dynamo:"id"`
	No    int    `dynamo:"no,omitempty"`
	Owner *int   `dynamo:"owner,omitempty"`
	Count int    `dynamo:"count"`
}

func badgeSpec() entity.Spec[Badge] {
	return entity.Spec[Badge]{
		Type: "Badge", PK: "BADGE#{id}", SK: "BADGE",
		Unique: []entity.Unique[Badge]{{Name: "owner", Key: "{owner:int6}"}},
	}
}

func TestUnique_WithoutAVersion(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		badges, others := define(t, f.Table, badgeSpec()), define(t, f.raw, badgeSpec())
		ctx := t.Context()
		one, two, three := 1, 2, 3
		_, err := badges.Put(ctx, Badge{ID: "1", Owner: &one})
		require.NoError(t, err)
		races := 2
		race := func(op string) {
			if op == "TransactWriteItems" && races > 0 {
				races--
				next := 10 + races
				_, err := others.Put(ctx, Badge{ID: "1", Owner: &next, Count: next})
				require.NoError(t, err)
			}
		}
		f.faults.Before(race)
		b, err := badges.Update(ctx, Badge{ID: "1"}, entity.Set("owner", 2))
		require.NoError(t, err, "read again as often as it loses a race")
		assert.Equal(t, Badge{ID: "1", Owner: &two, Count: 10}, b)
		races = 1
		_, err = badges.Put(ctx, Badge{ID: "1", Owner: &three})
		require.NoError(t, err)
		assert.Equal(t, map[string]string{"shop/UNIQUE#Badge#owner#1000003": "shop/BADGE#1|BADGE"}, f.sentinels(t))
		races = 1
		b, err = badges.Modify(ctx, Badge{ID: "1"}, func(b *Badge) error {
			b.Owner, b.Count = &one, b.Count+1
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, 11, b.Count)
		assert.Equal(t, map[string]string{"shop/UNIQUE#Badge#owner#1000001": "shop/BADGE#1|BADGE"}, f.sentinels(t))
		races = 1
		require.NoError(t, badges.Delete(ctx, Badge{ID: "1"}))
		assert.Empty(t, f.sentinels(t))
		f.faults.Before(func(op string) { // gone between the read and the write
			if op == "TransactWriteItems" {
				f.faults.Before(nil)
				require.NoError(t, others.Delete(ctx, Badge{ID: "2"}))
			}
		})
		_, err = others.Put(ctx, Badge{ID: "2", Owner: &two})
		require.NoError(t, err)
		require.NoError(t, badges.Delete(ctx, Badge{ID: "2"}))
		require.ErrorIs(t, badges.PutOp(Badge{ID: "1"}).Err(), entity.ErrInvalid)
	})
}

// Whatever is lost on the way, rows and sentinels agree, and a caller who got no error has
// what was asked for.
func TestUnique_SurvivesLostAnswers(t *testing.T) {
	steps := []struct {
		name string
		do   func(context.Context, *entity.Entity[User], User) (User, error)
		want User
	}{
		{"create", func(ctx context.Context, e *entity.Entity[User], u User) (User, error) { return e.Create(ctx, u) }, User{Email: "a", Handle: "a"}},
		{"update", func(ctx context.Context, e *entity.Entity[User], u User) (User, error) {
			return e.Update(ctx, u, entity.Set("email", "b"), entity.Add("logins", 1))
		}, User{Email: "b", Handle: "a", Logins: 1}},
		{"update by key", func(ctx context.Context, e *entity.Entity[User], u User) (User, error) {
			return e.AnyVersion().Update(ctx, User{Tenant: u.Tenant, ID: u.ID}, entity.Set("email", "c"), entity.Add("logins", 1))
		}, User{Email: "c", Handle: "a", Logins: 2}},
		{"put", func(ctx context.Context, e *entity.Entity[User], u User) (User, error) {
			u.Handle = "p"
			return e.Put(ctx, u)
		}, User{Email: "c", Handle: "p", Logins: 2}},
		{"modify", func(ctx context.Context, e *entity.Entity[User], u User) (User, error) {
			return e.Modify(ctx, u, func(u *User) error { u.Email, u.Logins = "m", u.Logins+1; return nil })
		}, User{Email: "m", Handle: "p", Logins: 3}},
		{"modify of nothing unique", func(ctx context.Context, e *entity.Entity[User], u User) (User, error) {
			return e.Modify(ctx, u, func(u *User) error { u.Logins++; return nil })
		}, User{Email: "m", Handle: "p", Logins: 4}},
		{"delete", func(ctx context.Context, e *entity.Entity[User], u User) (User, error) {
			return User{}, e.Delete(ctx, u)
		}, User{}},
	}
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		users := define(t, f.Table, userSpec())
		for i, outcome := range []faulty.Outcome{faulty.DropReply, faulty.DropRequest, faulty.Throttle()} {
			for call := range 3 {
				u := User{Tenant: "acme", ID: fmt.Sprintf("%d-%d", i, call), Email: "a", Handle: "a"}
				for n, s := range steps {
					f.faults.Script(append(slices.Repeat([]faulty.Outcome{faulty.Pass}, call), outcome)...)
					got, err := s.do(t.Context(), users, u)
					require.NoError(t, err, s.name)
					if n < len(steps)-1 {
						s.want.Tenant, s.want.ID, s.want.Version = u.Tenant, u.ID, int64(n+1)
						require.Equal(t, s.want, got, s.name)
					}
					f.assertUnique(t, users)
					u = got
				}
				assert.Empty(t, f.sentinels(t))
			}
		}
	})
}

// assertUnique checks that the sentinels that count are exactly the values of living rows.
func (f fixture) assertUnique(t require.TestingT, users *entity.Entity[User]) {
	want := map[string]string{}
	for item, err := range f.raw.Scan(context.Background(), table.Scan{Consistent: true}) {
		require.NoError(t, err)
		if text(item, "_t") != "User" || f.expired(t, item) {
			continue
		}
		u, err := users.Decode(item)
		require.NoError(t, err)
		key := users.Key(u)
		if u.Email != "" {
			want["shop/UNIQUE#User#email#"+u.Tenant+"#"+u.Email] = key.PK + "|" + key.SK
		}
		if u.Handle != "" {
			want["shop/UNIQUE#User#handle#"+u.Handle] = key.PK + "|" + key.SK
		}
	}
	require.Equal(t, want, f.sentinels(t))
}

func TestUnique_SentinelsAreTheValuesOfLivingRows(t *testing.T) {
	loose := userSpec()
	loose.Version = ""
	t.Run("versioned", func(t *testing.T) { keepsSentinels(t, userSpec()) })
	t.Run("without versions", func(t *testing.T) { keepsSentinels(t, loose) })
}

func keepsSentinels(t *testing.T, spec entity.Spec[User]) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		users, others := define(t, f.Table, spec), define(t, f.raw, spec)
		ctx := context.Background()
		rapid.Check(t, func(rt *rapid.T) {
			var ops []table.Op
			for item, err := range f.raw.Scan(ctx, table.Scan{Consistent: true}) {
				require.NoError(rt, err)
				key, err := f.raw.KeyOf(item)
				require.NoError(rt, err)
				ops = append(ops, table.Delete(key))
			}
			require.NoError(rt, f.raw.BatchWrite(ctx, ops))
			values := rapid.SampledFrom([]string{"", "a", "b", "c"})
			known := map[string]User{} // as last seen, perhaps stale
			write := func(e *entity.Entity[User], tbl *table.Table) {
				id := rapid.SampledFrom([]string{"1", "2", "3"}).Draw(rt, "id")
				u := User{Tenant: "t", ID: id}
				if rapid.Bool().Draw(rt, "seen") {
					if have, ok := known[id]; ok {
						u = have
					}
				}
				email, handle := values.Draw(rt, "email"), values.Draw(rt, "handle")
				var expires time.Time
				if rapid.Bool().Draw(rt, "expires") {
					expires = f.clock.now().Add(time.Duration(rapid.IntRange(1, 3).Draw(rt, "ttl")) * time.Second)
				}
				changes := []entity.Change{entity.Set("email", email), entity.Set("handle", handle), entity.Set("expires", expires), entity.Set("name", "n")}
				changes = rapid.Permutation(changes).Draw(rt, "changes")[:rapid.IntRange(1, 4).Draw(rt, "n")]
				changed := u
				changed.Email, changed.Handle, changed.Expires = email, handle, expires
				got, err := u, error(nil)
				switch rapid.SampledFrom([]string{"create", "put", "update", "modify", "upsert", "delete", "createOp", "putOp", "updateOp", "modifyOp", "deleteOp"}).Draw(rt, "op") {
				case "create":
					got, err = e.Create(ctx, changed)
				case "put":
					got, err = e.Put(ctx, changed)
				case "update":
					got, err = e.Update(ctx, u, changes...)
				case "modify":
					got, err = e.Modify(ctx, u, func(u *User) error { u.Email, u.Expires = email, expires; return nil })
				case "upsert":
					got, err = e.Upsert(ctx, u, func(u *User) error { u.Handle = handle; return nil })
				case "delete":
					err = e.Delete(ctx, u)
				case "createOp":
					err = tbl.Write(ctx, e.CreateOp(changed))
				case "putOp":
					err = tbl.Write(ctx, e.PutOp(changed))
				case "updateOp":
					err = tbl.Write(ctx, e.UpdateOp(u, changes...))
				case "modifyOp":
					err = tbl.Write(ctx, e.ModifyOp(u, changed))
				case "deleteOp":
					err = tbl.Write(ctx, e.DeleteOp(u))
				}
				for _, allowed := range []error{entity.ErrUnique, entity.ErrExists, entity.ErrStale, entity.ErrNotFound, entity.ErrInvalid} {
					if errors.Is(err, allowed) {
						return
					}
				}
				require.NoError(rt, err)
				known[id] = got
			}
			for range rapid.IntRange(1, 12).Draw(rt, "steps") {
				races := rapid.IntRange(0, 1).Draw(rt, "races")
				f.faults.Before(func(op string) {
					if races > 0 && op != "GetItem" && op != "Scan" {
						races--
						write(others, f.raw)
					}
				})
				write(users, f.Table)
				f.faults.Before(nil)
				f.assertUnique(rt, users)
				f.clock.advance(rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(rt, "pass"))
				f.assertUnique(rt, users)
			}
		})
	})
}

// With unique values, Delete of any version reads the row first. That it finds none does not make a condition of the caller hold.
func TestUnique_DeleteOfNoRowChecksTheCondition(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		users := define(t, f.Table, userSpec()).AnyVersion()
		ctx := t.Context()
		key := User{Tenant: "acme", ID: "ann"}
		require.NoError(t, users.Delete(ctx, key))
		named := users.If(users.Field("name").Equal("Ann"))
		err := named.Delete(ctx, key)
		require.ErrorIs(t, err, table.ErrCondition)
		require.NotErrorIs(t, err, entity.ErrStale)
		require.NoError(t, users.If(users.Field("name").NotExists()).Delete(ctx, key))

		others, ann := define(t, f.raw, userSpec()), User{Tenant: "acme", ID: "ann", Name: "Ann"}
		require.NoError(t, second(others.Create(ctx, ann)))
		f.faults.Before(func(op string) {
			if op != "GetItem" {
				f.faults.Before(nil)
				require.NoError(t, others.AnyVersion().Delete(ctx, ann))
			}
		})
		require.ErrorIs(t, named.Delete(ctx, key), table.ErrCondition, "deleted between the read and the write")
		f.faults.Before(func(op string) {
			if op != "GetItem" {
				f.faults.Before(nil)
				require.NoError(t, second(others.Create(ctx, ann)))
			}
		})
		require.NoError(t, named.Delete(ctx, key), "created between the read and the write")
		assert.Nil(t, f.row(t, users.Key(key)))
	})
}

// Another program deletes the row between the read and the write. That is no error, also if the table's policy repeats nothing.
func TestUnique_DeleteOfARowThatIsDeletedMeanwhile(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		tbl, err := table.Open(e.Client(f.faults.Options), f.Table.Schema(), eager(0), table.WithClock(f.clock.now))
		require.NoError(t, err)
		users := define(t, tbl, userSpec()).AnyVersion()
		others, ann := define(t, f.raw, userSpec()), User{Tenant: "acme", ID: "ann", Name: "Ann", Handle: "ann"}
		ctx := t.Context()
		for _, deletes := range []*entity.Entity[User]{users, users.If(users.Field("name").NotExists())} {
			require.NoError(t, second(others.Create(ctx, ann)))
			f.faults.Before(func(op string) {
				if op != "GetItem" {
					f.faults.Before(nil)
					require.NoError(t, others.AnyVersion().Delete(ctx, ann))
				}
			})
			require.NoError(t, deletes.Delete(ctx, ann))
		}
	})
}
