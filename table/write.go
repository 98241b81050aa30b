package table

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/internal/machine"
)

// MaxOps is the greatest number of actions in one transaction, including those added by [Op.With].
const MaxOps = 100

// tokenWindow is the time after the first attempt within which further attempts of a transaction may start. DynamoDB remembers a token
// for 10 minutes; the difference is a margin for the last attempt.
const tokenWindow = 9 * time.Minute

// Returned selects the item that a write returns.
type Returned string

// Items that [Table.Apply] can return.
const (
	ReturnNone Returned = Returned(types.ReturnValueNone)
	ReturnOld  Returned = Returned(types.ReturnValueAllOld)
	ReturnNew  Returned = Returned(types.ReturnValueAllNew) // updates only
)

// wire returns the value that is sent. It is empty for ReturnNone, which is the default of DynamoDB.
func (r Returned) wire() types.ReturnValue {
	if r == ReturnNone {
		return ""
	}
	return types.ReturnValue(r)
}

// Write applies all operations or none. A single operation is sent as PutItem, UpdateItem or DeleteItem. Several
// operations, or a single check, are sent as one TransactWriteItems.
//
// If a condition does not hold, the error is a *[ConditionError], or [ConditionErrors] if several conditions of a
// transaction do not hold.
//
// Requests are repeated by the table's retry policy. A transaction has one token for all attempts and is applied once.
// A single operation has no token. If its answer is lost, a conditional write can find its own effect, and an Add
// without a condition can be applied twice. Use [Table.WriteOnce] where that matters.
//
// Cost: a write unit per KB of each item, at least 1; twice that in a transaction. A failed condition costs the same.
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

// WriteOnce is [Table.Write] with the caller's token of 1 to 36 characters (UTF-16 code units). Calls with the same token and
// the same operations within 10 minutes are applied once. A single operation is sent as a transaction too.
//
// The same token with other operations is refused with [ErrInvalid].
//
// Do not use one token for two tables. A transaction can span tables, so DynamoDB may compare tokens across all tables
// of an account and region (DynamoDB Local does). If two applications share them, put the application's name into the
// token.
func (t *Table) WriteOnce(ctx context.Context, token string, ops ...Op) error {
	list, err := t.prepare(ops)
	if err != nil {
		return err
	}
	if n := len(utf16.Encode([]rune(token))); n == 0 || n > 36 { // as DynamoDB Local counts them
		return fmt.Errorf("table: write: %w: a token has 1 to 36 characters, not %d", ErrInvalid, n)
	}
	if !utf8.ValidString(token) { // the SDK would make two such tokens equal, and the second write would be lost
		return fmt.Errorf("table: write: %w: a token that is not valid UTF-8", ErrInvalid)
	}
	return t.transact(ctx, token, list)
}

// Apply applies a single operation and returns the item that returned selects, or nil if there is none. [ReturnNew] is for updates
// only. A check, and an operation with others ([Op.With]), are refused with [ErrInvalid]. Other errors, and what a lost answer means,
// are those of [Table.Write].
//
// Cost: as [Table.Write] of one operation. The returned item costs nothing.
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

// onFailure requests the item that a failed condition found, at no extra cost.
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
	switch a.op.kind {
	case putOp:
		in := &dynamodb.PutItemInput{
			TableName: &t.schema.Name, Item: a.op.item, ConditionExpression: e.condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
			ReturnValues:                        returned.wire(),
			ReturnValuesOnConditionCheckFailure: onFailure(e.condition),
			ReturnConsumedCapacity:              t.capacity(ctx),
		}
		err = call(ctx, t, "PutItem", true, Client.PutItem, in, func(out *dynamodb.PutItemOutput) (answer, error) {
			item = out.Attributes
			return answer{out.ResultMetadata, one(out.ConsumedCapacity)}, nil
		})
	case updateOp:
		in := &dynamodb.UpdateItemInput{
			TableName: &t.schema.Name, Key: a.at, ConditionExpression: e.condition, UpdateExpression: e.update,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
			ReturnValues:                        returned.wire(),
			ReturnValuesOnConditionCheckFailure: onFailure(e.condition),
			ReturnConsumedCapacity:              t.capacity(ctx),
		}
		err = call(ctx, t, "UpdateItem", true, Client.UpdateItem, in, func(out *dynamodb.UpdateItemOutput) (answer, error) {
			item = out.Attributes
			return answer{out.ResultMetadata, one(out.ConsumedCapacity)}, nil
		})
	case deleteOp:
		in := &dynamodb.DeleteItemInput{
			TableName: &t.schema.Name, Key: a.at, ConditionExpression: e.condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
			ReturnValues:                        returned.wire(),
			ReturnValuesOnConditionCheckFailure: onFailure(e.condition),
			ReturnConsumedCapacity:              t.capacity(ctx),
		}
		err = call(ctx, t, "DeleteItem", true, Client.DeleteItem, in, func(out *dynamodb.DeleteItemOutput) (answer, error) {
			item = out.Attributes
			return answer{out.ResultMetadata, one(out.ConsumedCapacity)}, nil
		})
	}
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		e := a.conditionError(failed.Item, err)
		e.Repeated, _ = errs.Outcome(err)
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
	// Check both clocks: the wall clock can be set, and the monotonic clock stops while a machine is suspended.
	wall, mono := t.now().Round(0), t.machine.Now()
	var last error
	err := t.send(ctx, "TransactWriteItems", true, func(ctx context.Context) (answer, error) {
		if last != nil && max(t.now().Round(0).Sub(wall), machine.Since(t.machine, mono)) > tokenWindow {
			// After the token's window, another attempt could apply the transaction a second time.
			return answer{}, &finalError{fmt.Errorf("%w: the transaction's outcome is unknown: last attempt: %w", ErrUnreachable, last)}
		}
		out, err := t.client.TransactWriteItems(ctx, in, once)
		if err != nil {
			last = err
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
		if aws.ToString(reason.Code) == "ConditionalCheckFailed" && i < len(list) {
			one := list[i].conditionError(reason.Item, err)
			one.Pending, _ = errs.Outcome(err)
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

// newToken returns an idempotency token: 26 random characters.
func (t *Table) newToken() string { return t.machine.Text() }
