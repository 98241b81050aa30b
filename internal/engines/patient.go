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

// patient repeats an UpdateTable that DynamoDB Local refuses since too many tables are getting indexes. Test binaries share one DynamoDB
// Local, so these may be the tables of others, and a test that counts its requests would depend on what runs beside it.
type patient struct{ next aws.HTTPClient }

const (
	tooManyIndexes = "tables with online indexes can be created simultaneously"
	untilFewer     = 100 * time.Millisecond
)

// Do implements the SDK's HTTP client.
func (p patient) Do(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".UpdateTable") {
		return p.next.Do(r)
	}
	sent, err := body(r.Body)
	if err != nil {
		return nil, err
	}
	for {
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
		if !bytes.Contains(got, []byte(tooManyIndexes)) {
			response.Body = io.NopCloser(bytes.NewReader(got))
			return response, nil
		}
		select {
		case <-time.After(untilFewer):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

func body(from io.ReadCloser) ([]byte, error) {
	all, err := io.ReadAll(from)
	return all, errors.Join(err, from.Close())
}
