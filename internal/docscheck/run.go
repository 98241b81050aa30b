package docscheck

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// RunPage goes through the blocks of a page in their order, and writes those with a save marker and runs those with a run marker, both
// within dir. It returns a problem for each block that fails, and for each whose output differs from the page.
func (r *Repository) RunPage(ctx context.Context, name, dir string) ([]Problem, error) {
	p := r.pages[name]
	root, err := filepath.Abs(r.root)
	if err != nil {
		return nil, err
	}
	if err := os.Symlink(root, filepath.Join(dir, "mortise")); err != nil {
		return nil, err
	}
	var all []Problem
	for i := range p.blocks {
		b := &p.blocks[i]
		if file, ok := b.marker("save"); ok {
			if err := save(filepath.Join(dir, filepath.FromSlash(file)), b.text); err != nil {
				return all, err
			}
		}
		in, ok := b.marker("run")
		if !ok {
			continue
		}
		if err := os.MkdirAll(filepath.Join(dir, in), 0o750); err != nil {
			return all, err
		}
		cmd := exec.CommandContext(ctx, "bash", "-euc", b.text) //nolint:gosec // the commands of our own pages
		cmd.Dir = filepath.Join(dir, in)
		cmd.Env = append(os.Environ(), "PWD="+cmd.Dir)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		switch {
		case err != nil:
			all = append(all, Problem{name, b.line, fmt.Sprintf("%v: %s", err, stderr.String())})
		case i+1 < len(p.blocks) && p.blocks[i+1].language == "text" && p.blocks[i+1].text != string(out):
			all = append(all, Problem{name, p.blocks[i+1].line, "the commands print something else: " + difference(p.blocks[i+1].text, string(out))})
		}
	}
	return all, nil
}

func save(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o600)
}

// Runnable returns the pages with run markers, sorted.
func (r *Repository) Runnable() []string {
	var list []string
	for name, p := range r.pages {
		if slices.ContainsFunc(p.blocks, func(b block) bool { _, ok := b.marker("run"); return ok }) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}
