package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"io/fs"
	"net/http"
	"strings"
	"time"
	"unicode"
)

//go:embed assets
var files embed.FS

// templates has the templates of all pages and of their parts.
var templates = template.Must(template.New("").ParseFS(files, "assets/*.html"))

// layout is the data of the frame around every page.
type layout struct {
	Title, Page, Table, Region, Events, Version string
	Migrations, ShowData                        bool
	Body                                        template.HTML
}

// part is the content of a page, as one request asks for it. If events is set, the open page is updated.
type part struct {
	name, title string
	events      string // URL of its events, relative to the page; empty if it has none

	enter func() (leave func(), err error) // enter has to be called before next, and leave after it. Nil if next can always be called.

	// next waits for content that is newer than version. If ctx ends first, it returns the present content and the cause.
	next func(ctx context.Context, version int) (template.HTML, int, error)
}

// patience is how long a request for a page waits for the first read: the budget spreads up to six requests of the page of migrations over
// 2.5 s. Content that is missing then comes with the events, or when the page is loaded again.
const patience = 3 * time.Second

// first returns the content for a request of the whole page, after patience even if nothing was read.
func (p *part) first(ctx context.Context) (template.HTML, error) {
	if p.enter == nil {
		body, _, err := p.next(ctx, 0)
		return body, err
	}
	leave, err := p.enter()
	if err != nil {
		return "", err
	}
	defer leave()
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	body, _, err := p.next(patient, 0)
	if ctx.Err() == nil && patient.Err() != nil {
		err = nil
	}
	return body, err
}

// live returns a part that shows the snapshots of a feed, which enter returns. view gets a nil snapshot while nothing is known.
func live[S any](p part, enter func() (f *feed[S], leave func(), err error), view func(S) any) *part {
	var f *feed[S]
	p.enter = func() (leave func(), err error) {
		f, leave, err = enter()
		return leave, err
	}
	p.next = func(ctx context.Context, version int) (template.HTML, int, error) {
		s, now, err := f.after(ctx, version)
		body, bad := fragment(p.name, view(s))
		if bad != nil {
			return "", now, bad
		}
		return body, now, err
	}
	return &p
}

// fragment executes one template. Control characters and those that turn the direction of writing, which names from the table can contain,
// are replaced: the latter change the order of the text behind them too, and the former control a terminal that shows an answer raw.
// Links have these characters encoded, so they lead to the row all the same.
func fragment(name string, data any) (template.HTML, error) {
	var out strings.Builder
	err := templates.ExecuteTemplate(&out, name, data)
	text := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Bidi_Control, r) || unicode.IsControl(r) && !strings.ContainsRune("\t\r\n", r) {
			return unicode.ReplacementChar
		}
		return r
	}, out.String())
	return template.HTML(text), err //nolint:gosec // html/template has escaped it
}

// pageFunc returns a page as a request asks for it.
type pageFunc = func(c *Console, r *http.Request) (*part, error)

// pages has the pages by the last part of their paths.
var pages = map[string]pageFunc{
	"":           (*Console).locksPage,
	"locks":      (*Console).locksPage,
	"lock":       (*Console).lockPage,
	"sessions":   (*Console).sessionsPage,
	"items":      (*Console).itemsPage,
	"indexes":    (*Console).indexesPage,
	"migrations": (*Console).migrationsPage,
}

// asset is a file that does not change.
type asset struct {
	name, kind string
	content    []byte
}

var assets = map[string]asset{
	"console.css": load("console.css", "text/css; charset=utf-8"),
	"console.js":  load("console.js", "text/javascript; charset=utf-8"),
	"favicon.svg": load("favicon.svg", "image/svg+xml"),
}

// version changes with the assets. Pages add it to the URLs of assets, so that browsers can cache them for ever.
var version = hash(assets["console.css"].content, assets["console.js"].content, assets["favicon.svg"].content)

func load(name, kind string) asset {
	content, err := fs.ReadFile(files, "assets/"+name)
	if err != nil {
		panic(err) // the file is part of the binary, so it is found
	}
	return asset{name, kind, content}
}

func hash(contents ...[]byte) string {
	h := sha256.New()
	for _, c := range contents {
		h.Write(c)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func (a asset) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("ETag", `"`+version+`"`)
	h.Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == version {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	_ = limit(w) // an error means that w cannot
	http.ServeContent(w, r, a.name, time.Time{}, bytes.NewReader(a.content))
}
