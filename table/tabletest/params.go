package tabletest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
	"github.com/mortise-go/mortise/table/tabletest/internal/expr"
	"github.com/mortise-go/mortise/table/tabletest/internal/jsontree"
)

const (
	// maxPlaceholder is the maximum length of a placeholder, including # or :.
	maxPlaceholder = 255
	// maxSubstitutions is the maximum size of a request's placeholders with their names and values.
	maxSubstitutions = 2 << 20
)

// table returns the table that the request names.
func (c *call) table(in *fields) (*table, error) {
	name := in.text("TableName")
	return c.lookup(name)
}

// tableItself is like table, but for operations on tables: their error for a missing table contains its name.
func (c *call) tableItself() (*table, error) { return c.tableOr(errNoSuchTable) }

// tableOr returns the table that the request names, or the error that missing returns for a table that is not there.
func (c *call) tableOr(missing func(name string) *apiError) (*table, error) {
	t, err := c.table(&c.in)
	if err != nil && asAPI(err).code == codeNotFound {
		return nil, missing(tableOfARN(c.in.text("TableName")))
	}
	return t, err
}

func (c *call) lookup(given string) (*table, error) {
	if err := checkTableARN(given); err != nil {
		return nil, err
	}
	name := tableOfARN(given)
	c.noteTable(name)
	t, ok := c.e.tables[name]
	if !ok {
		return nil, errMissingTable()
	}
	if given != name {
		if c.arns == nil {
			c.arns = map[*table]string{}
		}
		c.arns[t] = given
	}
	return t, nil
}

// nameOf returns the table's name in the answer: its ARN if the request used that.
func (c *call) nameOf(t *table) string {
	if arn, ok := c.arns[t]; ok {
		return arn
	}
	return t.name
}

// expressions reads ExpressionAttributeNames and ExpressionAttributeValues. params are the expressions that can use them. If the
// request has none of these expressions, names and values are refused. In a transaction they are ignored.
func expressions(in *fields, params ...string) (*expr.Env, error) {
	if err := checkUsers(in, params); err != nil {
		return nil, err
	}
	env := &expr.Env{}
	if in.action && !slices.ContainsFunc(params, in.has) {
		return env, nil
	}
	names, err := readNames(in, env)
	if err != nil {
		return nil, err
	}
	values, err := readValues(in, env)
	if err != nil {
		return nil, err
	}
	if names+values > maxSubstitutions {
		return nil, invalid("Combined size of ExpressionAttributeNames and ExpressionAttributeValues exceeds max size")
	}
	return env, nil
}

// checkUsers refuses names and values that no expression of the request can use.
func checkUsers(in *fields, params []string) error {
	if in.action {
		return nil
	}
	named, valued := false, false
	for _, p := range params {
		named = named || in.has(p)
		valued = valued || in.has(p) && p != "ProjectionExpression"
	}
	if !named && in.has("ExpressionAttributeNames") {
		return invalid("ExpressionAttributeNames can only be specified when using expressions")
	}
	if !valued && in.has("ExpressionAttributeValues") {
		return invalid("ExpressionAttributeValues can only be specified when using expressions: %s", missingExpressions(params))
	}
	return nil
}

func missingExpressions(params []string) string {
	var users []string
	for _, p := range params {
		if p != "ProjectionExpression" {
			users = append(users, p)
		}
	}
	if len(users) == 1 {
		return users[0] + " is null"
	}
	return strings.Join(users, " and ") + " are null"
}

// readNames returns the size of the names and their placeholders.
func readNames(in *fields, env *expr.Env) (size int, _ error) {
	members := in.members("ExpressionAttributeNames")
	if members == nil {
		return 0, nil
	}
	if len(members) == 0 {
		return 0, invalid("ExpressionAttributeNames must not be empty")
	}
	if err := checkPlaceholders("ExpressionAttributeNames", members, '#'); err != nil {
		return 0, err
	}
	env.Names = make(map[string]string, len(members))
	for i := range members {
		m := &members[i]
		if err := attr.CheckName(m.Value.Text); err != nil {
			return 0, invalid("ExpressionAttributeNames contains invalid value: %s for key %s", err, m.Name)
		}
		env.Names[m.Name] = m.Value.Text
		size += len(m.Name) + len(m.Value.Text)
	}
	if size > maxSubstitutions {
		return 0, invalid("ExpressionAttributeNames exceeds max size")
	}
	return size, nil
}

