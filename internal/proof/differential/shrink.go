package differential

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// shrinkBudget limits the requests that shrinking one difference may send.
const shrinkBudget = 6000

// shrink returns the requests of a round that have to precede the last one for its answers to differ. It finds them
// by leaving out smaller and smaller pieces.
func (c *Comparison) shrink(ctx context.Context, tables []*Table, history []any) ([]any, error) {
	last := history[len(history)-1]
	budget, replay := shrinkBudget, 0
	differs := func(before []any) (bool, error) {
		budget -= len(before) + 10
		c.drop(ctx, tables)
		if err := c.create(ctx, tables); err != nil {
			return false, err
		}
		replay++
		for _, in := range before {
			if _, _, err := c.both(ctx, replayed(in, replay)); err != nil {
				return false, err
			}
		}
		tested, reference, err := c.both(ctx, replayed(last, replay))
		if err != nil {
			return false, err
		}
		return !c.judge(last, tested, reference, false), nil
	}
	// Most differences need no history, or one request.
	before := history[:len(history)-1]
	if yes, err := differs(nil); yes || err != nil {
		return nil, err
	}
	for piece := (len(before) + 1) / 2; piece > 0; piece /= 2 {
		for i := 0; i < len(before) && budget > 0; {
			without := slices.Concat(before[:i], before[min(i+piece, len(before)):])
			yes, err := differs(without)
			if err != nil {
				return nil, err
			}
			if yes {
				before = without
			} else {
				i += piece
			}
		}
	}
	return slices.Clone(before), nil
}

// replayed returns a request to be sent again. Engines remember the token of a transaction, so each replay needs
// tokens of its own.
func replayed(in any, replay int) any {
	tx, ok := in.(*dynamodb.TransactWriteItemsInput)
	if !ok || tx.ClientRequestToken == nil || len(*tx.ClientRequestToken) > 36 {
		return in
	}
	again := *tx
	again.ClientRequestToken = aws.String(fmt.Sprintf("%s/%d", *tx.ClientRequestToken, replay))
	return &again
}
