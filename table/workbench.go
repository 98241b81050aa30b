package table

import (
	"fmt"
	"slices"
	"strings"
)

// Facet is an entity type in a NoSQL Workbench model. entity.Entity.Facet returns one.
type Facet struct {
	Name       string
	PK, SK     string // templates of the keys, for people
	Attributes []FacetAttribute
}

// FacetAttribute is an attribute of a facet's rows besides the table's keys.
type FacetAttribute struct {
	Name string
	Type string // S, N, B, BOOL, NULL, M, L, SS, NS or BS
}

// The data model that NoSQL Workbench imports and exports, version 3.0. Source: "Importing an existing data model" and
// "Viewing data access patterns", Amazon DynamoDB Developer Guide; names that it does not mention are those of exported
// models.
type (
	workbenchModel struct {
		ModelName     string
		ModelMetadata workbenchMetadata
		DataModel     []workbenchTable
	}
	workbenchMetadata struct {
		Author           string
		DateCreated      string
		DateLastModified string
		Description      string
		AWSService       string
		Version          string
	}
	workbenchTable struct {
		TableName                   string
		KeyAttributes               workbenchKeys
		NonKeyAttributes            []attributeDefinition
		TableFacets                 []workbenchFacet
		GlobalSecondaryIndexes      []workbenchIndex
		TableData                   []struct{}
		DataAccess                  workbenchAccess
		BillingMode                 string
		ProvisionedCapacitySettings *workbenchCapacity `json:",omitempty"`
	}
	workbenchKeys struct {
		PartitionKey attributeDefinition
		SortKey      *attributeDefinition `json:",omitempty"`
	}
	workbenchFacet struct {
		FacetName         string
		KeyAttributeAlias workbenchAlias
		NonKeyAttributes  []string
		TableData         []struct{}
		DataAccess        workbenchAccess
	}
	workbenchAlias struct {
		PartitionKeyAlias string
		SortKeyAlias      string
	}
	workbenchIndex struct {
		IndexName     string
		KeyAttributes workbenchKeys
		Projection    projection
	}
	workbenchAccess struct {
		MySQL struct{} `json:"MySql"`
	}
	workbenchCapacity struct{ ProvisionedThroughput throughputUnits }
)

// workbenchDate replaces the time of an export. So the same model gives the same bytes, and a file in version control changes only if
// the model does.
const workbenchDate = "Jan 01, 2020, 12:00 AM"

// Workbench returns the table as a data model, in JSON, that NoSQL Workbench for DynamoDB imports. Facets are the
// entity types in the table:
//
//	model, err := tbl.Schema().Workbench(customers.Facet(), orders.Facet())
//
// The format cannot describe time to live, streams, recovery, protection and tags; they are omitted. It cannot describe
// local indexes either; the model's description lists them. Equal arguments give equal bytes.
//
// The error is that of [Schema.Validate], or names a facet without a name, a facet that occurs twice, or an attribute
// with two types. Workbench has one list of attributes for the whole table.
func (s Schema) Workbench(facets ...Facet) ([]byte, error) {
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("table: workbench: %w", err)
	}
	s = s.withDefaults()
	m := workbenchTable{
		TableName:     s.Name,
		KeyAttributes: workbenchKey(s.Keys.PK, String, s.Keys.SK, String),
		// None of these may be nil: the importer expects lists.
		NonKeyAttributes: []attributeDefinition{}, TableFacets: []workbenchFacet{}, GlobalSecondaryIndexes: []workbenchIndex{}, TableData: []struct{}{},
		BillingMode: s.billing(),
	}
	if c := s.Capacity.units(); c != nil {
		m.ProvisionedCapacitySettings = &workbenchCapacity{*c}
	}
	kinds := map[string]string{s.Keys.PK: string(String), s.Keys.SK: string(String)}
	attribute := func(name, kind string) { // adds it unless it is known
		if _, known := kinds[name]; !known {
			kinds[name] = kind
			m.NonKeyAttributes = append(m.NonKeyAttributes, attributeDefinition{name, AttributeType(kind)})
		}
	}
	var local []string
	for _, x := range s.Indexes {
		for _, k := range []attributeDefinition{{x.PK, x.PKType}, {x.SK, x.SKType}} {
			if k.AttributeName != "" {
				attribute(k.AttributeName, string(k.AttributeType)) // Validate has refused an attribute of two types
			}
		}
		if x.Local {
			local = append(local, x.describe())
			continue
		}
		m.GlobalSecondaryIndexes = append(m.GlobalSecondaryIndexes, workbenchIndex{
			IndexName: x.Name, KeyAttributes: workbenchKey(x.PK, x.PKType, x.SK, x.SKType), Projection: x.exportProjection(),
		})
	}
	seen := map[string]bool{}
	for i, f := range facets {
		if f.Name == "" || seen[f.Name] {
			return nil, fmt.Errorf("table: workbench: %w: facet %d: Name %q is empty or used twice", ErrInvalid, i, f.Name)
		}
		seen[f.Name] = true
		w := workbenchFacet{
			FacetName: f.Name, KeyAttributeAlias: workbenchAlias{PartitionKeyAlias: f.PK, SortKeyAlias: f.SK},
			NonKeyAttributes: []string{}, TableData: []struct{}{},
		}
		for _, a := range f.Attributes {
			attribute(a.Name, a.Type)
			if have := kinds[a.Name]; have != a.Type {
				return nil, fmt.Errorf("table: workbench: %w: attribute %q is of type %s and of type %s", ErrInvalid, a.Name, have, a.Type)
			}
			w.NonKeyAttributes = append(w.NonKeyAttributes, a.Name)
		}
		m.TableFacets = append(m.TableFacets, w)
	}
	for _, x := range s.Indexes {
		for _, name := range x.Include {
			attribute(name, string(String)) // in no facet its type is unknown; String is a guess
		}
	}
	slices.SortFunc(m.NonKeyAttributes, func(a, b attributeDefinition) int { return strings.Compare(a.AttributeName, b.AttributeName) })
	description := ""
	if len(local) > 0 {
		description = "Local indexes, which a model cannot have: " + strings.Join(local, ", ")
	}
	return marshalIndented(workbenchModel{
		ModelName: s.Name,
		ModelMetadata: workbenchMetadata{
			DateCreated: workbenchDate, DateLastModified: workbenchDate, Description: description, AWSService: "Amazon DynamoDB", Version: "3.0",
		},
		DataModel: []workbenchTable{m},
	})
}

func workbenchKey(pk string, pkType AttributeType, sk string, skType AttributeType) workbenchKeys {
	k := workbenchKeys{PartitionKey: attributeDefinition{pk, pkType}}
	if sk != "" {
		k.SortKey = &attributeDefinition{sk, skType}
	}
	return k
}
