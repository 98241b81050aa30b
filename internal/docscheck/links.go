package docscheck

import (
	"net/url"
	"path"
	"regexp"
	"strings"
)

// links checks a page's links to files of the repository and to its packages on pkg.go.dev, and links of Go doc comments. It does not
// follow links to other sites.
func (r *Repository) links(p *page, report reporter) {
	for _, l := range p.links {
		u, err := url.Parse(l.to)
		switch {
		case err != nil:
			report(l.line, "link %q: %v", l.to, err)
		case u.Scheme == "http":
			report(l.line, "link %q: want https", l.to)
		case u.Host == "pkg.go.dev":
			r.packageLink(l, u, report)
		case u.Scheme != "" || u.Host != "":
		default:
			r.fileLink(p, l, u, report)
		}
	}
	for _, s := range p.plain {
		for _, m := range docLink.FindAllStringSubmatch(s.text, -1) {
			if !r.code.has(p.path, m[1]) {
				report(s.line, "[%s]: no such exported name", m[1])
			}
		}
	}
}

// docLink matches a link of Go doc comments, such as [lock.Lease]. In Markdown it is plain text.
var docLink = regexp.MustCompile(`\[\*?((?:[a-z]\w*\.)?[A-Z]\w*\.[A-Z]\w*|[a-z]\w*\.[A-Z]\w*)\]`)

func (r *Repository) fileLink(p *page, l link, u *url.URL, report reporter) {
	file := p.path
	if u.Path != "" {
		file = path.Join(path.Dir(p.path), u.Path)
		if strings.HasPrefix(u.Path, "/") {
			report(l.line, "link %q: want a path relative to the page", l.to)
			return
		}
		if !r.files[file] {
			report(l.line, "link %q: no file %s", l.to, file)
			return
		}
	}
	if u.Fragment == "" {
		return
	}
	switch to := r.pages[file]; {
	case to == nil:
		report(l.line, "link %q: %s is not a page, so it has no anchors", l.to, file)
	case !to.anchors[u.Fragment]:
		report(l.line, "link %q: %s has no heading of that name", l.to, file)
	}
}

// packageLink checks a link such as https://pkg.go.dev/github.com/mortise-go/mortise/lock#Lease.Write.
func (r *Repository) packageLink(l link, u *url.URL, report reporter) {
	dir, ours := strings.CutPrefix(strings.Trim(u.Path, "/"), module)
	if !ours {
		return
	}
	dir = strings.Trim(dir, "/")
	pkg := r.code.packages[dir]
	switch {
	case pkg == nil:
		report(l.line, "link %q: no package %q", l.to, dir)
	case u.Fragment != "" && !strings.HasPrefix(u.Fragment, "hdr-") && !pkg.names[u.Fragment]:
		report(l.line, "link %q: package %s has no exported %s", l.to, dir, u.Fragment)
	}
}
