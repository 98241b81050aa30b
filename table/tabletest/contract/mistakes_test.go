package contract_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Of several mistakes in an update, the service names those in parentheses
// first, then those in words and functions, clause by clause, then the last one
// in paths, then the last one in operands, and at last too many operators.
func TestUpdate_WithSeveralMistakesNamesTheServicesFirst(t *testing.T) {
	const (
		parentheses = "The expression has redundant parentheses"
		reserved    = "Attribute name is a reserved keyword; reserved keyword: "
		unknown     = "Invalid function name; function: "
		misplaced   = "The function is not allowed to be used this way in an expression; function: list_append"
		elsewhere   = "The function is not allowed in an update expression; function: size"
		twice       = `The "SET" section can only be used once in an update expression`
		overlap     = "Two document paths overlap with each other; must remove or rewrite one of these paths; "
		conflict    = "Two document paths conflict with each other; must remove or rewrite one of these paths; "
		noName      = "An expression attribute name used in the document path is not defined; attribute name: "
		noValue     = "An expression attribute value used in expression is not defined; attribute value: "
		noPath      = "Operator or function requires a document path; operator or function: if_not_exists"
		count       = "Incorrect number of operands for operator or function; operator or function: "
		operandType = "Incorrect operand type for operator or function; "
	)
	many := "SET q0 = a + a" // more operators than are allowed
	for i := range 300 {
		many += fmt.Sprintf(",q%d=a+a", i+1)
	}
	onTable(t, func(tb table) {
		for _, tc := range []struct{ update, text string }{
			{"SET a = size(b), c = ((b))", parentheses},
			{"SET a = ((b)) SET b = c", parentheses},
			{"SET a = b + ((c)) d", parentheses},
			{"SET a = b, d SET b = ((c))", `Syntax error; token: "SET", near: "d SET b"`},
			{"SET a = :s SET abort = :s", reserved + "abort"},
			{"SET a = whatever(:s) SET b = :s", unknown + "whatever"},
			{"SET a = size(b) SET c = :s", elsewhere},
			{"SET a = :s SET b = :s SET c = size(b)", twice},
			{"SET a = #no SET b = :no", twice},
			{"SET a = list_append(list_append(views, b), c)", misplaced},
			{"SET a = list_append(list_append(:s, b), c)", misplaced},
			{"SET a = :s + list_append(:no, b), c = whatever(b)", misplaced},
			{"SET a = list_append(size(b), list_append(b, c))", elsewhere},
			{"SET d[1] = a, d.b = a, c[1].a = a, c = if_not_exists(a)", overlap + "path one: [c, [1], a], path two: [c]"},
			{"SET c.d = :s, b = :no, c = :s", overlap + "path one: [c, d], path two: [c]"},
			{"SET b = if_not_exists(a), b = :no", overlap},
			{"SET c[3].d = a, c.d[3] = if_not_exists(a)", conflict},
			{"SET #no = :s, b = :s, b = :s", overlap},
			{"SET b = :s, b = :s, #no = :s", noName + "#no"},
			{"SET b = :no REMOVE #no", noName + "#no"},
			{"SET b = :no, c = #no", noName + "#no"},
			{"SET b = #no, c = :no", noValue + ":no"},
			{"SET a = :no, b = if_not_exists(:s, :s)", noPath},
			{"SET a = if_not_exists(:s, :s), b = :no", noValue + ":no"},
			{"SET b = list_append(:s, a), c = if_not_exists(a) ADD a.b :s", operandType + "operator: ADD, operand type: STRING"},
			{"ADD a :s SET b = list_append(c)", count + "list_append, number of operands: 1"},
			{"ADD a :no, b :s", operandType + "operator: ADD, operand type: STRING"},
			{"ADD a :s, b :no", noValue + ":no"},
			{many + ", b = :no", noValue + ":no"},
			{many + ", q0 = a", overlap},
			{many + " ADD b :s", operandType + "operator: ADD, operand type: STRING"},
			{many + ", b = :s", "The expression contains too many operators; operator count: 301"},
		} {
			_, err := tb.UpdateItem(tb.ctx(), &dynamodb.UpdateItemInput{
				TableName: tb.name, Key: key("i"), UpdateExpression: &tc.update, ExpressionAttributeValues: values(document{"s": "x"}),
			})
			tb.refused(err, "Invalid UpdateExpression: "+tc.text)
		}
	})
}

