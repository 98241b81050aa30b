package tabletest

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// dummyCredentials sign requests. The engine does not check the signature.
func dummyCredentials() aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "tabletest", SecretAccessKey: "tabletest", Source: "tabletest"}, nil
	})
}
