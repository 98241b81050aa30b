package entity_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mortise-go/mortise/internal/attrvalue"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
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

func TestAdoptedCompositeAttributesAreReadBack(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		n := openNorthwind(t, e)
		ctx := t.Context()
		c, err := n.contacts.Get(ctx, Contact{ID: "HILAA", Name: "Carlos Hernández"})
		require.NoError(t, err)
		assert.Equal(t, Contact{
			ID: "HILAA", Name: "Carlos Hernández", Company: "HILARION-Abastos",
			Country: "Venezuela", Region: "Táchira", City: "San Cristóbal", Address: "Carrera 22 con Ave. Carlos Soublette #8-35",
		}, c)
		by := collect(t, n.contacts.Query(ctx, keys.Values{"name": "Maria Anders"}, entity.On("gsi_1")))
		require.Len(t, by, 1, "customers by contact")
		assert.Equal(t, "Obere Str. 57", by[0].Address)

		// An update of a part rewrites the attribute in that program's form, and nothing else.
		was := n.raw(t, "HILAA", "Carlos Hernández")
		_, err = n.contacts.Update(ctx, c, entity.Set("address", "Calle #9"), entity.Set("city", "Caracas"))
		require.NoError(t, err)
		was["data"] = str("Venezuela#Táchira#Caracas#Calle #9")
		assert.True(t, attrvalue.SameItem(was, n.raw(t, "HILAA", "Carlos Hernández")))
		_, err = n.contacts.Update(ctx, c, entity.Set("city", "a#b"))
		require.ErrorIs(t, err, keys.ErrDelimiter)
		_, err = n.contacts.Update(ctx, c, entity.Remove("city"))
		require.ErrorIs(t, err, entity.ErrInvalid)
		assert.True(t, attrvalue.SameItem(was, n.raw(t, "HILAA", "Carlos Hernández")))
	})
}

func TestAdoptedIndexOfManyMeanings(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		n := openNorthwind(t, e)
		ctx := t.Context()
		suppliers := func(match keys.Values, opts ...entity.ReadOption) (ids []string) {
			for s, err := range n.suppliers.Query(ctx, match, append(opts, entity.On("gsi_1"))...) {
				require.NoError(t, err)
				ids = append(ids, s.ID)
			}
			return ids
		}
		assert.Equal(t, []string{"11", "12", "13", "1"}, suppliers(nil), "in the order of the text")
		assert.Equal(t, []string{"11", "12", "13"}, suppliers(keys.Values{"country": "Germany"}))
		assert.Equal(t, []string{"11", "12"}, suppliers(keys.Values{"country": "Germany", "region": "NULL"}))
		assert.Equal(t, []string{"11", "12", "13"}, suppliers(nil, entity.Prefix("country", "Ger")))
		assert.Equal(t, []string{"12"}, suppliers(keys.Values{"country": "Germany", "region": "NULL"}, entity.Prefix("city", "Fr")))
		assert.Equal(t, []string{"13"}, suppliers(keys.Values{"country": "Germany", "region": "Nord", "city": "Cuxhaven"}, entity.Prefix("address", "Frahmredder 112a #")))
		assert.Empty(t, suppliers(keys.Values{"country": "Ger"}), "a field that is given is compared as a whole")

		products := collect(t, n.products.Query(ctx, keys.Values{"data": "1"}, entity.On("gsi_1")))
		assert.Equal(t, []Product{{ID: "5", Discontinued: "1", Name: "Gumbo Mix"}}, products)
		// Direct reports: the table's sort key is the index's partition key.
		hired := collect(t, n.employees.Query(ctx, keys.Values{"id": "5"}, entity.On("gsi_1"), entity.Prefix("Hired", "1993-10")))
		assert.Equal(t, []Employee{{Boss: "2", ID: "5", Hired: "1993-10-17 00:00:00.000", Name: "Buchanan"}}, hired)
		assert.Empty(t, collect(t, n.employees.Query(ctx, keys.Values{"id": "5"}, entity.On("gsi_1"), entity.Prefix("data", "1992"))))
	})
}

// Two programs that use this package, and the one that filled the table and counts no versions.
func TestVersionZeroOfAnAdoptedTable(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		n := openNorthwind(t, e)
		ctx := t.Context()
		get := func() Supplier {
			s, err := n.suppliers.Get(ctx, Supplier{ID: "13"}, entity.Consistent())
			require.NoError(t, err)
			return s
		}
		ann, bob := get(), get()
		ann, err := n.suppliers.Update(ctx, ann, entity.Set("Company", "Fisch GmbH"))
		require.NoError(t, err)
		assert.EqualValues(t, 1, ann.Version)
		require.ErrorIs(t, second(n.suppliers.Update(ctx, bob, entity.Set("Company", "lost?"))), entity.ErrStale)
		is := bob
		is.City = "lost?"
		require.ErrorIs(t, n.Write(ctx, n.suppliers.ModifyOp(bob, is)), entity.ErrStale)
		require.ErrorIs(t, n.suppliers.Delete(ctx, bob), entity.ErrStale)

		// The other program puts whole rows, without a version.
		row := n.raw(t, "suppliers#13", "SUPPLIER")
		delete(row, "rev")
		row["data"] = str("Germany#Nord#Hamburg#Elbe #1")
		_, err = n.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(n.Name()), Item: row})
		require.NoError(t, err)
		require.ErrorIs(t, second(n.suppliers.Update(ctx, ann, entity.Set("Company", "lost?"))), entity.ErrStale)
		cid := get()
		assert.Zero(t, cid.Version)
		assert.Equal(t, "Hamburg", cid.City)
		is = cid
		is.City = "Kiel"
		require.NoError(t, n.Write(ctx, n.suppliers.ModifyOp(cid, is)))
		row["data"], row["rev"] = str("Germany#Nord#Kiel#Elbe #1"), num("1")
		assert.True(t, attrvalue.SameItem(row, n.raw(t, "suppliers#13", "SUPPLIER")))

		// Versions for all rows at once.
		given := 0
		for s, err := range n.suppliers.Scan(ctx) {
			require.NoError(t, err)
			if s.Version > 0 {
				continue
			}
			_, err = n.suppliers.Update(ctx, s)
			require.True(t, err == nil || errors.Is(err, entity.ErrStale))
			given++
		}
		assert.Equal(t, 3, given)
		for s, err := range n.suppliers.Scan(ctx) {
			require.NoError(t, err)
			assert.EqualValues(t, 1, s.Version, s.ID)
		}
	})
}
