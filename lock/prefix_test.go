package lock_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// overloaded is the schema of a table of another program. Its indexes are over attributes that locks have, too, with other
// types.
var overloaded = table.Schema{Indexes: []table.Index{
	{Name: "by-data", PK: "sk", SK: "data"},
	{Name: "by-line", PK: "line", PKType: table.Number, SK: "fence"},
	{Name: "by-ask", PK: "ask", SK: "owner", SKType: table.Binary},
	{Name: "held", PK: "heldpk", SK: "heldsk"},
}}

const prefix = "lock_"

// prefixed runs f on every engine, in an overloaded table.
func prefixed(t *testing.T, f func(ctx context.Context, p *place)) {
	t.Helper()
	contractWith(t, overloaded, lock.Config{Owner: "test", AttributePrefix: prefix, Index: "held"}, f)
}

// ofOurs checks that a lock row has only attributes with the prefix, apart from the scheme's and the keys of the index of
// locks.
func ofOurs(t *testing.T, item table.Item) {
	t.Helper()
	for name := range item {
		known := slices.Contains([]string{"pk", "sk", "type", "ttl", "heldpk", "heldsk"}, name)
		assert.True(t, known || strings.HasPrefix(name, prefix), "attribute %q", name)
	}
}

func TestAttributePrefix_AvoidsIndexesOfTheApplication(t *testing.T) {
	prefixed(t, func(ctx context.Context, p *place) {
		_, err := lock.New(p.locks(), lock.Config{})
		require.ErrorIs(p, err, lock.ErrInvalid, "or there would be nothing to show")

		other := p.open(lock.Config{Owner: "other", AttributePrefix: prefix, Index: "held"})
		target := lock.Beside(keys.NewKey("TENANT#1", "ORDER#1"))
		l, err := p.client.Acquire(ctx, target, lock.WithData(7)) // no key of index by-data may have this type
		require.NoError(p, err)
		row := p.raw(l)
		ofOurs(p.T, row)
		assert.Equal(p, &types.AttributeValueMemberN{Value: "7"}, row["lock_data"])

		_, err = other.TryAcquire(ctx, target)
		var held *lock.HeldError
		require.ErrorAs(p, err, &held)
		assert.Equal(p, "test", held.Owner)
		assert.Equal(p, l.Fence(), held.Fence)
		var data int
		require.NoError(p, held.Data.Decode(&data))
		assert.Equal(p, 7, data)

		require.NoError(p, l.SetData(ctx, []string{"a"}))
		r, err := other.Inspect(ctx, target)
		require.NoError(p, err)
		assert.Equal(p, l.Fence(), r.Fence)
		var list []string
		require.NoError(p, r.Data.Decode(&list))
		assert.Equal(p, []string{"a"}, list)

		// Read together with the rows that it stands beside.
		require.NoError(p, p.table.Write(ctx, table.Put(p.table.KeyItem(keys.NewKey("TENANT#1", "ORDER#1")))))
		var records []lock.Record
		var rest []table.Item
		require.NoError(p, entity.Collect(ctx, p.table, "TENANT#1", entity.Into(other.Records(), &records), entity.Raw(&rest)))
		require.Len(p, records, 1)
		assert.Equal(p, r, records[0])
		assert.Len(p, rest, 1)
		for name, from := range map[string]lock.Source{"in": lock.In("TENANT#1"), "index": lock.Index(), "table": lock.WholeTable()} {
			of, errs := p.listed(from)
			assert.Empty(p, errs, name)
			assert.Equal(p, []string{"ORDER#1"}, of, name)
		}

		// Guarded writes, and their end.
		require.NoError(p, l.Write(ctx, table.Put(p.table.KeyItem(keys.NewKey("ROW", "ROW")))))
		require.NoError(p, p.table.Write(ctx, table.Delete(keys.NewKey("ROW", "ROW")), l.Guard()))
		require.NoError(p, l.Commit(ctx, table.Put(p.table.KeyItem(keys.NewKey("ROW", "ROW")))))
		row = p.raw(l)
		ofOurs(p.T, row)
		assert.Empty(p, row["lock_line"].(*types.AttributeValueMemberL).Value)
		assert.ErrorIs(p, p.table.Write(ctx, table.Delete(keys.NewKey("ROW", "ROW")), l.Guard()), lock.ErrReleased)
		of, _ := p.listed(lock.Index())
		assert.Empty(p, of)

		// Acquired by another process, as a Fixed lease, and taken by force.
		l, err = other.Acquire(ctx, target, lock.Fixed(time.Minute))
		require.NoError(p, err)
		assert.Equal(p, r.Fence+1, l.Fence())
		r, err = p.client.Inspect(ctx, target)
		require.NoError(p, err)
		assert.Zero(p, r.Renewed)
		require.NoError(p, l.Renew(ctx))
		ofOurs(p.T, p.raw(l))
		r, err = p.client.Inspect(ctx, target)
		require.NoError(p, err)
		assert.GreaterOrEqual(p, r.Renewed, r.Holder().Since.UnixMilli())
		require.NoError(p, p.client.ForceRelease(ctx, target, r.Holder().Ticket, "for the test"))
		row = p.raw(l)
		ofOurs(p.T, row)
		assert.Equal(p, &types.AttributeValueMemberS{Value: "for the test"}, row["lock_forced"])
		require.ErrorIs(p, l.Write(ctx, table.Delete(keys.NewKey("ROW", "ROW"))), lock.ErrLost)

		b, err := p.client.AcquireAll(ctx, []lock.Target{target, lock.Name("a"), lock.Name("b")})
		require.NoError(p, err)
		_, err = other.TryAcquireAll(ctx, []lock.Target{lock.Name("b"), lock.Name("c")})
		require.ErrorIs(p, err, lock.ErrHeld)
		require.NoError(p, b.Commit(ctx, table.Delete(keys.NewKey("ROW", "ROW"))))
		for _, l := range b.Leases() {
			ofOurs(p.T, p.raw(l))
		}
	})
}

