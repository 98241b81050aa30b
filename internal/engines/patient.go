package engines

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// patient repeats requests that DynamoDB Local refuses because of its own state, and not because of the request:
//
//   - It lets only a few tables get indexes at the same time. Test binaries share one DynamoDB Local, so these may be the tables of others.
//   - While a table gets an index, DescribeTable can fail: it counts the items of an index whose column does not exist yet.
//   - While tables get indexes, UpdateTable can fail. Then nothing has changed.
//
// A test that counts its requests would depend on luck. Some requests DynamoDB Local fails each time: such a failure is returned when
// it has come a few times.
type patient struct{ next aws.HTTPClient }

const (
	tooManyIndexes = "tables with online indexes can be created simultaneously"
	untilNext      = 100 * time.Millisecond
	failures       = 5 // those that pass were never seen more than twice in a row
)

// Do implements the SDK's HTTP client.
func (p patient) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if operation != "UpdateTable" && operation != "DescribeTable" {
		return p.next.Do(r)
	}
	sent, err := body(r.Body)
	if err != nil {
		return nil, err
	}
	for failed := 0; ; {
		again := r.Clone(r.Context())
		again.Body = io.NopCloser(bytes.NewReader(sent))
		response, err := p.next.Do(again)
		if err != nil {
			return nil, err
		}
		got, err := body(response.Body)
		if err != nil {
			return nil, err
		}
		repeated := bytes.Contains(got, []byte(tooManyIndexes))
		if response.StatusCode == http.StatusInternalServerError {
			failed++
			repeated = failed < failures
		}
		if !repeated {
			response.Body = io.NopCloser(bytes.NewReader(got))
			return response, nil
		}
		select {
		case <-time.After(untilNext):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

func body(from io.ReadCloser) ([]byte, error) {
	all, err := io.ReadAll(from)
	return all, errors.Join(err, from.Close())
}
