package console

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mortise-go/mortise/internal/inside"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
)

// ErrInvalid reports a [Config] that is not acceptable.
var ErrInvalid = table.ErrInvalid

// Entity is a type of rows of the application: *[entity.Entity] is one. Items are listed by entity.
type Entity interface {
	Type() string
	Owns(item table.Item) bool
	Facet() table.Facet
}

// Config has the settings of a [Console].
type Config struct {
	// Table is the table to look at. Required.
	Table *table.Table

	// Locks reads the locks of the same table. It need not be the client that acquires them, but its Config has to agree
	// with theirs. With [lock.Config].Index, locks are found by 16 queries, otherwise by reading the whole table. Required.
	Locks *lock.Client

	// Migrations are the application's. Defaults to nil: the page is left out.
	Migrations *migrations.Migrator

	// Entities are the application's types. Rows of other types are shown without a name. Defaults to none.
	Entities []Entity

	// ShowData shows payloads of locks, attributes of items that are not keys of the table, the errors of migrations, and what the SDK
	// says of a request that fails. Defaults to false: their values are not part of any answer.
	ShowData bool

	// Hosts are the names under which browsers reach the console, without a port. Requests to other names are refused:
	// the owner of any web page can let a name point to this machine's address, and read the console through it (DNS
	// rebinding). "*" allows every name; use it only behind authentication. Defaults to those of the loopback interface: localhost, 127.0.0.0/8 and ::1.
	Hosts []string
}

func (c *Config) validate() error {
	switch {
	case c.Table == nil:
		return fmt.Errorf("%w: Config.Table is nil", ErrInvalid)
	case c.Locks == nil:
		return fmt.Errorf("%w: Config.Locks is nil", ErrInvalid)
	case c.Locks.Records().Table().Name() != c.Table.Name():
		return fmt.Errorf("%w: Config.Locks is a client of another table", ErrInvalid)
	}
	for i, e := range c.Entities {
		if e == nil {
			return fmt.Errorf("%w: Config.Entities[%d] is nil", ErrInvalid, i)
		}
	}
	for i, h := range c.Hosts {
		if h != anyHost && (h == "" || strings.ContainsAny(h, "/*@ ") || !strings.EqualFold(hostname(h), h) && net.ParseIP(h) == nil) {
			return fmt.Errorf("%w: Config.Hosts[%d]: want a name without scheme, port and path", ErrInvalid, i)
		}
	}
	return nil
}

// Console is the handler. It is safe for concurrent use. Close it.
type Console struct {
	config Config
	ctx    context.Context // of all reads; ends with Close
	cancel context.CancelCauseFunc

	locks      *feed[*lockList]
	migrations *feed[*migrationList]
	static     context.Context // with the budget that the pages without live updates share

	mu     sync.Mutex // guards the following; never held across I/O
	closed bool
	group  sync.WaitGroup            // goroutines and event streams that Close waits for
	single map[lock.Target]*lockFeed // feeds of the locks whose own page is open
	open   int                       // number of open event streams
}

// lockFeed follows one lock.
type lockFeed = feed[*lockHistory]

// New returns a Console. It sends no request, and reads only while somebody looks.
func New(config Config) (*Console, error) {
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("console: new: %w", err)
	}
	config.Hosts, config.Entities = slices.Clone(config.Hosts), slices.Clone(config.Entities)
	c := &Console{config: config, single: map[lock.Target]*lockFeed{}}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.static = within(c.ctx)
	c.locks = newFeed(c, c.readLocks)
	c.migrations = newFeed(c, c.readMigrations)
	return c, nil
}

// Close ends the event streams of all open pages and everything that is read for them, and waits for that. Later
// requests are answered with 503. It may be called several times.
func (c *Console) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel(errClosed)
	c.group.Wait()
	return nil
}

// run starts f in a goroutine that Close waits for, so f has to end with c.ctx. It returns false if the console is closed.
func (c *Console) run(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.group.Go(f)
	}
	return !c.closed
}

const anyHost = "*"

