package engines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"

	"github.com/mortise-go/mortise/table/tabletest"
)

// Target tells a program which DynamoDB to use. The zero value is an engine in its own process. A Target can be sent to another
// process as JSON.
type Target struct {
	Endpoint string
	AWS      bool
	Data     string // directory of a DynamoDB Local that this program starts
	Own      bool   // this program has started what is at the endpoint
}

// String is the target's name, for people.
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

// Open returns a client, and starts what that needs; closing ends it. Where the engine is shared, other processes reach it by the
// target.
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

// Client returns an SDK client for an endpoint or AWS. It sends nothing to DynamoDB.
func (t Target) Client(ctx context.Context) (*dynamodb.Client, error) {
	dummy := credentials.NewStaticCredentialsProvider("mortise", "mortise", "")
	if t.Own { // must not see real credentials
		return dynamodb.NewFromConfig(aws.Config{Region: "local", Credentials: dummy, BaseEndpoint: &t.Endpoint}), nil
	}
	// The SDK logs a warning for every refusal by DynamoDB Local: its error responses lack a checksum (aws-sdk-go-v2, issue 3545).
	load := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})}
	if t.Endpoint != "" {
		load = append(load, config.WithBaseEndpoint(t.Endpoint), config.WithDefaultRegion("us-east-1"))
	}
	if strings.HasPrefix(t.Endpoint, "http:") && os.Getenv("AWS_ACCESS_KEY_ID") == "" { // DynamoDB Local takes any credentials
		load = append(load, config.WithCredentialsProvider(dummy))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, fmt.Errorf("configuration of the AWS SDK: %w", err)
	}
	if cfg.Region == "" {
		return nil, errors.New("no AWS region is configured: set AWS_REGION")
	}
	return dynamodb.NewFromConfig(cfg), nil
}
