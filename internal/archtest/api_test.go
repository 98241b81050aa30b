package archtest

import (
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// public are the packages that applications import.
var public = []string{"keys", "table", "table/tabletest", "entity", "lock", "migrations", "migrations/migratecmd", "console"}

// An application cannot name a type of an internal package: none stands in an exported signature, field or variable.
func TestAPI_HasNoTypesOfInternalPackages(t *testing.T) {
	export := exports(t, public...)
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(export[path].Export) })
	for _, name := range public {
		p, err := from.Import(module + "/" + name)
		require.NoError(t, err)
		a := api{inside: map[string]bool{}, seen: map[types.Type]bool{}}
		names := p.Scope().Names()
		for _, n := range names {
			if o := p.Scope().Lookup(n); o.Exported() {
				a.object(o)
			}
		}
		assert.NotEmpty(t, a.seen, "%s: nothing was found", name)
		for typ := range a.inside {
			assert.Fail(t, "a type of an internal package in the API", "%s: %s", name, typ)
		}
	}
}

// api are the types in the API of a package.
type api struct {
	inside map[string]bool // those of internal packages
	seen   map[types.Type]bool
}

func (a api) object(o types.Object) {
	a.add(o.Type())
	named, ok := types.Unalias(o.Type()).(*types.Named)
	if _, is := o.(*types.TypeName); !is || !ok || named.Obj() != o {
		return
	}
	a.add(named.Underlying())
	for m := range named.Methods() {
		if m.Exported() {
			a.add(m.Signature())
		}
	}
}

func (a api) add(typ types.Type) {
	if a.seen[typ] {
		return
	}
	a.seen[typ] = true
	switch typ := types.Unalias(typ).(type) {
	case *types.Named:
		if p := typ.Obj().Pkg(); p != nil && strings.HasPrefix(p.Path(), module+"/") && strings.Contains(p.Path(), "/internal/") {
			a.inside[typ.String()] = true
		}
		for arg := range typ.TypeArgs().Types() {
			a.add(arg)
		}
	case *types.Signature:
		a.add(typ.Params())
		a.add(typ.Results())
	case *types.Tuple:
		for v := range typ.Variables() {
			a.add(v.Type())
		}
	case *types.Struct:
		for f := range typ.Fields() {
			if f.Exported() {
				a.add(f.Type())
			}
		}
	case *types.Interface:
		for m := range typ.ExplicitMethods() {
			a.add(m.Signature())
		}
	case *types.Map:
		a.add(typ.Key())
		a.add(typ.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays and channels
		a.add(typ.Elem())
	}
}
