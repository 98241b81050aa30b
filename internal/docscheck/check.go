package docscheck

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Problem is a mistake on a page, or in a comment.
type Problem struct {
	Page string
	Line int
	Text string
}

func (p Problem) String() string { return fmt.Sprintf("%s:%d: %s", p.Page, p.Line, p.Text) }

// Repository is a checkout: its files, its pages and its code.
type Repository struct {
	root  string
	files map[string]bool // directories included
	pages map[string]*page
	code  *code
	make  makefile
}

// history is the page that may name what no longer exists.
const history = "CHANGELOG.md"

// skipped are files and directories that are not part of the repository.
var skipped = []string{".git", "bin", "node_modules"}

// Open reads the repository in a directory.
func Open(root string) (*Repository, error) {
	r := &Repository{root: root, files: map[string]bool{}, pages: map[string]*page{}}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if slices.Contains(skipped, entry.Name()) && rel != "." {
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		r.files[rel] = true
		if entry.IsDir() || path.Ext(rel) != ".md" {
			return nil
		}
		text, err := os.ReadFile(name) //nolint:gosec // a file of the repository
		r.pages[rel] = parse(rel, text)
		return err
	})
	if err != nil {
		return nil, err
	}
	if r.code, err = readCode(root, r.files); err != nil {
		return nil, err
	}
	r.make, err = readMakefile(filepath.Join(root, "Makefile"))
	return r, err
}

// Check returns the problems of all pages, sorted by page and line. It runs no commands of the pages, and only asks programs of the
// repository for their help, to learn their flags.
func (r *Repository) Check() []Problem {
	var all []Problem
	for _, p := range r.pages {
		report := func(line int, format string, args ...any) {
			all = append(all, Problem{p.path, line, fmt.Sprintf(format, args...)})
		}
		r.links(p, report)
		r.snippets(p, report)
		r.commands(p, report)
		if p.path != history {
			r.names(p, report)
		}
	}
	slices.SortFunc(all, func(a, b Problem) int {
		if c := strings.Compare(a.Page, b.Page); c != 0 {
			return c
		}
		return a.Line - b.Line
	})
	return all
}

type reporter func(line int, format string, args ...any)

// exists reports whether a file or directory exists. The name may have wildcards of path.Match, or end in "/..." for a directory and all
// below it.
func (r *Repository) exists(name string) bool {
	name = path.Clean(strings.TrimSuffix(name, "/..."))
	if r.files[name] {
		return true
	}
	if !strings.ContainsAny(name, "*?[") {
		return false
	}
	for file := range r.files {
		if ok, _ := path.Match(name, file); ok { // a malformed pattern matches nothing
			return true
		}
	}
	return false
}

// read returns the text of a file of the repository.
func (r *Repository) read(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(r.root, filepath.FromSlash(name)))
	return string(text), err
}
