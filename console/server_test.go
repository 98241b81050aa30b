package console_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/console"
	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Open pages do not keep a real server from stopping, whichever way it is stopped.
func TestServer_StopsWithPagesOpen(t *testing.T) {
	for name, stop := range map[string]func(ctx context.Context, s *http.Server, c *console.Console, cancel func()) error{
		"shutdown closes the console": func(ctx context.Context, s *http.Server, c *console.Console, _ func()) error {
			s.RegisterOnShutdown(func() { _ = c.Close() })
			return s.Shutdown(ctx)
		},
		"the base context ends": func(ctx context.Context, s *http.Server, _ *console.Console, cancel func()) error {
			cancel()
			return s.Shutdown(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			tbl, err := table.Open(tabletest.New(t).Client(), table.Schema{Name: "app"})
			require.NoError(t, err)
			require.NoError(t, tbl.Ensure(ctx))
			locks, err := lock.New(tbl, lock.Config{})
			require.NoError(t, err)
			c, err := console.New(console.Config{Table: tbl, Locks: locks})
			require.NoError(t, err)
			base, end := context.WithCancel(ctx)
			defer end()
			server := &http.Server{Handler: c, BaseContext: func(net.Listener) context.Context { return base }, WriteTimeout: time.Second}
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			served := make(chan error, 1)
			go func() { served <- server.Serve(listener) }()

			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+listener.Addr().String()+"/events?page=locks", nil)
			require.NoError(t, err)
			answer, err := client.Do(request)
			require.NoError(t, err)
			defer func() { assert.NoError(t, answer.Body.Close()) }()
			lines := bufio.NewScanner(answer.Body)
			for lines.Scan() && !strings.Contains(lines.Text(), "Nobody holds a lock.") {
			}
			require.NoError(t, lines.Err(), "an event has come, although the server's answers have little time")

			require.NoError(t, stop(ctx, server, c, end))
			require.ErrorIs(t, <-served, http.ErrServerClosed)
			for lines.Scan() {
			}
			require.NoError(t, c.Close())
			require.NoError(t, locks.Close(ctx))
		})
	}
}

func TestServer_CutsOffAReaderThatTakesNothing(t *testing.T) {
	for _, path := range []string{"locks", "none", "console.css", "events?page=locks", "of another name"} {
		t.Run(path, func(t *testing.T) {
			virtual(t, func(w *world) {
				browser, one := testkit.Pipe()
				ended := make(chan struct{})
				server := &http.Server{Handler: w.c, ConnState: func(_ net.Conn, s http.ConnState) {
					if s == http.StateClosed {
						close(ended)
					}
				}}
				defer func() { assert.NoError(w, server.Close()) }()
				go func() { _ = server.Serve(one) }() // it returns when the server is closed
				host := "localhost"
				if path == "of another name" {
					path, host = "locks", "rebound.example.com"
				}
				_, err := io.WriteString(browser, "GET /"+path+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
				require.NoError(w, err)
				select {
				case <-ended:
				case <-time.After(time.Minute):
					assert.Fail(w, "the connection is open")
				}
				require.NoError(w, browser.Close())
			})
		})
	}
}
