package docscheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"strings"
)

const module = "github.com/mortise-go/mortise"

// code contains the declarations of the repository's Go files.
type code struct {
	packages map[string]*pkg     // by directory
	byName   map[string]*pkg     // public packages, by name
	internal map[string]*pkg     // packages directly in an internal directory or in internal/proof, by name
	tests    map[string]bool     // names of tests, benchmarks, fuzz targets and examples
	testsIn  map[string][]string // the same, by directory
	fset     *token.FileSet
	files    map[string]*ast.File // by path
}

// pkg is a package.
type pkg struct {
	dir, name string
	public    bool
	names     map[string]bool // exported names: T, F, T.Method, T.Field
	types     map[string]bool // true for exported types
}

func readCode(root string, files map[string]bool) (*code, error) {
	c := &code{
		packages: map[string]*pkg{}, byName: map[string]*pkg{}, internal: map[string]*pkg{}, tests: map[string]bool{}, testsIn: map[string][]string{},
		fset: token.NewFileSet(), files: map[string]*ast.File{},
	}
	for file := range files {
		if path.Ext(file) != ".go" || strings.Contains(file, "testdata/") {
			continue
		}
		f, err := parser.ParseFile(c.fset, filepath.Join(root, filepath.FromSlash(file)), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		c.files[file] = f
		dir := path.Dir(file)
		if strings.HasSuffix(file, "_test.go") {
			c.addTests(dir, f)
			continue
		}
		p := c.packages[dir]
		if p == nil {
			p = &pkg{dir: dir, name: f.Name.Name, names: map[string]bool{}, types: map[string]bool{}}
			p.public = p.name != "main" && !strings.HasPrefix(dir+"/", "internal/") && !strings.Contains(dir+"/", "/internal/") &&
				!strings.HasPrefix(dir, "example/")
			c.packages[dir] = p
			switch {
			case p.public:
				c.byName[p.name] = p
			case path.Base(path.Dir(dir)) == "internal", path.Dir(dir) == "internal/proof":
				c.internal[p.name] = p
			}
		}
		p.add(f)
	}
	return c, nil
}

func (c *code) addTests(dir string, f *ast.File) {
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && testName.MatchString(fn.Name.Name) {
			c.tests[fn.Name.Name] = true
			c.testsIn[dir] = append(c.testsIn[dir], fn.Name.Name)
		}
	}
}

func (p *pkg) add(f *ast.File) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			p.export(name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					p.export(s.Name.Name)
					p.types[s.Name.Name] = s.Name.IsExported()
					p.members(s)
				case *ast.ValueSpec:
					for _, n := range s.Names {
						p.export(n.Name)
					}
				}
			}
		}
	}
}

// members adds the fields of a struct, and the methods of an interface.
func (p *pkg) members(s *ast.TypeSpec) {
	var list *ast.FieldList
	switch t := s.Type.(type) {
	case *ast.StructType:
		list = t.Fields
	case *ast.InterfaceType:
		list = t.Methods
	default:
		return
	}
	for _, f := range list.List {
		for _, n := range f.Names {
			p.export(s.Name.Name + "." + n.Name)
		}
		if len(f.Names) == 0 {
			p.export(s.Name.Name + "." + receiver(f.Type))
		}
	}
}

func (p *pkg) export(name string) {
	for part := range strings.SplitSeq(name, ".") {
		if !ast.IsExported(part) {
			return
		}
	}
	p.names[name] = true
}

// receiver returns the name of the type of a receiver or of an embedded field.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// has reports whether a name such as lock.Lease.Write, Lease.Write or lock.New is exported. A name without a package belongs to the
// package in the page's directory if that has the type, and otherwise to any public package.
func (c *code) has(page, name string) bool {
	first, rest, _ := strings.Cut(name, ".")
	if !ast.IsExported(first) {
		p := c.byName[first]
		if p == nil {
			p = c.internal[first]
		}
		return p != nil && p.names[rest]
	}
	if own := c.packages[path.Dir(page)]; own != nil && own.types[first] {
		return own.names[name]
	}
	for _, p := range c.byName {
		if p.names[name] {
			return true
		}
	}
	return false
}

// isType reports whether a public package, or the package in the page's directory, exports a type with the name.
func (c *code) isType(page, name string) bool {
	if own := c.packages[path.Dir(page)]; own != nil && own.types[name] {
		return true
	}
	for _, p := range c.byName {
		if p.types[name] {
			return true
		}
	}
	return false
}

// declaration returns the first and the last line of a declaration with its comment. Lines count from 1.
func (c *code) declaration(file, name string) (first, last int, ok bool) {
	f := c.files[file]
	if f == nil {
		return 0, 0, false
	}
	for _, d := range f.Decls {
		var doc *ast.CommentGroup
		found := false
		switch d := d.(type) {
		case *ast.FuncDecl:
			own := d.Name.Name
			if d.Recv != nil {
				own = receiver(d.Recv.List[0].Type) + "." + own
			}
			doc, found = d.Doc, own == name
		case *ast.GenDecl:
			doc = d.Doc
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					found = found || s.Name.Name == name
				case *ast.ValueSpec:
					for _, n := range s.Names {
						found = found || n.Name == name
					}
				}
			}
		}
		if !found {
			continue
		}
		begin := d.Pos()
		if doc != nil {
			begin = doc.Pos()
		}
		return c.fset.Position(begin).Line, c.fset.Position(d.End()).Line, true
	}
	return 0, 0, false
}
