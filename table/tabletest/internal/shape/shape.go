package shape

// kind is the JSON type of a shape.
type kind uint8

const (
	structure kind = iota + 1
	list
	dictionary
	text
	integer
	boolean
	value // an attribute value
)

// Shape is the type of a request, or of a value in a request. Constructors return a Shape and methods add constraints to it. A Shape
// must not change any more once it is used.
type Shape struct {
	kind   kind
	class  string // the service's name for the type
	fields []Field
	elem   *Shape

	enum     []string
	name     bool // letters, digits and _.- only
	low      int
	high     int
	hasLow   bool
	hasHigh  bool
	keys     *Shape // constraints of each key of a dictionary
	each     *Shape // constraints of each value of a dictionary, reported for the dictionary as a whole
	terse    bool   // see Terse
	resource bool   // see OrARN
	control  bool   // see Control
}

// Field is one member of a structure.
type Field struct {
	Name     string
	Shape    *Shape
	Required bool
	first    bool // see First
}

// Need returns a required member.
func Need(name string, s *Shape) Field { return Field{Name: name, Shape: s, Required: true} }

// First returns a required member whose absence the service reports alone and before all other errors.
func First(name string, s *Shape) Field { return Field{Name: name, Shape: s, first: true} }

// May returns an optional member.
func May(name string, s *Shape) Field { return Field{Name: name, Shape: s} }

// Struct is an object with the given members; other members are ignored. class is the service's name for the type. Broken constraints
// are reported in the order of the fields.
func Struct(class string, fields ...Field) *Shape {
	return &Shape{kind: structure, class: class, fields: fields}
}

// List is an array.
func List(elem *Shape) *Shape { return &Shape{kind: list, elem: elem} }

// Map is an object with any members. class is the service's name for the type of its values.
func Map(class string, elem *Shape) *Shape {
	return &Shape{kind: dictionary, class: class, elem: elem}
}

// Text is a string.
func Text() *Shape { return &Shape{kind: text, class: "String"} }

// Enum is a string that is one of the values, in the order in which the service lists them.
func Enum(values ...string) *Shape { return &Shape{kind: text, class: "String", enum: values} }

// Int is a number. class is the service's Java type, "Integer" or "Long".
func Int(class string) *Shape { return &Shape{kind: integer, class: class} }

// Bool is true or false.
func Bool() *Shape { return &Shape{kind: boolean, class: "Boolean"} }

// Value is an attribute value.
func Value() *Shape { return &Shape{kind: value, class: "AttributeValue"} }

// Item is a map of attribute values.
func Item() *Shape { return Map("AttributeValue", Value()) }

// AtLeast sets the minimum of a number, or of the length of anything else.
func (s *Shape) AtLeast(n int) *Shape {
	s.low, s.hasLow = n, true
	return s
}

// AtMost sets the maximum of a number, or of the length of anything else.
func (s *Shape) AtMost(n int) *Shape {
	s.high, s.hasHigh = n, true
	return s
}

// Name restricts a string to the characters of names of tables and indexes.
func (s *Shape) Name() *Shape {
	s.name = true
	return s
}

// OrARN makes the shape accept the ARN of a resource instead of a name.
func (s *Shape) OrARN() *Shape {
	s.resource = true
	return s
}

// Control marks a name in an operation on tables. These report the length of a name before its characters, and an empty name like any
// other. Operations on items report an empty name or ARN as such.
func (s *Shape) Control() *Shape {
	s.control = true
	return s
}

// Keys sets the constraints of a map's keys.
func (s *Shape) Keys(k *Shape) *Shape {
	s.keys = k
	return s
}

// Each sets constraints of a map's values that are reported for the map as a whole.
func (s *Shape) Each(v *Shape) *Shape {
	s.each = v
	return s
}

// Terse marks a shape that the service checks with a newer validator. Its error texts do not repeat the value, and spell the path as in
// the request.
func (s *Shape) Terse() *Shape {
	s.terse = true
	return s
}
