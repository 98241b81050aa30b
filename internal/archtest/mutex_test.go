package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// guardedPackages are those whose mutexes are looked at.
var guardedPackages = []string{"lock", "lock/internal/clock", "lock/internal/session", "lock/internal/waitqueue"}

// While a mutex is held nothing is sent, logged, waited for or handed to the application:
// whatever takes long there, or calls back, stops everybody else.
func TestMutex_IsHeldForNothingSlow(t *testing.T) {
	export := exports(t, "lock/...")
	for _, name := range guardedPackages {
		p, ok := export[module+"/"+name]
		require.True(t, ok, name)
		fset := token.NewFileSet()
		var files []*ast.File
		for _, file := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, file), nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			files = append(files, f)
		}
		a := check(t, fset, module+"/"+name, files, export)
		for _, text := range a.all() {
			t.Error(text)
		}
		t.Logf("%s: %d mutexes, locked in %d places, %d slow calls under them (goal 0)", name, len(a.mutexes), a.places, len(a.found))
		assert.Positive(t, a.places, "the mutexes were not found")
	}
}

// The audit finds what it is for: each line that says want is reported, and no other.
func TestMutexAudit_FindsWhatItIsFor(t *testing.T) {
	const file = "audited.go"
	source, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, source, parser.SkipObjectResolution)
	require.NoError(t, err)
	a := check(t, fset, "audited", []*ast.File{parsed}, exports(t, "lock/..."))
	want, got := map[int]string{}, map[int]string{}
	for i, line := range strings.Split(string(source), "\n") {
		if found := regexp.MustCompile(`// want (.*)$`).FindStringSubmatch(line); found != nil {
			want[i+1] = found[1]
		}
	}
	for pos, text := range a.found {
		got[fset.Position(pos).Line] = text
	}
	assert.NotEmpty(t, want)
	for line, text := range want {
		assert.Contains(t, got[line], text, "line %d", line)
	}
	for line, text := range got {
		assert.Contains(t, want, line, "line %d: %s", line, text)
	}
}

// listed is what `go list -export` says of a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

func exports(t *testing.T, packages ...string) map[string]listed {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}
	for _, p := range packages {
		args = append(args, module+"/"+p)
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	list := map[string]listed{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			require.NoError(t, err)
		}
		list[p.ImportPath] = p
	}
}

// check type-checks a package and audits it.
func check(t *testing.T, fset *token.FileSet, path string, files []*ast.File, export map[string]listed) *audit {
	t.Helper()
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(export[path].Export)
	})}
	a := &audit{
		fset: fset, found: map[token.Pos]string{}, mutexes: map[string]bool{}, locked: map[token.Pos]bool{},
		bodies: map[*types.Func]*ast.BlockStmt{}, slow: map[*types.Func]string{},
		info: &types.Info{
			Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
			Selections: map[*ast.SelectorExpr]*types.Selection{},
		},
	}
	_, err := config.Check(path, fset, files, a.info)
	require.NoError(t, err)
	for _, f := range files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				a.bodies[a.info.Defs[fn.Name].(*types.Func)] = fn.Body
			}
		}
	}
	for _, f := range files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				a.function(fn.Body)
			}
		}
	}
	a.places = len(a.locked)
	return a
}

// audit follows which mutexes are held, statement by statement, and judges every call made
// meanwhile, also by what it calls in turn within the package.
type audit struct {
	fset    *token.FileSet
	info    *types.Info
	bodies  map[*types.Func]*ast.BlockStmt
	slow    map[*types.Func]string // why a function must not be called; empty where it may
	found   map[token.Pos]string
	mutexes map[string]bool
	locked  map[token.Pos]bool
	places  int
	breaks  []held // of the loops and switches around: what is held where they are left
}

// held names the mutexes that are held; nil where the code is not reached.
type held map[string]bool

func (h held) and(other held) held {
	switch {
	case h == nil:
		return maps.Clone(other)
	case other == nil:
		return h
	}
	h = maps.Clone(h)
	maps.Copy(h, other)
	return h
}

func (a *audit) all() (list []string) {
	for _, pos := range slices.Sorted(maps.Keys(a.found)) {
		list = append(list, a.fset.Position(pos).String()+": "+a.found[pos])
	}
	return list
}

func (a *audit) report(pos token.Pos, h held, what string) {
	a.found[pos] = what + " while " + strings.Join(slices.Sorted(maps.Keys(h)), " and ") + " is held"
}

// function audits a body that is entered with nothing held.
func (a *audit) function(body *ast.BlockStmt) {
	outer := a.breaks
	a.breaks = nil
	a.list(body.List, held{})
	a.breaks = outer
}

func (a *audit) list(stmts []ast.Stmt, h held) held {
	for _, s := range stmts {
		if h == nil {
			return nil
		}
		h = a.stmt(s, h)
	}
	return h
}

