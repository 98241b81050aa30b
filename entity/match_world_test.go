package entity_test

import (
	"fmt"
	"maps"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/engines/faulty"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// The Northwind database in one table, as Trek10's example of single-table design lays it out: every attribute is a
// string, no row has a type, the sort key of many rows is a name, and "data" holds whatever a kind of row is sorted by.
// Source of the layout: github.com/trek10inc/ddb-single-table-example, load.py.
type (
	nwCustomer struct {
		ID      string `dynamo:"-"`
		Contact string `dynamo:"-"`
		Company string `dynamo:"companyName,omitempty"`
		Title   string `dynamo:"contactTitle,omitempty"`
		Data    string `dynamo:"data,omitempty"` // country, region, city and address
	}
	nwOrder struct {
		ID       string `dynamo:"-"`
		Customer string `dynamo:"customerID,omitempty"`
		Employee string `dynamo:"employeeID,omitempty"`
		Freight  string `dynamo:"freight,omitempty"`
		Data     string `dynamo:"data,omitempty"` // date of the order
	}
	nwDetail struct {
		Order    string `dynamo:"-"`
		Product  string `dynamo:"-"`
		Quantity string `dynamo:"quantity,omitempty"`
		Data     string `dynamo:"data,omitempty"` // unit price
	}
	// nwThing is any kind of row whose keys are two identifiers, as other rows refer to them: "employees#2".
	nwThing struct {
		ID   string `dynamo:"-"`
		Of   string `dynamo:"-"`
		Data string `dynamo:"data,omitempty"`
	}
)

const nwCount = 12 // rows of each kind

func strf(format string, args ...any) types.AttributeValue {
	return &types.AttributeValueMemberS{Value: fmt.Sprintf(format, args...)}
}

// nwFill fills the table through the SDK. It returns its rows by kind.
func nwFill(t *testing.T, e *engines.Engine) (client *dynamodb.Client, name string, rows map[string][]table.Item) {
	t.Helper()
	client, name = e.Client(), e.TableName(t)
	def := func(n string) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: &n, AttributeType: types.ScalarAttributeTypeS}
	}
	key := func(n string, kind types.KeyType) types.KeySchemaElement {
		return types.KeySchemaElement{AttributeName: &n, KeyType: kind}
	}
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{def("pk"), def("sk"), def("data")},
		KeySchema:            []types.KeySchemaElement{key("pk", types.KeyTypeHash), key("sk", types.KeyTypeRange)},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: aws.String("gsi_1"), KeySchema: []types.KeySchemaElement{key("sk", types.KeyTypeHash), key("data", types.KeyTypeRange)},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}},
	})
	require.NoError(t, err)
	rows = map[string][]table.Item{}
	add := func(kind string, pk, sk, data types.AttributeValue, more table.Item) {
		row := table.Item{"pk": pk, "sk": sk, "data": data}
		maps.Copy(row, more)
		rows[kind] = append(rows[kind], row)
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: row})
		require.NoError(t, err)
	}
	for i := range nwCount {
		add("category", strf("categories#%d", i), strf("Category %d", i), strf("All of category %d", i), table.Item{"picture": strf("0x15")})
		add("customer", strf("CUST%c", 'A'+i), strf("Contact %d", i), strf("Germany#NULL#Berlin#Street %d", i), table.Item{
			"companyName": strf("Company %d", i), "contactTitle": strf("Owner"), "phone": strf("030-%d", i),
		})
		boss := "NULL"
		if i > 0 {
			boss = "employees#" + strconv.Itoa(i/2)
		}
		add("employee", strf("employees#%d", i), strf("%s", boss), strf("1992-05-%02d 00:00:00.000", i+1), table.Item{"lastName": strf("Name %d", i)})
		order := strf("%d", 10248+i)
		add("order", order, strf("ORDER"), strf("1996-07-%02d 00:00:00.000", i+1), table.Item{
			"customerID": strf("CUST%c", 'A'+i), "employeeID": strf("employees#%d", i), "freight": strf("%d.38", i),
		})
		add("detail", order, strf("products#%d", i), strf("%d.00", i+1), table.Item{"quantity": strf("%d", i), "discount": strf("0")})
		add("product", strf("products#%d", i), strf("PRODUCT"), strf("%d", i%2), table.Item{"productName": strf("Product %d", i)})
		add("shipper", strf("shippers#%d", i), strf("Shipper %d", i), strf("(503) 555-%d", i), nil)
		add("supplier", strf("suppliers#%d", i), strf("SUPPLIER"), strf("UK#NULL#London#Street %d", i), table.Item{
			"companyName": strf("Supplier %d", i), "contactTitle": strf("Owner"), "homePage": strf("#%d.HTM#", i),
		})
	}
	return client, name, rows
}

