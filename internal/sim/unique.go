package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/table"
)

// Unique is clients that create, change and delete rows of an entity with a unique value. At
// no time do two rows have the same one, and since a row and what keeps its value are
// written in one transaction, neither is ever without the other, whatever was left unanswered.
type Unique struct {
	Clients int
	Rounds  int  // of each client
	Rows    int  // defaults to 6
	Values  int  // defaults to 4
	Shared  bool // the negative twin: the entity does not say that the value is unique
}

// Account is a row with a unique value.
type Account struct {
	ID      string  `dynamo:"id"`
	Email   string  `dynamo:"email,omitempty"`
	Marks   []int64 `dynamo:"marks,omitempty"`
	Version int64   `dynamo:"version"`
}

// Run runs the workload and checks it, after each operation and in the end.
func (s Unique) Run(w *World) Tally {
	if s.Rows == 0 {
		s.Rows = 6
	}
	if s.Values == 0 {
		s.Values = 4
	}
	r := &uniques{Unique: s, world: w, state: map[int64]state{}, row: map[int64]string{}, seen: map[int64]bool{}, left: make([]int, s.Clients)}
	for i := range s.Clients {
		r.left[i] = s.Rounds
		w.Supervise(fmt.Sprint("client", i+1), func(p *Process) {
			accounts := r.define(p.Table())
			p.Go("w", func(ctx context.Context, x *Worker) {
				for ctx.Err() == nil && !p.Crashed() {
					mark, ok := r.next(i)
					if !ok {
						return
					}
					r.round(ctx, x, accounts, mark)
					w.At(time.Now(), r.audit)
				}
			})
		})
	}
	w.Settle()
	done := make(chan struct{})
	w.At(time.Now(), func() {
		r.audit()
		close(done)
	})
	<-done
	return r.check()
}

type uniques struct {
	Unique

	world *World

	mu    sync.Mutex
	left  []int // rounds, by client
	state map[int64]state
	row   map[int64]string // rows, by the mark that was written to them
	seen  map[int64]bool   // marks, in any row at any time
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

// next numbers what a client writes next.
func (r *uniques) next(client int) (mark int64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left[client] == 0 {
		return 0, false
	}
	r.left[client]--
	mark = int64(client+1)*1000 + int64(r.Rounds-r.left[client])
	r.state[mark] = unknown
	return mark, true
}

// round writes once. Deleting leaves no mark.
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
	switch {
	case err == nil:
		r.state[mark] = acknowledged
	case isRefused(err):
		r.state[mark] = refused
	}
	r.mu.Unlock()
	x.Note("%s %s %q %d: %v", how, a.ID, email, mark, err)
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
	case 3: // as the row is, whatever its version
		_, err = accounts.Update(ctx, a, entity.Set("email", email), entity.Append("marks", []int64{mark}))
		return "update", err
	case 4:
		return "delete", accounts.Delete(ctx, a)
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
	owners := map[string]string{}    // rows, by value
	sentinels := map[string]string{} // rows that they name, by value
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
	if r.Shared {
		return
	}
	for i := range r.Values {
		email := fmt.Sprint("e", i+1)
		want := owners[email]
		if want != "" {
			want = "ACCOUNT#" + want
		}
		if sentinels[email] != want {
			r.world.Violation("the value of %q is kept for %q", want, sentinels[email])
		}
	}
}

// check compares what clients know with what was seen.
func (r *uniques) check() (sum Tally) {
	r.mu.Lock()
	defer r.mu.Unlock()
	marks := make([]int64, 0, len(r.state))
	for mark := range r.state {
		marks = append(marks, mark)
	}
	slices.Sort(marks)
	for _, mark := range marks {
		switch r.state[mark] {
		case acknowledged:
			sum.Acknowledged++
		case refused:
			sum.Refused++
			// A request that was refused when it came in first can be carried out when it comes
			// in once more, long after its sender was told: no client can help that.
			if r.seen[mark] && r.world.stragglers[r.row[mark]] == 0 {
				r.world.Violation("%d was refused and is there", mark)
			}
		case unknown:
			sum.Unknown++
		}
	}
	return sum
}
