package table

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/internal/machine"
)

// MaxOps is the number of actions that fit into one transaction, those that operations
// bring along (Op.With) included.
const MaxOps = 100

// tokenWindow is how long DynamoDB knows a transaction by its token (10 minutes), less a
// margin for the last attempt: no attempt starts later.
const tokenWindow = 9 * time.Minute

// Returned says which item a write returns.
type Returned string

// What Apply can return.
const (
	ReturnNone Returned = Returned(types.ReturnValueNone)
	ReturnOld  Returned = Returned(types.ReturnValueAllOld)
	ReturnNew  Returned = Returned(types.ReturnValueAllNew) // updates only
)

// wire leaves out what DynamoDB takes for granted.
func (r Returned) wire() types.ReturnValue {
	if r == ReturnNone {
		return ""
	}
	return types.ReturnValue(r)
}

// Write applies all operations or none. A single operation goes out as PutItem,
// UpdateItem or DeleteItem; several, or a single check, as one TransactWriteItems.
//
// A condition that does not hold is a *ConditionError, or ConditionErrors where several
// of one transaction do not. Requests are repeated by the table's retry policy. A
// transaction carries one token for all attempts and is applied once. A single operation
// has no token: when the answer to a first attempt was lost, a conditional write may
// find its own effect, and an unconditional Add may be applied twice. Use WriteOnce where
// that matters.
//
// Cost: a write unit per KB of each item, at least 1; twice that in a transaction. A
// failed condition costs the same.
func (t *Table) Write(ctx context.Context, ops ...Op) error {
	list, err := t.prepare(ops)
	if err != nil {
		return err
	}
	if len(list) == 1 && list[0].op.kind != checkOp {
		_, err := t.single(ctx, list[0], ReturnNone)
		return err
	}
	return t.transact(ctx, t.newToken(), list)
}

// WriteOnce is Write with a token of the caller's, 1 to 36 characters: however often it is
// called with the same token and the same operations within 10 minutes, they are applied
// once. It is always a transaction, also for a single operation.
//
// The same token with other operations is refused with ErrInvalid. DynamoDB's documentation does
// not say that a token is a table's, transactions span tables, and DynamoDB Local knows it in all
// of them: where two applications share an account and a region, let it name the application.
func (t *Table) WriteOnce(ctx context.Context, token string, ops ...Op) error {
	list, err := t.prepare(ops)
	if err != nil {
		return err
	}
	if len(token) == 0 || len(token) > 36 {
		return fmt.Errorf("table: write: %w: a token has 1 to 36 characters, not %d", ErrInvalid, len(token))
	}
	return t.transact(ctx, token, list)
}

// Apply applies a single operation and returns an item, as returned says; nil where there
// is none.
func (t *Table) Apply(ctx context.Context, op Op, returned Returned) (Item, error) {
	a, err := t.action(&op, 0)
	if err != nil {
		return nil, fmt.Errorf("table: write: %w", err)
	}
	if len(op.with) > 0 || op.kind == checkOp {
		return nil, fmt.Errorf("table: write: %w: a transaction returns no items", ErrInvalid)
	}
	switch {
	case returned == ReturnNone, returned == ReturnOld, returned == ReturnNew && op.kind == updateOp:
	default:
		return nil, fmt.Errorf("table: write: %w: a %s cannot return %q", ErrInvalid, op.kind, string(returned))
	}
	return t.single(ctx, a, returned)
}

func (t *Table) prepare(ops []Op) ([]action, error) {
	list, err := t.actions(ops)
	switch {
	case err != nil:
		return nil, fmt.Errorf("table: write: %w", err)
	case len(list) == 0:
		return nil, fmt.Errorf("table: write: %w: no operations", ErrInvalid)
	case len(list) > MaxOps:
		return nil, fmt.Errorf("table: write: %w: %d actions in a transaction, at most %d", ErrInvalid, len(list), MaxOps)
	}
	return list, nil
}

// onFailure asks for the item that stands in the way; it costs nothing extra.
func onFailure(condition *string) types.ReturnValuesOnConditionCheckFailure {
	if condition == nil {
		return ""
	}
	return types.ReturnValuesOnConditionCheckFailureAllOld
}

