package contract_test

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/mortise-go/mortise/internal/engines"
)

// raw sends a body that the SDK would not: it refuses some requests itself.
func (tb table) raw(op, body string) error {
	tb.Helper()
	replace := middleware.BuildMiddlewareFunc("raw", func(ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler) (middleware.BuildOutput, middleware.Metadata, error) {
		req, ok := in.Request.(*smithyhttp.Request)
		if !ok {
			return middleware.BuildOutput{}, middleware.Metadata{}, nil
		}
		req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
		req, err := req.SetStream(strings.NewReader(strings.ReplaceAll(body, "TABLE", *tb.name)))
		if err != nil {
			return middleware.BuildOutput{}, middleware.Metadata{}, err
		}
		in.Request = req
		return next.HandleBuild(ctx, in)
	})
	_, err := tb.ListTables(tb.ctx(), &dynamodb.ListTablesInput{}, func(o *dynamodb.Options) {
		o.RetryMaxAttempts = 1
		o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error { return s.Build.Add(replace, middleware.Before) })
	})
	return err
}

// local reports whether the engine is DynamoDB Local, for the tests of what
// it does otherwise than the service.
func (tb table) local() bool { return tb.engine.Name == engines.DynamoDBLocal }