// breakable runs f and adds what is held where it is left by a break.
func (a *audit) breakable(f func() held) held {
	a.breaks = append(a.breaks, nil)
	h := f()
	last := len(a.breaks) - 1
	h, a.breaks = h.and(a.breaks[last]), a.breaks[:last]
	return h
}

func (a *audit) stmt(s ast.Stmt, h held) held {
	switch s := s.(type) {
	case nil:
	case *ast.BlockStmt:
		return a.list(s.List, h)
	case *ast.LabeledStmt:
		return a.stmt(s.Stmt, h)
	case *ast.ExprStmt:
		if next, is := a.mutex(s.X, h); is {
			return next
		}
		a.exprs(h, s)
		if call, ok := s.X.(*ast.CallExpr); ok {
			if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "panic" {
				return nil
			}
		}
	case *ast.DeferStmt:
		if _, is := a.mutex(s.Call, h); !is { // a deferred Unlock leaves it held to the end
			a.deferred(s.Call, h)
		}
	case *ast.GoStmt:
		a.started(s.Call, h)
	case *ast.ReturnStmt:
		a.exprs(h, s)
		return nil
	case *ast.BranchStmt:
		if last := len(a.breaks) - 1; s.Tok == token.BREAK && last >= 0 {
			a.breaks[last] = a.breaks[last].and(h)
		}
		if s.Tok != token.FALLTHROUGH {
			return nil
		}
	case *ast.IfStmt:
		h = a.stmt(s.Init, h)
		a.exprs(h, s.Cond)
		yes, no := a.stmt(s.Body, h), h
		if s.Else != nil {
			no = a.stmt(s.Else, h)
		}
		return yes.and(no)
	case *ast.ForStmt:
		h = a.stmt(s.Init, h)
		return a.breakable(func() held {
			for range 2 { // once more, with what the first time leaves held
				a.exprs(h, s.Cond)
				next := a.stmt(s.Body, h)
				h = h.and(a.stmt(s.Post, next))
			}
			if s.Cond == nil {
				return nil
			}
			return h
		})
	case *ast.RangeStmt:
		a.exprs(h, s.X)
		if _, ok := a.info.TypeOf(s.X).Underlying().(*types.Chan); ok && len(h) > 0 {
			a.report(s.Pos(), h, "waits for a channel")
		}
		return a.breakable(func() held {
			for range 2 {
				h = h.and(a.stmt(s.Body, h))
			}
			return h
		})
	case *ast.SwitchStmt:
		h = a.stmt(s.Init, h)
		a.exprs(h, s.Tag)
		return a.cases(s.Body, h)
	case *ast.TypeSwitchStmt:
		return a.cases(s.Body, a.stmt(s.Assign, a.stmt(s.Init, h)))
	case *ast.SelectStmt:
		if len(h) > 0 && !hasDefault(s.Body) {
			a.report(s.Pos(), h, "waits for a channel")
		}
		return a.cases(s.Body, h)
	default:
		a.exprs(h, s)
	}
	return h
}

func hasDefault(body *ast.BlockStmt) bool {
	return slices.ContainsFunc(body.List, func(s ast.Stmt) bool {
		switch c := s.(type) {
		case *ast.CaseClause:
			return c.List == nil
		case *ast.CommClause:
			return c.Comm == nil
		}
		return false
	})
}

func (a *audit) cases(body *ast.BlockStmt, h held) held {
	return a.breakable(func() held {
		var out held
		if !hasDefault(body) {
			out = h
		}
		for _, s := range body.List {
			switch c := s.(type) {
			case *ast.CaseClause:
				for _, e := range c.List {
					a.exprs(h, e)
				}
				out = out.and(a.list(c.Body, h))
			case *ast.CommClause:
				// The select itself has been judged as one.
				out = out.and(a.list(c.Body, h))
			}
		}
		return out
	})
}

// mutex takes in a Lock or an Unlock.
func (a *audit) mutex(e ast.Expr, h held) (next held, is bool) {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return h, false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return h, false
	}
	fn, ok := a.callee(call).(*types.Func)
	if !ok || fn.Pkg() == nil || fn.Pkg().Path() != "sync" {
		return h, false
	}
	name := types.ExprString(sel.X)
	switch fn.Name() {
	case "Lock", "RLock":
		a.mutexes[name], a.locked[call.Pos()] = true, true
		return h.and(held{name: true}), true
	case "Unlock", "RUnlock":
		h = maps.Clone(h)
		delete(h, name)
		return h, true
	}
	return h, false
}

// started audits the call of a go statement, whose body holds nothing.
func (a *audit) started(call *ast.CallExpr, h held) {
	if lit, ok := call.Fun.(*ast.FuncLit); ok {
		a.function(lit.Body)
	}
	for _, arg := range call.Args {
		a.exprs(h, arg)
	}
}

