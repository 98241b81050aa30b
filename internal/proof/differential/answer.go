package differential

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sort"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// Answer is an engine's answer to a request, in a form that can be compared: structs are maps, attribute values are
// maps with their type as the key, sets are sorted.
type Answer struct {
	Output map[string]any `json:"output,omitempty"`
	Code   string         `json:"code,omitempty"`
	// Message is the text of the error.
	Message string `json:"message,omitempty"`
	// Detail holds what the error contains besides its text: the item of a failed condition, the reasons of a
	// cancelled transaction.
	Detail map[string]any `json:"detail,omitempty"`

	raw        any
	normalized bool
}

// OK reports whether the request succeeded.
func (a Answer) OK() bool { return a.Code == "" }

// String returns the answer as JSON, long strings shortened.
func (a Answer) String() string { return render(a) }

// Equal reports whether two answers are completely equal.
func (a Answer) Equal(b Answer) bool {
	return a.Code == b.Code && a.Message == b.Message &&
		reflect.DeepEqual(a.Output, b.Output) && reflect.DeepEqual(a.Detail, b.Detail)
}

// Do sends a request, which is a pointer to one of the SDK's Input structs.
func Do(ctx context.Context, c *dynamodb.Client, in any) (Answer, error) {
	out, err := call(ctx, c, in)
	if err != nil {
		var api smithy.APIError
		if !errors.As(err, &api) {
			if ctx.Err() != nil {
				return Answer{}, ctx.Err()
			}
			var ser *smithy.SerializationError
			var inv smithy.InvalidParamsError
			if errors.As(err, &ser) || errors.As(err, &inv) {
				return Answer{Code: "client", Message: err.Error()}, nil
			}
			return Answer{}, fmt.Errorf("differential: %s: %w", Kind(in), err)
		}
		a := Answer{Code: api.ErrorCode(), Message: api.ErrorMessage()}
		var failed *types.ConditionalCheckFailedException
		var cancelled *types.TransactionCanceledException
		switch {
		case errors.As(err, &failed):
			a.Detail = map[string]any{"Item": canonical(reflect.ValueOf(failed.Item))}
		case errors.As(err, &cancelled):
			a.Detail = map[string]any{"CancellationReasons": canonical(reflect.ValueOf(cancelled.CancellationReasons))}
		}
		return a, nil
	}
	a := Answer{raw: out}
	a.Output, _ = canonical(reflect.ValueOf(out)).(map[string]any)
	return a, nil
}

func call(ctx context.Context, c *dynamodb.Client, in any) (any, error) {
	switch in := in.(type) {
	case *dynamodb.PutItemInput:
		return c.PutItem(ctx, in)
	case *dynamodb.GetItemInput:
		return c.GetItem(ctx, in)
	case *dynamodb.UpdateItemInput:
		return c.UpdateItem(ctx, in)
	case *dynamodb.DeleteItemInput:
		return c.DeleteItem(ctx, in)
	case *dynamodb.QueryInput:
		return c.Query(ctx, in)
	case *dynamodb.ScanInput:
		return c.Scan(ctx, in)
	case *dynamodb.BatchGetItemInput:
		return c.BatchGetItem(ctx, in)
	case *dynamodb.BatchWriteItemInput:
		return c.BatchWriteItem(ctx, in)
	case *dynamodb.TransactWriteItemsInput:
		return c.TransactWriteItems(ctx, in)
	case *dynamodb.TransactGetItemsInput:
		return c.TransactGetItems(ctx, in)
	case *dynamodb.CreateTableInput:
		return c.CreateTable(ctx, in)
	case *dynamodb.DescribeTableInput:
		return c.DescribeTable(ctx, in)
	case *dynamodb.UpdateTableInput:
		return c.UpdateTable(ctx, in)
	case *dynamodb.DeleteTableInput:
		return c.DeleteTable(ctx, in)
	case *dynamodb.ListTablesInput:
		return c.ListTables(ctx, in)
	case *dynamodb.UpdateTimeToLiveInput:
		return c.UpdateTimeToLive(ctx, in)
	case *dynamodb.DescribeTimeToLiveInput:
		return c.DescribeTimeToLive(ctx, in)
	}
	return nil, fmt.Errorf("no operation takes a %T", in)
}

