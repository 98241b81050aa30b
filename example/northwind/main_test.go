package main

import (
	"context"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/example/northwind/loader"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/table"
)

func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }

// rows is every row of the table, whole, by its key.
func rows(t *testing.T, client *dynamodb.Client) map[string]table.Item {
	t.Helper()
	all := map[string]table.Item{}
	pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: aws.String(loader.Table), ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		require.NoError(t, err)
		for _, row := range page.Items {
			all[text(row["pk"])+" | "+text(row["sk"])] = row
		}
	}
	return all
}

func text(av types.AttributeValue) string {
	if s, ok := av.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// The program changes the attributes that it was asked to change, and adds the rows that docs/how-to/adopt.md names.
func TestProgram_LeavesTheOtherProgramsRows(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		ctx, client := t.Context(), e.Client()
		require.NoError(t, loader.Load(ctx, client))
		t.Cleanup(func() { // the table has the same name each time
			_, err := client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: aws.String(loader.Table)})
			require.NoError(t, err)
		})
		want := rows(t, client)
		require.Len(t, want, 19)

		tbl, err := open(ctx, client)
		require.NoError(t, err)
		shop, err := define(tbl)
		require.NoError(t, err)
		require.NoError(t, shop.read(ctx))
		assert.Equal(t, want, rows(t, client), "reading")
		require.NoError(t, shop.write(ctx))
		require.NoError(t, shop.ship(ctx))

		set := func(key, name string, value types.AttributeValue) {
			want[key] = maps.Clone(want[key])
			want[key][name] = value
		}
		set("suppliers#1 | SUPPLIER", "data", &types.AttributeValueMemberS{Value: "UK#NULL#London#1 Gilbert St."})
		set("10248 | ORDER", "freight", &types.AttributeValueMemberS{Value: "35.00"})
		set("10248 | ORDER", "rev", &types.AttributeValueMemberN{Value: "1"})
		set("10257 | ORDER", "shippedDate", &types.AttributeValueMemberS{Value: "1996-07-22 00:00:00.000"})
		set("10257 | ORDER", "rev", &types.AttributeValueMemberN{Value: "1"})
		got := rows(t, client)
		var added []string
		maps.DeleteFunc(got, func(key string, row table.Item) bool {
			own := strings.HasPrefix(text(row["_type"]), "mortise.")
			if own {
				added = append(added, key)
				assert.NotContains(t, row, "data", "no row of ours is in the other program's index")
			}
			return own
		})
		assert.Equal(t, want, got)
		assert.Contains(t, added, "10257 | ~LOCK#ORDER")

		// What the other program takes for the order is still the order.
		page, err := client.Query(ctx, &dynamodb.QueryInput{
			TableName: aws.String(loader.Table), KeyConditionExpression: aws.String("pk = :pk"),
			ExpressionAttributeValues: table.Item{":pk": &types.AttributeValueMemberS{Value: "10257"}},
		})
		require.NoError(t, err)
		assert.Equal(t, "ORDER", text(page.Items[0]["sk"]))
	})
}

// A row without the Match that tells it apart could be another's: Define says so, and what to do.
func TestDefine_AsksForMatchWhereRowsAreAmbiguous(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		tbl, err := table.Open(e.Client(), table.Schema{Name: e.TableName(t)})
		require.NoError(t, err)
		_, err = entity.Define(tbl, entity.Spec[Customer]{Type: "customer", PK: "{id:raw}", SK: "{contact:raw}"})
		require.NoError(t, err)
		_, err = entity.Define(tbl, entity.Spec[Order]{Type: "order", PK: "{id:raw}", SK: "ORDER"})
		require.ErrorContains(t, err, "Match")
	})
}
