package table

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Parts of the exports. Their fields have the names of CloudFormation and of the DynamoDB API.
type (
	keyElement struct {
		AttributeName string
		KeyType       string
	}
	attributeDefinition struct {
		AttributeName string
		AttributeType AttributeType
	}
	projection struct {
		ProjectionType   string
		NonKeyAttributes []string `json:",omitempty"`
	}
	throughputUnits struct {
		ReadCapacityUnits  int64
		WriteCapacityUnits int64
	}
)

// marshalIndented encodes v as JSON that people can read and version control can compare.
func marshalIndented(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // attribute names are not HTML
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("table: export: %w", err)
	}
	return b.Bytes(), nil
}

func (x Index) exportProjection() projection {
	p := x.projection()
	return projection{ProjectionType: string(p.ProjectionType), NonKeyAttributes: p.NonKeyAttributes}
}

func (c *Capacity) units() *throughputUnits {
	if c == nil {
		return nil
	}
	return &throughputUnits{ReadCapacityUnits: c.Read, WriteCapacityUnits: c.Write}
}

// billing returns the billing mode of a new table.
func (s Schema) billing() string {
	if s.Capacity != nil {
		return "PROVISIONED"
	}
	return "PAY_PER_REQUEST"
}
