package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

//go:generate go run ../../internal/gensample -o sample.jsonl

// sample is the input when -orders is not given.
//
//go:embed sample.jsonl
var sample []byte

// Limits of the input. Identifiers are put into keys, where escaping may double them and a sort key has room for 1,024 bytes; an
// order and its lines are written in one transaction, which takes 100 actions.
const (
	maxLineBytes  = 1 << 20
	maxIdentifier = 256 // bytes
	maxOrderLines = 99
)

// Input is what one file holds.
type Input struct {
	Digest string // SHA-256 of its bytes, in hex: names the file in the table
	Orders []collection
	Total  Money
}

// openInput reads the named file: "" is the embedded sample and "-" is stdin.
func openInput(name string, stdin io.Reader) (*Input, error) {
	switch name {
	case "":
		return readInput("sample.jsonl", bytes.NewReader(sample))
	case "-":
		return readInput("<stdin>", stdin)
	}
	text, err := os.ReadFile(name) //nolint:gosec // the user of the command line names it
	if err != nil {
		return nil, err
	}
	return readInput(name, bytes.NewReader(text))
}

// readInput reads orders, one JSON object per line. An error begins with the place, as compilers write it.
func readInput(file string, r io.Reader) (*Input, error) {
	in, hash, seen := &Input{}, sha256.New(), map[string]int{}
	lines := bufio.NewScanner(io.TeeReader(r, hash))
	lines.Buffer(nil, maxLineBytes+1)
	n := 1
	for ; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		c, err := parseOrder(lines.Bytes())
		in.Orders, in.Total = append(in.Orders, c), in.Total.Plus(c.total())
		first, dup := seen[c.order.Order]
		err = errors.Join(err, check(!dup, "id: the same as on line %d", first),
			check(in.Total.fits(), "total of all orders so far: %w", errDigits))
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		seen[c.order.Order] = n
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", file, n, err)
	}
	if len(in.Orders) == 0 {
		return nil, fmt.Errorf("%s: no orders", file)
	}
	in.Digest = hex.EncodeToString(hash.Sum(nil))
	return in, nil
}

// parseOrder reads one line.
func parseOrder(data []byte) (c collection, err error) {
	var in struct {
		ID, Customer, Placed string
		Lines                []json.RawMessage
	}
	if err := parseObject(data, &in, "customer", "id", "lines", "placed"); err != nil {
		return c, err
	}
	placed, err := time.Parse(time.DateOnly, in.Placed)
	err = errors.Join(check(err == nil && placed.Year() > 0, "placed: not a date like 2006-01-02"),
		checkIdentifier("id", in.ID), checkIdentifier("customer", in.Customer),
		check(len(in.Lines) > 0, "lines: an order needs at least one"),
		check(len(in.Lines) <= maxOrderLines, "lines: more than %d", maxOrderLines))
	if err != nil {
		return c, err
	}
	c.order = Order{Order: in.ID, Customer: in.Customer, Placed: placed, Lines: len(in.Lines), Status: Pending}
	for i, data := range in.Lines {
		l := OrderLine{Order: in.ID, No: int64(i + 1)}
		if err := parseLine(data, &l); err != nil {
			return c, fmt.Errorf("lines[%d]: %w", i, err)
		}
		c.lines = append(c.lines, l)
	}
	return c, check(c.total().fits(), "total of the order: %w", errDigits)
}

func parseLine(data []byte, l *OrderLine) error {
	if err := parseObject(data, l, "discount", "price", "product", "quantity"); err != nil {
		return err
	}
	return errors.Join(checkIdentifier("product", l.Product),
		check(l.Price.rat().Sign() >= 0, "price: negative"),
		check(l.Quantity > 0, "quantity: not positive"),
		check(l.Discount.rat().Sign() >= 0 && l.Discount.rat().Cmp(one()) <= 0, "discount: not between 0 and 1"),
		check(l.Amount().decimals() <= 4, "the amount has more than 4 decimals"), // a price in cents times a discount in percent
		check(l.Amount().fits(), "amount: %w", errDigits))
}

// parseObject decodes a JSON object. encoding/json alone accepts members that are missing, given twice, or in another case.
func parseObject(data []byte, into any, names ...string) error {
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		return fmt.Errorf("not valid JSON: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, _ := dec.Token(); t != json.Delim('{') {
		return errors.New("not an object")
	}
	missing := slices.Clone(names)
	for dec.More() {
		name, _ := dec.Token()
		i := slices.Index(missing, fmt.Sprint(name))
		if i < 0 {
			return fmt.Errorf("unknown field, or one given twice; known are %s", strings.Join(names, ", "))
		}
		missing = slices.Delete(missing, i, i+1)
		_ = dec.Decode(new(json.RawMessage))
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s: missing", missing[0])
	}
	return json.Unmarshal(data, into)
}

// checkIdentifier refuses text that does not belong into a key. RuneError is what
// encoding/json makes of bytes that are not UTF-8.
func checkIdentifier(name, s string) error {
	return errors.Join(
		check(s != "", "%s: empty", name),
		check(len(s) <= maxIdentifier, "%s: longer than %d bytes", name, maxIdentifier),
		check(!strings.ContainsFunc(s, unicode.IsControl), "%s: contains a control character", name),
		check(!strings.ContainsRune(s, utf8.RuneError), "%s: contains a character that is not valid Unicode", name))
}

func check(holds bool, format string, args ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(format, args...)
}
