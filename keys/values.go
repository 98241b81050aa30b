package keys

import (
	"fmt"
	"slices"
)

// Values holds values by the name of their field. Passed as the only argument, it replaces the list of values in every
// method of [Template].
type Values map[string]any

// source provides the value of a field by the field's number.
type source struct {
	list  []any
	names Values // used instead of list unless nil
}

func sourceOf(values []any) source {
	if len(values) == 1 {
		if named, ok := values[0].(Values); ok {
			if named == nil {
				named = Values{}
			}
			return source{names: named}
		}
	}
	return source{list: values}
}

func (s source) get(t *Template, field int) (any, bool) {
	if s.names != nil {
		v, ok := s.names[t.fields[field].Name]
		return v, ok
	}
	if field >= len(s.list) {
		return nil, false
	}
	return s.list[field], true
}

// leading returns how many of the first fields have values. Unlike Format, it refuses unknown names. It also refuses a value after a
// field without one. To ignore either would widen a prefix or a range.
func (t *Template) leading(op string, src source) (int, error) {
	if src.names == nil {
		if len(src.list) > len(t.fields) {
			return 0, t.countError(op, len(src.list), len(t.fields))
		}
		return len(src.list), nil
	}
	n := 0
	for n < len(t.fields) {
		if _, ok := src.names[t.fields[n].Name]; !ok {
			break
		}
		n++
	}
	if n == len(src.names) {
		return n, nil
	}
	if err := t.unknown(op, src.names); err != nil {
		return 0, err
	}
	return 0, t.fail(op, n, fmt.Errorf("%w: a later field has one", ErrMissing))
}

// unknown returns an error for the first name, in alphabetical order, that is not a field.
func (t *Template) unknown(op string, names Values) error {
	var strange []string
	for name := range names {
		if !slices.ContainsFunc(t.fields, func(f Field) bool { return f.Name == name }) {
			strange = append(strange, name)
		}
	}
	if strange == nil {
		return nil
	}
	return &Error{Op: op, Template: t.text, Field: slices.Min(strange), Err: ErrUnknownField}
}

func (t *Template) countError(op string, got, want int) error {
	return t.fail(op, -1, fmt.Errorf("%w: got %d, the template has %d fields", ErrCount, got, want))
}
