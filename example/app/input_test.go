package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const goodOrder = `{"id":"10248","customer":"VINET","placed":"1996-07-04","lines":[{"product":"11","price":"14.00","quantity":12,"discount":"0"}]}`

func TestReadInput_ReadsOrders(t *testing.T) {
	in, err := readInput("x", strings.NewReader("\n"+goodOrder+"\r\n  \n"+
		`{ "lines":[{"discount":0.05,"quantity":10,"price":7.7,"product":"#1"}, {"discount":"1","quantity":1,"price":"9","product":"é"}],"placed":"2024-02-29","customer":"a#ORDER#1","id":"1"}`))
	require.NoError(t, err)
	require.Len(t, in.Orders, 2)
	assert.Equal(t, "10248", in.Orders[0].order.Order)
	assert.Equal(t, "VINET", in.Orders[0].order.Customer)
	assert.Equal(t, "1996-07-04", in.Orders[0].order.Placed.Format("2006-01-02"))
	assert.Equal(t, "a#ORDER#1", in.Orders[1].order.Customer)
	assert.Equal(t, "168", in.Orders[0].total().String())
	assert.Equal(t, "73.15", in.Orders[1].total().String())
	assert.Equal(t, "241.15", in.Total.String())
	assert.Len(t, in.Digest, 64)
}

// with returns goodOrder with one piece of text replaced.
func with(old, replacement string) string {
	if !strings.Contains(goodOrder, old) {
		panic(old)
	}
	return strings.Replace(goodOrder, old, replacement, 1)
}

func TestReadInput_RefusesWhatIsNoOrder(t *testing.T) {
	line := `{"product":"11","price":"14.00","quantity":12,"discount":"0"}`
	nines := strings.Repeat("9", 38)
	for name, c := range map[string]struct{ line, reason string }{
		"no JSON":                {`id=5`, "not valid JSON"},
		"cut off":                {goodOrder[:40], "not valid JSON"},
		"trailing garbage":       {goodOrder + " x", "not valid JSON"},
		"two on a line":          {goodOrder + goodOrder, "not valid JSON"},
		"byte order mark":        {"\ufeff" + goodOrder, "not valid JSON"},
		"array":                  {"[" + goodOrder + "]", "not an object"},
		"null":                   {"null", "not an object"},
		"empty object":           {"{}", "customer: missing"},
		"invalid UTF-8":          {with("VINET", "VIN\xffET"), "customer: contains a character that is not valid Unicode"},
		"half a surrogate pair":  {with("VINET", `VIN\ud800ET`), "customer: contains a character that is not valid Unicode"},
		"unknown field":          {with(`"id"`, `"note":1,"id"`), "unknown field, or one given twice; known are customer, id, lines, placed"},
		"unknown field of line":  {with(`"product"`, `"sku":1,"product"`), "lines[0]: unknown field, or one given twice; known are discount, price, product, quantity"},
		"other case":             {with(`"id"`, `"ID"`), "unknown field"},
		"field twice":            {with(`"id"`, `"id":"1","id"`), "unknown field, or one given twice"},
		"line field twice":       {with(`"price"`, `"price":"1","price"`), "lines[0]: unknown field, or one given twice"},
		"no id":                  {with(`"id":"10248",`, ""), "id: missing"},
		"no customer":            {with(`"customer":"VINET",`, ""), "customer: missing"},
		"no date":                {with(`"placed":"1996-07-04",`, ""), "placed: missing"},
		"no lines":               {with(`,"lines":[`+line+`]`, ""), "lines: missing"},
		"lines empty":            {with(line, ""), "lines: an order needs at least one"},
		"lines null":             {with("["+line+"]", "null"), "lines: an order needs at least one"},
		"line null":              {with(line, "null"), "lines[0]: not an object"},
		"100 lines":              {with(line, strings.Repeat(line+",", 99)+line), "lines: more than 99"},
		"no product":             {with(`"product":"11",`, ""), "lines[0]: product: missing"},
		"no price":               {with(`"price":"14.00",`, ""), "lines[0]: price: missing"},
		"no quantity":            {with(`"quantity":12,`, ""), "lines[0]: quantity: missing"},
		"no discount":            {with(`,"discount":"0"`, ""), "lines[0]: discount: missing"},
		"id a number":            {with(`"10248"`, "10248"), ".ID of type string"},
		"id empty":               {with("10248", ""), "id: empty"},
		"id too long":            {with("10248", strings.Repeat("é", 129)), "id: longer than 256 bytes"},
		"id with newline":        {with("10248", `1\n2`), "id: contains a control character"},
		"customer null":          {with(`"VINET"`, "null"), "customer: empty"},
		"customer empty":         {with("VINET", ""), "customer: empty"},
		"date wrong":             {with("1996-07-04", "1996-02-30"), "placed: not a date"},
		"date with time":         {with("1996-07-04", "1996-07-04T00:00:00Z"), "placed: not a date"},
		"date short":             {with("1996-07-04", "1996-7-4"), "placed: not a date"},
		"year 0":                 {with("1996-07-04", "0000-07-04"), "placed: not a date"},
		"date a number":          {with(`"1996-07-04"`, "19960704"), ".Placed of type string"},
		"quantity zero":          {with("12", "0"), "lines[0]: quantity: not positive"},
		"quantity negative":      {with("12", "-1"), "lines[0]: quantity: not positive"},
		"quantity fraction":      {with("12", "1.5"), ".Quantity of type int64"},
		"quantity exponent":      {with("12", "1e1"), ".Quantity of type int64"},
		"quantity string":        {with("12", `"12"`), ".Quantity of type int64"},
		"quantity huge":          {with("12", "9223372036854775808"), ".Quantity of type int64"},
		"price negative":         {with("14.00", "-0.01"), "lines[0]: price: negative"},
		"price no number":        {with("14.00", "14,00"), "lines[0]: not a decimal number"},
		"price empty":            {with("14.00", ""), "lines[0]: not a decimal number"},
		"price bool":             {with(`"14.00"`, "true"), "not a decimal number"},
		"price too precise":      {with("14.00", nines+"0"), "lines[0]: more than 38 digits"},
		"price not a number":     {with("14.00", "NaN"), "lines[0]: not a decimal number"},
		"discount above 1":       {with(`"discount":"0"`, `"discount":"1.01"`), "lines[0]: discount: not between 0 and 1"},
		"discount negative":      {with(`"discount":"0"`, `"discount":"-0.05"`), "lines[0]: discount: not between 0 and 1"},
		"discount percent":       {with(`"discount":"0"`, `"discount":"5%"`), "lines[0]: not a decimal number"},
		"amount five places":     {with(`"discount":"0"`, `"discount":"0.123456"`), "lines[0]: the amount has more than 4 decimals"},
		"amount overflow":        {with("14.00", nines), "lines[0]: amount: more than 38 digits"},
		"order overflow":         {with(line, `{"product":"1","price":"`+nines+`","quantity":1,"discount":"0"},`+line), "total of the order: more than 38 digits"},
		"line of a megabyte":     {with("VINET", strings.Repeat("x", maxLineBytes)), "token too long"},
		"array of deep nesting":  {strings.Repeat("[", 20000), "not valid JSON"},
		"same id as on line one": {goodOrder, "id: the same as on line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			head, at := strings.Replace(goodOrder, "10248", "1", 1)+"\n\n", 3
			if name == "same id as on line one" {
				head = goodOrder + "\n\n"
			}
			_, err := readInput("orders.jsonl", strings.NewReader(head+c.line+"\n"))
			require.Error(t, err)
			assert.True(t, strings.HasPrefix(err.Error(), fmt.Sprintf("orders.jsonl:%d: ", at)), err)
			assert.Contains(t, err.Error(), c.reason)
		})
	}
}

