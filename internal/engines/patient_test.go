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

// answer is the body of an HTTP client's answer. Its status is 500 if it begins with "internal", otherwise 400.
type answer string

func (a answer) status() int {
	if strings.HasPrefix(string(a), "internal") {
		return http.StatusInternalServerError
	}
	return http.StatusBadRequest
}

// answers come one after the other. The last one comes again.
type answers []answer

func (a *answers) Do(r *http.Request) (*http.Response, error) {
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	now := (*a)[0]
	if len(*a) > 1 {
		*a = (*a)[1:]
	}
	return &http.Response{StatusCode: now.status(), Body: io.NopCloser(strings.NewReader(string(now) + string(sent)))}, nil
}

func TestPatient_RepeatsWhatDynamoDBLocalRefusesBecauseOfItsState(t *testing.T) {
	const full, internal = "Subscriber limit exceeded: Only 5 tables with online indexes can be created simultaneously ", "internal failure "
	call := func(t *testing.T, operation string, next ...answer) string {
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
		assert.Equal(t, "done sent", call(t, "UpdateTable", full, full, internal, "done "))
		assert.Equal(t, "done sent", call(t, "DescribeTable", internal, internal, "done "))
		assert.Equal(t, "in use sent", call(t, "UpdateTable", "in use ", "done "), "another refusal is the test's own")
		assert.Equal(t, full+"sent", call(t, "CreateTable", full, "done "))
		assert.Equal(t, internal+"sent", call(t, "PutItem", internal, "done "), "a write may have been applied")
		assert.Equal(t, internal+"sent", call(t, "UpdateTable", internal), "a failure that stays is returned")
	})
}
