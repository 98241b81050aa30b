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
	"strconv"
	"time"
	"unicode/utf8"
)

//go:generate go run ./internal/gensample -o sample.jsonl

// sample is the input when -orders is not given.
//
//go:embed sample.jsonl
var sample []byte

// Limits of the input. Identifiers end up in keys, where escaping may double
// them and a sort key has room for 1,024 bytes; an order and its lines are
// written in one transaction, which takes 100 actions.
const (
	maxLineBytes  = 1 << 20
	maxIdentifier = 256 // bytes
	maxOrderLines = 99
)

// Input is what one file holds.
type Input struct {
	File   string // as people know it
	Digest string // SHA-256 of its bytes, in hex: names the file in the table
	Orders []InputOrder
	Total  Decimal
}

// InputOrder is one order as it was placed.
type InputOrder struct {
	ID       string
	Customer string
	Placed   time.Time // a date: midnight UTC
	Lines    []InputLine
}

// InputLine is one line of an order.
type InputLine struct {
	Product  string
	Price    Decimal // per piece, before discount, >= 0
	Quantity int64   // >= 1
	Discount Decimal // share of the price, 0 to 1
}

// InputError is a line of the input that was refused. Its text starts with
// the place, as compilers write it, so that editors can jump to it.
type InputError struct {
	File string
	Line int // from 1; 0 means the file as a whole
	Err  error
}

func (e *InputError) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Err.Error()
	}
	return e.File + ":" + strconv.Itoa(e.Line) + ": " + e.Err.Error()
}

func (e *InputError) Unwrap() error { return e.Err }

// openInput reads the named file: "" is the embedded sample and "-" is stdin.
func openInput(name string, stdin io.Reader) (*Input, error) {
	switch name {
	case "":
		return readInput("sample.jsonl", bytes.NewReader(sample))
	case "-":
		return readInput("<stdin>", stdin)
	}
	f, err := os.Open(name) //nolint:gosec // the user of the command line names it
	if err != nil {
		return nil, err
	}
	in, err := readInput(name, f)
	return in, errors.Join(err, f.Close())
}

// readInput reads orders, one JSON object per line, and checks everything that
// can be checked without the table. Blank lines are skipped. The first line
// that is wrong is the error, an *InputError.
func readInput(file string, r io.Reader) (*Input, error) {
	in := &Input{File: file}
	hash := sha256.New()
	lines := bufio.NewReaderSize(io.TeeReader(r, hash), 1<<16)
	seen := map[string]int{}
	for n := 1; ; n++ {
		refuse := func(err error) (*Input, error) { return nil, &InputError{File: file, Line: n, Err: err} }
		line, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return refuse(err)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		order, err := parseOrder(line)
		if err != nil {
			return refuse(err)
		}
		if first, dup := seen[order.ID]; dup {
			return refuse(fmt.Errorf("id: the same as on line %d", first))
		}
		seen[order.ID] = n
		total, err := order.Total()
		if err != nil {
			return refuse(err)
		}
		if in.Total, err = in.Total.Add(total); err != nil {
			return refuse(fmt.Errorf("total of all orders so far: %w", err))
		}
		in.Orders = append(in.Orders, order)
	}
	if len(in.Orders) == 0 {
		return nil, &InputError{File: file, Err: errors.New("no orders")}
	}
	in.Digest = hex.EncodeToString(hash.Sum(nil))
	return in, nil
}

// readLine returns the next line without its end, or io.EOF.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLineBytes+1 {
			return nil, fmt.Errorf("the line is longer than %d bytes", maxLineBytes)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		case err != nil:
			return nil, err
		}
		return bytes.TrimSuffix(line, []byte("\n")), nil
	}
}

// Total returns the sum of the order's lines.
func (o InputOrder) Total() (Decimal, error) {
	var total Decimal
	for i, l := range o.Lines {
		amount, err := lineAmount(l.Price, l.Quantity, l.Discount)
		if err != nil {
			return Decimal{}, fmt.Errorf("lines[%d]: %w", i, err)
		}
		if total, err = total.Add(amount); err != nil {
			return Decimal{}, fmt.Errorf("total of the order: %w", err)
		}
	}
	return total, nil
}

// parseOrder reads one line. encoding/json alone would let pass too much:
// repeated fields, fields in another case, broken UTF-8.
func parseOrder(line []byte) (InputOrder, error) {
	var o InputOrder
	if !utf8.Valid(line) {
		return o, errors.New("not valid UTF-8")
	}
	// The whole line first, so that the walk below only meets valid JSON and
	// nothing can follow the object.
	if err := json.Unmarshal(line, new(json.RawMessage)); err != nil {
		return o, fmt.Errorf("not valid JSON: %w", err)
	}
	w := &walker{dec: json.NewDecoder(bytes.NewReader(line))}
	w.dec.UseNumber()
	err := w.object("", map[string]func(path string) error{
		"id":       func(path string) error { return w.identifier(path, &o.ID) },
		"customer": func(path string) error { return w.identifier(path, &o.Customer) },
		"placed":   func(path string) error { return w.date(path, &o.Placed) },
		"lines": func(path string) error {
			return w.array(path, func(path string) error {
				l, err := w.line(path)
				o.Lines = append(o.Lines, l)
				return err
			})
		},
	})
	switch {
	case err != nil:
		return o, err
	case len(o.Lines) == 0:
		return o, errors.New("lines: an order needs at least one")
	case len(o.Lines) > maxOrderLines:
		return o, fmt.Errorf("lines: more than %d", maxOrderLines)
	}
	return o, nil
}
