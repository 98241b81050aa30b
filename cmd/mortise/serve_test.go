package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/console"
	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

func TestServe_ShowsTheTableUntilItIsInterrupted(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		const marker = "m4rker"
		_, err := b.rival.Acquire(b.Context(), lock.Name("nightly"), lock.WithData(marker))
		require.NoError(b, err)
		for _, c := range []struct {
			args  string
			shown bool
		}{{"", false}, {" --show-data", true}} {
			ctx, interrupt := context.WithTimeout(b.Context(), time.Minute)
			out, in := io.Pipe()
			var stderr bytes.Buffer
			code := make(chan int, 1)
			go func() {
				code <- run(ctx, strings.Fields("serve --addr 127.0.0.1:0"+c.args), b.environ(), strings.NewReader(""), in, &stderr)
				_ = in.Close()
			}()
			url, err := bufio.NewReader(out).ReadString('\n')
			require.NoError(b, err, stderr.String())
			url = strings.TrimSpace(url)
			client := &http.Client{Transport: &http.Transport{}}
			for path, want := range map[string]string{"": "nightly", "lock?name=nightly": "rival", "migrations": "There are no migrations."} {
				text := load(ctx, b, client, url+path)
				assert.Contains(b, text, want, path)
				assert.Equal(b, c.shown && strings.HasPrefix(path, "lock?"), strings.Contains(text, marker), path)
			}
			// An open page does not keep it from ending.
			request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url+"events?page=locks", nil)
			require.NoError(b, err)
			answer, err := client.Do(request)
			require.NoError(b, err)
			interrupt()
			assert.Zero(b, <-code)
			_, _ = io.Copy(io.Discard, answer.Body) // until its end
			require.NoError(b, answer.Body.Close())
			assert.Empty(b, stderr.String())
			client.CloseIdleConnections()
		}
	})
}

// load loads a page, until what is to be read has been read.
func load(ctx context.Context, b *bench, client *http.Client, url string) string {
	b.Helper()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		require.NoError(b, err)
		answer, err := client.Do(request)
		require.NoError(b, err)
		text, err := io.ReadAll(answer.Body)
		require.NoError(b, err)
		require.NoError(b, answer.Body.Close())
		require.Equal(b, http.StatusOK, answer.StatusCode, string(text))
		if !strings.Contains(string(text), "being read") {
			return string(text)
		}
	}
}

// A table whose index has a name that records of migrations need has no such records.
func TestServe_ATableThatCannotHaveMigrations(t *testing.T) {
	name := filepath.Join(t.TempDir(), "scheme.json")
	require.NoError(t, os.WriteFile(name, []byte(`{"indexes": [{"name": "by-name", "pk": "name", "pk_type": "N"}]}`), 0o600))
	ctx, interrupt := context.WithCancel(t.Context())
	out, in := io.Pipe()
	var stderr bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"serve", "--engine", "demo", "--addr", "127.0.0.1:0", "--scheme", name}, nil, strings.NewReader(""), in, &stderr)
		_ = in.Close()
	}()
	url, err := bufio.NewReader(out).ReadString('\n')
	interrupt()
	assert.Zero(t, <-code)
	require.NoError(t, err, stderr.String())
	assert.Contains(t, url, "http://127.0.0.1:")
}

func TestServe_IsNotOpenToTheNetworkByAccident(t *testing.T) {
	environ := []string{envEngine + "=" + engineDemo}
	for args, want := range map[string]string{
		"serve --addr 0.0.0.0:8080":               "can be reached from other machines",
		"serve --addr :8080":                      "can be reached from other machines",
		"serve --addr example.com:8080":           "can be reached from other machines",
		"serve --addr 8080":                       "want HOST:PORT",
		"serve --host http://x --addr 0.0.0.0:80": "without scheme, port and path",
		"serve x": "unexpected argument",
	} {
		out := invoke(t.Context(), args, environ, "")
		assert.Equal(t, exitUsage, out.code, args)
		assert.Contains(t, out.stderr, want, args)
		assert.Empty(t, out.stdout, args)
	}
}

// An address that another program listens on is named.
func TestServe_AnAddressInUse(t *testing.T) {
	url, err := tabletest.New(t).Listen("127.0.0.1:0")
	require.NoError(t, err)
	out := invoke(t.Context(), "serve --engine demo --addr "+strings.TrimPrefix(url, "http://"), nil, "")
	assert.Equal(t, exitFailure, out.code)
	assert.Contains(t, out.stderr, strings.TrimPrefix(url, "http://"))
	assert.Empty(t, out.stdout)
}