// The application's attributes without the prefix are its own.
func TestAttributePrefix_LeavesAttributesOfTheApplication(t *testing.T) {
	prefixed(t, func(ctx context.Context, p *place) {
		target := lock.Beside(keys.NewKey("TENANT#1", "ORDER#1"))
		l, err := p.client.Acquire(ctx, target)
		require.NoError(p, err)
		require.NoError(p, p.table.Write(ctx, table.Update(l.Key(), table.Attr("data").Set("mine"), table.Attr("line").Set(1), table.Attr("fence").Set("x"))))
		require.NoError(p, l.Release(ctx))
		l, err = p.client.Acquire(ctx, target, lock.WithData("payload"))
		require.NoError(p, err)
		row := p.raw(l)
		assert.Equal(p, &types.AttributeValueMemberS{Value: "mine"}, row["data"])
		assert.Equal(p, &types.AttributeValueMemberN{Value: "1"}, row["line"])
		assert.Equal(p, &types.AttributeValueMemberS{Value: "x"}, row["fence"])

		require.NoError(p, l.Release(ctx))
		require.NoError(p, p.table.Write(ctx, table.Update(l.Key(), table.Attr("lock_fence").Set("x"))))
		_, err = p.client.Inspect(ctx, target)
		require.ErrorIs(p, err, lock.ErrMalformed)
		assert.ErrorContains(p, err, "lock_fence")
	})
}

// To a client with another prefix, a lock's row is malformed. Neither takes the other's lock.
func TestAttributePrefix_LocksOfAnotherAreRefused(t *testing.T) {
	contractWith(t, table.Schema{}, lock.Config{AttributePrefix: prefix}, func(ctx context.Context, p *place) {
		plain := p.open(lock.Config{})
		for name, pair := range map[string][2]*lock.Client{"theirs": {p.client, plain}, "ours": {plain, p.client}} {
			holder, other := pair[0], pair[1]
			for _, held := range []bool{true, false} {
				target := lock.Name(name)
				l, err := holder.Acquire(ctx, target)
				require.NoError(p, err)
				if !held {
					require.NoError(p, l.Release(ctx))
				}
				before := p.raw(l)
				_, err = other.TryAcquire(ctx, target)
				require.ErrorIs(p, err, lock.ErrMalformed)
				_, err = other.Acquire(ctx, target)
				require.ErrorIs(p, err, lock.ErrMalformed)
				_, err = other.Inspect(ctx, target)
				require.ErrorIs(p, err, lock.ErrMalformed)
				require.ErrorContains(p, err, "Config.AttributePrefix")
				// A reset would make the row good for both, and the old holder would go on.
				require.ErrorIs(p, other.ForceRelease(ctx, target, ""), lock.ErrMalformed)
				assert.Equal(p, before, p.raw(l), "it was left as it is")
				if held {
					require.NoError(p, l.Release(ctx))
				}
			}
			permit, err := holder.Acquire(ctx, lock.Name(name+"-exports"), lock.Permits(2))
			require.NoError(p, err)
			require.ErrorIs(p, other.ForceRelease(ctx, lock.Name(name+"-exports"), ""), lock.ErrMalformed)
			require.NoError(p, permit.Release(ctx))
		}
	})
}

