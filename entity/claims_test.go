package entity_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/engines/faulty"
	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Person is a row with a unique value.
type Person struct {
	ID      string `dynamo:"id"`
	Email   string `dynamo:"email"`
	Status  string `dynamo:"status"`
	Version int64  `dynamo:"version"`
}

func personSpec(version, unique bool) entity.Spec[Person] {
	s := entity.Spec[Person]{Type: "Person", PK: "PERSON#{id}", SK: "PERSON"}
	if version {
		s.Version = "version"
	}
	if unique {
		s.Unique = []entity.Unique[Person]{{Name: "email", Key: "{email}"}}
	}
	return s
}

// personClaim is a write of the member, and whether the rows show that it was applied.
type personClaim struct {
	start   bool // the member exists before the write
	write   func(ctx context.Context, members *entity.Entity[Person], m Person) error
	applied func(status string, exists bool) bool
}

func personClaims() map[string]personClaim {
	mine := func(status string, _ bool) bool { return status == "mine" }
	changed := func(m Person) Person {
		m.Status, m.Email = "mine", "new"
		return m
	}
	return map[string]personClaim{
		"create": {false, func(ctx context.Context, e *entity.Entity[Person], m Person) error {
			_, err := e.Create(ctx, changed(m))
			return err
		}, mine},
		"put": {true, func(ctx context.Context, e *entity.Entity[Person], m Person) error {
			_, err := e.Put(ctx, changed(m))
			return err
		}, mine},
		"put of any version": {true, func(ctx context.Context, e *entity.Entity[Person], m Person) error {
			_, err := e.AnyVersion().Put(ctx, changed(m))
			return err
		}, mine},
		"put all": {true, func(ctx context.Context, e *entity.Entity[Person], m Person) error {
			_, err := e.PutAll(ctx, []Person{{ID: "2", Email: "second", Status: "mine"}, changed(m), {ID: "3", Email: "third", Status: "mine", Version: -1}})
			return err
		}, mine},
		"update": {true, func(ctx context.Context, e *entity.Entity[Person], m Person) error {
			_, err := e.Update(ctx, m, entity.Set("status", "mine"), entity.Set("email", "new"))
			return err
		}, mine},
		"update of any version": {true, func(ctx context.Context, e *entity.Entity[Person], m Person) error {
			_, err := e.AnyVersion().Update(ctx, m, entity.Set("status", "mine"), entity.Set("email", "new"))
			return err
		}, mine},
		"modify": {true, func(ctx context.Context, e *entity.Entity[Person], m Person) error {
			_, err := e.Modify(ctx, m, func(m *Person) error {
				m.Status, m.Email = "mine", "new"
				return nil
			})
			return err
		}, mine},
		"upsert": {false, func(ctx context.Context, e *entity.Entity[Person], m Person) error {
			_, err := e.Upsert(ctx, m, func(m *Person) error {
				m.Status, m.Email = "mine", "new"
				return nil
			})
			return err
		}, mine},
		"delete": {
			true, func(ctx context.Context, e *entity.Entity[Person], m Person) error { return e.Delete(ctx, m) },
			func(_ string, exists bool) bool { return !exists },
		},
		"delete of any version": {
			true, func(ctx context.Context, e *entity.Entity[Person], m Person) error {
				return e.AnyVersion().Delete(ctx, m)
			},
			func(_ string, exists bool) bool { return !exists },
		},
	}
}

// Whatever happens to its requests, the error of a write tells whether the write can have been applied, or can still be.
func TestClaims(t *testing.T) {
	share := testkit.IfSmall(10007, 1009)
	for name, c := range personClaims() {
		for _, version := range []bool{true, false} {
			for _, unique := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s version %v unique %v", name, version, unique), func(t *testing.T) {
					t.Parallel()
					n := 0
					var violations []string
					for sequence := range faulty.Sequences(3) {
						for _, conflict := range []int{0, 2, 3} {
							if n++; len(sequence) < 2 && conflict == 0 || n%share == 0 {
								synctest.Test(t, func(t *testing.T) {
									violations = append(violations, c.check(t, personSpec(version, unique), sequence, conflict, n)...)
								})
							}
						}
					}
					for _, v := range violations[:min(len(violations), 5)] {
						t.Error(v)
					}
				})
			}
		}
	}
}

