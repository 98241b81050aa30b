package lock_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// line is the network connection of one process to the engine. Unlike a fault, a cut is for this process alone.
type line struct {
	to   aws.HTTPClient
	mode atomic.Int32
}

func (l *line) cut(how cut) { l.mode.Store(int32(how)) }

func (l *line) Do(r *http.Request) (*http.Response, error) {
	switch cut(l.mode.Load()) {
	case refused:
		return nil, errors.New("connection refused")
	case hung:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case unanswered:
		resp, err := l.to.Do(r)
		if err == nil {
			err = resp.Body.Close()
		}
		return nil, errors.Join(errors.New("connection reset"), err)
	}
	return l.to.Do(r)
}

type cut int32

const (
	open       cut = iota
	refused        // fails at once
	hung           // never answers
	unanswered     // the request arrives, but not its answer
)

// clientOver is a client of a process with its own connection. It has held a lock before: its session is open.
func (w *world) clientOver(l *line, config lock.Config, opts ...table.Option) *lock.Client {
	w.Helper()
	c := w.coldClientOver(l, config, opts...)
	warm, err := c.Acquire(w.Context(), lock.Name("warm up "+rand.Text()))
	require.NoError(w, err)
	require.NoError(w, warm.Release(w.Context()))
	return c
}

func (w *world) coldClientOver(l *line, config lock.Config, opts ...table.Option) *lock.Client {
	w.Helper()
	c := w.unclosed(l, config, opts...)
	w.Cleanup(func() {
		l.cut(open)
		assert.NoError(w, c.Close(context.Background()))
	})
	return c
}

// unclosed is a client that nothing but the test refers to, or closes.
func (w *world) unclosed(l *line, config lock.Config, opts ...table.Option) *lock.Client {
	w.Helper()
	tbl := w.openOver(l, table.Schema{Name: "app"}, opts...)
	_, err := tbl.Plan(ownHand(w.Context()))
	require.NoError(w, err)
	c, err := lock.New(tbl, config)
	require.NoError(w, err)
	return c
}

// peek reads the body of a request, and leaves it unread.
func peek(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}
