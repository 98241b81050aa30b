package table

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/internal/attrvalue"
)

// maxNesting is the number of levels of values in one another that DynamoDB allows. Source: "Quotas in Amazon DynamoDB", Nested attribute
// depth.
const maxNesting = 32

// ItemFromJSON reads an item from DynamoDB's JSON, {"pk":{"S":"a"},"n":{"N":"1"}}. Images of stream records in a
// function's event, exports to S3 and the command line use this format. To convert an image that was decoded already
// (events.DynamoDBAttributeValue), encode it with json.Marshal first.
//
// An item that DynamoDB cannot hold is refused with [ErrInvalid], which names the attribute, unless the whole is too large.
func ItemFromJSON(data []byte) (Item, error) {
	item, size, err := valuesFromJSON(data)
	if err == nil && size > attrvalue.MaxItem {
		return nil, fmt.Errorf("table: item from JSON: %w: %d bytes, at most %d in an item", ErrInvalid, size, attrvalue.MaxItem)
	}
	return item, err
}

// valuesFromJSON reads values by name. Together they can be larger than an item.
func valuesFromJSON(data []byte) (item Item, size int, err error) {
	if !faithful(data) {
		return nil, 0, fmt.Errorf("table: item from JSON: %w", errNotText)
	}
	members, err := membersOf(data)
	if err != nil {
		return nil, 0, fmt.Errorf("table: item from JSON: %w: %w", ErrInvalid, err)
	}
	item = make(Item, len(members))
	for name, raw := range members {
		av, err := valueFromJSON(raw, 1)
		n := 0
		if err == nil {
			n, err = attrvalue.ItemSize(Item{name: av})
		}
		if err != nil {
			return nil, 0, fmt.Errorf("table: item from JSON: %w: attribute %q: %w", ErrInvalid, name, err)
		}
		item[name] = av
		size += n
	}
	return item, size, nil
}

// faithful reports whether encoding/json reads all texts as they are written. It would replace bytes that are not UTF-8, and a surrogate
// that stands alone, such as \ud800.
func faithful(data []byte) bool {
	for i := 0; i < len(data); i++ {
		first := escaped(data[i:])
		switch {
		case data[i] != '\\':
		case !utf16.IsSurrogate(first):
			i++ // the next character belongs to this escape
		case i+escapeSize > len(data) || utf16.DecodeRune(first, escaped(data[i+escapeSize:])) == utf8.RuneError:
			return false
		default:
			i += 2*escapeSize - 1
		}
	}
	return utf8.Valid(data)
}

const escapeSize = len(`\u0000`)

// escaped returns the character of an escape such as \u00e4 at the beginning of data, and -1 if there is none.
func escaped(data []byte) rune {
	if len(data) < escapeSize || data[0] != '\\' || data[1] != 'u' {
		return -1
	}
	r, err := strconv.ParseUint(string(data[2:escapeSize]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(r)
}

// membersOf reads a JSON object, and nothing after it. It refuses a member that occurs twice, of which encoding/json would keep the last.
func membersOf(data []byte) (map[string]json.RawMessage, error) {
	errNoObject := errors.New("not a JSON object")
	dec := json.NewDecoder(bytes.NewReader(data))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil, errNoObject
	}
	members := map[string]json.RawMessage{}
	for dec.More() {
		tok, err := dec.Token()
		name, ok := tok.(string)
		if err != nil || !ok {
			return nil, errNoObject
		}
		if _, twice := members[name]; twice {
			return nil, errors.New("a member that occurs twice in a JSON object")
		}
		var raw json.RawMessage
		if dec.Decode(&raw) != nil {
			return nil, errNoObject
		}
		members[name] = raw
	}
	if _, err := dec.Token(); err != nil {
		return nil, errNoObject
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errNoObject
	}
	return members, nil
}

// valueFromJSON reads an object with one member, whose name is the value's type. Errors do not quote the value. depth is the level of the
// value: deeper ones are not even read, since each level reads all the text below it.
func valueFromJSON(data json.RawMessage, depth int) (types.AttributeValue, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("nested deeper than %d", maxNesting)
	}
	if members, err := membersOf(data); err == nil && len(members) == 1 {
		for typ, raw := range members {
			return typedFromJSON(typ, raw, depth)
		}
	}
	return nil, errors.New("want a JSON object of one member: a type and its value")
}

