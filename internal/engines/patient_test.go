package engines

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// answers are the bodies of an HTTP client's answers, one after the other. The last one comes again.
type answers []string

func (a *answers) Do(r *http.Request) (*http.Response, error) {
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	text := (*a)[0]
	if len(*a) > 1 {
		*a = (*a)[1:]
	}
	return &http.Response{StatusCode: http.StatusBadRequest, Body: io.NopCloser(strings.NewReader(text + string(sent)))}, nil
}

func TestPatient_RepeatsAnUpdateTableWhileOthersAddIndexes(t *testing.T) {
	const full = "Subscriber limit exceeded: Only 5 tables with online indexes can be created simultaneously "
	call := func(t *testing.T, operation string, next ...string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost", strings.NewReader("sent"))
		require.NoError(t, err)
		r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
		list := answers(next)
		response, err := patient{&list}.Do(r)
		require.NoError(t, err)
		got, err := body(response.Body)
		require.NoError(t, err)
		return string(got)
	}
	synctest.Test(t, func(t *testing.T) {
		assert.Equal(t, "done sent", call(t, "UpdateTable", full, full, "done "))
		assert.Equal(t, "in use sent", call(t, "UpdateTable", "in use ", "done "), "another refusal is the test's own")
		assert.Equal(t, full+"sent", call(t, "CreateTable", full, "done "))
	})
}