// hostname returns the name in a Host header: without port, brackets and final dot, in lower case.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// allowed reports whether the Host of a request is one of the console's names.
func (c *Console) allowed(r *http.Request) bool {
	name := hostname(r.Host)
	if len(c.config.Hosts) == 0 {
		ip := net.ParseIP(name)
		return name == "localhost" || ip != nil && ip.IsLoopback()
	}
	return slices.ContainsFunc(c.config.Hosts, func(h string) bool { return h == anyHost || strings.EqualFold(h, name) })
}

// now is the time that the pages show, and compare with those in rows.
func (c *Console) now() time.Time {
	return c.config.Table.Inside(inside.Key{}).Correct(c.config.Table.Now())
}

// embedded reports whether a page of another site has the browser load something of the console, other than through a link. That page
// could not read the answer, but each request can cost reads of the table.
func embedded(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return (site == "cross-site" || site == "same-site") && r.Header.Get("Sec-Fetch-Dest") != "document"
}

// policy allows only resources that come from the console. It forbids scripts and styles within the HTML of a page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP answers one request. Only the last part of the path counts, so it works below every prefix.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer") // addresses of pages contain keys
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	page := c.pageNamed(name)
	file, isAsset := assets[name]
	switch {
	case !c.allowed(r):
		plain(w, http.StatusMisdirectedRequest, "This name is not served. Set console.Config.Hosts to the names under which browsers reach the console.")
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		c.fail(w, r, http.StatusMethodNotAllowed, "The console only reads: GET and HEAD.")
	case embedded(r):
		c.fail(w, r, http.StatusForbidden, "Pages of other sites can have links to the console, and nothing else of it.")
	case c.ctx.Err() != nil:
		c.refuse(w, r, errClosed)
	case isAsset:
		file.serve(w, r)
	case name == "events":
		c.stream(w, r)
	case page == nil:
		c.fail(w, r, http.StatusNotFound, "There is no such page.")
	default:
		c.page(w, r, page)
	}
}

// pageNamed returns the page with the given name, or nil if this console does not have it.
func (c *Console) pageNamed(name string) pageFunc {
	if name == "migrations" && c.config.Migrations == nil {
		return nil
	}
	return pages[name]
}

// statusError is an error with its own HTTP status, such as 400 for a request that is not valid.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return e.text }

func badRequest(text string) error { return &statusError{http.StatusBadRequest, text} }

// page answers with a whole page.
func (c *Console) page(w http.ResponseWriter, r *http.Request, p pageFunc) {
	part, err := p(c, r)
	var body template.HTML
	if err == nil {
		body, err = part.first(r.Context())
	}
	switch {
	case err == nil:
		c.write(w, r, http.StatusOK, part, body)
	case r.Context().Err() != nil: // nobody reads the answer
	default:
		c.refuse(w, r, err)
	}
}

// refuse answers with an error.
func (c *Console) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var mine *statusError
	if !errors.As(err, &mine) {
		mine = &statusError{http.StatusBadGateway, "The table cannot be read: " + c.failure(err)}
	}
	c.fail(w, r, mine.status, mine.text)
}

// fail answers with a page that shows one sentence. In place of items it also has their form: who may not read the whole table can still read
// a collection.
func (c *Console) fail(w http.ResponseWriter, r *http.Request, status int, text string) {
	body, err := fragment("failure", struct {
		Status, Text string
		Search       bool
	}{http.StatusText(status), text, strings.HasSuffix(r.URL.Path, "/items")})
	if err != nil {
		plain(w, status, text)
		return
	}
	c.write(w, r, status, &part{title: http.StatusText(status)}, body)
}

// plain answers with one sentence, and nothing that is the table's.
func plain(w http.ResponseWriter, status int, text string) {
	_ = limit(w) // an error means that w cannot
	http.Error(w, text, status)
}

func (c *Console) write(w http.ResponseWriter, r *http.Request, status int, p *part, body template.HTML) {
	page, err := fragment("layout", layout{
		Title: p.title, Page: p.name, Table: c.config.Table.Name(), Region: c.config.Table.Region(), Migrations: c.config.Migrations != nil,
		ShowData: c.config.ShowData, Events: p.events, Version: version, Body: body,
	})
	if err != nil {
		plain(w, http.StatusInternalServerError, "The page cannot be made.")
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = limit(w) // an error means that w cannot
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, string(page)) // an error means that the reader has gone
	}
}
