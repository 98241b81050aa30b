package contract_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
)

// tags makes tags of keys and values.
func tags(pairs ...string) []types.Tag {
	var out []types.Tag
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, types.Tag{Key: &pairs[i], Value: &pairs[i+1]})
	}
	return out
}

// numbered makes n tags with different keys.
func numbered(prefix string, n int) []types.Tag {
	var out []types.Tag
	for i := range n {
		out = append(out, tags(fmt.Sprint(prefix, i), "v")...)
	}
	return out
}

// onTagged gives f a table and its ARN. DynamoDB Local has no tags.
func onTagged(t *testing.T, f func(tb table, arn *string)) {
	onTable(t, func(tb table) {
		engines.Only(tb.T, engines.InProcess, "DynamoDB Local answers that tagging is not supported")
		out, err := tb.DescribeTable(tb.ctx(), &dynamodb.DescribeTableInput{TableName: tb.name})
		require.NoError(tb, err)
		f(tb, out.Table.TableArn)
	})
}

// tagged checks all tags of a table, in any order.
func (tb table) tagged(arn *string, want []types.Tag) {
	tb.Helper()
	out, err := tb.ListTagsOfResource(tb.ctx(), &dynamodb.ListTagsOfResourceInput{ResourceArn: arn})
	require.NoError(tb, err)
	assert.ElementsMatch(tb, want, out.Tags)
	assert.Nil(tb, out.NextToken)
}

func (tb table) tag(arn *string, tags []types.Tag) error {
	_, err := tb.TagResource(tb.ctx(), &dynamodb.TagResourceInput{ResourceArn: arn, Tags: tags})
	return err
}

func (tb table) untag(arn *string, keys ...string) error {
	_, err := tb.UntagResource(tb.ctx(), &dynamodb.UntagResourceInput{ResourceArn: arn, TagKeys: keys})
	return err
}

func TestTags_AreAddedReplacedAndRemoved(t *testing.T) {
	onTagged(t, func(tb table, arn *string) {
		tb.tagged(arn, nil)
		require.NoError(tb, tb.tag(arn, tags("a", "1", "b", "2")))
		require.NoError(tb, tb.tag(arn, tags("b", "3", "B", "", "c", "4")))
		tb.tagged(arn, tags("a", "1", "b", "3", "B", "", "c", "4"))
		require.NoError(tb, tb.tag(arn, tags("a", "1")))
		require.NoError(tb, tb.untag(arn, "a", "absent", "c"))
		tb.tagged(arn, tags("b", "3", "B", ""))
		require.NoError(tb, tb.untag(arn, "a"))
		tb.tagged(arn, tags("b", "3", "B", ""))
	})
}

func TestTags_WritesAreAnsweredWithoutABody(t *testing.T) {
	onTagged(t, func(tb table, arn *string) {
		for op, members := range map[string]string{"TagResource": `"Tags":[{"Key":"k","Value":"v"}]`, "UntagResource": `"TagKeys":["k"]`} {
			resp, body := tb.post("DynamoDB_20120810."+op, `{"ResourceArn":"`+*arn+`",`+members+`}`)
			assert.Equal(tb, http.StatusOK, resp.StatusCode, op)
			assert.Empty(tb, body, op)
		}
	})
}

func TestTags_OfEveryScriptAndTheLongestAreStored(t *testing.T) {
	onTagged(t, func(tb table, arn *string) {
		want := tags(
			"ключ", "значение", "表", "café", "a b\u00a0c", "a+b-c=d.e_f:g/h@i",
			strings.Repeat("é", 128), strings.Repeat("表", 256), "xaws:", "aws:x", "aws", "٣",
		)
		require.NoError(tb, tb.tag(arn, want))
		tb.tagged(arn, want)
	})
}

func TestTags_AreAllInOnePage(t *testing.T) {
	onTagged(t, func(tb table, arn *string) {
		want := numbered("k", 50)
		require.NoError(tb, tb.tag(arn, want))
		tb.tagged(arn, want)
		out, err := tb.ListTagsOfResource(tb.ctx(), &dynamodb.ListTagsOfResourceInput{ResourceArn: arn, NextToken: aws.String("junk")})
		require.NoError(tb, err)
		assert.Len(tb, out.Tags, 50)
		assert.Nil(tb, out.NextToken)
	})
}

