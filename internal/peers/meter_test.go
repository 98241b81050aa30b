package peers

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// server answers each request with its status, and keeps what it has got.
type server struct {
	status int
	bodies []string
}

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	s.bodies = append(s.bodies, string(body))
	return &http.Response{StatusCode: s.status, Body: io.NopCloser(strings.NewReader("{}"))}, err
}

// send posts a request of an operation.
func send(t *testing.T, m *Meter, op, body string) error {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/", bytes.NewReader([]byte(body)))
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
	resp, err := m.RoundTrip(req)
	if err == nil {
		err = resp.Body.Close()
	}
	return err
}

func TestMeter_CountsRequestsAndBytes(t *testing.T) {
	m := &Meter{next: &server{status: http.StatusOK}}
	assert.Zero(t, m.Take().Requests)
	require.NoError(t, send(t, m, "GetItem", "1234"))
	require.NoError(t, send(t, m, "UpdateItem", "1234567"))
	require.NoError(t, send(t, m, "UpdateItem", "12345"))
	first := m.Take()
	assert.Equal(t, Counts{Requests: 3, ByOp: map[string]int{"GetItem": 1, "UpdateItem": 2}, Largest: 7}, first)

	require.NoError(t, send(t, m, "PutItem", "12"))
	second := m.Take()
	assert.Equal(t, Counts{Requests: 1, ByOp: map[string]int{"PutItem": 1}, Largest: 2}, second, "since the last time")
	assert.Equal(t, Counts{Requests: 4, ByOp: map[string]int{"GetItem": 1, "UpdateItem": 2, "PutItem": 1}, Largest: 7}, first.plus(second))
	assert.Equal(t, 3, first.Requests, "a sum changes nothing")
}

func TestMeter_LosesTheAnswerOfAnAppliedRequest(t *testing.T) {
	engine := &server{status: http.StatusBadRequest}
	m := &Meter{next: engine}
	loss := m.Lose(2, writesOf("mine"))
	require.Error(t, loss.check())

	require.NoError(t, send(t, m, "UpdateItem", "mine"), "refused: it was not applied")
	engine.status = http.StatusOK
	require.NoError(t, send(t, m, "UpdateItem", "theirs"), "another lock")
	require.NoError(t, send(t, m, "GetItem", "mine"), "a read")
	require.ErrorIs(t, send(t, m, "UpdateItem", "mine"), syscall.ECONNRESET)
	require.Error(t, loss.check(), "one is left")
	require.ErrorIs(t, send(t, m, "PutItem", "mine, too"), syscall.ECONNRESET)
	require.NoError(t, loss.check())
	require.NoError(t, send(t, m, "UpdateItem", "mine"), "no more")
	assert.Equal(t, []string{"mine", "theirs", "mine", "mine", "mine, too", "mine"}, engine.bodies, "the server has got them all")
	assert.Equal(t, 6, m.Take().Requests)
}

func TestMeter_DelaysRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Meter{next: &server{status: http.StatusOK}}
		m.SetLatency(5 * time.Millisecond)
		begun := time.Now()
		require.NoError(t, send(t, m, "GetItem", "{}"))
		assert.Equal(t, 5*time.Millisecond, time.Since(begun))

		m.SetLatency(0)
		require.NoError(t, send(t, m, "GetItem", "{}"))
		assert.Equal(t, 5*time.Millisecond, time.Since(begun))
	})
}

func TestMeter_PassesErrorsOn(t *testing.T) {
	broken := errors.New("broken")
	m := &Meter{next: roundTrip(func(*http.Request) (*http.Response, error) { return nil, broken })}
	loss := m.Lose(1, func(string, []byte) bool { return true })
	require.ErrorIs(t, send(t, m, "PutItem", "{}"), broken)
	require.Error(t, loss.check(), "nobody knows whether it was applied")
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