func typedFromJSON(typ string, raw json.RawMessage, depth int) (av types.AttributeValue, err error) {
	if string(raw) == "null" {
		return nil, errors.New("a value that is null")
	}
	switch typ {
	case "S":
		v := &types.AttributeValueMemberS{}
		av, err = v, json.Unmarshal(raw, &v.Value)
	case "N":
		v := &types.AttributeValueMemberN{}
		av, err = v, json.Unmarshal(raw, &v.Value)
	case "B":
		var text string
		v := &types.AttributeValueMemberB{}
		if err = json.Unmarshal(raw, &text); err == nil {
			v.Value, err = binaryFromJSON(text)
		}
		av = v
	case "BOOL":
		v := &types.AttributeValueMemberBOOL{}
		av, err = v, json.Unmarshal(raw, &v.Value)
	case "NULL":
		v := &types.AttributeValueMemberNULL{}
		av, err = v, json.Unmarshal(raw, &v.Value)
	case "SS":
		v := &types.AttributeValueMemberSS{}
		v.Value, err = setFromJSON(raw)
		av = v
	case "NS":
		v := &types.AttributeValueMemberNS{}
		v.Value, err = setFromJSON(raw)
		av = v
	case "BS":
		texts, bad := setFromJSON(raw)
		v := &types.AttributeValueMemberBS{Value: make([][]byte, len(texts))}
		for i := range texts {
			if v.Value[i], err = binaryFromJSON(texts[i]); err != nil {
				break
			}
		}
		av, err = v, errors.Join(bad, err)
	case "L":
		var list []json.RawMessage
		if err = json.Unmarshal(raw, &list); err != nil {
			break
		}
		v := &types.AttributeValueMemberL{Value: make([]types.AttributeValue, len(list))}
		for i := range list {
			if v.Value[i], err = valueFromJSON(list[i], depth+1); err != nil {
				return nil, err
			}
		}
		return v, nil
	case "M":
		members, err := membersOf(raw)
		if err != nil {
			return nil, err
		}
		v := &types.AttributeValueMemberM{Value: make(Item, len(members))}
		for name, raw := range members {
			if v.Value[name], err = valueFromJSON(raw, depth+1); err != nil {
				return nil, err
			}
		}
		return v, nil
	default:
		return nil, errors.New("an unknown type: want one of S, N, B, BOOL, NULL, SS, NS, BS, L, M")
	}
	if err != nil {
		return nil, fmt.Errorf("not a value of type %s", typ) // err can quote the value
	}
	return av, nil
}

// setFromJSON reads the elements of a set. It refuses null elements, which encoding/json would turn into empty ones.
func setFromJSON(raw json.RawMessage) ([]string, error) {
	var list []*string
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	set := make([]string, len(list))
	for i, e := range list {
		if e == nil {
			return nil, errors.New("null in a set")
		}
		set[i] = *e
	}
	return set, nil
}

// binaryFromJSON decodes base64, of which there is one text for each value. Package base64 ignores line breaks even when it is strict.
func binaryFromJSON(text string) ([]byte, error) {
	if i := strings.IndexAny(text, "\r\n"); i >= 0 {
		return nil, base64.CorruptInputError(i)
	}
	return base64.StdEncoding.Strict().DecodeString(text)
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
		return map[string]any{"B": v.Value}, nil
	case *types.AttributeValueMemberBOOL:
		return map[string]any{"BOOL": v.Value}, nil
	case *types.AttributeValueMemberNULL:
		return map[string]any{"NULL": v.Value}, nil
	case *types.AttributeValueMemberSS:
		return map[string]any{"SS": v.Value}, nil
	case *types.AttributeValueMemberNS:
		return map[string]any{"NS": v.Value}, nil
	case *types.AttributeValueMemberBS:
		return map[string]any{"BS": v.Value}, nil
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
