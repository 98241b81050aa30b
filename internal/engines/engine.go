package engines

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/table/tabletest"
)

// Names of the engines that MORTISE_ENGINE can select, besides endpoint URLs.
const (
	InProcess     = "inprocess"
	DynamoDBLocal = "dynamodb-local"
	AWS           = "aws"
)

// Engine is one DynamoDB to run tests against. It is safe for concurrent use.
type Engine struct {
	// Name is InProcess, DynamoDBLocal, AWS, or the endpoint URL.
	Name string

	config    aws.Config
	inProcess *tabletest.Engine
}

// Client returns an SDK client for the engine. optFns are applied last.
func (e *Engine) Client(optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	if e.inProcess != nil {
		return e.inProcess.Client(optFns...)
	}
	return dynamodb.NewFromConfig(e.config, optFns...)
}

// TableName returns a valid table name that nothing else uses. The tables that the test creates with that name, or with names that
// continue it after a hyphen, are deleted when t ends. The test fails if that is not possible.
func (e *Engine) TableName(t testing.TB) string {
	t.Helper()
	name := uniqueName(t.Name())
	t.Cleanup(func() {
		// The test's own context is cancelled by now.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := e.deleteTables(ctx, name); err != nil {
			t.Errorf("engines: delete table %s: %v", name, err)
		}
	})
	return name
}

// deleteTables deletes the table and those whose names continue its name after a hyphen.
func (e *Engine) deleteTables(ctx context.Context, name string) error {
	client := e.Client()
	for next := name; next == name || strings.HasPrefix(next, name+"-"); {
		if err := deleteTable(ctx, client, next); err != nil {
			return err
		}
		following, err := client.ListTables(ctx, &dynamodb.ListTablesInput{ExclusiveStartTableName: &next, Limit: aws.Int32(1)})
		if err != nil || len(following.TableNames) == 0 {
			return err
		}
		next = following.TableNames[0]
	}
	return nil
}

// deleteTable deletes a table if it exists. It waits while the table is created or changed.
func deleteTable(ctx context.Context, client *dynamodb.Client, name string) error {
	for {
		_, err := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name})
		if missing := (*types.ResourceNotFoundException)(nil); errors.As(err, &missing) {
			return nil
		}
		if busy := (*types.ResourceInUseException)(nil); !errors.As(err, &busy) {
			return err
		}
		select {
		case <-time.After(untilNext):
		case <-ctx.Done():
			return err
		}
	}
}

// uniqueName replaces the characters of a test's name that a table name cannot have, and appends 64 random bits. The result has at most
// 77 bytes. DynamoDB allows 255.
func uniqueName(test string) string {
	var b strings.Builder
	b.WriteString("mortise-")
	for _, r := range test {
		if b.Len() == 60 {
			break
		}
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.':
			b.WriteRune(r)
		default:
			b.WriteByte('-')
		}
	}
	var random [8]byte
	// Read never fails, by its documentation.
	_, _ = rand.Read(random[:])
	return b.String() + "-" + hex.EncodeToString(random[:])
}
