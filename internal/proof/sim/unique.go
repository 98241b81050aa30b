package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/table"
)

// Unique runs clients that create, change and delete rows of an entity with a unique value. At no time do two rows
// have the same value. A row and the sentinel of its value are written in one transaction, so neither is ever there
// without the other, whatever answers were lost.
type Unique struct {
	Clients int
	Rounds  int  // of each client
	Rows    int  // defaults to 6
	Values  int  // defaults to 4
	Shared  bool // the negative twin: the entity does not declare the value unique
}

// Account is a row with a unique value.
type Account struct {
	ID      string  `dynamo:"id"`
	Email   string  `dynamo:"email,omitempty"`
	Marks   []int64 `dynamo:"marks,omitempty"`
	Version int64   `dynamo:"version"`
}

// Run runs the workload and checks it, after each operation and at the end.
func (s Unique) Run(w *World) Tally {
	if s.Rows == 0 {
		s.Rows = 6
	}
	if s.Values == 0 {
		s.Values = 4
	}
	r := &uniques{Unique: s, world: w, marks: newMarks(s.Clients, s.Rounds), row: map[int64]string{}, seen: map[int64]bool{}}
	r.marks.each(w, func(p *Process) func(context.Context, *Worker, int64) {
		accounts := r.define(p.Table())
		return func(ctx context.Context, x *Worker, mark int64) {
			r.round(ctx, x, accounts, mark)
			w.At(time.Now(), r.audit)
		}
	})
	w.Settle()
	w.now(r.audit)
	return r.check()
}

type uniques struct {
	Unique

	world *World
	marks *marks

	mu   sync.Mutex
	row  map[int64]string // the row to which each mark was written
	seen map[int64]bool   // marks that any row had at any time
}

func (r *uniques) define(t *table.Table) *entity.Entity[Account] {
	spec := entity.Spec[Account]{Type: "Account", PK: "ACCOUNT#{id}", SK: "ACCOUNT", Version: "version"}
	if !r.Shared {
		spec.Unique = []entity.Unique[Account]{{Name: "email", Key: "{email}"}}
	}
	accounts, err := entity.Define(t, spec)
	r.world.must(err)
	return accounts
}

// round writes once. A deletion leaves no mark.
func (r *uniques) round(ctx context.Context, x *Worker, accounts *entity.Entity[Account], mark int64) {
	x.Sleep(x.Between(0, 100*time.Millisecond))
	ctx, cancel := x.Within(ctx, x.Between(time.Second, 30*time.Second))
	defer cancel()
	a := Account{ID: fmt.Sprint("A", x.IntN(r.Rows))}
	email := ""
	if value := x.IntN(r.Values + 1); value > 0 {
		email = fmt.Sprint("e", value)
	}
	how, err := r.write(ctx, x, accounts, a, email, mark)
	r.mu.Lock()
	r.row[mark] = "ACCOUNT#" + a.ID + "|ACCOUNT"
	r.mu.Unlock()
	x.wrote(r.marks.end(mark, err), err, "%s %s %q %d", how, a.ID, email, mark)
}

func (r *uniques) write(ctx context.Context, x *Worker, accounts *entity.Entity[Account], a Account, email string, mark int64) (how string, err error) {
	change := func(a *Account) error {
		a.Email, a.Marks = email, append(a.Marks, mark)
		return nil
	}
	switch x.IntN(7) {
	case 0, 1:
		_ = change(&a)
		_, err = accounts.Create(ctx, a)
		return "create", err
	case 2:
		_, err = accounts.Modify(ctx, a, change)
		return "modify", err
	case 3: // as the row is, with any version
		_, err = accounts.AnyVersion().Update(ctx, a, entity.Set("email", email), entity.Append("marks", []int64{mark}))
		return "update", err
	case 4:
		return "delete", accounts.AnyVersion().Delete(ctx, a)
	}
	read, err := accounts.Get(ctx, a)
	if err != nil {
		return "read", err
	}
	x.Sleep(x.Between(0, 20*time.Millisecond))
	switch x.IntN(3) {
	case 0:
		_ = change(&read)
		_, err = accounts.Put(ctx, read)
		return "put", err
	case 1:
		_, err = accounts.Update(ctx, read, entity.Set("email", email), entity.Append("marks", []int64{mark}))
		return "update what was read", err
	}
	return "delete what was read", accounts.Delete(ctx, read)
}

// audit looks at the whole table at one moment.
func (r *uniques) audit() {
	ctx := r.world.Context()
	if ctx.Err() != nil {
		return // the world has ended
	}
	ctx = context.WithoutCancel(ctx)
	accounts := r.define(r.world.Table())
	owners := map[string]string{}    // the row with each value
	sentinels := map[string]string{} // the row that each value's sentinel names
	for item, err := range r.world.Table().Scan(ctx, table.Scan{Consistent: true}) {
		r.world.must(err)
		if key, err := r.world.Table().KeyOf(item); err == nil && strings.HasPrefix(key.PK, "UNIQUE#") {
			owner, _ := item["uniqueowner"].(*types.AttributeValueMemberM)
			if owner == nil {
				r.world.Violation("a sentinel names nobody")
				continue
			}
			of, err := r.world.Table().KeyOf(owner.Value)
			r.world.must(err)
			sentinels[key.PK[strings.LastIndex(key.PK, "#")+1:]] = of.PK
			continue
		}
		a, err := accounts.Decode(item)
		r.world.must(err)
		r.mu.Lock()
		for _, mark := range a.Marks {
			r.seen[mark] = true
		}
		r.mu.Unlock()
		if a.Email == "" {
			continue
		}
		if other := owners[a.Email]; other != "" {
			r.world.Violation("%s and %s have the same value", other, a.ID)
		}
		owners[a.Email] = a.ID
	}
	values := map[string]bool{}
	for value := range owners {
		values[value] = true
	}
	for value := range sentinels {
		values[value] = true
	}
	for _, value := range slices.Sorted(maps.Keys(values)) {
		want := owners[value]
		if want != "" {
			want = "ACCOUNT#" + want
		}
		if sentinels[value] != want {
			r.world.Violation("the value of %q is kept for %q", want, sentinels[value])
		}
	}
}

// check compares what clients know with what was seen.
func (r *uniques) check() (sum Tally) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.marks.check(r.world, func(mark int64) int {
		// Rows are overwritten and deleted, so it tells nothing that a mark was not seen. And a request that was
		// refused when it first arrived can be applied when it arrives once more, long after its sender was told.
		// No client can prevent that.
		if !r.seen[mark] || r.world.stragglers[r.row[mark]] > 0 {
			return -1
		}
		return 1
	})
}