// Kind returns the operation of a request, such as "PutItem".
func Kind(in any) string {
	name := reflect.TypeOf(in).Elem().Name()
	return name[:len(name)-len("Input")]
}

// Render returns a request as JSON, long strings shortened.
func Render(in any) string {
	return Kind(in) + " " + render(canonical(reflect.ValueOf(in)))
}

// Canonical returns a request or a response in the form that Answer uses.
func Canonical(v any) any { return canonical(reflect.ValueOf(v)) }

const longest = 120

func render(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	// Only strings, numbers, booleans, maps and slices: it cannot fail.
	_ = enc.Encode(v)
	var tree any
	if err := json.Unmarshal(b.Bytes(), &tree); err != nil {
		return b.String()
	}
	b.Reset()
	_ = enc.Encode(shorten(tree))
	return string(bytes.TrimSpace(b.Bytes()))
}

func shorten(v any) any {
	switch v := v.(type) {
	case string:
		if len(v) > 4*longest {
			return fmt.Sprintf("%s... (%d bytes)", v[:longest], len(v))
		}
	case []any:
		for i := range v {
			v[i] = shorten(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = shorten(v[k])
		}
	}
	return v
}

// canonical turns SDK structs into trees. Absent and empty values stay different.
func canonical(v reflect.Value) any {
	if !v.IsValid() {
		return nil
	}
	if v.CanInterface() {
		switch av := v.Interface().(type) {
		case types.AttributeValue:
			return canonicalValue(av)
		case time.Time:
			return av.UTC().Format(time.RFC3339Nano)
		case []byte:
			return fmt.Sprintf("%x", av)
		}
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return canonical(v.Elem())
	case reflect.Struct:
		m := map[string]any{}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() || f.Name == "ResultMetadata" {
				continue
			}
			if f.Type.Kind() != reflect.Bool && v.Field(i).IsZero() {
				continue
			}
			m[f.Name] = canonical(v.Field(i))
		}
		return m
	case reflect.Map:
		if v.IsNil() {
			return nil
		}
		m := map[string]any{}
		for _, k := range v.MapKeys() {
			m[k.String()] = canonical(v.MapIndex(k))
		}
		return m
	case reflect.Slice:
		if v.IsNil() {
			return nil
		}
		s := make([]any, v.Len())
		for i := range s {
			s[i] = canonical(v.Index(i))
		}
		return s
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return v.Bool()
	case reflect.Int, reflect.Int32, reflect.Int64:
		return float64(v.Int())
	case reflect.Float64, reflect.Float32:
		return v.Float()
	}
	return fmt.Sprint(v.Interface())
}

func canonicalValue(av types.AttributeValue) any {
	switch av := av.(type) {
	case *types.AttributeValueMemberS:
		return map[string]any{"S": av.Value}
	case *types.AttributeValueMemberN:
		return map[string]any{"N": av.Value}
	case *types.AttributeValueMemberB:
		return map[string]any{"B": fmt.Sprintf("%x", av.Value)}
	case *types.AttributeValueMemberBOOL:
		return map[string]any{"BOOL": av.Value}
	case *types.AttributeValueMemberNULL:
		return map[string]any{"NULL": av.Value}
	case *types.AttributeValueMemberSS:
		return map[string]any{"SS": sorted(av.Value)}
	case *types.AttributeValueMemberNS:
		return map[string]any{"NS": sorted(av.Value)}
	case *types.AttributeValueMemberBS:
		hex := make([]string, len(av.Value))
		for i, b := range av.Value {
			hex[i] = fmt.Sprintf("%x", b)
		}
		return map[string]any{"BS": sorted(hex)}
	case *types.AttributeValueMemberL:
		l := make([]any, len(av.Value))
		for i, e := range av.Value {
			l[i] = canonicalValue(e)
		}
		return map[string]any{"L": l}
	case *types.AttributeValueMemberM:
		m := make(map[string]any, len(av.Value))
		for k, e := range av.Value {
			m[k] = canonicalValue(e)
		}
		return map[string]any{"M": m}
	}
	return nil
}

// sorted returns a set's members in one order, since sets have none.
func sorted(set []string) []any {
	in := append([]string(nil), set...)
	sort.Strings(in)
	out := make([]any, len(in))
	for i, s := range in {
		out[i] = s
	}
	return out
}
