package attrvalue_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"

	"github.com/mortise-go/mortise/internal/attrvalue"
)

func TestKind_IsTheNameOfTheType(t *testing.T) {
	for want, av := range map[string]types.AttributeValue{
		"S": &types.AttributeValueMemberS{}, "N": &types.AttributeValueMemberN{}, "B": &types.AttributeValueMemberB{},
		"BOOL": &types.AttributeValueMemberBOOL{}, "NULL": &types.AttributeValueMemberNULL{}, "M": &types.AttributeValueMemberM{},
		"L": &types.AttributeValueMemberL{}, "SS": &types.AttributeValueMemberSS{}, "NS": &types.AttributeValueMemberNS{},
		"BS": &types.AttributeValueMemberBS{}, "": nil,
	} {
		assert.Equal(t, want, attrvalue.Kind(av))
	}
}
