package tabletest_test

import (
	"fmt"
	"testing"

	"github.com/guregu/dynamo/v2"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/table/tabletest"
)

// guregu/dynamo sends the older KeyConditions beside expressions; its reads and writes work as they are.
func TestGuregu_Queries(t *testing.T) {
	_, c := setup(t)
	tbl := dynamo.NewFromIface(c).Table("app")
	type rec struct {
		PK string `dynamo:"pk"`
		SK string `dynamo:"sk"`
		N  int    `dynamo:"n"`
	}
	for i := range 5 {
		require.NoError(t, tbl.Put(rec{"a", fmt.Sprintf("k%d", i), i}).Run(t.Context()))
	}
	var out []rec
	err := tbl.Get("pk", "a").Range("sk", dynamo.BeginsWith, "k").Filter("'n' > ?", 1).Project("pk", "sk", "n").Order(dynamo.Descending).All(t.Context(), &out)
	require.NoError(t, err)
	require.Len(t, out, 3)
	require.Equal(t, 4, out[0].N)
	out = nil
	key, err := tbl.Get("pk", "a").SearchLimit(2).AllWithLastEvaluatedKey(t.Context(), &out)
	require.NoError(t, err)
	require.Len(t, key, 2)
	out = nil
	require.NoError(t, tbl.Get("pk", "a").Range("sk", dynamo.Between, "k1", "k2").StartFrom(nil).All(t.Context(), &out))
	require.Len(t, out, 2)
	out = nil
	require.NoError(t, tbl.Scan().All(t.Context(), &out))
	require.Len(t, out, 5)
	var one rec
	require.NoError(t, tbl.Update("pk", "a").Range("sk", "k1").Add("n", 10).If("'n' = ?", 1).Value(t.Context(), &one))
	require.Equal(t, 11, one.N)
	require.ErrorIs(t, tbl.Get("pk", "zz").Range("sk", dynamo.Equal, "q").One(t.Context(), &one), dynamo.ErrNotFound)
	require.NoError(t, tbl.Delete("pk", "a").Range("sk", "k0").Run(t.Context()))
}

// guregu/dynamo makes indexes of several key attributes, and its own tests begin with one.
func TestGuregu_IndexOfSeveralAttributes(t *testing.T) {
	db := dynamo.NewFromIface(tabletest.New(t).Client())
	type message struct {
		User int    `dynamo:"user,hash"`
		Sent string `dynamo:"sent,range"`
		Text string `dynamo:"text"`
	}
	require.NoError(t, db.CreateTable("messages", message{}).OnDemand(true).Index(dynamo.Index{
		Name:           "by-text",
		HashKeys:       []dynamo.KeySchema{{Key: "user", Type: dynamo.NumberType}},
		RangeKeys:      []dynamo.KeySchema{{Key: "text", Type: dynamo.StringType}, {Key: "sent", Type: dynamo.StringType}},
		ProjectionType: dynamo.AllProjection,
	}).Wait(t.Context()))
	tbl := db.Table("messages")
	for i := range 6 {
		require.NoError(t, tbl.Put(message{7, fmt.Sprint("2026-11-0", i), []string{"first", "second"}[i%2]}).Run(t.Context()))
	}
	of := map[string]any{"user": 7, "text": "second"}
	var out []message
	key, err := tbl.GetComposite(of).Range("sent", dynamo.Greater, "2026-11-01").Index("by-text").SearchLimit(1).AllWithLastEvaluatedKey(t.Context(), &out)
	require.NoError(t, err)
	require.Equal(t, []message{{7, "2026-11-03", "second"}}, out)
	out = nil
	require.NoError(t, tbl.GetComposite(of).Index("by-text").StartFrom(key).All(t.Context(), &out))
	require.Equal(t, []message{{7, "2026-11-05", "second"}}, out)
}
