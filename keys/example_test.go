package keys_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/mortise-go/mortise/keys"
)

func ExampleNewTemplate() {
	order, err := keys.NewTemplate("TENANT#{tenant}#ORDER#{seq:uint10}")
	if err != nil {
		fmt.Println(err)
		return
	}
	key, err := order.Format("acme", 42)
	fmt.Println(key, err)
	values, err := order.Parse(key)
	fmt.Println(values, err)

	_, err = keys.NewTemplate("{first}{second}")
	fmt.Println(errors.Is(err, keys.ErrAmbiguous))
	// Output:
	// TENANT#acme#ORDER#0000000042 <nil>
	// [acme 42] <nil>
	// true
}

func ExampleMustTemplate() {
	line := keys.MustTemplate("ORDER#{order.id}#LINE#{no:uint4}")
	key, err := line.Format(keys.Values{"order.id": "7#8", "no": 3})
	fmt.Println(key, err)
	// Output: ORDER#7$08#LINE#0003 <nil>
}

func ExampleTemplate_Prefix() {
	line := keys.MustTemplate("ORDER#{id}#LINE#{no:uint4}")
	prefix, err := line.Prefix("1")
	fmt.Println(prefix, err)
	// Output: ORDER#1#LINE# <nil>
}

func ExampleTemplate_Between() {
	event := keys.MustTemplate("EVENT#{at:time-s:desc}#{id}")
	day := time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC)
	r, err := event.Between(day, day.AddDate(0, 0, 1))
	fmt.Println(err)
	for _, at := range []time.Time{day.Add(-time.Second), day, day.Add(time.Hour), day.AddDate(0, 0, 1)} {
		key, err := event.Format(at, "x")
		fmt.Println(r.Contains(key), err)
	}
	// Output:
	// <nil>
	// false <nil>
	// true <nil>
	// true <nil>
	// false <nil>
}

func ExampleTemplate_Shards() {
	event := keys.MustTemplate("TENANT#{tenant}#{id:shard3}")
	key, err := event.Format("acme", "e-1")
	fmt.Println(key, err)
	all, err := event.Shards("acme")
	fmt.Println(all, err)
	// Output:
	// TENANT#acme#1 <nil>
	// [TENANT#acme#0 TENANT#acme#1 TENANT#acme#2] <nil>
}

func ExamplePrefixRange() {
	r := keys.PrefixRange("ORDER#1#")
	fmt.Println(r.Contains("ORDER#1#LINE#0001"), r.Contains("ORDER#10#LINE#0001"))
	// Output: true false
}

func ExampleParseScheme() {
	scheme, err := keys.ParseScheme([]byte(`{"pk":"PK","sk":"SK","delimiter":"|","prefix":"shop/"}`))
	fmt.Println(scheme.PK, scheme.SK, scheme.TTL, err)
	tenant, err := scheme.PKTemplate("TENANT|{id}")
	if err != nil {
		fmt.Println(err)
		return
	}
	key, err := tenant.Format("acme")
	fmt.Println(key, err)
	// Output:
	// PK SK ttl <nil>
	// shop/TENANT|acme <nil>
}

func ExampleNewKey() {
	fmt.Println(keys.NewKey("TENANT#acme", "ORDER#1").Validate())
	fmt.Println(keys.NewKey("TENANT#acme", "").Validate())
	// Output:
	// <nil>
	// keys: key: field "SK": empty
}

func ExampleInvalidKey() {
	key := keys.InvalidKey(errors.New("no such tenant"))
	fmt.Println(key.Validate())
	// Output: no such tenant
}

func ExampleOverlap() {
	order := keys.MustTemplate("ORDER#{id}")
	line := keys.MustTemplate("ORDER#{id}#LINE#{no:uint4}")
	catchAll := keys.MustTemplate("{kind}#{id}")
	fmt.Println(keys.Overlap(order, line), keys.Overlap(order, catchAll))
	// Output: false true
}
