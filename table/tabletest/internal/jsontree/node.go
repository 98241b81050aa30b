package jsontree

// Kind is the kind of a Node.
type Kind uint8

// The kinds of JSON values. Null is the zero value, so a missing member reads like an explicit null.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// String returns the kind's name in DynamoDB's serialization errors.
func (k Kind) String() string {
	switch k {
	case Null:
		return "NULL_VALUE"
	case Bool:
		return "TRUE_VALUE"
	case Number:
		return "NUMBER_VALUE"
	case String:
		return "STRING_VALUE"
	case Array:
		return "START_ARRAY"
	case Object:
		return "START_OBJECT"
	default:
		return "UNKNOWN"
	}
}

// Node is one value of a document. Which fields are set depends on Kind.
type Node struct {
	Kind    Kind
	Bool    bool
	Text    string // String: the unescaped text. Number: the literal as written
	Items   []Node
	Members []Member
}

// Member is one name and value of an object.
type Member struct {
	Name  string
	Value Node
}

// absent is returned by Get for a missing member. It is never modified.
var absent = &Node{}

// Get returns the value of the last member with the name, or a Null node. It takes time linear in the number of members.
func (n *Node) Get(name string) *Node {
	for i := len(n.Members) - 1; i >= 0; i-- {
		if n.Members[i].Name == name {
			return &n.Members[i].Value
		}
	}
	return absent
}

// IsNull reports whether the value is missing or null.
func (n *Node) IsNull() bool { return n.Kind == Null }
