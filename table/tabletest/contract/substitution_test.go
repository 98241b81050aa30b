package contract_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"
)

// The placeholders of a request with their names and values may have 2 MB:
// names, values, and both together. None of the expressions here uses the
// large ones, so that a request of the maximum size is refused for that.
func TestSubstitutions_HaveLimits(t *testing.T) {
	const limit = 2 << 20
	nameOf := func(i int) string { return fmt.Sprintf("%s%02d", strings.Repeat("n", 65534-2-4), i) }
	many := func(n int) map[string]string { // of 65534 bytes each, with their placeholders
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprintf("#n%02d", i)] = nameOf(i)
		}
		return m
	}
	with := func(m map[string]string, placeholder string, size int) map[string]string {
		m[placeholder] = strings.Repeat("x", size-len(placeholder))
		return m
	}
	large := func(size int) document { return document{"l": strings.Repeat("v", size-len(":l"))} }
	unused := "unused in expressions"
	for _, tc := range []struct {
		name   string
		names  map[string]string
		values document
		text   string
	}{
		{"names of 2 MB", with(many(32), "#x", 64), nil, unused},
		{"names of more", with(many(32), "#x", 65), nil, "ExpressionAttributeNames exceeds max size"},
		{"values of 2 MB", nil, large(limit), unused},
		{"values of more", nil, large(limit + 1), "ExpressionAttributeValues exceeds max size"},
		{"both of 2 MB", with(map[string]string{}, "#x", 1000), large(limit - 1000), unused},
		{"both of more", with(map[string]string{}, "#x", 1000), large(limit - 999), "Combined size of ExpressionAttributeNames and ExpressionAttributeValues exceeds max size"},
		{"each of more", with(many(32), "#x", 65), large(limit + 1), "ExpressionAttributeNames exceeds max size"},
		{"document of 2 MB", nil, document{"l": list{strings.Repeat("v", 400_000), document{"mm": true}}, "v": strings.Repeat("v", limit-2-2-400_000-3-1-3-2-1-1-1)}, unused},
		{"document of more", nil, document{"l": list{strings.Repeat("v", 400_000), document{"mm": true}}, "v": strings.Repeat("v", limit-2-2-400_000-3-1-3-2-1-1)}, "ExpressionAttributeValues exceeds max size"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onTable(t, func(tb table) {
				_, err := tb.UpdateItem(tb.ctx(), &dynamodb.UpdateItemInput{
					TableName: tb.name, Key: key("i"), UpdateExpression: ptr("REMOVE a"), ExpressionAttributeNames: tc.names, ExpressionAttributeValues: values(tc.values),
				})
				tb.refused(err, tc.text)
				_, err = tb.Scan(tb.ctx(), &dynamodb.ScanInput{
					TableName: tb.name, FilterExpression: ptr("a = b"), ExpressionAttributeNames: tc.names, ExpressionAttributeValues: values(tc.values),
				})
				tb.refused(err, tc.text)
			})
		})
	}
	onTable(t, func(tb table) {
		_, err := tb.GetItem(tb.ctx(), &dynamodb.GetItemInput{
			TableName: tb.name, Key: key("i"), ProjectionExpression: ptr("a"), ExpressionAttributeNames: many(33),
		})
		tb.refused(err, "ExpressionAttributeNames exceeds max size")
		up := tb.txSet("i", 1, "")
		up.Update.ExpressionAttributeValues[":l"] = value(strings.Repeat("v", limit))
		_, err = tb.transact("", up)
		tb.refused(err, "ExpressionAttributeValues exceeds max size")
		require.Empty(tb, tb.get("i"))
	})
}

// The service checks all placeholders before any name or value.
func TestSubstitutions_ArePlaceholdersFirst(t *testing.T) {
	onTable(t, func(tb table) {
		update := func(member string) error {
			return tb.raw("UpdateItem", `{"TableName":"TABLE","Key":{"pk":{"S":"p"},"sk":{"S":"i"}},"UpdateExpression":"SET a = :b",`+member+`}`)
		}
		tb.refused(update(`"ExpressionAttributeNames":{"#a":"","b":"c"}`), `ExpressionAttributeNames contains invalid key: Syntax error; key: "b"`)
		tb.refused(update(`"ExpressionAttributeValues":{":b":{},"b":{"S":"c"}}`), `ExpressionAttributeValues contains invalid key: Syntax error; key: "b"`)
	})
}

// The length of a placeholder is checked before its characters. Only for names, the text tells the length.
func TestSubstitutions_HavePlaceholdersOfAMaximumLength(t *testing.T) {
	onTable(t, func(tb table) {
		scan := func(ns map[string]string, vs document) error {
			_, err := tb.Scan(tb.ctx(), &dynamodb.ScanInput{
				TableName: tb.name, FilterExpression: ptr("x = y"), ExpressionAttributeNames: ns, ExpressionAttributeValues: values(vs),
			})
			return err
		}
		const tooLong = " contains invalid key: The expression attribute map contains a key that is too long;"
		for _, tc := range []struct{ rest, size string }{{strings.Repeat("a", 255), "256"}, {strings.Repeat("a", 255) + "-x", "258"}} {
			text := "ExpressionAttributeNames" + tooLong + " size of key: " + tc.size
			tb.exactly(scan(map[string]string{"#" + tc.rest: "x"}, nil), "ValidationException", text, text)
			text = "ExpressionAttributeValues" + tooLong
			tb.exactly(scan(nil, document{tc.rest: "x"}), "ValidationException", text, text)
		}
		tb.refused(scan(map[string]string{"#" + strings.Repeat("a", 254): "x"}, nil), "unused in expressions")
	})
}
