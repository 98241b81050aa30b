// Package errs composes errors whose texts are one line without repetitions.
package errs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Kind returns an error that matches kind and err, with kind's text in front. If err matches kind already, Kind returns err.
func Kind(kind, err error) error {
	if errors.Is(err, kind) {
		return err
	}
	return fmt.Errorf("%w: %w", kind, err)
}

// OperationError is the error of an operation of a package. Its text names the package once, even if Err's text names it, too.
type OperationError struct {
	Package, Operation string
	Err                error
}

func (e *OperationError) Error() string {
	return fmt.Sprintf("%s: %s: %s", e.Package, e.Operation, Within(e.Package, e.Err))
}

func (e *OperationError) Unwrap() error { return e.Err }

// Within returns the text of err without name at its beginning. It is for texts that begin with name, a package's name, already.
func Within(name string, err error) string { return strings.TrimPrefix(fmt.Sprint(err), name+": ") }

// Join is errors.Join with a text of one line. Each text after the first omits the beginning that it shares with the first: at most two
// parts that end with ": ", such as a package and its operation, or a kind and its subject. Equal texts appear once. If there is only
// one error, Join returns it unchanged.
func Join(list ...error) error {
	all := slices.DeleteFunc(slices.Clone(list), func(err error) bool { return err == nil })
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return &joined{all}
}

type joined struct{ list []error }

func (j *joined) Unwrap() []error { return j.list }

func (j *joined) Error() string {
	seen := map[string]bool{}
	var texts []string
	for _, err := range j.list {
		text := err.Error()
		if seen[text] {
			continue
		}
		seen[text] = true
		if len(texts) > 0 {
			text = strings.TrimPrefix(text, common(texts[0], text))
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// common returns the beginning that two texts share: at most two whole parts that end with ": ".
func common(a, b string) string {
	n := 0
	for range 2 {
		word, _, ok := strings.Cut(a[n:], ": ")
		if !ok || !strings.HasPrefix(b[n:], word+": ") {
			break
		}
		n += len(word) + len(": ")
	}
	return a[:n]
}

// WithOutcome marks the error of a write by whether the write may have been applied all the same. Text and matches stay those of err. A
// mark covers those inside err.
func WithOutcome(err error, mayBeApplied bool) error {
	if err == nil {
		return nil
	}
	return &outcomeError{err, mayBeApplied}
}

// Outcome returns the mark of WithOutcome. known is false if err has none. Of errors that were joined, one that may have been applied counts.
func Outcome(err error) (mayBeApplied, known bool) {
	if marked, ok := err.(*outcomeError); ok { //nolint:errorlint // this function is the search
		return marked.mayBeApplied, true
	}
	switch inner := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		return Outcome(inner.Unwrap())
	case interface{ Unwrap() []error }:
		for _, e := range inner.Unwrap() {
			may, marked := Outcome(e)
			mayBeApplied, known = mayBeApplied || may, known || marked
		}
	case interface{ As(target any) bool }: // it hides what it wraps
		var marked *outcomeError
		if inner.As(&marked) {
			return marked.mayBeApplied, true
		}
	}
	return mayBeApplied, known
}

type outcomeError struct {
	error
	mayBeApplied bool
}

func (e *outcomeError) Unwrap() error { return e.error }
