package tabletest_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mortise-go/mortise/table/tabletest"
)

// SDKs compress large requests. The service calls it an error of its own if it cannot decompress one.
func TestServeHTTP_ReadsCompressedRequests(t *testing.T) {
	const request = `{"ExclusiveStartTableName":"abc"}`
	compress := func(w func(io.Writer) io.WriteCloser, text string) []byte {
		var b bytes.Buffer
		z := w(&b)
		_, err := io.WriteString(z, text)
		require.NoError(t, err)
		require.NoError(t, z.Close())
		return b.Bytes()
	}
	gz := func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }
	deflate := func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }
	for _, tc := range []struct {
		name, encoding string
		body           []byte
		status         int
	}{
		{"plain", "", []byte(request), http.StatusOK},
		{"gzip", "gzip", compress(gz, request), http.StatusOK},
		{"deflate", "deflate", compress(deflate, request), http.StatusOK},
		{"not gzip", "gzip", []byte(request), http.StatusInternalServerError},
		{"not deflate", "deflate", []byte(request), http.StatusInternalServerError},
		{"cut off", "gzip", compress(gz, request)[:30], http.StatusInternalServerError},
		{"empty", "gzip", nil, http.StatusInternalServerError},
		{"another encoding", "zstd", []byte(request), http.StatusInternalServerError},
		{"larger than it looks", "gzip", compress(gz, strings.Repeat(" ", 17<<20)), http.StatusInternalServerError},
		{"too large", "", []byte(strings.Repeat(" ", 16<<20+1)), http.StatusRequestEntityTooLarge},
	} {
		t.Run(tc.name, func(t *testing.T) {
			db := tabletest.New(t)
			url, err := db.Listen("127.0.0.1:0")
			require.NoError(t, err)
			for name, do := range map[string]func(*http.Request) (*http.Response, error){"in process": db.HTTPClient().Do, "listener": http.DefaultClient.Do} {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(tc.body))
				require.NoError(t, err)
				req.Header.Set("X-Amz-Target", "DynamoDB_20120810.ListTables")
				req.Header.Set("Content-Type", "application/x-amz-json-1.0")
				if tc.encoding != "" {
					req.Header.Set("Content-Encoding", tc.encoding)
				}
				resp, err := do(req)
				require.NoError(t, err, name)
				assert.Equal(t, tc.status, resp.StatusCode, name)
				body, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				if tc.status == http.StatusInternalServerError {
					assert.Contains(t, string(body), `"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError"`)
				}
				require.NoError(t, resp.Body.Close())
			}
		})
	}
}

func TestListen_ServesOtherProcesses(t *testing.T) {
	before := goleak.IgnoreCurrent()
	defer func() { goleak.VerifyNone(t, before) }()
	e := tabletest.NewEngine()
	url, err := e.Listen("127.0.0.1:0")
	require.NoError(t, err)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	cfg := e.Config()
	cfg.HTTPClient = &http.Client{Transport: transport}
	cfg.BaseEndpoint = aws.String(url)
	c := dynamodb.NewFromConfig(cfg, oneAttempt)
	createTable(t, c)
	require.NoError(t, add(t.Context(), c, "a"))
	e.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "UpdateItem", Times: 1})
	require.Error(t, add(t.Context(), c, "a"), "the connection is closed without an answer")
	assert.Equal(t, "2", count(t, c, "a", true))
	e.Inject(tabletest.Fault{Kind: tabletest.CutReply, Operation: "UpdateItem", Times: 1})
	require.ErrorIs(t, add(t.Context(), c, "a"), io.ErrUnexpectedEOF, "the connection is closed part way through the answer")
	assert.Equal(t, "3", count(t, c, "a", true))
	require.NoError(t, e.Close())
	require.NoError(t, e.Close())
	require.Error(t, add(t.Context(), c, "a"))
	_, err = e.Listen("127.0.0.1:0")
	require.Error(t, err)
}

