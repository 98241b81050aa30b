package sim

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
)

// Request is a request on its way to the engine.
type Request struct {
	Process   *Process
	Operation string
	Keys      []string // of the items that it names, partition and sort key, in order
	Eventual  bool     // it reads, eventually consistently or in part so
	Number    int      // among all requests of the world, from 1
}

// transacts is the operation that writes several items or none.
const transacts = "TransactWriteItems"

// writes says whether it may meet a transaction that writes the same items.
func (r *Request) writes() bool {
	return slices.Contains([]string{"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", transacts, "TransactGetItems"}, r.Operation)
}

// inputKey is where the context of a request has the input that the SDK was given.
type inputKey struct{}

// withInput has requests know their inputs, which would take long to read from their bodies.
func withInput(o *dynamodb.Options) {
	keep := middleware.InitializeMiddlewareFunc("Input", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		return next.HandleInitialize(context.WithValue(ctx, inputKey{}, in.Parameters), in)
	})
	o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error { return s.Initialize.Add(keep, middleware.Before) })
}

// read takes in what a request asks for. Requests of equal contents are spelled in many ways,
// since the SDK writes maps in any order; their keys are not.
func (r *Request) read(input any, pk, sk string) {
	r.Keys, r.Eventual = nil, false
	add := func(items ...map[string]types.AttributeValue) {
		for _, item := range items {
			if item[pk] != nil {
				r.Keys = append(r.Keys, stringOf(item[pk])+"|"+stringOf(item[sk]))
			}
		}
	}
	eventual := func(consistent *bool) { r.Eventual = r.Eventual || !aws.ToBool(consistent) }
	switch in := input.(type) {
	case *dynamodb.GetItemInput:
		add(in.Key)
		eventual(in.ConsistentRead)
	case *dynamodb.QueryInput:
		eventual(in.ConsistentRead)
	case *dynamodb.ScanInput:
		eventual(in.ConsistentRead)
	case *dynamodb.BatchGetItemInput:
		for _, get := range in.RequestItems {
			add(get.Keys...)
			eventual(get.ConsistentRead)
		}
	case *dynamodb.TransactGetItemsInput:
		for _, op := range in.TransactItems {
			add(op.Get.Key)
		}
	case *dynamodb.PutItemInput:
		add(in.Item)
	case *dynamodb.UpdateItemInput:
		add(in.Key)
	case *dynamodb.DeleteItemInput:
		add(in.Key)
	case *dynamodb.BatchWriteItemInput:
		for _, list := range in.RequestItems {
			for _, op := range list {
				if op.PutRequest != nil {
					add(op.PutRequest.Item)
				} else {
					add(op.DeleteRequest.Key)
				}
			}
		}
	case *dynamodb.TransactWriteItemsInput:
		for _, op := range in.TransactItems {
			switch {
			case op.Put != nil:
				add(op.Put.Item)
			case op.Update != nil:
				add(op.Update.Key)
			case op.Delete != nil:
				add(op.Delete.Key)
			case op.ConditionCheck != nil:
				add(op.ConditionCheck.Key)
			}
		}
	}
	slices.Sort(r.Keys)
}

// stringOf is a string, and nothing of what is none.
func stringOf(v types.AttributeValue) string {
	s, _ := v.(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}

// spelled is a request's body in the one spelling of its contents.
func spelled(body []byte) string {
	var contents any
	if json.Unmarshal(body, &contents) != nil {
		return string(body)
	}
	text, err := json.Marshal(contents) // maps in order
	if err != nil {
		return string(body)
	}
	return string(text)
}

func (r *Request) String() string { return r.Operation + " " + strings.Join(r.Keys, " ") }
