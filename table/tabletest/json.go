package tabletest

import (
	"math"
	"strconv"
	"time"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
	"github.com/mortise-go/mortise/table/tabletest/internal/jsontree"
)

func (o *object) number(name string, v float64) {
	o.name(name)
	o.b = strconv.AppendFloat(o.b, v, 'f', -1, 64)
}

func (o *object) int(name string, v int) { o.long(name, int64(v)) }

func (o *object) long(name string, v int64) {
	o.name(name)
	o.b = strconv.AppendInt(o.b, v, 10)
}

func (o *object) bool(name string, v bool) {
	o.name(name)
	o.b = strconv.AppendBool(o.b, v)
}

// time writes seconds since the epoch with milliseconds, which is the protocol's format of a timestamp.
func (o *object) time(name string, t time.Time) {
	o.name(name)
	o.b = strconv.AppendFloat(o.b, float64(t.UnixMilli())/1000, 'f', -1, 64)
}

// fields reads the members of a request. err is the error for the first member of a wrong type.
type fields struct {
	n      *jsontree.Node
	err    error
	action bool // they are an action of a transaction
}

func (f *fields) has(name string) bool { return !f.n.Get(name).IsNull() }

func (f *fields) wrong(n *jsontree.Node) {
	if f.err == nil {
		f.err = attr.MalformedError(n.Kind.String() + " cannot be converted to the expected type")
	}
}

func (f *fields) get(name string, k jsontree.Kind) *jsontree.Node {
	n := f.n.Get(name)
	if n.IsNull() || n.Kind == k {
		return n
	}
	f.wrong(n)
	return f.n.Get("")
}

func (f *fields) text(name string) string { return f.get(name, jsontree.String).Text }
func (f *fields) flag(name string) bool   { return f.get(name, jsontree.Bool).Bool }
func (f *fields) sub(name string) fields  { return fields{n: f.get(name, jsontree.Object)} }
func (f *fields) members(name string) []jsontree.Member {
	return f.get(name, jsontree.Object).Members
}

func (f *fields) items(name string) []jsontree.Node {
	return f.get(name, jsontree.Array).Items
}

// number returns an integer, and whether the request contains it.
func (f *fields) number(name string) (int, bool) {
	v, ok := f.long(name)
	return int(min(v, math.MaxInt)), ok
}

// long returns a whole number that may not fit an int of 32 bits.
func (f *fields) long(name string) (int64, bool) {
	n := f.get(name, jsontree.Number)
	if n.IsNull() {
		return 0, false
	}
	v, err := strconv.ParseInt(n.Text, 10, 64)
	if err != nil {
		f.wrong(n)
		return 0, false
	}
	return v, true
}

// texts returns a list of strings.
func (f *fields) texts(name string) []string {
	items := f.items(name)
	if items == nil {
		return nil
	}
	out := make([]string, len(items))
	for i := range items {
		if items[i].Kind != jsontree.String {
			f.wrong(&items[i])
			return nil
		}
		out[i] = items[i].Text
	}
	return out
}

func appendText(b []byte, s string) []byte { return jsontree.AppendString(b, s) }
