package table

import (
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/keys"
)

// Schema says how a table is made. The zero value of every field but Name is useful.
type Schema struct {
	// Name of the table: 3 to 255 characters, letters, digits, '_', '-' and '.'.
	Name string

	// Keys names the attributes. The table's partition and sort key are strings of the
	// names Keys.PK and Keys.SK; items expire by Keys.TTL. Defaults to keys.Scheme{}.WithDefaults().
	Keys keys.Scheme

	// Indexes of the table.
	Indexes []Index

	// MustExist is for a table that something else creates, such as the program that filled it:
	// where there is none, Plan, Verify and Ensure return ErrNoTable, and none is created. What
	// an existing table lacks is added all the same. Defaults to false: Ensure creates the table.
	MustExist bool

	// NoTTL leaves time to live as it is. Defaults to false: Ensure enables it on Keys.TTL.
	NoTTL bool

	// Capacity is the provisioned throughput of the table and of each global index. Defaults to
	// nil: a new table is on demand, an existing one stays as it is. Leave it nil
	// where auto scaling is at work, which Ensure would undo.
	Capacity *Capacity

	// Stream is the view type of the table's stream. Defaults to "": Ensure leaves the
	// stream as it is.
	Stream StreamView

	// PointInTimeRecovery is enabled by Ensure. Defaults to false: left as it is.
	PointInTimeRecovery bool

	// DeletionProtection is enabled by Ensure. Defaults to false: left as it is.
	DeletionProtection bool

	// Tags that the table carries at least. Defaults to none.
	Tags map[string]string
}

// Capacity is a provisioned throughput in units per second, each at least 1.
type Capacity struct{ Read, Write int64 }

// StreamView says what a stream's records contain.
type StreamView string

// The views that DynamoDB has.
const (
	StreamKeysOnly StreamView = StreamView(types.StreamViewTypeKeysOnly)
	StreamNew      StreamView = StreamView(types.StreamViewTypeNewImage)
	StreamOld      StreamView = StreamView(types.StreamViewTypeOldImage)
	StreamBoth     StreamView = StreamView(types.StreamViewTypeNewAndOldImages)
)

// AttributeType is the type of an index's key attribute.
type AttributeType string

// The types that key attributes can have.
const (
	String AttributeType = AttributeType(types.ScalarAttributeTypeS)
	Number AttributeType = AttributeType(types.ScalarAttributeTypeN)
	Binary AttributeType = AttributeType(types.ScalarAttributeTypeB)
)

// Index is a secondary index.
type Index struct {
	// Name of the index: like a table's.
	Name string

	// PK and SK name the key attributes. A local index has the table's PK, and may leave it
	// empty here. SK may be empty in a global index.
	PK, SK string

	// PKType and SKType are the types of the key attributes. Default to String.
	PKType, SKType AttributeType

	// Local makes a local secondary index, which can only be made with the table itself.
	Local bool

	// Include names the attributes that the index holds besides the keys. Defaults to nil:
	// all. An empty, non-nil list means the keys only.
	Include []string
}

func (s Schema) withDefaults() Schema {
	s.Keys = s.Keys.WithDefaults()
	s.Indexes = slices.Clone(s.Indexes)
	s.Tags = maps.Clone(s.Tags)
	if s.Capacity != nil {
		c := *s.Capacity
		s.Capacity = &c
	}
	for i := range s.Indexes {
		x := &s.Indexes[i]
		x.Include = slices.Clone(x.Include)
		if x.Local && x.PK == "" {
			x.PK = s.Keys.PK
		}
		if x.PKType == "" {
			x.PKType = String
		}
		if x.SKType == "" {
			x.SKType = String
		}
	}
	return s
}

// Index returns the index of that name.
func (s Schema) Index(name string) (Index, bool) {
	for _, x := range s.Indexes {
		if x.Name == name {
			return x, true
		}
	}
	return Index{}, false
}

// Validate says everything that is wrong with the schema, each with the field's name.
func (s Schema) Validate() error {
	s = s.withDefaults()
	var all []error
	bad := func(format string, args ...any) {
		all = append(all, fmt.Errorf("%w: schema: "+format, append([]any{ErrInvalid}, args...)...))
	}
	if !validName(s.Name) {
		bad("Name %q: want 3 to 255 of a-z A-Z 0-9 _ - .", s.Name)
	}
	if err := s.Keys.Validate(); err != nil {
		bad("Keys: %w", err)
	}
	if c := s.Capacity; c != nil && (c.Read < 1 || c.Write < 1) {
		bad("Capacity: want at least 1 read and 1 write unit, not %d and %d", c.Read, c.Write)
	}
	switch s.Stream {
	case "", StreamKeysOnly, StreamNew, StreamOld, StreamBoth:
	default:
		bad("Stream: unknown view %q", s.Stream)
	}
	kinds := map[string]AttributeType{s.Keys.PK: String, s.Keys.SK: String}
	if !s.NoTTL {
		kinds[s.Keys.TTL] = Number // an index could not hold rows that expire otherwise
	}
	locals := 0
	seen := map[string]bool{}
	for i, x := range s.Indexes {
		field := func(name string) string { return fmt.Sprintf("Indexes[%d].%s", i, name) }
		if !validName(x.Name) {
			bad("%s %q: want 3 to 255 of a-z A-Z 0-9 _ - .", field("Name"), x.Name)
		}
		if seen[x.Name] {
			bad("%s %q: used twice", field("Name"), x.Name)
		}
		seen[x.Name] = true
		if x.Local {
			locals++
		}
		if slices.Contains(x.Include, "") {
			bad("%s: empty attribute name", field("Include"))
		}
		switch {
		case x.PK == "":
			bad("%s: empty", field("PK"))
		case x.Local && x.PK != s.Keys.PK:
			bad("%s %q: a local index has the table's partition key %q", field("PK"), x.PK, s.Keys.PK)
		case x.Local && x.SK == "":
			bad("%s: a local index needs a sort key", field("SK"))
		case x.PK == x.SK:
			bad("%s: the same as PK", field("SK"))
		}
		for _, k := range []struct {
			field, name string
			kind        AttributeType
		}{{"PK", x.PK, x.PKType}, {"SK", x.SK, x.SKType}} {
			if k.name == "" {
				continue
			}
			if k.kind != String && k.kind != Number && k.kind != Binary {
				bad("%s: unknown type %q", field(k.field+"Type"), k.kind)
			}
			if other, ok := kinds[k.name]; ok && other != k.kind {
				bad("%s: attribute %q is of type %s elsewhere", field(k.field+"Type"), k.name, other)
			}
			kinds[k.name] = k.kind
			if len(k.name) > 255 {
				bad("%s: longer than 255 bytes", field(k.field))
			}
		}
	}
	if locals > maxLocalIndexes {
		bad("Indexes: %d are local, at most %d can be", locals, maxLocalIndexes)
	}
	return errs.Join(all...)
}

// maxLocalIndexes is DynamoDB's limit, which cannot be raised, unlike that of global ones.
// Source: "Quotas in Amazon DynamoDB", Secondary indexes per table.
const maxLocalIndexes = 5

func validName(name string) bool {
	if len(name) < 3 || len(name) > 255 {
		return false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-', c == '.':
		default:
			return false
		}
	}
	return true
}
