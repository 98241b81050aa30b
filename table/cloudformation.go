package table

import (
	"fmt"
	"maps"
	"slices"
)

// Properties of AWS::DynamoDB::Table that a Schema can set. Source: "AWS::DynamoDB::Table", CloudFormation template
// reference.
type (
	cfnResource struct {
		Type                string
		DeletionPolicy      string
		UpdateReplacePolicy string
		Properties          cfnTable
	}
	cfnTable struct {
		TableName                        string
		AttributeDefinitions             []attributeDefinition
		KeySchema                        []keyElement
		GlobalSecondaryIndexes           []cfnIndex `json:",omitempty"`
		LocalSecondaryIndexes            []cfnIndex `json:",omitempty"`
		BillingMode                      string
		ProvisionedThroughput            *throughputUnits `json:",omitempty"`
		TimeToLiveSpecification          *cfnTTL          `json:",omitempty"`
		StreamSpecification              *cfnStream       `json:",omitempty"`
		PointInTimeRecoverySpecification *cfnRecovery     `json:",omitempty"`
		DeletionProtectionEnabled        bool             `json:",omitempty"`
		Tags                             []cfnTag         `json:",omitempty"`
	}
	cfnIndex struct {
		IndexName             string
		KeySchema             []keyElement
		Projection            projection
		ProvisionedThroughput *throughputUnits `json:",omitempty"`
	}
	cfnTTL struct {
		AttributeName string
		Enabled       bool
	}
	cfnStream   struct{ StreamViewType StreamView }
	cfnRecovery struct{ PointInTimeRecoveryEnabled bool }
	cfnTag      struct{ Key, Value string }
)

// CloudFormation returns the table as a CloudFormation resource, in JSON, for the Resources of a template in JSON or
// YAML. Use it instead of [Table.Ensure] if you provision with CloudFormation, and [Table.Verify] to check the result.
//
// The resource is the table that Ensure would create. If Capacity is nil, it is on demand. Settings that the schema
// leaves alone (a stream, recovery, tags) are omitted. Its deletion policy retains the table, since Ensure never
// destroys anything either. Equal schemas give equal bytes.
//
// The error is that of [Schema.Validate].
func (s Schema) CloudFormation() ([]byte, error) {
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("table: cloudformation: %w", err)
	}
	s = s.withDefaults()
	p := cfnTable{
		TableName:                 s.Name,
		KeySchema:                 Index{PK: s.Keys.PK, SK: s.Keys.SK}.exportKeys(),
		BillingMode:               s.billing(),
		ProvisionedThroughput:     s.Capacity.units(),
		DeletionProtectionEnabled: s.DeletionProtection,
	}
	for _, d := range s.definitions(s.Indexes...) {
		p.AttributeDefinitions = append(p.AttributeDefinitions, attributeDefinition{*d.AttributeName, AttributeType(d.AttributeType)})
	}
	for _, x := range s.Indexes {
		c := cfnIndex{IndexName: x.Name, KeySchema: x.exportKeys(), Projection: x.exportProjection()}
		if x.Local {
			p.LocalSecondaryIndexes = append(p.LocalSecondaryIndexes, c)
			continue
		}
		c.ProvisionedThroughput = s.Capacity.units()
		p.GlobalSecondaryIndexes = append(p.GlobalSecondaryIndexes, c)
	}
	if !s.NoTTL {
		p.TimeToLiveSpecification = &cfnTTL{AttributeName: s.Keys.TTL, Enabled: true}
	}
	if s.Stream != "" {
		p.StreamSpecification = &cfnStream{s.Stream}
	}
	if s.PointInTimeRecovery {
		p.PointInTimeRecoverySpecification = &cfnRecovery{true}
	}
	for _, key := range slices.Sorted(maps.Keys(s.Tags)) {
		p.Tags = append(p.Tags, cfnTag{key, s.Tags[key]})
	}
	return marshalIndented(cfnResource{Type: "AWS::DynamoDB::Table", DeletionPolicy: "Retain", UpdateReplacePolicy: "Retain", Properties: p})
}

func (x Index) exportKeys() (list []keyElement) {
	for _, k := range x.keySchema() {
		list = append(list, keyElement{*k.AttributeName, string(k.KeyType)})
	}
	return list
}
