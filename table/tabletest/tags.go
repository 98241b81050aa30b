package tabletest

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of tags, the lengths in characters.
const (
	maxTags     = 50 // for a table, and for a request
	maxTagKey   = 128
	maxTagValue = 256

	reservedTags = "aws:" // in any case
)

// readTags reads the Tags of a request.
func readTags(in *fields) ([]tag, error) {
	items := in.items("Tags")
	tags := make([]tag, 0, len(items))
	keys := make([]string, 0, len(items))
	for i := range items {
		f := fields{n: &items[i]}
		t := tag{key: f.text("Key"), value: f.text("Value")}
		switch {
		case !f.has("Key"):
			return nil, errTagKey("null")
		case !f.has("Value"):
			return nil, errTagValue("null")
		}
		if err := checkTagKey(t.key); err != nil {
			return nil, err
		}
		if utf8.RuneCountInString(t.value) > maxTagValue || !taggable(t.value) {
			return nil, errTagValue(t.value)
		}
		if slices.Contains(keys, t.key) {
			return nil, invalid("Duplicate Tag Keys provided as input: Duplicate Tag Key found %s", t.key)
		}
		tags, keys = append(tags, t), append(keys, t.key)
	}
	if len(tags) > maxTags {
		return nil, errTooManyTags()
	}
	return tags, nil
}

func checkTagKey(key string) error {
	if key == "" || utf8.RuneCountInString(key) > maxTagKey || !taggable(key) {
		return errTagKey(key)
	}
	if len(key) >= len(reservedTags) && strings.EqualFold(key[:len(reservedTags)], reservedTags) {
		return invalid("Tag Key cannot be prefixed with aws:, Key: %s", key)
	}
	return nil
}

func errTagKey(key string) error { return invalid("The Tag Key provided is invalid, Key: %s", key) }

func errTagValue(value string) error {
	return invalid("The Tag Value provided is invalid, Value: %s", value)
}

func errTooManyTags() error {
	return invalid("Number of Tags exceed the current limit for the provided ResourceArn")
}

// taggable reports whether s has only letters, digits, spaces and _.:/=+-@, of any script.
func taggable(s string) bool {
	for _, r := range s {
		if !unicode.In(r, unicode.L, unicode.N, unicode.Z) && !strings.ContainsRune("_.:/=+-@", r) {
			return false
		}
	}
	return true
}

// resourceARN reads ResourceArn and checks its form.
func (c *call) resourceARN() (string, error) {
	arn := c.in.text("ResourceArn")
	if !c.in.has("ResourceArn") || arn == "" {
		return "", invalid("Invalid TableArn")
	}
	parts := strings.SplitN(arn, ":", 6) // arn, partition, service, region, account, resource
	if parts[0] != "arn" {
		return "", parameter("ARNs must start with 'arn:': %s", arn)
	}
	malformed := invalid("Invalid TableArn: Invalid ResourceArn provided as input %s", arn)
	if len(parts) < 6 {
		return "", malformed
	}
	path := strings.Split(parts[5], "/") // "table", its name, and perhaps a part of the table
	owned := ""
	if len(path) > 2 {
		owned = path[2]
	}
	switch {
	case parts[2] != "dynamodb", owned == "backup":
		return "", parameter("Provided Arn is not a DynamoDB resource arn: %s", arn)
	case owned != "" && owned != "stream":
		return "", parameter("Invalid resource arn provided, only table or stream is accepted. Provided resource arn: %s", arn)
	case parts[1] != "aws", parts[3] != Region, path[0] != "table", len(path) < 2 || path[1] == "":
		return "", malformed
	case parts[4] != account:
		return "", errForeign()
	}
	return arn, nil
}

// tagged returns the table that an ARN names. It does not find streams, since the engine has none that can be read.
func (c *call) tagged(arn string) (*table, error) {
	name := tableOfARN(arn)
	t, ok := c.e.tables[name]
	if !ok {
		return nil, fail(codeNotFound, "Requested resource not found: ResourceArn: %s not found", arn)
	}
	c.noteTable(name)
	return t, nil
}

// tagResource changes all tags in the request or none.
func tagResource(c *call) ([]byte, error) {
	arn, err := c.resourceARN()
	if err != nil {
		return nil, err
	}
	added, err := readTags(&c.in)
	if err != nil {
		return nil, err
	}
	if len(added) == 0 {
		return nil, invalid("Atleast one Tag needs to be provided as Input.")
	}
	t, err := c.tagged(arn)
	if err != nil {
		return nil, err
	}
	tags := slices.Clone(t.tags)
	for _, a := range added {
		at := slices.IndexFunc(tags, func(b tag) bool { return a.key == b.key })
		if at < 0 {
			tags = append(tags, a)
		} else {
			tags[at] = a
		}
	}
	if len(tags) > maxTags {
		return nil, errTooManyTags()
	}
	t.tags = tags
	return nil, nil
}

// untagResource ignores keys that the table does not have.
func untagResource(c *call) ([]byte, error) {
	arn, err := c.resourceARN()
	if err != nil {
		return nil, err
	}
	keys := c.in.texts("TagKeys")
	switch {
	case len(keys) == 0:
		return nil, invalid("Atleast one Tag Key needs to be provided as Input.")
	case len(keys) > maxTags:
		return nil, errTooManyTags()
	}
	for _, k := range keys {
		if err := checkTagKey(k); err != nil {
			return nil, err
		}
	}
	t, err := c.tagged(arn)
	if err != nil {
		return nil, err
	}
	t.tags = slices.DeleteFunc(slices.Clone(t.tags), func(a tag) bool { return slices.Contains(keys, a.key) })
	return nil, nil
}

// listTagsOfResource returns all tags. The maximum number of tags fits into one page, so the service never returns a
// NextToken, and ignores one in the request.
func listTagsOfResource(c *call) ([]byte, error) {
	arn, err := c.resourceARN()
	if err != nil {
		return nil, err
	}
	t, err := c.tagged(arn)
	if err != nil {
		return nil, err
	}
	o := newObject()
	o.list("Tags", len(t.tags), func(b []byte, i int) []byte {
		inner := object{b: append(b, '{')}
		inner.text("Key", t.tags[i].key)
		inner.text("Value", t.tags[i].value)
		return inner.end()
	})
	return o.end(), nil
}