const tooManyTags = "Number of Tags exceed the current limit for the provided ResourceArn"

func TestTags_AreLimitedAfterTheyAreMerged(t *testing.T) {
	onTagged(t, func(tb table, arn *string) {
		want := numbered("k", 50)
		require.NoError(tb, tb.tag(arn, want))
		tb.refused(tb.tag(arn, tags("another", "v")), tooManyTags)
		tb.refused(tb.tag(arn, tags("k0", "new", "another", "v")), tooManyTags)
		tb.tagged(arn, want)
		require.NoError(tb, tb.tag(arn, tags("k0", "new")))
		require.NoError(tb, tb.untag(arn, "k1"))
		require.NoError(tb, tb.tag(arn, tags("another", "v")))
		tb.tagged(arn, slices.Concat(tags("k0", "new", "another", "v"), want[2:]))
	})
}

// wrongTags are sets of tags that are refused, by text.
func wrongTags() map[string][]types.Tag {
	wrong := map[string][]types.Tag{
		"The Tag Key provided is invalid, Key: ":                                tags("", "v"),
		"The Tag Key provided is invalid, Key: null":                            {{Value: aws.String("v")}},
		"The Tag Key provided is invalid, Key: " + strings.Repeat("k", 129):     tags(strings.Repeat("k", 129), "v"),
		"The Tag Value provided is invalid, Value: null":                        {{Key: aws.String("k")}},
		"The Tag Value provided is invalid, Value: " + strings.Repeat("v", 257): tags("k", strings.Repeat("v", 257)),
		"Tag Key cannot be prefixed with aws:, Key: aws:x":                      tags("aws:x", "v"),
		"Tag Key cannot be prefixed with aws:, Key: AwS:":                       tags("AwS:", "v"),
		"Duplicate Tag Keys provided as input: Duplicate Tag Key found dup":     tags("dup", "1", "k", "2", "dup", "1"),
		tooManyTags: numbered("k", 51),
	}
	for _, s := range []string{"🔑", "100%", "a,b", `"q"`, "'q'", "(x)", "[y]", "{z}", "a&b", "a*b", "a;b", "a?b", "a|b", `a\b`, "<a>", "~a", "#", "e\u0301"} {
		wrong["The Tag Key provided is invalid, Key: "+s] = tags(s, "v")
		wrong["The Tag Value provided is invalid, Value: "+s] = tags("k", s)
	}
	return wrong
}

func TestTags_WrongOnesAreRefusedAsAWhole(t *testing.T) {
	onTagged(t, func(tb table, arn *string) {
		for text, wrong := range wrongTags() {
			_, err := tb.TagResource(tb.ctx(), &dynamodb.TagResourceInput{ResourceArn: arn, Tags: slices.Concat(tags("good", "v"), wrong)}, loosely)
			tb.refused(err, text)
		}
		for member, list := range map[string][]types.Tag{
			"1 validation error detected: Value null at 'tags' failed to satisfy constraint: Member must not be null": nil,
			"Atleast one Tag needs to be provided as Input.":                                                          {},
		} {
			_, err := tb.TagResource(tb.ctx(), &dynamodb.TagResourceInput{ResourceArn: arn, Tags: list}, loosely)
			tb.refused(err, member)
		}
		tb.tagged(arn, nil)
	})
}

