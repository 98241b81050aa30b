package docscheck

import (
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
)

// commentLink matches a link of Go doc comments: [Name], [Type.Member], [pkg.Name] or [pkg.Type.Member].
var commentLink = regexp.MustCompile(`(?:^|[\s(*])\[\*?((?:[a-z]\w*\.)?[A-Z]\w*(?:\.[A-Z]\w*)?)\]`)

// Comments returns a problem for each link in a comment of a public package to a name that does not exist.
func (r *Repository) Comments() []Problem {
	var all []Problem
	for file, f := range r.code.files {
		p := r.code.packages[path.Dir(file)]
		if p == nil || !p.public || strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, group := range f.Comments {
			for _, c := range group.List {
				for n, line := range strings.Split(c.Text, "\n") {
					if strings.HasPrefix(line, "//\t") { // code
						continue
					}
					for _, m := range commentLink.FindAllStringSubmatch(strings.TrimPrefix(line, "//"), -1) {
						if !r.code.resolves(p, f, m[1]) {
							all = append(all, Problem{file, r.code.fset.Position(c.Pos()).Line + n, "[" + m[1] + "]: no such exported name"})
						}
					}
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b Problem) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// resolves reports whether a link leads to an exported name of the package, or of another public one. For other packages it is enough
// that the file imports the package or that it is a known one: their names are not checked.
func (c *code) resolves(p *pkg, f *ast.File, name string) bool {
	first, rest, qualified := strings.Cut(name, ".")
	if !qualified || ast.IsExported(first) {
		return p.names[name]
	}
	if own := c.byName[first]; own != nil {
		return own.names[rest]
	}
	return slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool {
		return path.Base(strings.Trim(i.Path.Value, `"`)) == first || i.Name != nil && i.Name.Name == first
	}) || knownPackage(first)
}
