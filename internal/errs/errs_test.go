package errs_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mortise-go/mortise/internal/errs"
)

var errInvalid = errors.New("invalid request")

func TestKind_IsNamedOnce(t *testing.T) {
	once := errs.Kind(errInvalid, io.EOF)
	assert.EqualError(t, once, "invalid request: EOF")
	assert.ErrorIs(t, once, errInvalid)
	assert.ErrorIs(t, once, io.EOF)
	assert.Equal(t, once, errs.Kind(errInvalid, once))
	deep := fmt.Errorf("key: %w", once)
	assert.Equal(t, deep, errs.Kind(errInvalid, deep))
}

func TestWithin_NamesAPackageOnce(t *testing.T) {
	assert.Equal(t, "get: EOF", errs.Within("table", errors.New("table: get: EOF")))
	assert.Equal(t, "lock: get: EOF", errs.Within("table", errors.New("lock: get: EOF")))
	assert.Equal(t, "tables: EOF", errs.Within("table", errors.New("tables: EOF")))
}

func TestJoin_MakesOneLine(t *testing.T) {
	list := func(texts ...string) (all []error) {
		for _, text := range texts {
			all = append(all, errors.New(text))
		}
		return all
	}
	for want, texts := range map[string][]string{
		"a":                                  {"a"},
		"a; b":                               {"a", "b"},
		"table: write: one: x; two: x":       {"table: write: one: x", "table: write: two: x"},
		"table: write: one: x; read: x":      {"table: write: one: x", "table: read: x"},
		"lock: release: x":                   {"lock: release: x", "lock: release: x", "lock: release: x"},
		"a: b: c: d; c: e":                   {"a: b: c: d", "a: b: c: e"},
		"invalid: Name: bad; Keys: bad; EOF": {"invalid: Name: bad", "invalid: Keys: bad", "EOF"},
	} {
		assert.EqualError(t, errs.Join(list(texts...)...), want)
	}
	both := errs.Join(nil, io.EOF, nil, errInvalid)
	assert.ErrorIs(t, both, io.EOF)
	assert.ErrorIs(t, both, errInvalid)
	assert.Equal(t, io.EOF, errs.Join(nil, io.EOF))
	assert.NoError(t, errs.Join(nil, nil))
	assert.NoError(t, errs.Join())
}

func TestWithOutcome_MarksAnErrorAndChangesNothingElse(t *testing.T) {
	for _, may := range []bool{true, false} {
		err := errs.WithOutcome(fmt.Errorf("write: %w", io.EOF), may)
		assert.EqualError(t, err, "write: EOF")
		assert.ErrorIs(t, err, io.EOF)
		got, known := errs.Outcome(fmt.Errorf("outside: %w", err))
		assert.Equal(t, may, got)
		assert.True(t, known)
		got, _ = errs.Outcome(errs.WithOutcome(err, !may))
		assert.Equal(t, !may, got, "the outer mark counts")
	}
	assert.NoError(t, errs.WithOutcome(nil, true))
	may, known := errs.Outcome(io.EOF)
	assert.False(t, may || known)
	clear, unclear := errs.WithOutcome(io.EOF, false), errs.WithOutcome(io.EOF, true)
	for _, joined := range []error{errs.Join(clear, unclear), errs.Join(io.EOF, unclear, clear), fmt.Errorf("%w: %w", hiding{clear}, hiding{unclear})} {
		may, known := errs.Outcome(joined)
		assert.True(t, may && known, "one of them may have been applied")
	}
	may, known = errs.Outcome(errs.Join(clear, io.EOF))
	assert.True(t, !may && known)
}

// hiding shows what it wraps only to errors.As.
type hiding struct{ err error }

func (h hiding) Error() string      { return h.err.Error() }
func (h hiding) As(target any) bool { return errors.As(h.err, target) }