func (t *Table) single(ctx context.Context, a action, returned Returned) (Item, error) {
	e, err := a.op.expressions()
	if err != nil {
		return nil, fmt.Errorf("table: write: operation %d: %w", a.index, err)
	}
	var item Item
	var request func(context.Context) (answer, error)
	var operation string
	switch a.op.kind {
	case putOp:
		operation = "PutItem"
		in := &dynamodb.PutItemInput{
			TableName: &t.schema.Name, Item: a.op.item, ConditionExpression: e.condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
			ReturnValues:                        returned.wire(),
			ReturnValuesOnConditionCheckFailure: onFailure(e.condition),
			ReturnConsumedCapacity:              t.capacity(ctx),
		}
		request = func(ctx context.Context) (answer, error) {
			out, err := t.client.PutItem(ctx, in, once)
			if err != nil {
				return answer{}, err
			}
			item = out.Attributes
			return answer{out.ResultMetadata, one(out.ConsumedCapacity)}, nil
		}
	case updateOp:
		operation = "UpdateItem"
		in := &dynamodb.UpdateItemInput{
			TableName: &t.schema.Name, Key: a.at, ConditionExpression: e.condition, UpdateExpression: e.update,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
			ReturnValues:                        returned.wire(),
			ReturnValuesOnConditionCheckFailure: onFailure(e.condition),
			ReturnConsumedCapacity:              t.capacity(ctx),
		}
		request = func(ctx context.Context) (answer, error) {
			out, err := t.client.UpdateItem(ctx, in, once)
			if err != nil {
				return answer{}, err
			}
			item = out.Attributes
			return answer{out.ResultMetadata, one(out.ConsumedCapacity)}, nil
		}
	case deleteOp:
		operation = "DeleteItem"
		in := &dynamodb.DeleteItemInput{
			TableName: &t.schema.Name, Key: a.at, ConditionExpression: e.condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
			ReturnValues:                        returned.wire(),
			ReturnValuesOnConditionCheckFailure: onFailure(e.condition),
			ReturnConsumedCapacity:              t.capacity(ctx),
		}
		request = func(ctx context.Context) (answer, error) {
			out, err := t.client.DeleteItem(ctx, in, once)
			if err != nil {
				return answer{}, err
			}
			item = out.Attributes
			return answer{out.ResultMetadata, one(out.ConsumedCapacity)}, nil
		}
	}
	unclear := false // whether an attempt may have been applied, although it failed
	err = t.send(ctx, operation, true, func(ctx context.Context) (answer, error) {
		ans, err := request(ctx)
		unclear = unclear || MayHaveApplied(err)
		return ans, err
	})
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		e := a.conditionError(failed.Item, err)
		e.Repeated = unclear
		return nil, e
	}
	return item, err
}

func (a *action) conditionError(item Item, cause error) *ConditionError {
	e := &ConditionError{Index: a.index, Op: *a.op, Item: item, cause: cause}
	if a.op.explain != nil {
		e.Err = a.op.explain(item)
	}
	return e
}

func (t *Table) transact(ctx context.Context, token string, list []action) error {
	in := &dynamodb.TransactWriteItemsInput{
		ClientRequestToken:     &token,
		TransactItems:          make([]types.TransactWriteItem, len(list)),
		ReturnConsumedCapacity: t.capacity(ctx),
	}
	for i := range list {
		item, err := t.transactItem(&list[i])
		if err != nil {
			return fmt.Errorf("table: write: operation %d: %w", list[i].index, err)
		}
		in.TransactItems[i] = item
	}
	// By both clocks: one can be set, and the other stands still while a machine is suspended.
	wall, mono := t.now().Round(0), t.machine.Now()
	var last error
	pending := false
	err := t.send(ctx, "TransactWriteItems", true, func(ctx context.Context) (answer, error) {
		if last != nil && max(t.now().Round(0).Sub(wall), machine.Since(t.machine, mono)) > tokenWindow {
			// Past the token's window another attempt could apply a second time what
			// an unanswered one has applied already.
			return answer{}, &finalError{fmt.Errorf("%w: the transaction's outcome is unknown: last attempt: %w", ErrUnreachable, last)}
		}
		out, err := t.client.TransactWriteItems(ctx, in, once)
		if err != nil {
			last, pending = err, pending || MayHaveApplied(err)
			return answer{}, err
		}
		return answer{out.ResultMetadata, out.ConsumedCapacity}, nil
	})
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) {
		return err
	}
	var failed ConditionErrors
	for i, reason := range canceled.CancellationReasons {
		if deref(reason.Code) == "ConditionalCheckFailed" && i < len(list) {
			one := list[i].conditionError(reason.Item, err)
			one.Pending = pending
			failed = append(failed, one)
		}
	}
	switch len(failed) {
	case 0:
		return err
	case 1:
		return failed[0]
	}
	return failed
}

func (t *Table) transactItem(a *action) (types.TransactWriteItem, error) {
	e, err := a.op.expressions()
	old := onFailure(e.condition)
	name := &t.schema.Name
	var item types.TransactWriteItem
	switch a.op.kind {
	case putOp:
		item.Put = &types.Put{
			TableName: name, Item: a.op.item, ConditionExpression: e.condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnValuesOnConditionCheckFailure: old,
		}
	case updateOp:
		item.Update = &types.Update{
			TableName: name, Key: a.at, ConditionExpression: e.condition, UpdateExpression: e.update,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnValuesOnConditionCheckFailure: old,
		}
	case deleteOp:
		item.Delete = &types.Delete{
			TableName: name, Key: a.at, ConditionExpression: e.condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnValuesOnConditionCheckFailure: old,
		}
	case checkOp:
		item.ConditionCheck = &types.ConditionCheck{
			TableName: name, Key: a.at, ConditionExpression: e.condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnValuesOnConditionCheckFailure: old,
		}
	}
	return item, err
}

// newToken is an idempotency token: 26 characters of randomness.
func (t *Table) newToken() string { return t.machine.Text() }
