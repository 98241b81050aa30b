package attrvalue_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"

	"github.com/mortise-go/mortise/internal/attrvalue"
)

func TestHasNil_FindsNilAtEveryDepth(t *testing.T) {
	list := func(v ...types.AttributeValue) types.AttributeValue { return &types.AttributeValueMemberL{Value: v} }
	doc := func(v types.AttributeValue) types.AttributeValue {
		return &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"k": v}}
	}
	text := &types.AttributeValueMemberS{Value: "x"}
	var typed *types.AttributeValueMemberS
	for _, av := range []types.AttributeValue{
		nil, typed, (*types.AttributeValueMemberM)(nil), (*types.AttributeValueMemberBS)(nil), list(text, typed), list(nil), doc(typed), doc(list(doc(nil))),
	} {
		assert.True(t, attrvalue.HasNil(av), "%T", av)
	}
	for _, av := range []types.AttributeValue{text, list(), list(text, doc(text)), &types.AttributeValueMemberB{}, &types.AttributeValueMemberNULL{Value: true}} {
		assert.False(t, attrvalue.HasNil(av), "%T", av)
	}
}
