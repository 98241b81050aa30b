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
	Number    int      // among all requests of the world, from 1
}

// row is what a request names, in whatever operation.
type row map[string]map[string]any

// named is a part of a request that names an item.
type named struct {
	Key  row
	Item row
}

// keysOf lists the items that a request names. Requests of equal contents are spelled in many
// ways, since the SDK writes maps in any order; their keys are not.
func keysOf(body []byte, pk, sk string) []string {
	var in struct {
		named

		TransactItems []map[string]named
		RequestItems  map[string]json.RawMessage
	}
	if json.Unmarshal(body, &in) != nil {
		return nil
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
		var get struct{ Keys []row }
		if json.Unmarshal(raw, &get) == nil {
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
	return keys
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
