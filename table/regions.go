package table

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Region is the region that the client sends requests to; empty where the client does not
// say, as one that is no *dynamodb.Client may.
func (t *Table) Region() string {
	if c, ok := t.client.(interface{ Options() dynamodb.Options }); ok {
		return c.Options().Region
	}
	return ""
}

// Replicated says whether the table has replicas in other regions (a global table), whose
// writes meet nobody's conditions but their own region's. The answer is remembered, also
// that of Plan, Verify and Ensure.
//
// Cost: one DescribeTable at most.
func (t *Table) Replicated(ctx context.Context) (bool, error) {
	t.mu.Lock()
	known := t.replicas
	t.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	description, err := t.describeTable(ctx)
	if err != nil {
		return false, err
	}
	if description == nil {
		return false, fmt.Errorf("table: %w", ErrNoTable)
	}
	return isReplicated(description), nil
}

// sawReplicas remembers what a description says.
func (t *Table) sawReplicas(description *types.TableDescription) {
	replicated := isReplicated(description)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.replicas = &replicated
}

// isReplicated recognises both kinds of global tables: the older lists no replicas.
func isReplicated(description *types.TableDescription) bool {
	return len(description.Replicas) > 0 || deref(description.GlobalTableVersion) != ""
}