// check plays one sequence. With a conflict, another writer changes the row before that attempt of the write, and back after the call.
func (c *personClaim) check(t *testing.T, spec entity.Spec[Person], sequence []faulty.Kind, conflict, number int) (violations []string) {
	engine := tabletest.New(t)
	direct := engine.Client()
	live, err := table.Open(direct, table.Schema{Name: "app", NoTTL: true})
	require.NoError(t, err)
	require.NoError(t, live.Ensure(t.Context()))
	m := Person{ID: "1", Email: "old", Status: "start"}
	if c.start {
		m, err = define(t, live, spec).Create(t.Context(), m)
		require.NoError(t, err)
	}
	rows := func() []table.Item {
		out, err := direct.Scan(context.Background(), &dynamodb.ScanInput{TableName: aws.String("app"), ConsistentRead: aws.Bool(true)})
		require.NoError(t, err)
		return out.Items
	}
	put := func(items []table.Item) {
		for _, item := range items {
			_, err := direct.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: aws.String("app"), Item: item})
			require.NoError(t, err)
		}
	}
	initial := rows()
	state := func() (status string, exists bool) {
		for _, item := range rows() {
			if text, ok := item["status"].(*types.AttributeValueMemberS); ok && item["id"].(*types.AttributeValueMemberS).Value == "1" {
				return text.Value, true
			}
		}
		return "", false
	}
	other := func() {
		for _, item := range rows() {
			if item["status"] != nil {
				item["status"] = &types.AttributeValueMemberS{Value: "other"}
				if spec.Version != "" {
					item["version"] = &types.AttributeValueMemberN{Value: "7"}
				}
				put([]table.Item{item})
			}
		}
	}

	var faults faulty.Client
	tbl, err := table.Open(engine.Client(faults.Options, faulty.Retries()[number%len(faulty.Retries())]), table.Schema{Name: "app", NoTTL: true})
	require.NoError(t, err)
	members := define(t, tbl, spec)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if number%7 == 0 { // the deadline passes between two attempts
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, 40*time.Millisecond)
		defer stop()
	}
	script, copies := faulty.ScriptOf(sequence, cancel)
	var writes atomic.Int64 // PutAll writes several at a time
	var skipped atomic.Bool
	faults.Script(script...)
	if number%2 == 0 {
		faults.Spare("GetItem")
	}
	faults.Before(func(operation string) {
		if operation == "GetItem" {
			return
		}
		if writes.Add(1) == int64(conflict) && conflict > 1 {
			skipped.Store(true)
			other()
		}
	})
	err = c.write(ctx, members, m)
	name := fmt.Sprintf("%s (conflict %d, %d): %v", faulty.NameOf(sequence), conflict, number, err)
	before := c.applied(state())
	definite := err != nil && !table.MayBeApplied(err)
	if definite { // otherwise nothing more is claimed
		put(initial)
		if !c.start {
			for _, item := range rows() {
				_, err := direct.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: aws.String("app"), Key: table.Item{"pk": item["pk"], "sk": item["sk"]}})
				require.NoError(t, err)
			}
		}
	}
	faults.Settle()
	if !definite && !skipped.Load() && spec.Unique != nil {
		for _, wrong := range unmatched(rows()) {
			violations = append(violations, fmt.Sprintf("%s: %s", wrong, name))
		}
	}
	after := c.applied(state())
	switch {
	case definite && !copies && (before || after):
		violations = append(violations, fmt.Sprintf("not applied, and found %v and then %v: %s", before, after, name))
	case err == nil && !before && !skipped.Load() && !copies:
		violations = append(violations, "applied, and not found: "+name)
	}
	return violations
}

// unmatched lists addresses whose sentinel and row do not agree.
func unmatched(rows []table.Item) (list []string) {
	text := func(av types.AttributeValue) string {
		s, _ := av.(*types.AttributeValueMemberS)
		if s == nil {
			return ""
		}
		return s.Value
	}
	claimed := map[string]string{}
	for _, item := range rows {
		if owner, ok := item["uniqueowner"].(*types.AttributeValueMemberM); ok {
			claimed[text(item["pk"])] = text(owner.Value["pk"])
		}
	}
	for _, item := range rows {
		if email := text(item["email"]); email != "" {
			at := "UNIQUE#Person#email#" + email
			if claimed[at] != text(item["pk"]) {
				list = append(list, email+" has no sentinel")
			}
			delete(claimed, at)
		}
	}
	for at := range claimed {
		list = append(list, at+" has no row")
	}
	return list
}

// A write that is repeated after a lost race covers the attempts before: one of them can still be on its way.
func TestMayBeApplied_CoversTheAttemptsBeforeALostRace(t *testing.T) {
	for _, name := range []string{"put of any version", "update of any version", "modify", "delete of any version"} {
		kinds := faulty.Kinds()
		kind := func(name string) faulty.Kind {
			return kinds[slices.IndexFunc(kinds, func(k faulty.Kind) bool { return k.Name == name })]
		}
		c := personClaims()[name]
		synctest.Test(t, func(t *testing.T) {
			sequence := []faulty.Kind{kind("late by a minute"), kind("pass"), kind("throttled for long")}
			assert.Empty(t, c.check(t, personSpec(false, true), sequence, 2, 2), name)
		})
	}
}

// picky refuses what it reads, as a type does that validates.
type picky string

func (p *picky) UnmarshalText(text []byte) error {
	if string(text) == "bad" {
		return fmt.Errorf("%w: picky", entity.ErrInvalid)
	}
	*p = picky(text)
	return nil
}

func (p picky) MarshalText() ([]byte, error) { return []byte(p), nil }

type picking struct {
	ID    string `dynamo:"id"`
	N     int    `dynamo:"n"`
	Value picky  `dynamo:"value,omitempty"`
}

func TestMayBeApplied_OfAnUpdateWhoseRowDoesNotDecode(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		rows := define(t, f.Table, entity.Spec[picking]{Type: "Picking", PK: "P#{id}", SK: "P"})
		row, err := rows.Create(t.Context(), picking{ID: "1"})
		require.NoError(t, err)
		require.NoError(t, f.raw.Write(t.Context(), table.Update(rows.Key(row), table.Attr("value").Set("bad"))))
		_, err = rows.Update(t.Context(), row, entity.Add("n", 1))
		var undecoded *entity.DecodeError
		require.ErrorAs(t, err, &undecoded)
		require.ErrorIs(t, err, entity.ErrInvalid)
		assert.True(t, table.MayBeApplied(err), err)
	})
}
