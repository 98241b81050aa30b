package docscheck

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// page is a Markdown file.
type page struct {
	path    string // relative to the repository, with slashes
	source  []byte
	anchors map[string]bool // of headings, as GitHub generates them, and of HTML elements
	links   []link
	spans   []span // code spans
	blocks  []block
	plain   []span // text outside of code and links
	rows    []span // code spans at the beginning of table rows
}

type link struct {
	to   string
	line int
}

type span struct {
	text string
	line int
}

// block is a fenced block of code.
type block struct {
	language string
	text     string
	line     int
	markers  []marker // directly before the block
}

// marker is an HTML comment about the next block: where it is from, or what to do with it.
type marker struct {
	kind, value string
}

func (b *block) marker(kind string) (value string, ok bool) {
	for _, m := range b.markers {
		if m.kind == kind {
			return m.value, true
		}
	}
	return "", false
}

var (
	comment  = regexp.MustCompile(`(?s)<!--\s*([a-z]+):\s*(.*?)\s*-->`)
	htmlLink = regexp.MustCompile(`(?:href|src|srcset)="([^"]*)"`)
	htmlName = regexp.MustCompile(`(?:id|name)="([^"]*)"`)
)

// parse reads a page.
func parse(path string, source []byte) *page {
	p := &page{path: path, source: source, anchors: map[string]bool{}}
	root := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	seen := map[string]int{}
	var markers []marker
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // nothing below returns an error
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			p.anchor(slug(p.plainText(n)), seen)
		case *ast.FencedCodeBlock:
			p.blocks = append(p.blocks, block{language: string(n.Language(source)), text: lines(n, source), line: p.line(n), markers: markers})
		case *ast.CodeBlock:
			p.blocks = append(p.blocks, block{text: lines(n, source), line: p.line(n), markers: markers})
		case *ast.HTMLBlock:
			html := lines(n, source)
			if n.HasClosure() {
				html += string(n.ClosureLine.Value(source))
			}
			for _, m := range comment.FindAllStringSubmatch(html, -1) {
				markers = append(markers, marker{m[1], m[2]})
			}
			p.html(html, p.line(n))
			return ast.WalkContinue, nil // keeps the markers for the next block
		case *ast.RawHTML:
			for i := range n.Segments.Len() {
				s := n.Segments.At(i)
				p.html(string(s.Value(source)), p.lineAt(s.Start))
			}
		case *ast.Link:
			p.links = append(p.links, link{string(n.Destination), p.line(n)})
		case *ast.Image:
			p.links = append(p.links, link{string(n.Destination), p.line(n)})
		case *ast.CodeSpan:
			s := span{p.plainText(n), p.line(n)}
			p.spans = append(p.spans, s)
			if cell := n.Parent(); cell.Kind() == east.KindTableCell && cell.PreviousSibling() == nil && n.PreviousSibling() == nil {
				p.rows = append(p.rows, s)
			}
		}
		if first := n.FirstChild(); first != nil && n.Type() == ast.TypeBlock && first.Type() == ast.TypeInline {
			p.plain = append(p.plain, span{p.prose(n), p.line(n)})
		}
		if n.Type() == ast.TypeBlock && n.Kind() != ast.KindDocument {
			markers = nil
		}
		return ast.WalkContinue, nil
	})
	return p
}

func (p *page) html(html string, line int) {
	html = comment.ReplaceAllString(html, "")
	for _, m := range htmlLink.FindAllStringSubmatch(html, -1) {
		p.links = append(p.links, link{m[1], line})
	}
	for _, m := range htmlName.FindAllStringSubmatch(html, -1) {
		p.anchors[m[1]] = true
	}
}

// anchor adds the anchor of a heading. Like GitHub, it numbers repeated anchors.
func (p *page) anchor(name string, seen map[string]int) {
	n := seen[name]
	seen[name]++
	if n > 0 {
		name += "-" + string(rune('0'+n))
	}
	p.anchors[name] = true
}

// slug returns GitHub's anchor for a heading.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(heading))
}

// prose returns the text of a node without code and links.
func (p *page) prose(n ast.Node) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			b.Write(c.Value(p.source))
		case *ast.Emphasis:
			b.WriteString(p.prose(c))
		}
	}
	return b.String()
}

// plainText returns the text of a node and of all nodes within it.
func (p *page) plainText(n ast.Node) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			b.Write(c.Value(p.source))
			if c.SoftLineBreak() {
				b.WriteByte(' ')
			}
		default:
			b.WriteString(p.plainText(c))
		}
	}
	return b.String()
}

func lines(n ast.Node, source []byte) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		s := n.Lines().At(i)
		b.Write(s.Value(source))
	}
	return b.String()
}

// line returns the line of a node's first text. If it has none, it returns the first line of the node or of a block around it.
func (p *page) line(n ast.Node) int {
	for c := n; c != nil; c = c.FirstChild() {
		if t, ok := c.(*ast.Text); ok {
			return p.lineAt(t.Segment.Start)
		}
	}
	for ; n != nil; n = n.Parent() {
		if n.Type() == ast.TypeBlock && n.Lines() != nil && n.Lines().Len() > 0 {
			return p.lineAt(n.Lines().At(0).Start)
		}
	}
	return 1
}

func (p *page) lineAt(offset int) int { return 1 + bytes.Count(p.source[:offset], []byte("\n")) }
