package sim

import (
	"encoding/json"
	"slices"
	"strings"
)

// Request is a request on its way to the engine.
type Request struct {
	Process   *Process
	Operation string
	Keys      []string // of the items that it names, partition and sort key, in order
	Eventual  bool     // it reads, eventually consistently or in part so
	Number    int      // among all requests of the world, from 1
}

// row is what a request names, in whatever operation.
type row map[string]map[string]any

// named is a part of a request that names an item.
type named struct {
	Key  row
	Item row
}

// transacts is the operation that writes several items or none.
const transacts = "TransactWriteItems"

// writes says whether it may meet a transaction that writes the same items.
func (r *Request) writes() bool {
	return slices.Contains([]string{"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", transacts, "TransactGetItems"}, r.Operation)
}

// read takes in what a request asks for. Requests of equal contents are spelled in many ways,
// since the SDK writes maps in any order; their keys are not.
func (r *Request) read(body []byte, pk, sk string) {
	var in struct {
		named

		ConsistentRead bool
		TransactItems  []map[string]named
		RequestItems   map[string]json.RawMessage
	}
	if json.Unmarshal(body, &in) != nil {
		return
	}
	switch r.Operation {
	case "GetItem", "Query", "Scan":
		r.Eventual = !in.ConsistentRead
	}
	var keys []string
	add := func(r row) {
		if r[pk] != nil {
			text := func(name string) string { s, _ := r[name]["S"].(string); return s }
			keys = append(keys, text(pk)+"|"+text(sk))
		}
	}
	add(in.Key)
	add(in.Item)
	for _, op := range in.TransactItems {
		for _, n := range op {
			add(n.Key)
			add(n.Item)
		}
	}
	for _, raw := range in.RequestItems {
		var get struct {
			ConsistentRead bool
			Keys           []row
		}
		if json.Unmarshal(raw, &get) == nil {
			r.Eventual = r.Eventual || !get.ConsistentRead
			for _, k := range get.Keys {
				add(k)
			}
			continue
		}
		var put []map[string]named
		if json.Unmarshal(raw, &put) == nil {
			for _, op := range put {
				for _, n := range op {
					add(n.Key)
					add(n.Item)
				}
			}
		}
	}
	slices.Sort(keys)
	r.Keys = keys
}

// spelled is a request's body in the one spelling of its contents.
func spelled(body []byte) string {
	var contents any
	if json.Unmarshal(body, &contents) != nil {
		return string(body)
	}
	text, err := json.Marshal(contents) // maps in order
	if err != nil {
		return string(body)
	}
	return string(text)
}

func (r *Request) String() string { return r.Operation + " " + strings.Join(r.Keys, " ") }
