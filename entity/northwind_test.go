package entity_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// A table after the model of Trek10's single table for Northwind: the sort key of the table is the partition key of the
// only index, whose sort key, the attribute "data", holds something else for each type. No row has a type attribute.
// Every attribute is text. It is filled through the raw SDK.
// Source: github.com/trek10inc/ddb-single-table-example, load.py.
func northwind(t *testing.T, e *engines.Engine) (client *dynamodb.Client, name string) {
	t.Helper()
	client, name = e.Client(), e.TableName(t)
	attr := func(n string) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: &n, AttributeType: types.ScalarAttributeTypeS}
	}
	schema := func(hash, sort string) []types.KeySchemaElement {
		return []types.KeySchemaElement{{AttributeName: &hash, KeyType: types.KeyTypeHash}, {AttributeName: &sort, KeyType: types.KeyTypeRange}}
	}
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{attr("pk"), attr("sk"), attr("data")}, KeySchema: schema("pk", "sk"),
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: aws.String("gsi_1"), KeySchema: schema("sk", "data"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}},
	})
	require.NoError(t, err)
	for _, row := range []string{
		"pk=ALFKI|sk=Maria Anders|data=Germany#NULL#Berlin#Obere Str. 57|companyName=Alfreds Futterkiste|phone=030-0074321",
		"pk=HILAA|sk=Carlos Hernández|data=Venezuela#Táchira#San Cristóbal#Carrera 22 con Ave. Carlos Soublette #8-35|companyName=HILARION-Abastos",
		"pk=suppliers#1|sk=SUPPLIER|data=UK#NULL#London#49 Gilbert St.|companyName=Exotic Liquids",
		"pk=suppliers#11|sk=SUPPLIER|data=Germany#NULL#Berlin#Tiergartenstraße 5|companyName=Heli Süßwaren",
		"pk=suppliers#12|sk=SUPPLIER|data=Germany#NULL#Frankfurt#Bogenallee 51|companyName=Plutzer",
		"pk=suppliers#13|sk=SUPPLIER|data=Germany#Nord#Cuxhaven#Frahmredder 112a #2|companyName=Nord-Ost-Fisch",
		"pk=products#1|sk=PRODUCT|data=0|productName=Chai|unitPrice=18.00",
		"pk=products#5|sk=PRODUCT|data=1|productName=Gumbo Mix|unitPrice=21.35",
		"pk=employees#2|sk=employees#5|data=1993-10-17 00:00:00.000|lastName=Buchanan",
		"pk=employees#2|sk=employees#1|data=1992-05-01 00:00:00.000|lastName=Davolio",
		"pk=10260|sk=products#41|data=7.7|quantity=16",
	} {
		item := table.Item{}
		for pair := range strings.SplitSeq(row, "|") {
			k, v, _ := strings.Cut(pair, "=")
			item[k] = str(v)
		}
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: item})
		require.NoError(t, err)
	}
	return client, name
}

// Supplier has its address in the index alone: data is country#region#city#address.
type Supplier struct {
	ID      string `dynamo:"-"`
	Country string `dynamo:"-"`
	Region  string `dynamo:"-"`
	City    string `dynamo:"-"`
	Address string `dynamo:"-"`
	Company string `dynamo:"companyName"`
	Version int64  `dynamo:"-"`
}

// Contact is a customer, whose sort key is the name of a person.
type Contact struct {
	ID      string `dynamo:"-"`
	Name    string `dynamo:"-"`
	Country string `dynamo:"-"`
	Region  string `dynamo:"-"`
	City    string `dynamo:"-"`
	Address string `dynamo:"-"`
	Company string `dynamo:"companyName"`
	Phone   string `dynamo:"phone,omitempty"`
}

// Product has in data whether it is discontinued, as it is.
type Product struct {
	ID           string `dynamo:"-"`
	Discontinued string `dynamo:"data"`
	Name         string `dynamo:"productName"`
}

// Employee has in data the time of hiring, in a form of that program's.
type Employee struct {
	Boss  string `dynamo:"-"`
	ID    string `dynamo:"-"`
	Hired string `dynamo:"data"`
	Name  string `dynamo:"lastName"`
}

type northwindTable struct {
	*table.Table
	client    *dynamodb.Client
	suppliers *entity.Entity[Supplier]
	contacts  *entity.Entity[Contact]
	products  *entity.Entity[Product]
	employees *entity.Entity[Employee]
}

func openNorthwind(t *testing.T, e *engines.Engine) northwindTable {
	t.Helper()
	client, name := northwind(t, e)
	tbl, err := table.Open(e.Client(), table.Schema{
		Name: name, NoTTL: true, Keys: keys.Scheme{Version: "rev"}, Indexes: []table.Index{{Name: "gsi_1", PK: "sk", SK: "data"}},
	}, eager(5))
	require.NoError(t, err)
	require.NoError(t, tbl.Verify(t.Context()))
	const place = "{country:raw}#{region:raw}#{city:raw}#{address:rest}"
	return northwindTable{
		Table: tbl, client: client,
		suppliers: define(t, tbl, entity.Spec[Supplier]{
			Type: "supplier", PK: "suppliers#{id:raw}", SK: "SUPPLIER", Untyped: true, Version: "Version",
			Indexes: []entity.Index[Supplier]{{Name: "gsi_1", SK: place}},
		}),
		contacts: define(t, tbl, entity.Spec[Contact]{
			Type: "customer", PK: "{id:raw}", SK: "{name:raw}", Untyped: true, Indexes: []entity.Index[Contact]{{Name: "gsi_1", SK: place}},
		}),
		products: define(t, tbl, entity.Spec[Product]{
			Type: "product", PK: "products#{id:raw}", SK: "PRODUCT", Untyped: true, Indexes: []entity.Index[Product]{{Name: "gsi_1"}},
		}),
		employees: define(t, tbl, entity.Spec[Employee]{
			Type: "employee", PK: "employees#{boss:raw}", SK: "employees#{id:raw}", Untyped: true, Indexes: []entity.Index[Employee]{{Name: "gsi_1"}},
		}),
	}
}

// raw is a row as it is, read through the SDK.
func (n northwindTable) raw(t *testing.T, pk, sk string) table.Item {
	t.Helper()
	got, err := n.client.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String(n.Name()), Key: table.Item{"pk": str(pk), "sk": str(sk)}, ConsistentRead: aws.Bool(true),
	})
	require.NoError(t, err)
	return got.Item
}
