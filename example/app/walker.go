package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// walker reads JSON that is known to be valid, token by token.
type walker struct{ dec *json.Decoder }

func (w *walker) line(path string) (InputLine, error) {
	var l InputLine
	err := w.object(path, map[string]func(path string) error{
		"product":  func(path string) error { return w.identifier(path, &l.Product) },
		"price":    func(path string) error { return w.decimal(path, &l.Price) },
		"quantity": func(path string) error { return w.quantity(path, &l.Quantity) },
		"discount": func(path string) error { return w.decimal(path, &l.Discount) },
	})
	switch {
	case err != nil:
		return l, err
	case l.Price.Sign() < 0:
		return l, fmt.Errorf("%s.price: negative", path)
	case l.Discount.Sign() < 0 || l.Discount.Cmp(decimalInt(1)) > 0:
		return l, fmt.Errorf("%s.discount: not between 0 and 1", path)
	}
	return l, nil
}

// object reads an object that has exactly the given fields, once each.
func (w *walker) object(path string, fields map[string]func(path string) error) error {
	if err := w.open(path, '{', "an object"); err != nil {
		return err
	}
	seen := make(map[string]bool, len(fields))
	for w.dec.More() {
		t, err := w.dec.Token()
		if err != nil {
			return err
		}
		name, _ := t.(string)
		read, known := fields[name]
		at := strings.TrimPrefix(path+"."+name, ".")
		switch {
		case !known:
			return fmt.Errorf("%sunknown field; known are %s", prefix(path), names(fields))
		case seen[name]:
			return fmt.Errorf("%s: given twice", at)
		}
		seen[name] = true
		if err := read(at); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(fields) {
		if !seen[name] {
			return fmt.Errorf("%s: missing", strings.TrimPrefix(path+"."+name, "."))
		}
	}
	_, err := w.dec.Token()
	return err
}

func (w *walker) array(path string, element func(path string) error) error {
	if err := w.open(path, '[', "an array"); err != nil {
		return err
	}
	for i := 0; w.dec.More(); i++ {
		if err := element(path + "[" + strconv.Itoa(i) + "]"); err != nil {
			return err
		}
	}
	_, err := w.dec.Token()
	return err
}

func (w *walker) open(path string, delim json.Delim, what string) error {
	t, err := w.dec.Token()
	if err != nil {
		return err
	}
	if t != delim {
		return fmt.Errorf("%snot %s", prefix(path), what)
	}
	return nil
}

func (w *walker) text(path string) (string, error) {
	t, err := w.dec.Token()
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	if !ok {
		return "", fmt.Errorf("%s: not a string", path)
	}
	return s, nil
}

func (w *walker) identifier(path string, dst *string) error {
	s, err := w.text(path)
	switch {
	case err != nil:
		return err
	case s == "":
		return fmt.Errorf("%s: empty", path)
	case len(s) > maxIdentifier:
		return fmt.Errorf("%s: longer than %d bytes", path, maxIdentifier)
	case strings.ContainsFunc(s, unicode.IsControl):
		return fmt.Errorf("%s: contains a control character", path)
	case strings.ContainsRune(s, utf8.RuneError):
		// encoding/json puts it in place of half a surrogate pair, and two
		// different broken identifiers must not become one.
		return fmt.Errorf("%s: contains a character that is not valid Unicode", path)
	}
	*dst = s
	return nil
}

func (w *walker) date(path string, dst *time.Time) error {
	s, err := w.text(path)
	if err != nil {
		return err
	}
	d, err := time.Parse(time.DateOnly, s)
	if err != nil || d.Year() < 1 {
		return fmt.Errorf("%s: not a date like 2006-01-02", path)
	}
	*dst = d
	return nil
}

func (w *walker) decimal(path string, dst *Decimal) error {
	t, err := w.dec.Token()
	if err != nil {
		return err
	}
	var text string
	switch t := t.(type) {
	case string:
		text = t
	case json.Number:
		text = t.String()
	default:
		return fmt.Errorf("%s: not a string or number", path)
	}
	if *dst, err = ParseDecimal(text); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (w *walker) quantity(path string, dst *int64) error {
	t, err := w.dec.Token()
	if err != nil {
		return err
	}
	n, ok := t.(json.Number)
	if !ok {
		return fmt.Errorf("%s: not a number", path)
	}
	v, err := strconv.ParseInt(n.String(), 10, 64)
	if errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("%s: out of range", path)
	}
	if err != nil {
		return fmt.Errorf("%s: not a whole number", path)
	}
	if v < 1 {
		return fmt.Errorf("%s: not positive", path)
	}
	*dst = v
	return nil
}

func prefix(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}

func names(fields map[string]func(string) error) string {
	return strings.Join(sortedKeys(fields), ", ")
}

func sortedKeys(fields map[string]func(string) error) []string {
	keys := make([]string, 0, len(fields))
	for k := range fields {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
