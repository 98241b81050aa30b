package sim

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	smithy "github.com/aws/smithy-go/endpoints"
	"github.com/aws/smithy-go/middleware"
)

// Frugal is an option for clients of the in-process engine. It leaves out what the SDK does for
// each request and no answer of the engine depends on, a fifth of the time of a world: working
// out the endpoint by rules, describing itself in a header, and signing. All that a fault gets at
// is as it always is: writing requests, reading answers, checksums, retries, time limits.
func Frugal(o *dynamodb.Options) {
	o.EndpointResolverV2 = oneEndpoint{}
	o.HTTPSignerV4 = unsigned{}
	o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
		_, err := s.Build.Remove("UserAgent")
		return err
	})
}

type oneEndpoint struct{}

func (oneEndpoint) ResolveEndpoint(context.Context, dynamodb.EndpointParameters) (smithy.Endpoint, error) {
	return smithy.Endpoint{URI: url.URL{Scheme: "http", Host: "dynamodb.invalid"}}, nil
}

type unsigned struct{}

func (unsigned) SignHTTP(context.Context, aws.Credentials, *http.Request, string, string, string, time.Time, ...func(*v4.SignerOptions)) error {
	return nil
}
