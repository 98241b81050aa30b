package table

import (
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/keys"
)

// Schema describes a table. Only Name is required; the zero values of all other fields are useful.
type Schema struct {
	// Name is the table's name: 3 to 255 letters, digits, '_', '-' and '.'.
	Name string

	// Keys names the attributes. The partition key Keys.PK and the sort key Keys.SK are strings; items expire by
	// Keys.TTL. Defaults to keys.Scheme{}.WithDefaults().
	Keys keys.Scheme

	// Indexes are the table's secondary indexes.
	Indexes []Index

	// MustExist is for a table that another program creates. If it does not exist, Plan, Verify and Ensure return
	// [ErrNoTable], and Ensure does not create it. Ensure still adds what an existing table lacks. Defaults to false:
	// Ensure creates the table.
	MustExist bool

	// NoTTL leaves the time to live as it is. Defaults to false: Ensure enables it on Keys.TTL.
	NoTTL bool

	// Capacity is the provisioned throughput of the table and of each global index. Leave it nil if auto scaling is
	// active, since Ensure would undo it. Defaults to nil: a new table is on demand, and an existing one stays as it
	// is.
	Capacity *Capacity

	// Stream is the view type of the table's stream. Defaults to "": Ensure leaves the stream as it is.
	Stream StreamView

	// PointInTimeRecovery makes Ensure enable it. Defaults to false: it stays as it is.
	PointInTimeRecovery bool

	// DeletionProtection makes Ensure enable it. Defaults to false: it stays as it is.
	DeletionProtection bool

	// Tags are tags that the table must have; it may have others. Defaults to none.
	Tags map[string]string
}

// Capacity is a provisioned throughput in units per second, each at least 1.
type Capacity struct{ Read, Write int64 }

// StreamView is the content of a stream's records.
type StreamView string

// Views of a stream.
const (
	StreamKeysOnly StreamView = StreamView(types.StreamViewTypeKeysOnly)
	StreamNew      StreamView = StreamView(types.StreamViewTypeNewImage)
	StreamOld      StreamView = StreamView(types.StreamViewTypeOldImage)
	StreamBoth     StreamView = StreamView(types.StreamViewTypeNewAndOldImages)
)

// AttributeType is the type of an index's key attribute.
type AttributeType string

// Types of key attributes.
const (
	String AttributeType = AttributeType(types.ScalarAttributeTypeS)
	Number AttributeType = AttributeType(types.ScalarAttributeTypeN)
	Binary AttributeType = AttributeType(types.ScalarAttributeTypeB)
)

// Index is a secondary index.
type Index struct {
	// Name is the index's name: 3 to 255 letters, digits, '_', '-' and '.'.
	Name string

	// PK and SK name the key attributes. A local index has the table's PK, and may leave PK empty here. A global index
	// may leave SK empty.
	PK, SK string

	// PKType and SKType are the types of the key attributes. Default to [String].
	PKType, SKType AttributeType

	// Local makes it a local secondary index. It can only be created together with the table.
	Local bool

	// Include lists the attributes that the index projects besides the keys. Defaults to nil: all. An empty list that
	// is not nil means the keys only.
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

// Index returns the index with a name.
func (s Schema) Index(name string) (Index, bool) {
	for _, x := range s.Indexes {
		if x.Name == name {
			return x, true
		}
	}
	return Index{}, false
}

// Holds reports whether an index has an attribute of its items: one that it projects, or a key of the index or of the table.
func (s Schema) Holds(index, attr string) bool {
	x, ok := s.Index(index)
	s.Keys = s.Keys.WithDefaults()
	return ok && (x.Include == nil || slices.Contains(x.Include, attr) || slices.Contains([]string{x.PK, x.SK, s.Keys.PK, s.Keys.SK}, attr))
}

// Validate returns all errors of the schema, each with the field's name.
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
		kinds[s.Keys.TTL] = Number // an index with another type could not contain rows that expire
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

// maxLocalIndexes is DynamoDB's limit for one table. AWS can raise the limit of global indexes, but not this one. Source: "Quotas in
// Amazon DynamoDB", Secondary indexes per table.
const maxLocalIndexes = 5

// keyType returns the type of a key attribute of the table or of x, or "" for any other attribute.
func (s *Schema) keyType(x Index, name string) AttributeType {
	switch name {
	case s.Keys.PK, s.Keys.SK:
		return String
	case x.PK:
		return x.PKType
	case x.SK:
		return x.SKType
	}
	return ""
}

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
