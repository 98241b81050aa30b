package engines

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"

	"github.com/mortise-go/mortise/table/tabletest"
)

const (
	dialTimeout = 3 * time.Second // limits the wait for an address that does not answer
	maxIdle     = 256             // connections that are kept open, for a program with as many goroutines
)

// Target selects the DynamoDB that a program uses. The zero value is an engine in the program's own process. A Target
// can be sent to another process as JSON.
type Target struct {
	Endpoint string
	AWS      bool
	Data     string // directory of a DynamoDB Local that this program starts
	Own      bool   // this program has started the engine at the endpoint
}

// String returns a name for people.
func (t Target) String() string {
	switch {
	case t.AWS:
		return "aws"
	case t.Data != "":
		return "dynamodb-local"
	case t.Endpoint == "" || t.Own:
		return "inprocess"
	}
	return t.Endpoint
}

// Open returns a client, and starts the engine if necessary. closing ends what Open has started. If the engine is
// shared, other processes reach it by the target.
func (t *Target) Open(ctx context.Context, shared bool) (client *dynamodb.Client, closing func() error, err error) {
	closing = func() error { return nil }
	switch {
	case *t == Target{}:
		engine := tabletest.NewEngine()
		if shared {
			t.Own = true
			if t.Endpoint, err = engine.Listen("127.0.0.1:0"); err != nil { //nolint:contextcheck // the engine's Close ends it
				return nil, nil, errors.Join(err, engine.Close())
			}
		}
		return engine.Client(), engine.Close, nil
	case t.Data != "":
		local, err := StartKept(ctx, "", t.Data)
		if errors.Is(err, ErrNotInstalled) {
			err = fmt.Errorf("%w; or say with -endpoint where one runs", err)
		}
		if err != nil {
			return nil, nil, err
		}
		t.Endpoint, t.Own = local.URL, true
		closing = func() error { local.Stop(); return nil }
	}
	if client, err = t.Client(ctx); err != nil {
		return nil, nil, errors.Join(err, closing())
	}
	return client, closing, nil
}

// Client returns an SDK client for an endpoint or AWS. It sends nothing to DynamoDB. Looking for credentials may take
// as long as ctx allows.
func (t Target) Client(ctx context.Context) (*dynamodb.Client, error) {
	httpClient := awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = dialTimeout }).
		WithTransportOptions(func(t *http.Transport) { t.MaxIdleConnsPerHost = maxIdle })
	local := endpointConfig(t.Endpoint)
	local.HTTPClient = httpClient
	if t.Own { // the own engine must not get real credentials
		return dynamodb.NewFromConfig(local), nil
	}
	// Errors are returned anyway. The SDK logs a warning for every refusal by DynamoDB Local, whose error responses
	// have no checksum (aws-sdk-go-v2, issue 3545).
	load := []func(*config.LoadOptions) error{config.WithHTTPClient(httpClient), config.WithLogger(logging.Nop{})}
	if isLoopback(t.Endpoint) { // otherwise the SDK may wait for an instance metadata service that does not exist
		load = append(load, config.WithEC2IMDSClientEnableState(imds.ClientDisabled))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, fmt.Errorf("configuration of the AWS SDK: %w", err)
	}
	if t.Endpoint != "" {
		cfg.BaseEndpoint = local.BaseEndpoint
		if cfg.Region == "" {
			cfg.Region = local.Region
		}
	}
	if isLoopback(t.Endpoint) {
		if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
			cfg.Credentials = local.Credentials // DynamoDB Local accepts any
		}
	}
	if cfg.Region == "" {
		return nil, errors.New("no AWS region is configured: set AWS_REGION")
	}
	return dynamodb.NewFromConfig(cfg), nil
}

// isLoopback reports whether the URL's host can only be this machine.
func isLoopback(endpoint string) bool {
	u, err := url.Parse(endpoint)
	return err == nil && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
}
