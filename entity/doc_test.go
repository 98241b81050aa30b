package entity_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sources are the package's own files and its tests.
func sources(t *testing.T) (own, tests []*ast.File, fset *token.FileSet) {
	t.Helper()
	fset = token.NewFileSet()
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range names {
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		require.NoError(t, err)
		if strings.HasSuffix(name, "_test.go") {
			tests = append(tests, f)
		} else {
			own = append(own, f)
		}
	}
	return own, tests, fset
}

// shown are the names that runnable examples use: those selected, and the fields of literals.
// Names are compared without their types: what two types have, one example shows.
func shown(examples []*doc.Example) map[string]bool {
	names := map[string]bool{}
	for _, x := range examples {
		if x.Output == "" && !x.EmptyOutput {
			continue // is compiled, and not run
		}
		ast.Inspect(x.Code, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				names[n.Sel.Name] = true
			case *ast.KeyValueExpr:
				if id, ok := n.Key.(*ast.Ident); ok {
					names[id.Name] = true
				}
			}
			return true
		})
	}
	return names
}

// exported are the package's exported names that a program writes: "Type", "Type.Method",
// "Type.Field", and functions. What package errors calls, it does not write.
func exported(pkg *doc.Package) (list []string) {
	values := func(all []*doc.Value) {
		for _, v := range all {
			for _, name := range v.Names {
				if ast.IsExported(name) {
					list = append(list, name)
				}
			}
		}
	}
	funcs := func(all []*doc.Func, prefix string) {
		for _, f := range all {
			switch f.Name {
			case "Error", "Is", "Unwrap":
			default:
				list = append(list, prefix+f.Name)
			}
		}
	}
	values(pkg.Consts)
	values(pkg.Vars)
	funcs(pkg.Funcs, "")
	for _, typ := range pkg.Types {
		values(typ.Consts)
		values(typ.Vars)
		funcs(typ.Funcs, "")
		funcs(typ.Methods, typ.Name+".")
		if len(typ.Funcs) == 0 { // else its constructors show it
			list = append(list, typ.Name)
		}
		for _, spec := range typ.Decl.Specs {
			st, ok := spec.(*ast.TypeSpec).Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, f := range st.Fields.List {
				for _, name := range f.Names {
					if name.IsExported() {
						list = append(list, typ.Name+"."+name.Name)
					}
				}
			}
		}
	}
	return list
}

func TestExamples_ShowEverythingExported(t *testing.T) {
	own, tests, fset := sources(t)
	pkg, err := doc.NewFromFiles(fset, own, "entity")
	require.NoError(t, err)
	list := exported(pkg)
	require.Contains(t, list, "Entity.Query")
	require.Contains(t, list, "Spec.ReadOnly")
	names := shown(doc.Examples(tests...))
	for _, name := range list {
		last := name[strings.LastIndex(name, ".")+1:]
		assert.True(t, names[last], "no example with // Output: uses %s", name)
	}
}

// COOKBOOK.md and the examples have the same recipes, and the templates of the text are those of the code.
func TestCookbook_IsCompiled(t *testing.T) {
	_, tests, fset := sources(t)
	text, err := os.ReadFile("COOKBOOK.md")
	require.NoError(t, err)
	book := string(text)

	var inText, inCode []string
	for _, m := range regexp.MustCompile(`(?m)^## [^()]*\((\w+)\)$`).FindAllStringSubmatch(book, -1) {
		inText = append(inText, m[1])
	}
	literals := map[string]bool{}
	for _, f := range tests {
		if !strings.HasSuffix(fset.Position(f.Pos()).Filename, "cookbook_test.go") {
			continue
		}
		for _, x := range doc.Examples(f) {
			require.NotEmpty(t, x.Output, x.Name)
			name := strings.TrimPrefix(x.Name, "_")
			inCode = append(inCode, strings.ToUpper(name[:1])+name[1:])
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				literals[strings.Trim(lit.Value, `"`)] = true
			}
			return true
		})
	}
	assert.Len(t, inText, 9)
	assert.ElementsMatch(t, inText, inCode)
	templates := regexp.MustCompile(`(?m)(?:PK|SK|Key) (\S*\{\S+)`).FindAllStringSubmatch(book, -1)
	assert.Greater(t, len(templates), 10)
	for _, m := range templates {
		assert.True(t, literals[m[1]], "no recipe has the template %s", m[1])
	}
}
