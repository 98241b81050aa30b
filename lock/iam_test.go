package lock_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// policy is an IAM policy, as far as policy.json uses the language. Other elements are refused, so that none is ignored.
type policy struct {
	Version   string
	Statement []statement
}

type statement struct {
	Sid       string
	Effect    string
	Action    words
	Resource  words
	Condition map[string]map[string]words
}

// words is a string or a list of them.
type words []string

func (w *words) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*w = words{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(w))
}

const leadingKeys = "dynamodb:LeadingKeys"

func readPolicy(file string) (*policy, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	var p policy
	if err := dec.Decode(&p); err != nil {
		return nil, err
	}
	if p.Version != "2012-10-17" {
		return nil, fmt.Errorf("version %q", p.Version)
	}
	for _, s := range p.Statement {
		if s.Effect != "Allow" || len(s.Action) == 0 || len(s.Resource) == 0 {
			return nil, fmt.Errorf("statement %q: want Allow with actions and resources", s.Sid)
		}
		for operator, keys := range s.Condition {
			for key := range keys {
				if operator != "ForAllValues:StringLike" || key != leadingKeys {
					return nil, fmt.Errorf("statement %q: condition %s on %s is not understood", s.Sid, operator, key)
				}
			}
		}
	}
	return &p, nil
}

// fill replaces the file's placeholders by real values.
func (p *policy) fill(values map[string][]string) *policy {
	replace := func(list words) (filled words) {
		for _, text := range list {
			texts := []string{text}
			for placeholder, with := range values {
				var next []string
				for _, t := range texts {
					if !strings.Contains(t, placeholder) {
						next = append(next, t)
						continue
					}
					for _, value := range with {
						next = append(next, strings.ReplaceAll(t, placeholder, value))
					}
				}
				texts = next
			}
			filled = append(filled, texts...)
		}
		return filled
	}
	filled := &policy{Version: p.Version}
	for _, s := range p.Statement {
		s.Action, s.Resource = slices.Clone(s.Action), replace(s.Resource)
		condition := map[string]map[string]words{}
		for operator, keys := range s.Condition {
			condition[operator] = map[string]words{}
			for key, list := range keys {
				condition[operator][key] = replace(list)
			}
		}
		s.Condition = condition
		filled.Statement = append(filled.Statement, s)
	}
	return filled
}

// access is one decision of IAM about a request.
type access struct {
	action   string
	resource string
	leading  []string // partition keys
}

// allows reports whether one statement covers the whole access: IAM does not combine several.
func (p *policy) allows(a access) bool {
	return slices.ContainsFunc(p.Statement, func(s statement) bool {
		return slices.Contains(s.Action, a.action) && like(s.Resource, a.resource) && s.covers(a.leading)
	})
}

func (s *statement) covers(leading []string) bool {
	for _, keys := range s.Condition {
		for _, list := range keys {
			for _, key := range leading {
				if !like(list, key) {
					return false
				}
			}
		}
	}
	return true
}

// like is StringLike: * stands for any characters, ? for one.
func like(patterns []string, text string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, text) })
}

func matches(pattern, text string) bool {
	for i := range len(pattern) {
		switch {
		case pattern[i] == '*':
			rest := pattern[i+1:]
			for j := len(text); j >= i; j-- {
				if matches(rest, text[j:]) {
					return true
				}
			}
			return false
		case i >= len(text), pattern[i] != '?' && pattern[i] != text[i]:
			return false
		}
	}
	return len(pattern) == len(text)
}

// attributes is an item or a key, in DynamoDB's JSON.
type attributes map[string]map[string]any

func (a attributes) text(name string) string {
	s, _ := a[name]["S"].(string)
	return s
}

// wireRequest has the fields of all operations that matter here.
type wireRequest struct {
	TableName                 string
	IndexName                 string
	Key                       attributes
	Item                      attributes
	KeyConditionExpression    string
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues attributes
	RequestItems              map[string]struct{ Keys []attributes }
	TransactItems             []map[string]struct {
		TableName string
		Key       attributes
		Item      attributes
	}
}

var partitionIs = regexp.MustCompile(`([#\w.-]+) = (:\w+)`)

// accesses lists the decisions of IAM about a request. The operations of a transaction are separate
// actions (Developer Guide, Using IAM with DynamoDB transactions).
func accesses(operation string, body []byte, pk, arn string) ([]access, error) {
	var r wireRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	one := func(action, table string, leading ...string) access {
		return access{"dynamodb:" + action, arn + table, leading}
	}
	switch operation {
	case "DescribeTable":
		return []access{one(operation, r.TableName)}, nil
	case "GetItem", "UpdateItem", "DeleteItem":
		return []access{one(operation, r.TableName, r.Key.text(pk))}, nil
	case "PutItem":
		return []access{one(operation, r.TableName, r.Item.text(pk))}, nil
	case "Query":
		found := partitionIs.FindStringSubmatch(r.KeyConditionExpression)
		if found == nil {
			return nil, fmt.Errorf("no partition in the key condition %q", r.KeyConditionExpression)
		}
		if r.IndexName != "" {
			r.TableName += "/index/" + r.IndexName
		}
		return []access{one(operation, r.TableName, r.ExpressionAttributeValues.text(found[2]))}, nil
	case "BatchGetItem":
		var list []access
		for table, of := range r.RequestItems {
			var leading []string
			for _, key := range of.Keys {
				leading = append(leading, key.text(pk))
			}
			list = append(list, one(operation, table, leading...))
		}
		return list, nil
	case "TransactWriteItems", "TransactGetItems":
		actions := map[string]string{"ConditionCheck": "ConditionCheckItem", "Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "Get": "GetItem"}
		var list []access
		for _, item := range r.TransactItems {
			for kind, of := range item {
				action, known := actions[kind]
				if !known {
					return nil, fmt.Errorf("action %q in a transaction", kind)
				}
				key := of.Key
				if kind == "Put" {
					key = of.Item
				}
				list = append(list, one(action, of.TableName, key.text(pk)))
			}
		}
		return list, nil
	}
	return []access{one(operation, r.TableName)}, nil // covered only by a statement that names the action
}