func TestServeHTTP_RefusesAnUnknownOperation(t *testing.T) {
	_, c := setup(t)
	_, err := c.ListBackups(t.Context(), &dynamodb.ListBackupsInput{})
	require.ErrorContains(t, err, "UnknownOperationException")
}

// What a request does in the test's process, such as a call of Fault.When, has ended when Close returns.
func TestHTTPClient_RefusesWhatIsNoRequestWhateverTheFaults(t *testing.T) {
	e := tabletest.New(t)
	e.Inject(tabletest.Fault{Kind: tabletest.StaleRead}, tabletest.Fault{Kind: tabletest.Delay}, tabletest.Fault{Kind: tabletest.Throttle, Key: item{"pk": s("a")}})
	for _, text := range []string{"", "{", "[1]", "null"} {
		for _, op := range []string{"GetItem", "BatchGetItem", "TransactWriteItems"} {
			var body io.Reader // nil if there is nothing
			if text != "" {
				body = strings.NewReader(text)
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost", body)
			require.NoError(t, err)
			r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
			resp, err := e.HTTPClient().Do(r)
			require.NoError(t, err)
			answer, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			assert.Equal(t, http.StatusBadRequest, resp.StatusCode)
			assert.Contains(t, string(answer), "SerializationException")
		}
	}
	assert.Len(t, e.Requests(), 12)
}

func TestHTTPClient_AppliesNothingOfABodyThatBreaks(t *testing.T) {
	e := tabletest.New(t)
	body := io.MultiReader(strings.NewReader(`{"Limit":1}`), iotest.ErrReader(io.ErrUnexpectedEOF))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost", body)
	require.NoError(t, err)
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810.ListTables")
	_, err = e.HTTPClient().Do(r)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Empty(t, e.Requests())
}

func TestListen_TellsWhereItCannot(t *testing.T) {
	_, err := tabletest.New(t).Listen("no address")
	assert.ErrorContains(t, err, `tabletest: listen on "no address"`)
}

// A recorder has no connection to close.
func TestServeHTTP_AnswersBadGatewayWhereItCannotCloseTheConnection(t *testing.T) {
	e := tabletest.New(t)
	e.Inject(tabletest.Fault{Kind: tabletest.DropReply})
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("{}")))
	assert.Equal(t, http.StatusBadGateway, w.Code)
}

func TestClose_WaitsForRequests(t *testing.T) {
	e, c := listening(t)
	entered := make(chan struct{})
	var ended atomic.Bool
	e.Inject(tabletest.Fault{Kind: tabletest.InternalError, When: func(tabletest.Request) bool {
		close(entered)
		time.Sleep(20 * time.Millisecond) // Close begins meanwhile
		ended.Store(true)
		return true
	}})
	go func() { _ = add(t.Context(), c, "a") }()
	<-entered
	require.NoError(t, e.Close())
	assert.True(t, ended.Load())
}

func TestClose_EndsDelays(t *testing.T) {
	e, c := listening(t)
	entered := make(chan struct{})
	e.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Hour, When: func(tabletest.Request) bool {
		close(entered)
		return true
	}})
	go func() { _ = add(t.Context(), c, "a") }()
	<-entered
	require.NoError(t, e.Close())
	log := e.Requests()
	require.Len(t, log, 1)
	assert.Zero(t, log[0].Consumed)
	e.ClearFaults()
	assert.Equal(t, "absent", count(t, e.Client(), "a", true), "a request that ends before it is applied does nothing")
}

// listening returns an engine and a client that calls it through a listener, without retries.
func listening(t *testing.T) (*tabletest.Engine, *dynamodb.Client) {
	t.Helper()
	e := tabletest.New(t)
	url, err := e.Listen("127.0.0.1:0")
	require.NoError(t, err)
	cfg := e.Config()
	cfg.HTTPClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	cfg.BaseEndpoint = aws.String(url)
	c := dynamodb.NewFromConfig(cfg, oneAttempt)
	createTable(t, c)
	e.ResetRequests()
	return e, c
}
