package sim

import (
	"context"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	smithy "github.com/aws/smithy-go/endpoints"
	"github.com/aws/smithy-go/middleware"
)

// Frugal is an option for clients of the in-process engine. It leaves out what the SDK does for each request and no
// answer of the engine depends on: resolving the endpoint by rules, a header that describes the SDK, and signing.
// That saves a fifth of the time of a world. Everything that a fault can affect stays: credentials, encoding,
// decoding, checksums, retries, and timeouts.
func Frugal(o *dynamodb.Options) {
	o.EndpointResolverV2 = oneEndpoint{}
	o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
		for _, id := range []string{"UserAgent", "RecursionDetection"} {
			if _, err := s.Build.Remove(id); err != nil {
				return err
			}
		}
		for _, id := range []string{"ComputePayloadHash", "setLegacyContextSigningOptions", "Signing"} {
			if _, err := s.Finalize.Remove(id); err != nil {
				return err
			}
		}
		return nil
	})
}

type oneEndpoint struct{}

func (oneEndpoint) ResolveEndpoint(context.Context, dynamodb.EndpointParameters) (smithy.Endpoint, error) {
	return smithy.Endpoint{URI: url.URL{Scheme: "http", Host: "dynamodb.invalid"}}, nil
}
