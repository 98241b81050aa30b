package entity_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Login is a session of a user. The index lists the sessions of a user by the time at which they end.
type Login struct {
	Token   string    `dynamo:"-"`
	User    string    `dynamo:"user"`
	Ends    time.Time `dynamo:"ends"`
	Version int64     `dynamo:"-"`
}

func loginSpec() entity.Spec[Login] {
	return entity.Spec[Login]{
		Type: "Login", PK: "LOGIN#{token}", SK: "LOGIN", TTL: "ends", Version: "version",
		Indexes: []entity.Index[Login]{{Name: "gsi1", PK: "USER#{user}", SK: "{ends:time-s}#{token}"}},
	}
}

// The attribute has whole seconds, rounded up. So has the index key, whichever write makes it.
func TestTTL_InAnIndexKeyIsRoundedUpByEveryWrite(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		logins := define(t, f.Table, loginSpec())
		ctx, at := t.Context(), f.clock.now().Add(time.Hour) // not a whole second
		require.NotZero(t, at.Nanosecond())
		want := at.Truncate(time.Second)

		check := func(l Login) {
			t.Helper()
			want = want.Add(time.Second)
			require.Equal(t, want, l.Ends)
			require.Equal(t, want.Format("2006-01-02T15:04:05Z")+"#t", text(f.row(t, logins.Key(l)), "g1sk"))
			at = at.Add(time.Second)
		}
		l, err := logins.Create(ctx, Login{Token: "t", User: "ada", Ends: at})
		require.NoError(t, err)
		check(l)
		l, err = logins.Update(ctx, l, entity.Set("ends", at))
		require.NoError(t, err)
		check(l)
		l, err = logins.Modify(ctx, l, func(l *Login) error { l.Ends = at; return nil })
		require.NoError(t, err)
		check(l)
		is := l
		is.Ends = at
		require.NoError(t, f.Write(ctx, logins.ModifyOp(l, is)))
		l, err = logins.Get(ctx, l, entity.Consistent())
		require.NoError(t, err)
		check(l)
		l.Ends = at
		l, err = logins.Put(ctx, l)
		require.NoError(t, err)
		check(l)
		for got, err := range logins.Query(ctx, keys.Values{"user": "ada", "ends": at.Add(-time.Second)}, entity.On("gsi1")) {
			require.NoError(t, err)
			require.Equal(t, l, got)
			l.User = ""
		}
		require.Empty(t, l.User, "the row is found by its time, as it was before rounding")
	})
}

// Other programs write NULL for a row that never expires. DynamoDB ignores a time to live that is not a number.
// Source: "Using time to live (TTL) in DynamoDB".
func TestTTL_OfNullIsNone(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		logins := define(t, f.Table, loginSpec())
		ctx, key := t.Context(), logins.Key(Login{Token: "t"})
		item := f.KeyItem(key)
		item["_ttl"] = &types.AttributeValueMemberNULL{Value: true}
		item["user"] = str("ada")
		require.NoError(t, f.Write(ctx, table.Put(item)))

		l, err := logins.Get(ctx, Login{Token: "t"}, entity.Consistent())
		require.NoError(t, err)
		require.Equal(t, Login{Token: "t", User: "ada"}, l)
		_, err = logins.Create(ctx, l)
		require.ErrorIs(t, err, entity.ErrExists)
		err = f.Write(ctx, logins.UpdateOp(l, entity.Set("user", "bob")))
		require.NoError(t, err, "a missing attribute, NULL and the zero value are equal")
		l.User, l.Version = "bob", 1
		l, err = logins.Modify(ctx, l, func(l *Login) error { l.Ends = f.clock.now().Add(time.Hour); return nil })
		require.NoError(t, err)
		require.NotEmpty(t, number(f.row(t, key), "_ttl"))
		require.NotZero(t, l.Ends)
	})
}

// Programs that divide milliseconds by 1000 write fractions. Conditions compare these as numbers, and so do readers.
func TestTTL_OfAFractionExpires(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		spec := loginSpec()
		spec.Version, spec.Indexes = "", nil
		logins := define(t, f.Table, spec)
		ctx, key := t.Context(), logins.Key(Login{Token: "t"})
		item := f.KeyItem(key)
		item["_ttl"] = num("1700000000.25")
		require.NoError(t, f.Write(ctx, table.Put(item)))

		_, err := logins.Get(ctx, Login{Token: "t"})
		require.ErrorIs(t, err, entity.ErrNotFound)
		_, err = logins.Update(ctx, Login{Token: "t"}, entity.Set("user", "bob"))
		require.ErrorIs(t, err, entity.ErrNotFound)
		_, err = logins.Create(ctx, Login{Token: "t"})
		require.NoError(t, err)

		item["_ttl"] = num("99999999999.5")
		require.NoError(t, f.Write(ctx, table.Put(item)))
		_, err = logins.Create(ctx, Login{Token: "t"})
		require.ErrorIs(t, err, entity.ErrExists)
		var odd *entity.DecodeError
		_, err = logins.Get(ctx, Login{Token: "t"})
		require.ErrorAs(t, err, &odd)
		require.Equal(t, "_ttl", odd.Attribute)
	})
}

// DynamoDB's times to live, and the conditions on them, begin after 1970. A time before that is past, so the row has expired. A number
// from 0 down means never in rows of other programs.
func TestTTL_OfATimeUpTo1970HasExpired(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		logins := define(t, f.Table, loginSpec())
		ctx, first := t.Context(), time.Unix(1, 0).UTC()
		for _, at := range []time.Time{time.Unix(0, 0), time.Unix(-1, 1), time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)} {
			l, err := logins.Create(ctx, Login{Token: "t", User: "ada", Ends: at})
			require.NoError(t, err)
			require.Equal(t, first, l.Ends)
			_, err = logins.Get(ctx, l)
			require.ErrorIs(t, err, entity.ErrNotFound)
			got, err := logins.Get(ctx, l, entity.WithExpired())
			require.NoError(t, err)
			require.Equal(t, l, got)

			l, err = logins.Create(ctx, Login{Token: "t", User: "ada"}) // in place of the expired row
			require.NoError(t, err)
			l, err = logins.Update(ctx, l, entity.Set("ends", at))
			require.NoError(t, err)
			require.Equal(t, first, l.Ends)
			require.Equal(t, "1970-01-01T00:00:01Z#t", text(f.row(t, logins.Key(l)), "g1sk"))
			_, err = logins.Get(ctx, l)
			require.ErrorIs(t, err, entity.ErrNotFound)
		}
		for _, never := range []string{"0", "-1"} {
			item := f.KeyItem(logins.Key(Login{Token: "t"}))
			item["_ttl"] = num(never)
			require.NoError(t, f.Write(ctx, table.Put(item)))
			l, err := logins.Get(ctx, Login{Token: "t"}, entity.Consistent())
			require.NoError(t, err)
			require.Zero(t, l.Ends)
			l.User = "ada"
			l, err = logins.AnyVersion().Put(ctx, l)
			require.NoError(t, err)
			got, err := logins.Get(ctx, l, entity.Consistent())
			require.NoError(t, err, "it still never expires")
			require.Equal(t, l, got)
		}
	})
}
