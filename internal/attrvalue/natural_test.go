package attrvalue_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"

	"github.com/mortise-go/mortise/internal/attrvalue"
)

func TestNatural_IsAnIntegerThatIsNotNegative(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "7": 7, "9223372036854775807": 9223372036854775807} {
		n, ok := attrvalue.Natural(&types.AttributeValueMemberN{Value: text})
		assert.True(t, ok, text)
		assert.Equal(t, want, n)
	}
	for _, av := range []types.AttributeValue{
		nil, (*types.AttributeValueMemberN)(nil), &types.AttributeValueMemberS{Value: "7"}, &types.AttributeValueMemberN{},
		&types.AttributeValueMemberN{Value: "-1"}, &types.AttributeValueMemberN{Value: "1.5"}, &types.AttributeValueMemberN{Value: "9223372036854775808"},
	} {
		_, ok := attrvalue.Natural(av)
		assert.False(t, ok, "%#v", av)
	}
}
