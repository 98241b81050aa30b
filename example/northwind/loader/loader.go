// Package loader is the program that filled the table: it knows nothing of Mortise, and writes through the AWS SDK.
//
// The layout, and these rows, are those of Trek10's single table for Northwind.
// Source: github.com/trek10inc/ddb-single-table-example, load.py and its csv files.
package loader

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Table is the table's name.
const Table = "northwind"

// rows are attributes, divided by "|". All of them are strings.
const rows = `
pk=categories#1|sk=Beverages|data=Soft drinks coffees teas beers and ales
pk=shippers#3|sk=Federal Shipping|data=(503) 555-9931
pk=suppliers#1|sk=SUPPLIER|data=UK#NULL#London#49 Gilbert St.|companyName=Exotic Liquids|contactName=Charlotte Cooper
pk=suppliers#12|sk=SUPPLIER|data=Germany#NULL#Frankfurt#Bogenallee 51|companyName=Plutzer Lebensmittelgroßmärkte AG|contactName=Martin Bein
pk=suppliers#13|sk=SUPPLIER|data=Germany#NULL#Cuxhaven#Frahmredder 112a|companyName=Nord-Ost-Fisch Handelsgesellschaft mbH|contactName=Sven Petersen
pk=products#11|sk=PRODUCT|data=0|productName=Queso Cabrales|supplierID=suppliers#5|unitPrice=21.00
pk=products#42|sk=PRODUCT|data=1|productName=Singaporean Hokkien Fried Mee|supplierID=suppliers#20|unitPrice=14.00
pk=products#72|sk=PRODUCT|data=0|productName=Mozzarella di Giovanni|supplierID=suppliers#14|unitPrice=34.80
pk=employees#2|sk=NULL|data=1992-08-14 00:00:00.000|lastName=Fuller|firstName=Andrew|title=Vice President Sales
pk=employees#5|sk=employees#2|data=1993-10-17 00:00:00.000|lastName=Buchanan|firstName=Steven|title=Sales Manager
pk=employees#6|sk=employees#5|data=1993-10-17 00:00:00.000|lastName=Suyama|firstName=Michael|title=Sales Representative
pk=employees#9|sk=employees#5|data=1994-11-15 00:00:00.000|lastName=Dodsworth|firstName=Anne|title=Sales Representative
pk=VINET|sk=Paul Henriot|data=France#NULL#Reims#59 rue de l'Abbaye|companyName=Vins et alcools Chevalier|phone=26.47.15.10
pk=HILAA|sk=Carlos Hernández|data=Venezuela#Táchira#San Cristóbal#Carrera 22 con Ave. Carlos Soublette #8-35|companyName=HILARION-Abastos|phone=(5) 555-1340
pk=10248|sk=ORDER|data=1996-07-04 00:00:00.000|customerID=VINET|employeeID=employees#5|shipVia=shippers#3|freight=32.38
pk=10248|sk=products#11|data=14.00|quantity=12|discount=0
pk=10248|sk=products#42|data=9.80|quantity=10|discount=0
pk=10248|sk=products#72|data=34.80|quantity=5|discount=0
pk=10257|sk=ORDER|data=1996-07-16 00:00:00.000|customerID=HILAA|employeeID=employees#4|shipVia=shippers#3|freight=81.91
`

// Load creates the table and writes its rows.
func Load(ctx context.Context, client *dynamodb.Client) error {
	key := func(hash, sort string) []types.KeySchemaElement {
		return []types.KeySchemaElement{
			{AttributeName: &hash, KeyType: types.KeyTypeHash},
			{AttributeName: &sort, KeyType: types.KeyTypeRange},
		}
	}
	in := &dynamodb.CreateTableInput{
		TableName: aws.String(Table), KeySchema: key("pk", "sk"), BillingMode: types.BillingModePayPerRequest,
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: aws.String("gsi_1"), KeySchema: key("sk", "data"),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}},
	}
	for _, name := range []string{"pk", "sk", "data"} {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{
			AttributeName: aws.String(name), AttributeType: types.ScalarAttributeTypeS,
		})
	}
	if _, err := client.CreateTable(ctx, in); err != nil {
		return err
	}
	wait := dynamodb.NewTableExistsWaiter(client)
	if err := wait.Wait(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(Table)}, 5*time.Minute); err != nil {
		return err
	}
	for row := range strings.Lines(strings.TrimSpace(rows)) {
		item := map[string]types.AttributeValue{}
		for attribute := range strings.SplitSeq(strings.TrimSuffix(row, "\n"), "|") {
			name, value, _ := strings.Cut(attribute, "=")
			item[name] = &types.AttributeValueMemberS{Value: value}
		}
		if _, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(Table), Item: item}); err != nil {
			return err
		}
	}
	return nil
}
