package keys_test

import (
	"errors"
	"fmt"
	"reflect"
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

func ExampleWithDelimiter() {
	// The keys of a program that joined "users", a name and "orders" with slashes. Raw values are not escaped: one
	// with a slash, which that program would have mixed up, is refused.
	order := keys.MustTemplate("users/{user:raw}/orders/{no:raw}", keys.WithDelimiter('/'), keys.WithPrefix("acme/"), keys.WithLimit(keys.MaxSK))
	key, err := order.Format("ann", "7")
	fmt.Println(key, err)
	_, err = order.Format("ann/orders", "7")
	fmt.Println(errors.Is(err, keys.ErrDelimiter), err)
	// Output:
	// acme/users/ann/orders/7 <nil>
	// true keys: format "users/{user:raw}/orders/{no:raw}": field "user": delimiter not allowed: a raw value contains '/'
}

// What stands last may contain the delimiter, if nothing before it does.
func ExampleTemplate_BeginsWith() {
	place := keys.MustTemplate("{country:raw}#{city:raw}#{address:rest}", keys.WithLimit(keys.MaxSK))
	key, err := place.Format("VE", "San Cristóbal", "Carrera 22 #8-35")
	fmt.Println(key, err)
	values, err := place.Parse(key)
	fmt.Println(values[2], err)

	san, err := place.BeginsWith("San ", "VE") // all cities of a country whose names begin so
	fmt.Println(san.Contains(key), err)
	// Output:
	// VE#San Cristóbal#Carrera 22 #8-35 <nil>
	// Carrera 22 #8-35 <nil>
	// true <nil>
}

func ExampleScheme() {
	scheme := keys.Scheme{PK: "PartitionKey", Prefix: "shop#"}
	fmt.Println(scheme.Validate(), scheme.WithDefaults().SK)
	pk, err := scheme.PKTemplate("TENANT#{tenant}")
	if err != nil {
		fmt.Println(err)
		return
	}
	sk, err := scheme.SKTemplate("ORDER#{no:uint6}")
	if err != nil {
		fmt.Println(err)
		return
	}
	first, err := pk.Format("acme")
	fmt.Println(first, err)
	second, err := sk.Format(42)
	fmt.Println(second, err)
	fmt.Println(keys.Scheme{SK: "pk"}.Validate())
	// Output:
	// <nil> sk
	// shop#TENANT#acme <nil>
	// ORDER#000042 <nil>
	// keys: scheme: field "SK": duplicate name: PK has the same name
}

func ExampleTemplate_Parse() {
	event := keys.MustTemplate("EVENT#{at:time-s:desc}#{kind}")
	key, err := event.Format(time.Date(2024, 3, 1, 12, 0, 0, 0, time.UTC), "a#b")
	fmt.Println(key, err)
	list, err := event.Parse(key)
	fmt.Println(list, err)
	byName, err := event.ParseValues(key)
	fmt.Println(byName["kind"], err)
	fmt.Println(event.Matches(key), event.Matches("EVENT#yesterday#x"))
	// Output:
	// EVENT#7975-96-98T87:99:99Z#a$0b <nil>
	// [2024-03-01 12:00:00 +0000 UTC a#b] <nil>
	// a#b <nil>
	// true false
}

func ExampleTemplate_Append() {
	line := keys.MustTemplate("LINE#{no:uint4}")
	buf := make([]byte, 0, 64) // for many keys, without an allocation
	for no := range 2 {
		key, err := line.Append(buf, no)
		fmt.Println(string(key), err)
	}
	// Output:
	// LINE#0000 <nil>
	// LINE#0001 <nil>
}

func ExampleTemplate_Fields() {
	event := keys.MustTemplate("TENANT#{id:shard16}#{at:date}")
	for _, f := range event.Fields() {
		fmt.Println(f.Name, f.Codec, f.Width, f.Computed, f.Accepts(reflect.TypeFor[time.Time]()))
	}
	// Output:
	// id shard16 2 true true
	// at date 10 false true
}

func ExampleTemplate_From() {
	order := keys.MustTemplate("ORDER#{no:uint4}#{part}")
	from, err := order.From(20)
	fmt.Println(from.Contains("ORDER#0019#x"), from.Contains("ORDER#0020#x"), err)
	until, err := order.Until(20)
	fmt.Println(until.Contains("ORDER#0019#x"), until.Contains("ORDER#0020#x"), err)
	// Output:
	// false true <nil>
	// true false <nil>
}

func ExampleTemplate_Range() {
	line := keys.MustTemplate("ORDER#{id}#LINE#{no:uint4}")
	lines, err := line.Range("1") // of order 1, and not of order 10
	fmt.Println(lines.Contains("ORDER#1#LINE#0001"), lines.Contains("ORDER#10#LINE#0001"), err)
	// Output: true false <nil>
}

func ExampleKey() {
	key := keys.NewKey("CUSTOMER#ann@example.org", "PROFILE")
	fmt.Printf("%v\n%+v\n", key, struct{ Key keys.Key }{key}) // not what logs are for
	fmt.Println(key.PK, key.Err(), key.IsZero())
	// Output:
	// key (PK of 24 bytes, SK of 7 bytes)
	// {Key:key (PK of 24 bytes, SK of 7 bytes)}
	// CUSTOMER#ann@example.org <nil> false
}

func ExampleValues() {
	order := keys.MustTemplate("TENANT#{tenant}#ORDER#{seq:uint4}")
	key, err := order.Format(keys.Values{"seq": 7, "tenant": "acme", "total": 99}) // what the template lacks is ignored
	fmt.Println(key, err)
	_, err = order.Format(keys.Values{"tenant": "acme"})
	fmt.Println(err)
	// Output:
	// TENANT#acme#ORDER#0007 <nil>
	// keys: format "TENANT#{tenant}#ORDER#{seq:uint4}": field "seq": missing value
}

func ExampleError() {
	_, err := keys.MustTemplate("USER#{email}").Format("")
	var failed *keys.Error
	if errors.As(err, &failed) {
		fmt.Println(failed.Op, failed.Field, errors.Is(err, keys.ErrEmpty))
	}
	// Output: format email true
}

// Two templates that would have keys in common are told apart by a pattern: here, numbers and names.
func ExampleTemplate_Only() {
	item := keys.MustTemplate("ITEM#{id}")
	numbered, err := item.Only("id", "[0-9]+")
	if err != nil {
		fmt.Println(err)
		return
	}
	named, err := item.Except("id", "[0-9]+")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(numbered.Matches("ITEM#42"), named.Matches("ITEM#42"))
	fmt.Println(keys.Overlap(numbered, item), keys.Overlap(numbered, named))
	_, err = numbered.Format("chair")
	fmt.Println(errors.Is(err, keys.ErrNoMatch))
	// Output:
	// true false
	// true false
	// true
}
