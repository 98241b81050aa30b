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

// Request is a request under way to the engine.
type Request struct {
	Process   *Process
	Operation string
	Keys      []string // of the items that it names: partition and sort key, sorted
	Eventual  bool     // it reads, and at least a part of it is eventually consistent
	Number    int      // among all requests of the world, from 1
}

// transacts is the operation that writes several items together.
const transacts = "TransactWriteItems"

// writes reports whether the request may conflict with a transaction that writes the same items.
func (r *Request) writes() bool {
	return slices.Contains([]string{"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", transacts, "TransactGetItems"}, r.Operation)
}

// inputKey is the key of a request's context for the input that the SDK was given.
type inputKey struct{}

// withInput puts its input into the context of each request. Reading it from the body would take long.
func withInput(o *dynamodb.Options) {
	keep := middleware.InitializeMiddlewareFunc("Input", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		return next.HandleInitialize(context.WithValue(ctx, inputKey{}, in.Parameters), in)
	})
	o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error { return s.Initialize.Add(keep, middleware.Before) })
}

// read reads what a request asks for. Requests with equal contents may have different bodies, since the SDK writes
// maps in any order. Their keys are the same.
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

// stringOf returns a string value, or an empty string for any other value.
func stringOf(v types.AttributeValue) string {
	s, _ := v.(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}

// spelled returns a body in a form that depends on its contents only.
func spelled(body []byte) string {
	var contents any
	if json.Unmarshal(body, &contents) != nil {
		return string(body)
	}
	text, err := json.Marshal(contents) // it sorts maps
	if err != nil {
		return string(body)
	}
	return string(text)
}

func (r *Request) String() string { return r.Operation + " " + strings.Join(r.Keys, " ") }
