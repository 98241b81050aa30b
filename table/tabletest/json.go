package tabletest

import (
	"math"
	"strconv"
	"time"

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

// fields reads the members of a request, whose types checkShape has checked. A missing member reads like an empty one.
type fields struct {
	n      *jsontree.Node
	action bool // they are an action of a transaction
}

func (f *fields) has(name string) bool                  { return !f.n.Get(name).IsNull() }
func (f *fields) text(name string) string               { return f.n.Get(name).Text }
func (f *fields) flag(name string) bool                 { return f.n.Get(name).Bool }
func (f *fields) sub(name string) fields                { return fields{n: f.n.Get(name)} }
func (f *fields) members(name string) []jsontree.Member { return f.n.Get(name).Members }
func (f *fields) items(name string) []jsontree.Node     { return f.n.Get(name).Items }

// number returns an integer, and whether the request contains it.
func (f *fields) number(name string) (int, bool) {
	v, ok := f.long(name)
	return int(min(v, math.MaxInt)), ok
}

// long returns a whole number that may not fit an int of 32 bits.
func (f *fields) long(name string) (int64, bool) {
	v, _ := strconv.ParseInt(f.text(name), 10, 64)
	return v, f.has(name)
}

// texts returns a list of strings.
func (f *fields) texts(name string) []string {
	var out []string
	for _, n := range f.items(name) {
		out = append(out, n.Text)
	}
	return out
}

func appendText(b []byte, s string) []byte { return jsontree.AppendString(b, s) }
