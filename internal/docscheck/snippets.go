package docscheck

import (
	"slices"
	"strings"
)

// snippets checks that all Go blocks are from compiled code.
func (r *Repository) snippets(p *page, report reporter) {
	var whole string  // file of the last whole marker: the blocks together must be this file
	var got []string  // blocks since that marker
	var wholeLine int // line of the first of these blocks
	finished := func() {
		if whole == "" {
			return
		}
		text, err := r.read(whole)
		switch {
		case err != nil:
			report(wholeLine, "whole: %v", err)
		case strings.TrimSpace(strings.Join(got, "\n")) != strings.TrimSpace(text):
			report(wholeLine, "the Go blocks from here on are not %s: %s", whole, difference(strings.Join(got, "\n"), text))
		}
	}
	for i := range p.blocks {
		b := &p.blocks[i]
		if file, ok := b.marker("whole"); ok {
			finished()
			whole, got, wholeLine = file, nil, b.line
		}
		from, marked := b.marker("from")
		switch {
		case b.language != "go":
			if marked {
				r.snippet(b, from, report)
			}
		case marked:
			r.snippet(b, from, report)
		case whole != "":
			got = append(got, b.text)
		default:
			report(b.line, "a block of Go without a marker: want <!-- from: FILE#DECLARATION --> before it")
		}
	}
	finished()
}

// snippet checks that a block is in the file, or in the declaration of that file, that from names.
func (r *Repository) snippet(b *block, from string, report reporter) {
	file, name, within := strings.Cut(from, "#")
	text, err := r.read(file)
	if err != nil {
		report(b.line, "from %s: no such file", from)
		return
	}
	list := strings.Split(text, "\n")
	if within {
		first, last, ok := r.code.declaration(file, name)
		if !ok {
			report(b.line, "from %s: no such declaration", from)
			return
		}
		list = list[first-1 : last]
	}
	if want := dedent(strings.Split(strings.TrimRight(b.text, "\n"), "\n")); !contains(list, want) {
		report(b.line, "not in %s any more: %s", from, nearest(list, want))
	}
}

// contains reports whether the lines want, without their common indentation, are a sequence of lines of list.
func contains(list, want []string) bool {
	for i := 0; i+len(want) <= len(list); i++ {
		if slices.Equal(dedent(list[i:i+len(want)]), want) {
			return true
		}
	}
	return false
}

// dedent removes the tabs with which all lines begin. Lines of white space become empty, and do not count.
func dedent(list []string) []string {
	least := -1
	for _, l := range list {
		if strings.TrimSpace(l) == "" {
			continue
		}
		if n := len(l) - len(strings.TrimLeft(l, "\t")); least < 0 || n < least {
			least = n
		}
	}
	out := make([]string, len(list))
	for i, l := range list {
		if strings.TrimSpace(l) != "" {
			out[i] = l[least:]
		}
	}
	return out
}

// nearest tells why the lines want were not found: it names the first one that is not in list.
func nearest(list, want []string) string {
	for _, w := range want {
		if !slices.ContainsFunc(list, func(l string) bool { return strings.TrimSpace(l) == strings.TrimSpace(w) }) {
			return "it has no line " + strings.TrimSpace(w)
		}
	}
	return "its lines are in another order, or not together"
}

// difference describes the first line in which the texts of a page and of a file differ.
func difference(got, want string) string {
	a, b := strings.Split(strings.TrimSpace(got), "\n"), strings.Split(strings.TrimSpace(want), "\n")
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return "the page ends before " + b[i]
		case i >= len(b):
			return "the page goes on with " + a[i]
		case a[i] != b[i]:
			return "the page has " + a[i] + ", the file has " + b[i]
		}
	}
	return "they are equal"
}
