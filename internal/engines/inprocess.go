package engines

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// inProcess is a seam until package tabletest can be imported.
type inProcess struct{}

func (*inProcess) Client(...func(*dynamodb.Options)) *dynamodb.Client { return nil }

func openInProcess(*testing.T) (*Engine, error) {
	return nil, errors.New("engines: the in-process engine cannot be had yet")
}
