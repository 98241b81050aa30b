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
// A test that counts its requests would depend on luck. A refusal that stays is returned after a minute.
type patient struct{ next aws.HTTPClient }

const (
	tooManyIndexes = "tables with online indexes can be created simultaneously"
	untilNext      = 100 * time.Millisecond
	patience       = time.Minute
)

// passes reports whether an answer is a refusal that passes by itself.
func passes(status int, answer []byte) bool {
	return status == http.StatusInternalServerError || bytes.Contains(answer, []byte(tooManyIndexes))
}

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
	for start := time.Now(); ; {
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
		if !passes(response.StatusCode, got) || time.Since(start) >= patience {
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
