package table

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/internal/attrvalue"
)

// maxNesting is the number of levels of lists and maps in a value that DynamoDB allows. Source: "Quotas in Amazon
// DynamoDB", Nested attribute depth.
const maxNesting = 32

// ItemFromJSON reads an item from DynamoDB's JSON, {"pk":{"S":"a"},"n":{"N":"1"}}. Images of stream records in a
// function's event, exports to S3 and the command line use this format. To convert an image that was decoded already
// (events.DynamoDBAttributeValue), encode it with json.Marshal first.
//
// An invalid item is refused with [ErrInvalid], which names the attribute.
func ItemFromJSON(data []byte) (Item, error) {
	if !utf8.Valid(data) { // the decoder would replace invalid bytes
		return nil, fmt.Errorf("table: item from JSON: %w", errNotText)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil || members == nil {
		return nil, fmt.Errorf("table: item from JSON: %w: not a JSON object", ErrInvalid)
	}
	item := make(Item, len(members))
	for name, raw := range members {
		av, err := valueFromJSON(raw, 0)
		if err != nil {
			return nil, fmt.Errorf("table: item from JSON: %w: attribute %q: %w", ErrInvalid, name, err)
		}
		item[name] = av
	}
	return item, nil
}

// valueFromJSON reads an object with one member, whose name is the value's type. Errors do not quote the value.
func valueFromJSON(data json.RawMessage, depth int) (types.AttributeValue, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("nested deeper than %d", maxNesting)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err == nil && len(members) == 1 {
		for typ, raw := range members {
			return typedFromJSON(typ, raw, depth)
		}
	}
	return nil, fmt.Errorf("want a JSON object of one member: a type and its value")
}

func typedFromJSON(typ string, raw json.RawMessage, depth int) (av types.AttributeValue, err error) {
	if string(raw) == "null" {
		return nil, fmt.Errorf("a value that is null")
	}
	bad := func(err error) error {
		if err != nil {
			return fmt.Errorf("not a value of type %s", typ)
		}
		return nil
	}
	switch typ {
	case "S":
		v := &types.AttributeValueMemberS{}
		return v, bad(json.Unmarshal(raw, &v.Value))
	case "N":
		v := &types.AttributeValueMemberN{}
		if err := bad(json.Unmarshal(raw, &v.Value)); err != nil {
			return nil, err
		}
		return v, checkNumber(v.Value)
	case "B":
		v := &types.AttributeValueMemberB{}
		return v, bad(json.Unmarshal(raw, &v.Value))
	case "BOOL":
		v := &types.AttributeValueMemberBOOL{}
		return v, bad(json.Unmarshal(raw, &v.Value))
	case "NULL":
		v := &types.AttributeValueMemberNULL{}
		return v, bad(json.Unmarshal(raw, &v.Value))
	case "SS":
		v := &types.AttributeValueMemberSS{}
		v.Value, err = setFromJSON[string](raw)
		return v, bad(err)
	case "NS":
		v := &types.AttributeValueMemberNS{}
		if v.Value, err = setFromJSON[string](raw); err != nil {
			return nil, bad(err)
		}
		for _, n := range v.Value {
			if err := checkNumber(n); err != nil {
				return nil, err
			}
		}
		return v, nil
	case "BS":
		v := &types.AttributeValueMemberBS{}
		v.Value, err = setFromJSON[[]byte](raw)
		return v, bad(err)
	case "L":
		var list []json.RawMessage
		if err := bad(json.Unmarshal(raw, &list)); err != nil {
			return nil, err
		}
		v := &types.AttributeValueMemberL{Value: make([]types.AttributeValue, len(list))}
		for i := range list {
			if v.Value[i], err = valueFromJSON(list[i], depth+1); err != nil {
				return nil, err
			}
		}
		return v, nil
	case "M":
		var members map[string]json.RawMessage
		if err := bad(json.Unmarshal(raw, &members)); err != nil {
			return nil, err
		}
		v := &types.AttributeValueMemberM{Value: make(Item, len(members))}
		for name, raw := range members {
			if v.Value[name], err = valueFromJSON(raw, depth+1); err != nil {
				return nil, err
			}
		}
		return v, nil
	}
	return nil, fmt.Errorf("an unknown type: want one of S, N, B, BOOL, NULL, SS, NS, BS, L, M")
}

// setFromJSON reads the elements of a set. It refuses null elements, which encoding/json would turn into empty ones.
func setFromJSON[E string | []byte](raw json.RawMessage) ([]E, error) {
	var list []*E
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	set := make([]E, len(list))
	for i, e := range list {
		if e == nil {
			return nil, fmt.Errorf("null in a set")
		}
		set[i] = *e
	}
	return set, nil
}

// checkNumber refuses what DynamoDB cannot hold as a number. The error does not show the text, which belongs to the application.
func checkNumber(n string) error {
	if _, err := attrvalue.Size(&types.AttributeValueMemberN{Value: n}); err != nil {
		return errors.New("not a number")
	}
	return nil
}

// ItemToJSON writes an item as DynamoDB's JSON, which [ItemFromJSON] reads. Attributes are in the order of their names.
// It refuses with [ErrInvalid] a value that is nil or of an unknown type, and text that is not valid UTF-8.
func ItemToJSON(item Item) ([]byte, error) {
	if err := checkItem(item); err != nil {
		return nil, fmt.Errorf("table: item to JSON: %w", err)
	}
	members, err := mapToJSON(item)
	if err != nil {
		return nil, fmt.Errorf("table: item to JSON: %w", err)
	}
	return plainJSON(members)
}

func mapToJSON(item Item) (map[string]any, error) {
	members := make(map[string]any, len(item))
	for name, av := range item {
		member, err := valueToJSON(av)
		if err != nil {
			return nil, fmt.Errorf("attribute %q: %w", name, err)
		}
		members[name] = member
	}
	return members, nil
}

// valueToJSON returns a map of one member: the type, and a value that encoding/json writes in DynamoDB's format.
func valueToJSON(av types.AttributeValue) (map[string]any, error) {
	switch v := av.(type) {
	case *types.AttributeValueMemberS:
		return map[string]any{"S": v.Value}, nil
	case *types.AttributeValueMemberN:
		return map[string]any{"N": v.Value}, nil
	case *types.AttributeValueMemberB:
		return map[string]any{"B": noNil(v.Value)}, nil
	case *types.AttributeValueMemberBOOL:
		return map[string]any{"BOOL": v.Value}, nil
	case *types.AttributeValueMemberNULL:
		return map[string]any{"NULL": v.Value}, nil
	case *types.AttributeValueMemberSS:
		return map[string]any{"SS": noNil(v.Value)}, nil
	case *types.AttributeValueMemberNS:
		return map[string]any{"NS": noNil(v.Value)}, nil
	case *types.AttributeValueMemberBS:
		return map[string]any{"BS": noNil(v.Value)}, nil
	case *types.AttributeValueMemberL:
		list := make([]any, len(v.Value))
		for i, e := range v.Value {
			var err error
			if list[i], err = valueToJSON(e); err != nil {
				return nil, err
			}
		}
		return map[string]any{"L": list}, nil
	case *types.AttributeValueMemberM:
		members, err := mapToJSON(v.Value)
		return map[string]any{"M": members}, err
	}
	return nil, fmt.Errorf("%w: a value of an unknown type", ErrInvalid)
}

// noNil replaces a nil list by an empty one, since encoding/json would write nil as null.
func noNil[E any](list []E) []E {
	if list == nil {
		return []E{}
	}
	return list
}

// plainJSON encodes v as JSON. It keeps the characters that encoding/json escapes for HTML by default.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("table: item to JSON: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