func TestCondition_WithSeveralMistakesNamesTheServicesFirst(t *testing.T) {
	const (
		parentheses = "The expression has redundant parentheses"
		misplaced   = "The function is not allowed to be used this way in an expression; function: "
	)
	many := strings.Repeat("a < b AND ", 150) // as many operators as are allowed
	onTable(t, func(tb table) {
		for _, tc := range []struct{ condition, text string }{
			{"a > whatever((:n), ((a)))", parentheses},
			{"if_not_exists(a, ((b))) = :n", parentheses},
			{"a BETWEEN (((b)).c) AND c", parentheses},
			{"a > ((b)) AND", parentheses},
			{"((a = b)) x", parentheses},
			{"(a > ((b)) x", parentheses},
			{"((a)).b = c", `Syntax error; token: ".", near: ").b"`},
			{"a > ((b) c)", `Syntax error; token: "c", near: ") c)"`},
			{"a = b AND attribute_exists((views), (#a)) > b", misplaced + "attribute_exists"},
			{"size(attribute_exists(a))", misplaced + "size"},
			{"size(contains(a, b)) > a", misplaced + "contains"},
			{"size(views)", misplaced + "size"},
			{"a = b AND whatever((:n)) > a", "Invalid function name; function: whatever"},
			{"attribute_exists(views, #a)", "Attribute name is a reserved keyword; reserved keyword: views"},
			{many + "views = a", "Attribute name is a reserved keyword; reserved keyword: views"},
			{many + "size(size(a)) > b", "Incorrect operand type for operator or function; operator or function: size, operand type: N"},
			{many + "a = :no", "An expression attribute value used in expression is not defined; attribute value: :no"},
			{many + many + "a = b", "The expression contains too many operators; operator count: 301"},
		} {
			_, err := tb.Scan(tb.ctx(), &dynamodb.ScanInput{
				TableName: tb.name, FilterExpression: &tc.condition, ExpressionAttributeValues: values(document{"n": 1}),
			})
			tb.refused(err, "Invalid FilterExpression: "+tc.text)
		}
	})
}

func TestProjection_WithSeveralMistakesNamesTheServicesFirst(t *testing.T) {
	onTable(t, func(tb table) {
		for _, tc := range []struct{ projection, text string }{
			{"b[1], b.a, a.b, a", "Two document paths overlap with each other"},
			{"s, s, m.k, m[1]", "Two document paths conflict with each other"},
			{"#no, a, a", "Two document paths overlap with each other"},
			{"a, a, #no", "An expression attribute name used in the document path is not defined; attribute name: #no"},
			{"a, a, views", "Attribute name is a reserved keyword; reserved keyword: views"},
		} {
			_, err := tb.GetItem(tb.ctx(), &dynamodb.GetItemInput{TableName: tb.name, Key: key("i"), ProjectionExpression: &tc.projection})
			tb.refused(err, "Invalid ProjectionExpression: "+tc.text)
		}
	})
}

func TestKeyCondition_WithSeveralMistakesNamesTheServicesFirst(t *testing.T) {
	const repeated = "KeyConditionExpressions must only contain one condition per key"
	onTable(t, func(tb table) {
		for _, tc := range []struct{ condition, text string }{
			{"pk = :s AND pk = :s AND sk <> :s", repeated},
			{"pk = :s AND pk = :s AND a.k = :s", repeated},
			{"pk = :s AND pk = :s AND :s = :s", repeated},
			{"sk <> :s AND pk = :s AND pk = :s", "Invalid operator used in KeyConditionExpression: <>"},
		} {
			_, err := tb.Query(tb.ctx(), &dynamodb.QueryInput{
				TableName: tb.name, KeyConditionExpression: aws.String(tc.condition), ExpressionAttributeValues: values(document{"s": "x"}),
			})
			tb.refused(err, tc.text)
		}
	})
}