// readValues returns the size of the values and their placeholders.
func readValues(in *fields, env *expr.Env) (size int, _ error) {
	members := in.members("ExpressionAttributeValues")
	if members == nil {
		return 0, nil
	}
	if len(members) == 0 {
		return 0, invalid("ExpressionAttributeValues must not be empty")
	}
	if err := checkPlaceholders("ExpressionAttributeValues", members, ':'); err != nil {
		return 0, err
	}
	env.Values = make(map[string]*attr.Value, len(members))
	for i := range members {
		m := &members[i]
		v, err := attr.Decode(&m.Value)
		if err != nil {
			if api := asAPI(err); api.code == codeValidation {
				return 0, invalid("ExpressionAttributeValues contains invalid value: %s for key %s", api.message, m.Name)
			}
			return 0, err
		}
		env.Values[m.Name] = v
		size += len(m.Name) + v.Size()
	}
	if size > maxSubstitutions {
		return 0, invalid("ExpressionAttributeValues exceeds max size")
	}
	return size, nil
}

// checkPlaceholders checks all placeholders. The service does so before it looks at any name or value.
func checkPlaceholders(param string, members []jsontree.Member, first byte) error {
	for i := range members {
		if err := checkPlaceholder(param, members[i].Name, first); err != nil {
			return err
		}
	}
	return nil
}

func checkPlaceholder(param, name string, first byte) error {
	if len(name) > maxPlaceholder {
		size := ""
		if first == '#' { // the service tells the size of a name's placeholder, and not of a value's
			size = fmt.Sprintf(" size of key: %d", len(name))
		}
		return invalid("%s contains invalid key: The expression attribute map contains a key that is too long;%s", param, size)
	}
	ok := len(name) > 1 && name[0] == first
	for i := 1; ok && i < len(name); i++ {
		c := name[i]
		ok = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
	}
	if !ok {
		return invalid("%s contains invalid key: Syntax error; key: \"%s\"", param, name)
	}
	return nil
}

// refuseMixed refuses a request that uses expressions and their older forms together.
func refuseMixed(in *fields, legacy, modern []string) error {
	return errMixed(given(in, legacy), given(in, modern))
}

// errMixed returns an error if a request has both kinds of parameters.
func errMixed(old, now []string) error {
	if len(old) == 0 || len(now) == 0 {
		return nil
	}
	return invalid("Can not use both expression and non-expression parameters in the same request: Non-expression parameters: {%s} Expression parameters: {%s}",
		strings.Join(old, ", "), strings.Join(now, ", "))
}

func given(in *fields, names []string) []string {
	var out []string
	for _, n := range names {
		if in.has(n) {
			out = append(out, n)
		}
	}
	return out
}

// readProjection reads ProjectionExpression or AttributesToGet. It returns nil for the whole item.
func readProjection(in *fields, env *expr.Env) (*expr.Projection, error) {
	if n := in.n.Get("ProjectionExpression"); !n.IsNull() {
		p, err := expr.ParseProjection(in.text("ProjectionExpression"), env)
		return p, within("ProjectionExpression", err)
	}
	names := in.texts("AttributesToGet")
	if !in.has("AttributesToGet") {
		return nil, nil
	}
	paths := make([]expr.Path, 0, len(names))
	for i, name := range names {
		if err := attr.CheckName(name); err != nil {
			return nil, err
		}
		if slices.Contains(names[:i], name) {
			return nil, parameter("Duplicate value in attribute name: %s", name)
		}
		paths = append(paths, expr.Root(name))
	}
	return expr.ProjectPaths(paths), nil
}