func TestReadInput_RefusesATotalThatDoesNotFit(t *testing.T) {
	half := `"` + strings.Repeat("9", 38) + `"`
	one := strings.Replace(with(`"14.00"`, half), `"quantity":12`, `"quantity":1`, 1)
	two := strings.Replace(one, "10248", "10249", 1)
	_, err := readInput("f", strings.NewReader(one+"\n"+two))
	require.ErrorIs(t, err, errDigits)
	assert.Contains(t, err.Error(), "f:2: total of all orders so far")
}

func TestReadInput_RefusesAnEmptyFile(t *testing.T) {
	for _, text := range []string{"", "\n\n", " \r\n"} {
		_, err := readInput("f", strings.NewReader(text))
		assert.EqualError(t, err, "f: no orders")
	}
}

func TestInput_ReportsReadErrors(t *testing.T) {
	_, err := openInput(filepath.Join(t.TempDir(), "none"), nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = openInput(t.TempDir(), nil)
	require.Error(t, err)
	_, err = readInput("f", io.MultiReader(strings.NewReader(goodOrder+"\n"), iotest.ErrReader(io.ErrUnexpectedEOF)))
	require.EqualError(t, err, "f:2: unexpected EOF")
}

func TestOpenInput_ReadsStandardInput(t *testing.T) {
	in, err := openInput("-", strings.NewReader(goodOrder))
	require.NoError(t, err)
	assert.Len(t, in.Orders, 1)
	_, err = openInput("-", strings.NewReader("x"))
	assert.ErrorContains(t, err, "<stdin>:1: not valid JSON")
}

// The sample's total is computed once more, in integers of a ten-thousandth,
// by code that shares nothing with the application.
func TestSample_HasTheTotalOfOtherArithmetic(t *testing.T) {
	cents := func(s string) int64 {
		n, err := strconv.ParseInt(strings.Replace(s, ".", "", 1), 10, 64)
		require.NoError(t, err)
		require.Equal(t, len(s)-3, strings.Index(s, "."))
		return n
	}
	percent := map[string]int64{"0": 0, "0.05": 5, "0.1": 10, "0.15": 15, "0.2": 20, "0.25": 25}
	var total int64
	orders := 0
	for text := range strings.Lines(string(sample)) {
		var o struct {
			Lines []struct {
				Price, Discount string
				Quantity        int64
			}
		}
		require.NoError(t, json.Unmarshal([]byte(text), &o))
		for _, l := range o.Lines {
			off, ok := percent[l.Discount]
			require.True(t, ok)
			total += cents(l.Price) * l.Quantity * (100 - off)
		}
		orders++
	}
	in, err := openInput("", nil)
	require.NoError(t, err)
	assert.Len(t, in.Orders, orders)
	assert.Equal(t, money(t, fmt.Sprintf("%d.%04d", total/10000, total%10000)).String(), in.Total.String())
}

func FuzzInput(f *testing.F) {
	f.Add([]byte(goodOrder))
	f.Add([]byte(goodOrder + "\n" + with("10248", "10249")))
	f.Add([]byte(with("14.00", "1e-5")))
	f.Add([]byte(`{"id":"\ud800"}`))
	f.Add([]byte("{}\n[]\nnull"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := readInput("f", strings.NewReader(string(data)))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Fatal(err)
			}
			return
		}
		var total Money
		for _, c := range in.Orders {
			if c.order.Order == "" || c.order.Customer == "" || len(c.lines) == 0 || c.order.Lines != len(c.lines) || !c.total().fits() {
				t.Fatalf("accepted: %+v", c)
			}
			total = total.Plus(c.total())
		}
		if total.String() != in.Total.String() {
			t.Fatalf("total %s, want %s", in.Total, total)
		}
	})
}