// nwTable opens the table as a program of its own would.
func nwTable(t *testing.T, e *engines.Engine, name string) (*table.Table, *faulty.Client) {
	t.Helper()
	faults := &faulty.Client{}
	tbl, err := table.Open(e.Client(faults.Options), table.Schema{
		Name: name, NoTTL: true, Keys: keys.Scheme{Type: "_type", Version: "_version"},
		Indexes: []table.Index{{Name: "gsi_1", PK: "sk", SK: "data"}},
	}, eager(3))
	require.NoError(t, err)
	faults.Script()
	return tbl, faults
}

// nwRules tell the kinds of rows whose keys cannot be told apart.
type nwRules struct{ customer, order, detail, employee, supplier entity.Match }

// northwindRules are several ways to tell the same rows apart.
var northwindRules = map[string]nwRules{
	"keys": {
		customer: entity.KeyPart("id", "[A-Z]{5}"),
		order:    entity.KeyPart("id", "[0-9]+"),
		employee: entity.KeyPart("id", "employees#[0-9]+"),
		supplier: entity.KeyPart("id", "suppliers#[0-9]+"),
	},
	"literals": {
		customer: entity.Not(entity.KeyPart("Contact", "ORDER")),
		supplier: entity.KeyPart("ID", "suppliers#.*"),
		employee: entity.And(entity.KeyPart("of", "NULL|employees#.*"), entity.Not(entity.KeyPart("id", "[^#]*"))),
	},
	"attributes": {
		customer: entity.And(entity.HasAttr("contactTitle"), entity.Not(entity.HasAttr("freight")), entity.Not(entity.HasAttr("homePage"))),
		order:    entity.HasAttr("freight"),
		detail:   entity.And(entity.HasAttr("quantity"), entity.Not(entity.HasAttr("freight"))),
		supplier: entity.HasAttr("homePage"),
		employee: entity.And(entity.HasAttr("lastName"), entity.Not(entity.HasAttr("contactTitle")), entity.Not(entity.HasAttr("freight")),
			entity.Not(entity.HasAttr("homePage")), entity.Not(entity.HasAttr("quantity"))),
	},
}

type nwEntities struct {
	*table.Table
	faults    *faulty.Client
	customers *entity.Entity[nwCustomer]
	orders    *entity.Entity[nwOrder]
	details   *entity.Entity[nwDetail]
	employees *entity.Entity[nwThing]
	suppliers *entity.Entity[nwThing]
}

func nwDefine(t *testing.T, e *engines.Engine, name string, r nwRules) (n nwEntities) {
	t.Helper()
	n.Table, n.faults = nwTable(t, e, name)
	n.customers = define(t, n.Table, entity.Spec[nwCustomer]{
		Type: "customer", PK: "{id}", SK: "{contact}", Match: r.customer, Untyped: true, Indexes: []entity.Index[nwCustomer]{{Name: "gsi_1"}},
	})
	n.orders = define(t, n.Table, entity.Spec[nwOrder]{
		Type: "order", PK: "{id}", SK: "ORDER", Match: r.order, Untyped: true, Indexes: []entity.Index[nwOrder]{{Name: "gsi_1"}},
	})
	n.details = define(t, n.Table, entity.Spec[nwDetail]{Type: "detail", PK: "{order}", SK: "products#{product}", Match: r.detail, Untyped: true})
	n.employees = define(t, n.Table, entity.Spec[nwThing]{
		Type: "employee", PK: "{id:key}", SK: "{of:key}", Match: r.employee, Untyped: true, Indexes: []entity.Index[nwThing]{{Name: "gsi_1"}},
	})
	n.suppliers = define(t, n.Table, entity.Spec[nwThing]{Type: "supplier", PK: "{id:key}", SK: "SUPPLIER", Match: r.supplier, Untyped: true})
	return n
}

// raw is the whole table as it is, by key.
func (n nwEntities) raw(t *testing.T) map[keys.Key]table.Item {
	t.Helper()
	rows := map[keys.Key]table.Item{}
	for item, err := range n.Table.Scan(t.Context(), table.Scan{Consistent: true}) {
		require.NoError(t, err)
		key, err := n.KeyOf(item)
		require.NoError(t, err)
		rows[key] = item
	}
	return rows
}
