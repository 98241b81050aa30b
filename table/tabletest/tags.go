package tabletest

import "slices"

// maxTags is how many tags a table may have.
const maxTags = 50

func readTags(in *fields) ([]tag, error) {
	items := in.items("Tags")
	tags := make([]tag, 0, len(items))
	for i := range items {
		f := fields{n: &items[i]}
		t := tag{f.text("Key"), f.text("Value")}
		if f.err != nil {
			return nil, f.err
		}
		if t.key == "" || len(t.key) > 128 || len(t.value) > 256 {
			return nil, invalid("One or more tags have an invalid key or value")
		}
		tags = append(tags, t)
	}
	if len(tags) > maxTags {
		return nil, invalid("Too many tags: at most %d", maxTags)
	}
	return tags, in.err
}

// resource returns the table that ResourceArn names.
func (c *call) resource() (*table, error) {
	arn := c.in.text("ResourceArn")
	if c.in.err != nil {
		return nil, c.in.err
	}
	name := tableOfARN(arn)
	if name == arn {
		return nil, invalid("Invalid TableArn: Invalid ResourceArn provided as input %s", arn)
	}
	t, ok := c.e.tables[name]
	if !ok {
		return nil, fail(codeNotFound, "Requested resource not found: ResourcArn: %s not found", arn)
	}
	c.noteTable(name)
	return t, nil
}

func tagResource(c *call) ([]byte, error) {
	t, err := c.resource()
	if err != nil {
		return nil, err
	}
	added, err := readTags(&c.in)
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
		return nil, invalid("Too many tags: at most %d", maxTags)
	}
	t.tags = tags
	return []byte("{}"), nil
}

func untagResource(c *call) ([]byte, error) {
	t, err := c.resource()
	if err != nil {
		return nil, err
	}
	keys := c.in.texts("TagKeys")
	if c.in.err != nil {
		return nil, c.in.err
	}
	t.tags = slices.DeleteFunc(slices.Clone(t.tags), func(a tag) bool { return slices.Contains(keys, a.key) })
	return []byte("{}"), nil
}

func listTagsOfResource(c *call) ([]byte, error) {
	t, err := c.resource()
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
