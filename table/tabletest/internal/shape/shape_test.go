package shape_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/table/tabletest/internal/jsontree"
	"github.com/mortise-go/mortise/table/tabletest/internal/shape"
)

func parse(t *testing.T, src string) *jsontree.Node {
	t.Helper()
	n, err := jsontree.Parse([]byte(src))
	require.NoError(t, err)
	return n
}

func request() *shape.Shape {
	color := shape.Enum("RED", "GREEN")
	part := shape.Struct("Part", shape.Need("Name", shape.Text().AtLeast(1).AtMost(3)), shape.May("Color", color))
	return shape.Struct("Input",
		shape.First("Id", shape.Text()),
		shape.May("Color", color),
		shape.Need("Table", shape.Text().Name().AtLeast(3).AtMost(5).OrARN()),
		shape.May("Limit", shape.Int("Integer").AtLeast(1).AtMost(10)),
		shape.May("Terse", shape.Struct("Terse", shape.May("Limit", shape.Int("Integer").AtLeast(1).Terse()))),
		shape.May("Parts", shape.List(part).AtMost(2)),
		shape.May("ByName", shape.Map("Part", part).Keys(shape.Text().Name().AtLeast(2))),
		shape.May("Lists", shape.Map("java.util.List", shape.List(shape.Item())).Each(shape.List(nil).AtLeast(1).AtMost(1))),
		shape.May("Key", shape.Item()))
}

func TestBroken_NamesConstraints(t *testing.T) {
	for src, want := range map[string]string{
		`{}`:                                 "The parameter 'Id' is required but was not present in the request",
		`{"Id":"x","Table":"abc"}`:           "",
		`{"Id":"x","Table":"abc","Other":1}`: "",
		`{"Id":"x"}`:                         "1 validation error detected: Value null at 'table' failed to satisfy constraint: Member must not be null",
		`{"Id":"x","Table":""}`:              "1 validation error detected: Value '' at 'table' failed to satisfy constraint: Member must have length greater than or equal to 1",
		`{"Id":"x","Table":"ä!"}`: "2 validation errors detected: Value 'ä!' at 'table' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+; " +
			"Value 'ä!' at 'table' failed to satisfy constraint: Member must have length greater than or equal to 3",
		`{"Id":"x","Table":"arn:aws:any length at all"}`: "",
		`{"Id":"x","Table":"abc","Limit":11,"Color":"BLUE"}`: "2 validation errors detected: Value 'BLUE' at 'color' failed to satisfy constraint: Member must satisfy enum value set: [RED, GREEN]; " +
			"Value '11' at 'limit' failed to satisfy constraint: Member must have value less than or equal to 10",
		`{"Id":"x","Table":"abc","Limit":-1e300}`:      "1 validation error detected: Value '-1e300' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1",
		`{"Id":"x","Table":"abc","Terse":{"Limit":0}}`: "1 validation error detected: Value at 'Terse.Limit' failed to satisfy constraint: Member must have value greater than or equal to 1",
		`{"Id":"x","Table":"abc","Parts":[{},{"Name":"long"}]}`: "2 validation errors detected: Value null at 'parts.1.member.name' failed to satisfy constraint: Member must not be null; " +
			"Value 'long' at 'parts.2.member.name' failed to satisfy constraint: Member must have length less than or equal to 3",
		`{"Id":"x","Table":"abc","Parts":[{"Name":"a"},{"Name":"b","Color":"RED"},{"Name":"c"}]}`: "1 validation error detected: Value '[Part(name=a, color=null), Part(name=b, color=RED), Part(name=c, color=null)]' at 'parts' failed to satisfy constraint: Member must have length less than or equal to 2",
		`{"Id":"x","Table":"abc","ByName":{"P":{"Name":"long"}}}`: "2 validation errors detected: Value '{P=Part(name=long, color=null)}' at 'byName' failed to satisfy constraint: " +
			"Map keys must satisfy constraint: [Member must have length greater than or equal to 2, Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+]; " +
			"Value 'long' at 'byName.P.member.name' failed to satisfy constraint: Member must have length less than or equal to 3",
		`{"Id":"x","Table":"abc","Lists":{"a":[{"k":{"S":"v"}},{"k":{"BOOL":true}}]}}`: "1 validation error detected: Value '{a=[{k=" + printed("s", "v") + "}, {k=" + printed("bOOL", "true") + "}]}' at 'lists' failed to satisfy constraint: " +
			"Map value must satisfy constraint: [Member must have length less than or equal to 1, Member must have length greater than or equal to 1]",
	} {
		assert.Equal(t, want, request().Broken(parse(t, src)), src)
	}
}

// printed is an attribute value as the service's class prints it.
func printed(member, value string) string {
	members := strings.Split("s n b iNT dECIMAL dOUBLE sS nS bS iNTSET dECIMALSET dOUBLESET m l nULL bOOL", " ")
	for i, m := range members {
		v := "null"
		if m == member {
			v = value
		}
		members[i] = m + "=" + v
	}
	return "AttributeValue(" + strings.Join(members, ", ") + ")"
}

func TestBroken_NamesTenConstraintsAtMost(t *testing.T) {
	parts := strings.Repeat(`{},`, 11) + `{}`
	text := request().Broken(parse(t, fmt.Sprintf(`{"Id":"x","Table":"abc","Parts":[%s]}`, parts)))
	assert.True(t, strings.HasPrefix(text, "10 validation errors detected: "))
	assert.Equal(t, 9, strings.Count(text, "Member must not be null"))
}

func TestNulls_AreAsGoodAsMissing(t *testing.T) {
	n := parse(t, `{"Id":"x","Table":"abc","Limit":null,"Color":null,"Parts":null,"Key":{"k":{"S":null}},"Lists":null}`)
	require.NoError(t, request().Types(n))
	assert.Empty(t, request().Broken(n))
}