// A browser that does not read its answer makes no failure of an interrupt.
func TestServe_EndsWithoutAReaderOfAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tbl, err := table.Open(tabletest.New(t).Client(), table.Schema{Name: "app"})
		require.NoError(t, err)
		locks, err := lock.New(tbl, lock.Config{})
		require.NoError(t, err)
		defer func() { assert.NoError(t, locks.Close(t.Context())) }()
		pages, err := console.New(console.Config{Table: tbl, Locks: locks})
		require.NoError(t, err)
		browser, one := testkit.Pipe()
		defer func() { assert.NoError(t, browser.Close()) }()
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, 1<<20)) // it fails when the connection is closed
		})}
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(one) }()
		_, err = io.WriteString(browser, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.NoError(t, err)
		synctest.Wait()
		began := time.Now()
		require.NoError(t, stop(t.Context(), server, pages, ended))
		assert.LessOrEqual(t, time.Since(began), closing)
	})
}

// A client that sends slowly, or nothing, does not keep its connection. A page that is open does.
func TestServe_EndsConnectionsThatSendNothing(t *testing.T) {
	const head = "Host: localhost\r\n"
	for name, tt := range map[string]struct {
		sent string
		ends time.Duration // 0 for never
	}{
		"nothing":          {"", 10 * time.Second},
		"half a header":    {"GET /none HTTP/1.1\r\n" + head, 10 * time.Second},
		"no more requests": {"GET /none HTTP/1.1\r\n" + head + "\r\n", 2 * time.Minute},
		"half a body":      {"GET /none HTTP/1.1\r\n" + head + "Content-Length: 100\r\n\r\nx", 10 * time.Second},
		"half a chunk":     {"POST /locks HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked\r\n\r\n64\r\nx", 10 * time.Second},
		"a huge header":    {"GET /none HTTP/1.1\r\n" + head + "X: " + strings.Repeat("x", 100<<10) + "\r\n\r\n", 10 * time.Second},
		"events":           {"GET /events?page=locks HTTP/1.1\r\n" + head + "\r\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, s := newStore(t)
				pages, err := console.New(console.Config{Table: s.table, Locks: s.locks})
				require.NoError(t, err)
				browser, one := testkit.Pipe()
				server := newServer(pages)
				served := make(chan error, 1)
				go func() { served <- server.Serve(one) }()
				go func() { _, _ = io.WriteString(browser, tt.sent) }() // it fails if the server has read enough
				began, ended := time.Now(), make(chan time.Time, 1)
				go func() {
					_, _ = io.Copy(io.Discard, browser)
					ended <- time.Now()
				}()
				time.Sleep(time.Hour)
				synctest.Wait()
				select {
				case at := <-ended:
					assert.NotZero(t, tt.ends, "it ended after %v", at.Sub(began))
					assert.LessOrEqual(t, at.Sub(began), tt.ends+time.Second)
				default:
					assert.Zero(t, tt.ends, "the connection is open")
				}
				assert.NoError(t, browser.Close())
				require.NoError(t, stop(t.Context(), server, pages, served))
			})
		})
	}
}

// The server itself refuses names that are not its own, as after DNS rebinding, whatever was asked for, and all methods that could change
// something.
func TestServe_AnswersItsOwnNamesAndReadsAlone(t *testing.T) {
	for _, tt := range []struct {
		hosts, method, host string
		want                int
	}{
		{"", http.MethodGet, "localhost", http.StatusOK},
		{"", http.MethodGet, "rebound.example.com", http.StatusMisdirectedRequest},
		{"", http.MethodPost, "localhost", http.StatusMethodNotAllowed},
		{"ops,ops.example.com", http.MethodGet, "ops.example.com:80", http.StatusOK},
		{"ops,ops.example.com", http.MethodGet, "localhost", http.StatusMisdirectedRequest},
	} {
		ctx, interrupt := context.WithTimeout(t.Context(), time.Minute)
		out, in := io.Pipe()
		args := []string{"serve", "--engine", "demo", "--addr", "127.0.0.1:0"}
		if tt.hosts != "" {
			args = append(args, "--host", tt.hosts)
		}
		code := make(chan int, 1)
		go func() {
			code <- run(ctx, args, nil, strings.NewReader(""), in, io.Discard)
			_ = in.Close()
		}()
		url, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		request, err := http.NewRequestWithContext(ctx, tt.method, strings.TrimSpace(url)+"indexes", nil)
		require.NoError(t, err)
		request.Host = tt.host
		client := &http.Client{Transport: &http.Transport{}}
		answer, err := client.Do(request)
		require.NoError(t, err)
		assert.Equal(t, tt.want, answer.StatusCode, tt)
		require.NoError(t, answer.Body.Close())
		client.CloseIdleConnections()
		interrupt()
		assert.Zero(t, <-code)
	}
}