// Renewals, waiting, questions and death all depend on rows.
func TestAttributePrefix_ProcessesWithTheSameFindEachOther(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		config := lock.Config{AttributePrefix: prefix, Lease: 10 * time.Second, Logger: quiet.Logger}
		way := &line{to: w.engine.HTTPClient()}
		holder, waiter := w.clientOver(way, config), w.client(config)
		target := lock.Name("report")

		l, err := holder.Acquire(ctx, target)
		require.NoError(t, err)
		time.Sleep(5 * config.Lease) // it is renewed
		require.NoError(t, context.Cause(l.Context()))
		require.NoError(t, waiter.Revoke(ctx, target))
		<-l.Context().Done()
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrRevoked)

		granted := make(chan *lock.Lease)
		wait := func() {
			l, err := waiter.Acquire(ctx, target)
			assert.NoError(t, err)
			granted <- l
		}
		go wait()
		time.Sleep(time.Second)
		require.NoError(t, l.Release(ctx))
		next := <-granted
		assert.Equal(t, l.Fence()+1, next.Fence())
		require.NoError(t, next.Release(ctx))

		l, err = holder.Acquire(ctx, target)
		require.NoError(t, err)
		way.cut(hung) // it dies
		died := time.Now()
		go wait()
		next = <-granted
		assert.LessOrEqual(t, time.Since(died), 2*config.Lease)
		way.cut(open)
		require.ErrorIs(t, l.Write(ctx, table.Delete(w.row("a"))), lock.ErrLost)

		dead := false
		for item, err := range w.table.Scan(ctx, table.Scan{}) {
			require.NoError(t, err)
			if item["type"].(*types.AttributeValueMemberS).Value == "mortise.LockSession" {
				ofOurs(t, item)
				dead = dead || item["lock_dead"] != nil
			}
		}
		assert.True(t, dead, "a session was declared dead")

		ran := 0
		bounded, cancel := context.WithTimeout(ctx, 5*time.Minute)
		defer cancel()
		require.ErrorIs(t, waiter.Every(bounded, lock.Name("job"), time.Minute, func(context.Context, *lock.Lease, time.Time) error {
			ran++
			return nil
		}), context.DeadlineExceeded)
		assert.GreaterOrEqual(t, ran, 5)
		r, err := waiter.Inspect(ctx, lock.Name("job"))
		require.NoError(t, err)
		assert.NotZero(t, r.Ran)
		require.NoError(t, next.Release(ctx))
	})
}

// Clients with other names would not see each other's locks. Those of one Table are refused.
func TestAttributePrefix_ClientsOfATableHaveToAgree(t *testing.T) {
	for field, config := range map[string]lock.Config{
		"RowKey": {RowKey: "L#{of}"}, "SessionKey": {SessionKey: "S#{id}"}, "AttributePrefix": {AttributePrefix: prefix},
	} {
		t.Run(field, func(t *testing.T) {
			tbl, err := table.Open(tabletest.New(t).Client(), table.Schema{Name: "app"})
			require.NoError(t, err)
			_, err = lock.New(tbl, lock.Config{Lease: time.Minute})
			require.NoError(t, err)
			_, err = lock.New(tbl, lock.Config{})
			require.NoError(t, err, "all else may differ")
			_, err = lock.New(tbl, config)
			require.ErrorIs(t, err, lock.ErrInvalid)
			assert.ErrorContains(t, err, "lock: new: invalid request: Config."+field+": ")
			assert.ErrorContains(t, err, "another client of this table has")
			assert.NotContains(t, err.Error(), "is taken")
		})
	}
	t.Run("one that was refused counts for nothing", func(t *testing.T) {
		tbl, err := table.Open(tabletest.New(t).Client(), table.Schema{Name: "app"})
		require.NoError(t, err)
		_, err = lock.New(tbl, lock.Config{AttributePrefix: prefix, SessionKey: "{"})
		require.ErrorIs(t, err, lock.ErrInvalid)
		_, err = lock.New(tbl, lock.Config{})
		require.NoError(t, err)
	})
}

func TestAttributePrefix_IsASetting(t *testing.T) {
	var c lock.Config
	require.NoError(t, json.Unmarshal([]byte(`{"attribute_prefix":"lock_"}`), &c))
	assert.Equal(t, prefix, c.AttributePrefix)
	text, err := json.Marshal(lock.Config{AttributePrefix: prefix})
	require.NoError(t, err)
	assert.JSONEq(t, `{"attribute_prefix":"lock_"}`, string(text))
	c, err = lock.ConfigFromEnviron("L", []string{"L_ATTRIBUTE_PREFIX=lock_"})
	require.NoError(t, err)
	assert.Equal(t, prefix, c.AttributePrefix)
}

// An attribute "nonce" is the application's own. With the prefix, it is that of a lock of the first edition, whose row is
// refused.
func TestAttributePrefix_TellsLocksOfTheFirstEdition(t *testing.T) {
	for name, tc := range map[string]struct {
		row  table.Item
		want error
	}{
		"of the application":   {table.Item{"nonce": text("mine")}, nil},
		"of the first edition": {table.Item{"lock_nonce": text("ABC"), "lock_owner": text("another"), "lock_lease": numeral(3_600_000)}, lock.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				row := w.table.KeyItem(w.lockKey("report"))
				row["type"], row["lock_fence"] = text("mortise.Lock"), numeral(fenceBefore)
				maps.Copy(row, tc.row)
				require.NoError(t, w.table.Write(ctx, table.Put(row)))
				c := w.client(lock.Config{AttributePrefix: prefix, Logger: quiet.Logger})
				require.ErrorIs(t, errOf(c.TryAcquire(ctx, lock.Name("report"))), tc.want)
			})
		})
	}
}
