package table

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/internal/nilctx"
)

// Region returns the region to which the client sends requests. It is empty if the client does not tell, such as one
// that is not a *dynamodb.Client.
func (t *Table) Region() string {
	if c, ok := t.client.(interface{ Options() dynamodb.Options }); ok {
		return c.Options().Region
	}
	return ""
}

// Replicated reports whether the table has replicas in other regions (a global table). Conditions of writes are checked
// only in the region of the write. The answer is cached, as are those of [Table.Plan], [Table.Verify] and
// [Table.Ensure].
//
// Cost: at most one DescribeTable.
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
			t.asking = &question{done: make(chan struct{})}
		}
		t.mu.Unlock()
		if asking == nil {
			return t.askReplicated(ctx)
		}
		select { // another call is asking; concurrent callers share its request and its error
		case <-asking.done:
			if asking.err != nil {
				return false, asking.err
			}
		case <-ctx.Done():
			return false, ended(ctx)
		}
	}
}

func (t *Table) askReplicated(ctx context.Context) (bool, error) {
	description, err := t.describeExisting(ctx)
	t.mu.Lock()
	if ctx.Err() == nil { // otherwise err concerns only this caller, and those who wait ask again
		t.asking.err = err
	}
	close(t.asking.done)
	t.asking = nil
	t.mu.Unlock()
	return err == nil && isReplicated(description), err
}

// describeExisting is describeTable for a table that has to exist.
func (t *Table) describeExisting(ctx context.Context) (*types.TableDescription, error) {
	description, err := t.describeTable(ctx)
	if err == nil && description == nil {
		err = t.missing()
	}
	return description, err
}

// missing returns the error of a table that does not exist.
func (t *Table) missing() error {
	return &Error{Operation: "DescribeTable", Table: t.schema.Name, Kind: ErrNoTable}
}

// sawReplicas caches whether a description shows replicas. It answers later calls of Replicated.
func (t *Table) sawReplicas(description *types.TableDescription) {
	replicated := isReplicated(description)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.replicas = &replicated
}

// isReplicated recognises both versions of global tables. The older version lists no replicas.
func isReplicated(description *types.TableDescription) bool {
	return len(description.Replicas) > 0 || aws.ToString(description.GlobalTableVersion) != ""
}

// Estimate is how large a table is. DynamoDB updates it about every six hours.
type Estimate struct {
	Items int64
	Bytes int64 // without indexes
}

// Estimate returns how many items the table has and how large it is, as DynamoDB knows it: up to some six hours ago.
//
// Cost: one DescribeTable.
func (t *Table) Estimate(ctx context.Context) (Estimate, error) {
	description, err := t.describeExisting(ctx)
	if err != nil {
		return Estimate{}, err
	}
	return Estimate{Items: aws.ToInt64(description.ItemCount), Bytes: aws.ToInt64(description.TableSizeBytes)}, nil
}
