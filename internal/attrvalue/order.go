package attrvalue

import (
	"bytes"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// InOrder returns a value whose sets have their elements in order. DynamoDB ignores the order. But two equal values are written as the
// same bytes only if their sets are in order.
func InOrder(av types.AttributeValue) types.AttributeValue {
	switch av := av.(type) {
	case *types.AttributeValueMemberSS:
		return &types.AttributeValueMemberSS{Value: slices.Sorted(slices.Values(av.Value))}
	case *types.AttributeValueMemberNS:
		return &types.AttributeValueMemberNS{Value: slices.Sorted(slices.Values(av.Value))}
	case *types.AttributeValueMemberBS:
		return &types.AttributeValueMemberBS{Value: slices.SortedFunc(slices.Values(av.Value), bytes.Compare)}
	case *types.AttributeValueMemberL:
		list := make([]types.AttributeValue, len(av.Value))
		for i, v := range av.Value {
			list[i] = InOrder(v)
		}
		return &types.AttributeValueMemberL{Value: list}
	case *types.AttributeValueMemberM:
		fields := make(map[string]types.AttributeValue, len(av.Value))
		for name, v := range av.Value {
			fields[name] = InOrder(v)
		}
		return &types.AttributeValueMemberM{Value: fields}
	}
	return av
}
