package docscheck

import (
	"go/build"
	"path"
	"regexp"
	"strings"
)

var (
	testName  = regexp.MustCompile(`^(?:Test|Benchmark|Fuzz|Example)(?:[A-Z_]\w*)?$`)
	qualified = regexp.MustCompile(`^[*&]?(\w+)\.([A-Z]\w*(?:\.[A-Z]\w*)?)(?:[({\[].*)?$`)
	fileName  = regexp.MustCompile(`^[\w.*/-]+\.(?:md|go|json|pml|txt|jsonl|svg)$`)
)

// receivers are the names of variables on the pages, with their types.
var receivers = map[string]string{
	"lease": "lock.Lease", "locks": "lock.Client", "tbl": "table.Table", "engine": "tabletest.Engine", "migrator": "migrations.Migrator",
}

// names checks the code spans of a page that are Go names, names of tests, or names of files.
func (r *Repository) names(p *page, report reporter) {
	for _, s := range p.spans {
		text := strings.TrimSpace(s.text)
		switch m := qualified.FindStringSubmatch(text); {
		case testName.MatchString(text) && len(text) > len("Example"):
			if !r.code.tests[text] {
				report(s.line, "`%s`: no such test", text)
			}
		case fileName.MatchString(text):
			r.fileSpan(p, text, s.line, report)
		case strings.Contains(text, "/") && r.looksOurs(text):
			if !r.exists(strings.TrimPrefix(text, "./")) {
				report(s.line, "`%s`: no such file or directory", text)
			}
		case m != nil:
			r.name(p, m[1], m[2], s.line, report)
		}
	}
}

// looksOurs reports whether a text looks like a path that begins with a directory of the repository.
func (r *Repository) looksOurs(text string) bool {
	first, rest, _ := strings.Cut(strings.TrimPrefix(text, "./"), "/")
	return r.files[first] && rest != "" && !strings.ContainsAny(text, " <>{}|$") && !placeholder.MatchString(text)
}

// placeholder is a part of a path that stands for a name, such as NAME in table/NAME/index.
var placeholder = regexp.MustCompile(`\b[A-Z]{3,}\b`)

func (r *Repository) fileSpan(p *page, name string, line int, report reporter) {
	for _, base := range []string{path.Dir(p.path), "."} {
		if r.exists(path.Join(base, name)) {
			return
		}
	}
	for file := range r.files { // a page may omit the directory
		if strings.HasSuffix(file, "/"+name) {
			return
		}
	}
	if !r.pageDefines(p, name) {
		report(line, "`%s`: no such file", name)
	}
}

// pageDefines reports whether a page saves a file with the name.
func (r *Repository) pageDefines(p *page, name string) bool {
	for i := range p.blocks {
		if file, ok := p.blocks[i].marker("save"); ok && (file == name || path.Base(file) == name) {
			return true
		}
	}
	return false
}

// name checks the name first.rest. rest is a name, or a type and a member.
func (r *Repository) name(p *page, first, rest string, line int, report reporter) {
	full := first + "." + rest
	switch c := r.code; {
	case receivers[first] != "":
		if !c.has(p.path, receivers[first]+"."+strings.Split(rest, ".")[0]) {
			report(line, "`%s`: %s has no %s", full, receivers[first], rest)
		}
	case c.byName[first] != nil || c.internal[first] != nil:
		if !c.has(p.path, full) {
			report(line, "`%s`: package %s exports no %s", full, first, rest)
		}
	case first[0] >= 'a' && first[0] <= 'z':
		if !knownPackage(first) {
			report(line, "`%s`: no package or variable %s is known", full, first)
		}
	case c.isType(p.path, first):
		if !c.has(p.path, full) {
			report(line, "`%s`: no type %s has an exported %s", full, first, rest)
		}
	}
}

// foreign are packages of other modules, by their names on the pages.
var foreign = map[string]bool{
	"dynamodb": true, "types": true, "aws": true, "config": true, "backoff": true, "metric": true, "dynamo": true, "concurrency": true,
	"awslambda": true, "lambda": true, "dynamolock": true,
	"mortise": true, // no package: the types of this module's rows begin with it
}

// knownPackage reports whether a package with the name is in the standard library or in foreign.
func knownPackage(name string) bool {
	if foreign[name] {
		return true
	}
	for _, parent := range []string{"", "log/", "net/", "testing/", "encoding/", "os/", "math/"} {
		if p, err := build.Default.Import(parent+name, "", build.FindOnly); err == nil && p.Goroot {
			return true
		}
	}
	return false
}
