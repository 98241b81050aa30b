package calls

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
)

// says checks what an error's text says: it is one line, each package is named in front of what it
// does at most once, and nothing is said twice of one thing.
func says(t *testing.T, text, of string) {
	t.Helper()
	assert.NotContains(t, text, "\n", of)
	for _, name := range []string{"keys", "table", "entity", "lock", "migrations"} {
		prefix := regexp.MustCompile(`(^|[:;,(] )` + name + `: `)
		assert.LessOrEqual(t, len(prefix.FindAllString(text, -1)), 1, "%s: %s", of, text)
	}
	for clause := range strings.SplitSeq(text, "; ") {
		seen := map[string]bool{}
		for part := range strings.SplitSeq(clause, ": ") {
			if strings.Contains(part, " ") { // or it may be a name, or an operation
				assert.False(t, seen[part], "%s: says %q twice: %s", of, part, text)
				seen[part] = true
			}
		}
	}
}

func TestErrors_OfFailingRequestsSayNothingTwice(t *testing.T) {
	broken := faults()
	for name, make := range calls() {
		for _, how := range slices.Sorted(maps.Keys(broken)) {
			virtual(t, name+"/"+how, func(w *world) {
				ctx, cancel := short(w.Context())
				defer cancel()
				err := make(w, ctx, func() { w.net.fail(broken[how]) })
				if succeeds(name, how) {
					assert.NoError(w, err)
				} else if assert.Error(w, err) {
					says(w.T, err.Error(), name)
				}
			})
		}
	}
}

func TestErrors_OfEndedContextsSayNothingTwice(t *testing.T) {
	for name, make := range calls() {
		virtual(t, name, func(w *world) {
			ctx, cancel := context.WithCancelCause(w.Context())
			cause := errors.New("shutting down")
			err := make(w, ctx, func() { cancel(cause) })
			if slices.Contains(givesBack, name) {
				assert.NoError(w, err, "what was acquired is given back all the same")
				return
			}
			assert.ErrorIs(w, err, context.Canceled)
			if assert.Error(w, err) {
				says(w.T, err.Error(), name)
			}
		})
	}
}

func TestErrors_OfBadInputSayNothingTwice(t *testing.T) {
	failed := 0
	for name, make := range inputs() {
		virtual(t, name, func(w *world) {
			for what, err := range make(w) {
				if err != nil {
					failed++
					says(w.T, err.Error(), name+": "+what)
				}
			}
		})
	}
	assert.Greater(t, failed, 350)
}

// Tests of applications make errors that say nothing, and print them.
func TestErrors_HaveATextWithoutContents(t *testing.T) {
	for _, err := range []error{
		&keys.Error{},
		&table.Error{}, &table.EncodeError{}, &table.UnprocessedError{}, &table.ConditionError{},
		table.ConditionErrors{},
		&table.SchemaError{},
		&entity.BatchError[int]{}, &entity.CursorError{}, &entity.UniqueError{}, &entity.SpecError{}, &entity.DecodeError{},
		&entity.UnknownTypeError{}, &entity.ForeignTypeError{},
		&lock.HeldError{}, &lock.HeldAllError{}, &lock.PermitsError{},
		&migrations.DriftError{}, &migrations.OrderError{}, &migrations.UnknownError{}, &migrations.UnfinishedError{},
		&migrations.PartialError{}, &migrations.ItemError{}, &migrations.PanicError{},
	} {
		assert.NotPanics(t, func() {
			_ = err.Error()
			assert.NotErrorIs(t, err, context.Canceled)
		}, "%T", err)
	}
}
