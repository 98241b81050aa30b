package attrvalue

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// CloneItem returns a deep copy of an item.
func CloneItem(item map[string]types.AttributeValue) map[string]types.AttributeValue {
	c := make(map[string]types.AttributeValue, len(item))
	for name, av := range item {
		c[name] = Clone(av)
	}
	return c
}

// Clone returns a deep copy of an attribute value.
func Clone(av types.AttributeValue) types.AttributeValue {
	switch v := av.(type) {
	case *types.AttributeValueMemberS:
		return &types.AttributeValueMemberS{Value: v.Value}
	case *types.AttributeValueMemberN:
		return &types.AttributeValueMemberN{Value: v.Value}
	case *types.AttributeValueMemberBOOL:
		return &types.AttributeValueMemberBOOL{Value: v.Value}
	case *types.AttributeValueMemberNULL:
		return &types.AttributeValueMemberNULL{Value: v.Value}
	case *types.AttributeValueMemberB:
		return &types.AttributeValueMemberB{Value: slices.Clone(v.Value)}
	case *types.AttributeValueMemberSS:
		return &types.AttributeValueMemberSS{Value: slices.Clone(v.Value)}
	case *types.AttributeValueMemberNS:
		return &types.AttributeValueMemberNS{Value: slices.Clone(v.Value)}
	case *types.AttributeValueMemberBS:
		set := make([][]byte, len(v.Value))
		for i := range set {
			set[i] = slices.Clone(v.Value[i])
		}
		return &types.AttributeValueMemberBS{Value: set}
	case *types.AttributeValueMemberL:
		list := make([]types.AttributeValue, len(v.Value))
		for i := range list {
			list[i] = Clone(v.Value[i])
		}
		return &types.AttributeValueMemberL{Value: list}
	case *types.AttributeValueMemberM:
		return &types.AttributeValueMemberM{Value: CloneItem(v.Value)}
	}
	return av
}
