// Package errs composes errors whose texts are one line and do not repeat themselves.
package errs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Kind makes err match kind, with its text in front, unless err matches it already.
func Kind(kind, err error) error {
	if errors.Is(err, kind) {
		return err
	}
	return fmt.Errorf("%w: %w", kind, err)
}

// OperationError is the error of an operation of a package, whose text names the package once.
type OperationError struct {
	Package, Operation string
	Err                error
}

func (e *OperationError) Error() string {
	return fmt.Sprintf("%s: %s: %s", e.Package, e.Operation, Within(e.Package, e.Err))
}

func (e *OperationError) Unwrap() error { return e.Err }

// Within is the text of err behind what begins with name already, a package's.
func Within(name string, err error) string { return strings.TrimPrefix(err.Error(), name+": ") }

// Join is errors.Join in one line. It leaves out what the texts of all begin with, up to two words of
// a package and its operation, or of a kind and what it is about, but for the first. Of texts
// that are equal it has one.
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

// common is what two texts begin with, up to the second colon.
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
