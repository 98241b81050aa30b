package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mostOfEntity is how many statements a method of Entity has at most.
const mostOfEntity = 12

// The compiler makes each method of Entity anew for every type of an application. What takes more than converting the
// arguments belongs into core, which it makes once.
func TestEntity_LeavesTheWorkToCore(t *testing.T) {
	fset, found := token.NewFileSet(), 0
	paths, err := filepath.Glob(filepath.Join("..", "..", "entity", "*.go"))
	require.NoError(t, err)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			pointer, _ := f.Recv.List[0].Type.(*ast.StarExpr)
			if pointer == nil {
				continue
			}
			if of, ok := pointer.X.(*ast.IndexExpr); !ok || of.X.(*ast.Ident).Name != "Entity" {
				continue
			}
			found++
			statements := 0
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if _, ok := n.(ast.Stmt); ok {
					statements++
				}
				return true
			})
			assert.LessOrEqual(t, statements, mostOfEntity, fset.Position(f.Pos()))
		}
	}
	assert.Positive(t, found, "the methods were not found")
}
