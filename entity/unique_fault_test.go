package entity_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/engines/faulty"
	"github.com/mortise-go/mortise/table"
)

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

func TestUniqueValuesWithoutAVersion(t *testing.T) {
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
func TestUniqueValuesSurviveLostAnswers(t *testing.T) {
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

func TestSentinelsAreTheValuesOfLivingRows(t *testing.T) {
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
