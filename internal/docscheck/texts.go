package docscheck

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Text is a text of an error or a log record.
type Text struct {
	Text string // with … in place of values
	File string
	Line int
}

// Texts returns the texts of errors, and of log records above debug level, that users of the public packages can see, ordered by file
// and line. It omits details that follow the kind of an error and already tell what is expected: the details of invalid requests
// (ErrInvalid), and those of errors of package keys. It also omits short texts, which only tell the place of an error, such as
// "operation 3:".
func (r *Repository) Texts() []Text {
	var all []Text
	seen := map[string]bool{}
	var files []string
	for file := range r.code.files {
		if r.shown(file) {
			files = append(files, file)
		}
	}
	slices.Sort(files)
	for _, file := range files {
		for _, lit := range literals(r.code.files[file]) {
			text := spell(lit.text)
			if text == "" || seen[text] || internalTexts[text] || !lit.kind && (strings.HasPrefix(file, "keys/") || strings.Count(text, " ") < 2) {
				continue
			}
			seen[text] = true
			all = append(all, Text{text, file, r.code.fset.Position(lit.pos).Line})
		}
	}
	return all
}

// shown reports whether users can see the texts of a file: it is in a public package, or in a package that these use.
func (r *Repository) shown(file string) bool {
	if strings.HasSuffix(file, "_test.go") {
		return false
	}
	for _, dir := range []string{
		"internal/", "example/", "cmd/", // the command's texts are for its own users, and it has a page of its own
		"table/tabletest/", "lock/proof/", "entity/internal/", // a test double; tests; texts that package entity hides
	} {
		if strings.HasPrefix(file, dir) {
			return false
		}
	}
	return true
}

// internalTexts are the texts of errors that the packages do not return.
var internalTexts = map[string]bool{
	"again": true, "defined": true, "the interval is settled": true, "the ticket has left the line": true, "session keeper closed": true,
	"no need to wait any longer": true, "it is recorded as finished already": true, "the line is full": true,
	"the session was not needed any more": true,
}

type literal struct {
	text string
	pos  token.Pos
	kind bool // a declared kind of error, or the message of a log record
}

// literals returns the texts of errors and logs in a file.
func literals(f *ast.File) (list []literal) {
	for _, d := range f.Decls {
		fn, isFunc := d.(*ast.FuncDecl)
		isError := isFunc && fn.Recv != nil && fn.Name.Name == "Error"
		kind := !isFunc
		ast.Inspect(d, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			arg, log := -1, false
			switch name := called(call); {
			case name == "errors.New" || isError && (name == "fmt.Sprintf"):
				arg = 0
			case isError && name == "fmt.Fprintf":
				arg = 1
			case name == "fmt.Errorf" && !invalid(call):
				arg = 0
			case strings.HasSuffix(name, ".Warn") || strings.HasSuffix(name, ".Info") || strings.HasSuffix(name, ".Error"):
				arg, log = 0, true
			}
			if arg < 0 || arg >= len(call.Args) {
				return true
			}
			if lit, ok := call.Args[arg].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					list = append(list, literal{text, lit.Pos(), kind || log})
				}
			}
			return true
		})
	}
	return list
}

// called returns the function that a call names, such as errors.New.
func called(call *ast.CallExpr) string {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := s.X.(*ast.Ident); ok {
		return x.Name + "." + s.Sel.Name
	}
	return "." + s.Sel.Name
}

// invalid reports whether a call makes an error of the kind ErrInvalid, whose details are not listed.
func invalid(call *ast.CallExpr) bool {
	return slices.ContainsFunc(call.Args, func(a ast.Expr) bool {
		switch a := a.(type) {
		case *ast.Ident:
			return a.Name == "ErrInvalid"
		case *ast.SelectorExpr:
			return a.Sel.Name == "ErrInvalid"
		}
		return false
	})
}

var (
	verb  = regexp.MustCompile(`%[-+# 0]*\d*(?:\.\d+)?[a-zA-Z]`)
	words = regexp.MustCompile(`[a-z]{3,}.*[a-z]{2,}`)
)

// spell returns a format as readers know it, with … in place of values. It returns "" for a format without words.
func spell(format string) string {
	text := strings.TrimSpace(verb.ReplaceAllString(format, "…"))
	text = strings.ReplaceAll(text, `"…"`, "…")
	for _, cut := range []string{"…: ", "… ", "; ", ", ", "("} {
		text = strings.TrimPrefix(text, cut)
	}
	for _, cut := range []string{": …", " …", ": "} {
		text = strings.TrimSuffix(text, cut)
	}
	if strings.Count(text, ")") > strings.Count(text, "(") {
		text = strings.TrimSuffix(text, ")")
	}
	text = strings.TrimSuffix(strings.TrimSuffix(text, ": …"), "…:")
	text = strings.TrimRight(text, ": ")
	if !words.MatchString(text) {
		return ""
	}
	return text
}

// Unexplained returns the texts of the code that are not in a code span of the page, and a problem for each code span at the beginning
// of a table row that is not a text of the code.
func (r *Repository) Unexplained(name string) (missing []Text, stale []Problem) {
	p := r.pages[name]
	if p == nil {
		return r.Texts(), nil
	}
	explained := map[string]bool{}
	for _, s := range p.spans {
		explained[s.text] = true
	}
	have := map[string]bool{}
	for _, t := range r.Texts() {
		have[t.Text] = true
		if !explained[t.Text] {
			missing = append(missing, t)
		}
	}
	for _, s := range p.rows {
		if !have[s.text] {
			stale = append(stale, Problem{name, s.line, "`" + s.text + "`: the code has no such text"})
		}
	}
	return missing, stale
}
