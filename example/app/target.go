package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"
	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// defaultRegion is what requests to an endpoint are signed for when nothing
// else is configured; DynamoDB Local takes any.
const defaultRegion = "us-east-1"

// dialTimeout bounds how long an address that swallows packets is waited for.
const dialTimeout = 3 * time.Second

// target says which DynamoDB to talk to. The zero value is the in-process
// engine.
type target struct {
	Endpoint string `json:"endpoint,omitempty"`
	AWS      bool   `json:"aws,omitempty"`

	// Data is the directory of a DynamoDB Local that this program starts.
	Data string `json:"data,omitempty"`

	// Dummy says that the endpoint is this program's own engine, which must
	// not see real credentials.
	Dummy bool `json:"dummy,omitempty"`
}

// String names the target as the result does.
func (t target) String() string {
	switch {
	case t.AWS:
		return "aws"
	case t.Data != "":
		return "dynamodb-local"
	case t.Endpoint == "" || t.Dummy:
		return "inprocess"
	}
	return t.Endpoint
}

// open returns a client of the target, and starts what that needs: an engine in
// this process, or DynamoDB Local. Worker processes reach what was started
// through the target, an engine in this process if shared says so. closing ends
// it.
func (t *target) open(ctx context.Context, shared bool) (client *dynamodb.Client, closing func() error, err error) {
	closing = func() error { return nil }
	switch {
	case *t == target{}:
		engine := tabletest.NewEngine()
		if shared {
			t.Dummy = true
			if t.Endpoint, err = engine.Listen("127.0.0.1:0"); err != nil { //nolint:contextcheck // the engine's Close ends it
				return nil, nil, errors.Join(err, engine.Close())
			}
		}
		return engine.Client(), engine.Close, nil
	case t.Data != "":
		local, err := engines.StartKept(ctx, "", t.Data)
		if errors.Is(err, engines.ErrNotInstalled) {
			err = fmt.Errorf("%w; or say with -endpoint where one runs", err)
		}
		if err != nil {
			return nil, nil, err
		}
		t.Endpoint, t.Dummy = local.URL, true
		closing = func() error {
			local.Stop()
			return nil
		}
	}
	if client, err = t.client(ctx); err != nil {
		return nil, nil, errors.Join(err, closing())
	}
	return client, closing, nil
}

// client returns an SDK client for an endpoint or AWS. It sends nothing to
// DynamoDB; looking for credentials may take as long as ctx allows.
func (t target) client(ctx context.Context) (*dynamodb.Client, error) {
	static := credentials.NewStaticCredentialsProvider("mortise", "mortise", "")
	httpClient := awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = dialTimeout }).
		WithTransportOptions(func(t *http.Transport) { t.MaxIdleConnsPerHost = maxWorkers })
	if t.Dummy {
		return dynamodb.NewFromConfig(aws.Config{
			Region: defaultRegion, Credentials: static, HTTPClient: httpClient, BaseEndpoint: &t.Endpoint,
		}), nil
	}
	// What matters comes back as an error. Among what the SDK would log is a
	// warning for every refusal by DynamoDB Local, whose error responses lack a
	// checksum (aws-sdk-go-v2, issue 3545).
	load := []func(*config.LoadOptions) error{config.WithHTTPClient(httpClient), config.WithLogger(logging.Nop{})}
	local := t.Endpoint != "" && isLoopback(t.Endpoint)
	if local {
		// A machine without an instance metadata service would be waited for.
		load = append(load, config.WithEC2IMDSClientEnableState(imds.ClientDisabled))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, fmt.Errorf("configuration of the AWS SDK: %w", err)
	}
	if t.Endpoint != "" {
		cfg.BaseEndpoint = &t.Endpoint
		if cfg.Region == "" {
			cfg.Region = defaultRegion
		}
		if local {
			if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
				cfg.Credentials = static
			}
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
	if err != nil {
		return false
	}
	if u.Hostname() == "localhost" {
		return true
	}
	ip := net.ParseIP(u.Hostname())
	return ip != nil && ip.IsLoopback()
}

// reach finds out whether there is anybody at the other end, which a user who
// has mistyped an endpoint wants to know sooner than a table's patient retry
// policy says it.
func reach(ctx context.Context, t *table.Table) error {
	try := func() error {
		_, err := t.Plan(table.WithoutRetry(ctx))
		if err != nil && !errors.Is(err, table.ErrUnreachable) {
			// Ensure will say it, or get over it.
			return nil
		}
		return err
	}
	const tries = 3
	return backoff.Retry(try, backoff.WithContext(backoff.WithMaxRetries(backoff.NewExponentialBackOff(), tries-1), ctx))
}
