package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/mortise-go/mortise/console"
	"github.com/mortise-go/mortise/internal/tty"
	"github.com/mortise-go/mortise/migrations"
)

func serveCommand() command {
	return command{
		name: "serve", text: "show the table in a browser, live: locks, sessions, items, indexes, migrations",
		more: "Serves pages until it is interrupted. They only read: at most twice a second for each kind of page that is open.\n" +
			"Payloads, attributes that are not keys, errors of migrations and what AWS says of a failure are hidden without --show-data.\n" +
			"There is no authentication, so an --addr that others can reach needs --host: the names under which browsers reach it.\n" +
			"Package console mounts the same pages into a server of your own, behind your own authentication.",
		flags: func(f *flag.FlagSet, c *call) {
			f.StringVar(&c.addr, "addr", "127.0.0.1:8080", "`HOST:PORT` to listen on; port 0 is any free one")
			f.StringVar(&c.hosts, "host", "", "`NAMES` of this server in browsers, separated by commas, where --addr is not of the loopback interface")
			f.BoolVar(&c.showData, "show-data", false, "show payloads, attributes, errors of migrations, and what AWS says of a failure")
		},
		run: func(ctx context.Context, c *call) error {
			if err := c.checkAddr(); err != nil {
				return err
			}
			return c.with(ctx, func(s *store) error { return c.serve(ctx, s) })
		},
	}
}

// checkAddr refuses an address that other machines can reach, unless --host shows that it is wanted.
func (c *call) checkAddr() error {
	host, _, err := net.SplitHostPort(c.addr)
	if err != nil {
		return usagef("--addr %q: want HOST:PORT", c.addr)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) && c.hosts == "" {
		return usagef("--addr %s can be reached from other machines, and there is no authentication: if that is wanted, name the server with --host", c.addr)
	}
	return nil
}

func (c *call) serve(ctx context.Context, s *store) error {
	// This program has no list of migrations, so the page shows those that the table has records of. If the table cannot have records,
	// since their attributes have another meaning in it, the page is left out.
	m, err := migrations.New(s.table, s.locks, nil, migrations.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil && !errors.Is(err, migrations.ErrInvalid) {
		return err
	}
	config := console.Config{Table: s.table, Locks: s.locks, Migrations: m, ShowData: c.showData}
	if c.hosts != "" {
		config.Hosts = strings.Split(c.hosts, ",")
	}
	pages, err := console.New(config)
	if errors.Is(err, console.ErrInvalid) {
		return usagef("--host: %w", err)
	}
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.addr)
	if err != nil {
		return errors.Join(err, pages.Close())
	}
	server := newServer(pages)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	if err := c.print(nil, func(w io.Writer) { tty.Say(w, "http://%s/\n", listener.Addr()) }); err != nil {
		return errors.Join(err, stop(ctx, server, pages, ended))
	}
	select {
	case <-ctx.Done(): // an interrupt is its ordinary end
		return stop(ctx, server, pages, ended)
	case err := <-ended:
		return errors.Join(fmt.Errorf("listen on %s: %w", c.addr, err), pages.Close())
	}
}

// newServer returns the server of the pages. A client that sends slowly, or nothing, keeps a connection for a short time only. The pages
// themselves limit the time in which a reader has to accept an answer.
func newServer(pages http.Handler) *http.Server {
	const (
		request = 10 * time.Second // for a whole request, also with a body, which nothing reads
		idle    = 2 * time.Minute  // between two requests
		header  = 64 << 10         // bytes; the longest keys take some 10 KB in a URL
	)
	return &http.Server{
		Handler: pages, ReadHeaderTimeout: request, ReadTimeout: request, IdleTimeout: idle, MaxHeaderBytes: header,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
}

// stop ends the open pages first, since the server waits for their event streams, and then the server.
func stop(ctx context.Context, server *http.Server, pages *console.Console, ended <-chan error) error {
	err := pages.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	bad := server.Shutdown(ctx)
	if errors.Is(bad, context.DeadlineExceeded) { // a browser has not read its answer: that is no failure of this program
		bad = server.Close()
	}
	err = errors.Join(err, bad)
	if end := <-ended; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}
