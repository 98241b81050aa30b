package peers

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/internal/peers/minimal"
)

// errHeld is the error of [Locker.Try] for a lock that is held.
var errHeld = minimal.ErrHeld

// Held is a lock that was acquired, as the library returns it. The comparison does not wrap it, since that would allocate memory in
// addition to the library.
type Held any

// Locker is one process's client of a lock library.
type Locker interface {
	// Acquire acquires the lock, and waits while it is held, until ctx ends.
	Acquire(ctx context.Context, name string) (Held, error)
	// Try acquires the lock. If it is held, the error matches errHeld.
	Try(ctx context.Context, name string) (Held, error)
	// Release releases the lock.
	Release(ctx context.Context, held Held) error
	// Lost reports whether the library considers the lock lost.
	Lost(held Held) bool
	// Close ends the client. It releases locks until ctx ends.
	Close(ctx context.Context) error
}

// Candidate is a lock library with its settings.
type Candidate struct {
	Name string
	// Leases is false if a lock is held until it is released: then it is not renewed, and no other process can take it over.
	Leases bool
	// Create creates a table with the keys that the library needs.
	Create func(ctx context.Context, client *dynamodb.Client, table string) error
	// Open returns a client.
	Open func(client *dynamodb.Client, table string, lease time.Duration) (Locker, error)
}

// Names of candidates that the verdicts name.
const (
	minimalName = "minimal lock"
	cirelloName = "cirello dynamolock"
	mortiseName = "Mortise"
)

// createTable creates a table with the string keys pk and sk.
func createTable(ctx context.Context, client *dynamodb.Client, table string) error {
	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:   aws.String(table),
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("sk"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange},
		},
	})
	return err
}