func TestTagKeys_WrongOnesAreRefusedAsAWhole(t *testing.T) {
	onTagged(t, func(tb table, arn *string) {
		require.NoError(tb, tb.tag(arn, tags("good", "v")))
		many := make([]string, 51)
		for i := range many {
			many[i] = fmt.Sprint("k", i)
		}
		for text, keys := range map[string][]string{
			"The Tag Key provided is invalid, Key: ":                            {"good", ""},
			"The Tag Key provided is invalid, Key: " + strings.Repeat("k", 129): {"good", strings.Repeat("k", 129)},
			"Tag Key cannot be prefixed with aws:, Key: aws:x":                  {"good", "aws:x"},
			tooManyTags: many,
			"Atleast one Tag Key needs to be provided as Input.":                                                         {},
			"1 validation error detected: Value null at 'tagKeys' failed to satisfy constraint: Member must not be null": nil,
		} {
			_, err := tb.UntagResource(tb.ctx(), &dynamodb.UntagResourceInput{ResourceArn: arn, TagKeys: keys}, loosely)
			tb.refused(err, text)
		}
		tb.tagged(arn, tags("good", "v"))
	})
}

func TestTags_NeedTheARNOfATable(t *testing.T) {
	onTagged(t, func(tb table, arn *string) {
		calls := map[string]func(arn *string) error{
			"TagResource":   func(arn *string) error { return tb.tag(arn, tags("k", "v")) },
			"UntagResource": func(arn *string) error { return tb.untag(arn, "k") },
			"ListTagsOfResource": func(arn *string) error {
				_, err := tb.ListTagsOfResource(tb.ctx(), &dynamodb.ListTagsOfResourceInput{ResourceArn: arn})
				return err
			},
		}
		const prefix = "One or more parameter values were invalid: "
		for name, call := range calls {
			missing := *arn + "-missing"
			err := call(&missing)
			var notFound *types.ResourceNotFoundException
			require.ErrorAs(tb, err, &notFound, name)
			assert.Equal(tb, "Requested resource not found: ResourceArn: "+missing+" not found", *notFound.Message, name)
			for wrong, text := range map[string]string{
				"":                    "Invalid TableArn",
				*tb.name:              prefix + "ARNs must start with 'arn:': " + *tb.name,
				"arn:aws:s3:::bucket": prefix + "Provided Arn is not a DynamoDB resource arn: arn:aws:s3:::bucket",
				*arn + "/backup/0123": prefix + "Provided Arn is not a DynamoDB resource arn: " + *arn + "/backup/0123",
				*arn + "/index/gsi":   prefix + "Invalid resource arn provided, only table or stream is accepted. Provided resource arn: " + *arn + "/index/gsi",
				"arn:aws:dynamodb":    "Invalid TableArn: Invalid ResourceArn provided as input arn:aws:dynamodb",
				strings.Replace(*arn, "us-east-1", "eu-west-1", 1): "Invalid TableArn: Invalid ResourceArn provided as input " + strings.Replace(*arn, "us-east-1", "eu-west-1", 1),
			} {
				tb.refused(call(&wrong), text)
			}
		}
	})
}

func TestTags_AreCreatedWithTheTable(t *testing.T) {
	onTagged(t, func(tb table, arn *string) {
		other := *tb.name + "-tagged"
		in := createInput(other)
		for text, wrong := range wrongTags() {
			in.Tags = wrong
			_, err := tb.CreateTable(tb.ctx(), in, loosely)
			tb.refused(err, text)
			_, err = tb.DescribeTable(tb.ctx(), &dynamodb.DescribeTableInput{TableName: &other})
			var notFound *types.ResourceNotFoundException
			require.ErrorAs(tb, err, &notFound)
		}
		otherARN := *arn + "-tagged"
		for _, want := range [][]types.Tag{{}, numbered("k", 50)} {
			in.Tags = want
			_, err := tb.CreateTable(tb.ctx(), in)
			require.NoError(tb, err)
			require.NoError(tb, dynamodb.NewTableExistsWaiter(tb).Wait(tb.ctx(), &dynamodb.DescribeTableInput{TableName: &other}, time.Minute))
			tb.tagged(&otherARN, want)
			_, err = tb.DeleteTable(tb.ctx(), &dynamodb.DeleteTableInput{TableName: &other})
			require.NoError(tb, err)
			require.NoError(tb, dynamodb.NewTableNotExistsWaiter(tb).Wait(tb.ctx(), &dynamodb.DescribeTableInput{TableName: &other}, time.Minute))
		}
	})
}