// deferred audits a deferred call as if it ran at once: what is held then is so at the end
// where the Unlock is deferred, too.
func (a *audit) deferred(call *ast.CallExpr, h held) {
	if lit, ok := call.Fun.(*ast.FuncLit); ok {
		a.list(lit.Body.List, h)
		return
	}
	a.exprs(h, call)
}

// exprs judges what is called in a statement or an expression. Function literals that are
// not called on the spot run later, with nothing held as far as anybody knows.
func (a *audit) exprs(h held, n ast.Node) {
	if n == nil {
		return
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			a.function(n.Body)
			return false
		case *ast.CallExpr:
			if lit, ok := n.Fun.(*ast.FuncLit); ok {
				a.list(lit.Body.List, h)
				for _, arg := range n.Args {
					a.exprs(h, arg)
				}
				return false
			}
			if why := a.judge(n); why != "" && len(h) > 0 {
				a.report(n.Pos(), h, why)
			}
		case *ast.SendStmt:
			if len(h) > 0 {
				a.report(n.Pos(), h, "waits for a channel")
			}
		case *ast.UnaryExpr:
			if n.Op == token.ARROW && len(h) > 0 {
				a.report(n.Pos(), h, "waits for a channel")
			}
		}
		return true
	})
}

func (a *audit) callee(call *ast.CallExpr) types.Object {
	fun := ast.Unparen(call.Fun)
	switch f := fun.(type) { // instantiated
	case *ast.IndexExpr:
		fun = f.X
	case *ast.IndexListExpr:
		fun = f.X
	}
	switch f := fun.(type) {
	case *ast.Ident:
		return a.info.Uses[f]
	case *ast.SelectorExpr:
		return a.info.Uses[f.Sel]
	}
	return nil
}

// quickInterfaces are those whose methods are called under a mutex with good reason: they
// only tell, or set a timer. A machine is this module's own.
var quickInterfaces = []string{"context.Context", "error", module + "/internal/machine.Machine", module + "/internal/machine.Timer"}

// judge says why a call must not be made while a mutex is held; empty where it may.
func (a *audit) judge(call *ast.CallExpr) string {
	if a.info.Types[call.Fun].IsType() {
		return "" // a conversion
	}
	switch fn := a.callee(call).(type) {
	case *types.Builtin, *types.TypeName:
		return ""
	case *types.Func:
		return a.judgeFunc(fn.Origin())
	case *types.Var:
		switch fn.Type().String() {
		case "context.CancelFunc", "context.CancelCauseFunc":
			return "" // runs nobody's code in this goroutine
		}
		return "calls the function value " + fn.Name()
	}
	return "calls something that the audit does not know"
}

func (a *audit) judgeFunc(fn *types.Func) string {
	if body := a.bodies[fn]; body != nil {
		if why := a.why(fn, body); why != "" {
			return "calls " + fn.Name() + ", which " + why
		}
		return ""
	}
	signature := fn.Signature()
	if recv := signature.Recv(); recv != nil && types.IsInterface(recv.Type()) {
		if !slices.Contains(quickInterfaces, recv.Type().String()) {
			return "calls " + fn.FullName() + ", which may be anybody's code"
		}
		return ""
	}
	if fn.Pkg() == nil {
		return ""
	}
	switch path := fn.Pkg().Path(); path {
	case "log/slog", "log", "net", "net/http", "os", "io", "bufio":
		return "calls " + fn.FullName()
	case "time", "sync":
		if fn.Name() == "Sleep" || fn.Name() == "Wait" {
			return "waits in " + fn.FullName()
		}
		return ""
	case "context":
		return ""
	}
	for param := range signature.Params().Variables() {
		if param.Type().String() == "context.Context" {
			return "calls " + fn.FullName() + ", which may send something"
		}
	}
	return ""
}

// why says what is slow in a function of the package; empty where nothing is.
func (a *audit) why(fn *types.Func, body *ast.BlockStmt) string {
	if why, known := a.slow[fn]; known {
		return why
	}
	a.slow[fn] = "" // should it call itself
	found := ""
	note := func(why string) {
		if found == "" {
			found = why
		}
	}
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit: // runs later
			return false
		case *ast.GoStmt:
			for _, arg := range n.Call.Args {
				ast.Inspect(arg, visit)
			}
			return false
		case *ast.SelectStmt:
			if !hasDefault(n.Body) {
				note("waits for a channel")
			}
			for _, s := range n.Body.List {
				for _, s := range s.(*ast.CommClause).Body {
					ast.Inspect(s, visit)
				}
			}
			return false
		case *ast.CallExpr:
			if lit, ok := n.Fun.(*ast.FuncLit); ok {
				ast.Inspect(lit.Body, visit)
			} else if why := a.judge(n); why != "" {
				note(why)
			}
		case *ast.SendStmt:
			note("waits for a channel")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				note("waits for a channel")
			}
		}
		return true
	}
	ast.Inspect(body, visit)
	a.slow[fn] = found
	return found
}
