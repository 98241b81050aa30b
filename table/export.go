package table

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// keyElement, attribute and the like are as CloudFormation and the DynamoDB API spell them.
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

// marshalIndented writes JSON that a person reads and a version control system compares.
func marshalIndented(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // attribute names are no HTML
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

// billing returns the mode that a table is created with.
func (s Schema) billing() string {
	if s.Capacity != nil {
		return "PROVISIONED"
	}
	return "PAY_PER_REQUEST"
}
