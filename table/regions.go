package table

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/internal/nilctx"
)

// Region returns the region that the client sends requests to; empty where the client does not
// say, as one that is no *dynamodb.Client may.
func (t *Table) Region() string {
	if c, ok := t.client.(interface{ Options() dynamodb.Options }); ok {
		return c.Options().Region
	}
	return ""
}

// Replicated reports whether the table has replicas in other regions (a global table), whose
// writes meet nobody's conditions but their own region's. The answer is remembered, also
// that of Plan, Verify and Ensure.
//
// Cost: one DescribeTable at most.
func (t *Table) Replicated(ctx context.Context) (bool, error) {
	ctx = nilctx.Checked(ctx, ErrInvalid)
	for {
		t.mu.Lock()
		if known := t.replicas; known != nil {
			t.mu.Unlock()
			return *known, nil
		}
		asking := t.asking
		if asking == nil {
			t.asking = make(chan struct{})
		}
		t.mu.Unlock()
		if asking == nil {
			return t.askReplicated(ctx)
		}
		select { // somebody asks already: many callers that start at once send one request
		case <-asking:
		case <-ctx.Done():
			return false, ended(ctx)
		}
	}
}

func (t *Table) askReplicated(ctx context.Context) (bool, error) {
	description, err := t.describeTable(ctx)
	t.mu.Lock()
	close(t.asking)
	t.asking = nil
	t.mu.Unlock()
	switch {
	case err != nil:
		return false, err
	case description == nil:
		return false, t.missing()
	}
	return isReplicated(description), nil
}

// missing says that there is no such table.
func (t *Table) missing() error {
	return &Error{Operation: "DescribeTable", Table: t.schema.Name, Kind: ErrNoTable}
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

// EstimateItems returns how many items the table has, as DynamoDB counts about every six hours.
//
// Cost: one DescribeTable.
func (t *Table) EstimateItems(ctx context.Context) (int64, error) {
	description, err := t.describeTable(ctx)
	switch {
	case err != nil:
		return 0, err
	case description == nil:
		return 0, t.missing()
	}
	return deref(description.ItemCount), nil
}
