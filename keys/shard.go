package keys

import "fmt"

func (c codec) appendShard(dst []byte, v any) ([]byte, error) {
	s, err := scalarOf(v)
	if err != nil {
		return dst, err
	}
	n, err := s.shard(c.max)
	if err != nil {
		return dst, err
	}
	return appendDigits(dst, n, c.width, false), nil
}

// Shards returns the keys or prefixes that have to be read to see all shards, in the order of the shard. Its values are
// those of the first fields that are not computed. If all of them are given the results are whole keys; otherwise they
// are prefixes, as of [Template.Prefix]. A [Values] may also name the computed field.
//
// It returns N results, or a single one if the template has no shard, if the value of the sharded field is given, or if
// the values end before the shard.
func (t *Template) Shards(values ...any) ([]string, error) {
	const op = "shards"
	if err := t.check(op); err != nil {
		return nil, err
	}
	src := sourceOf(values)
	given := 0
	if src.names == nil {
		if given = len(src.list); given > len(t.stored) {
			return nil, t.countError(op, given, len(t.stored))
		}
		spread := make(Values, given)
		for i, v := range src.list {
			spread[t.fields[t.stored[i]].Name] = v
		}
		src = source{names: spread}
	} else {
		named := 0 // number of fields that have a value
		for _, f := range t.fields {
			if _, ok := src.names[f.Name]; ok {
				named++
			}
		}
		if named != len(src.names) {
			return nil, t.unknown(op, src.names)
		}
		for given < len(t.stored) {
			if _, ok := src.names[t.fields[t.stored[given]].Name]; !ok {
				break
			}
			given++
		}
		for _, f := range t.stored[given:] {
			if _, ok := src.names[t.fields[f].Name]; ok {
				return nil, t.fail(op, t.stored[given], fmt.Errorf("%w: a later field has one", ErrMissing))
			}
		}
	}
	n := len(t.fields)
	if given < len(t.stored) {
		n = t.stored[given]
	}
	if t.shard < 0 {
		one, err := t.prefix(op, src, n, -1)
		if err != nil {
			return nil, err
		}
		return []string{one}, nil
	}
	var all []string
	for i := range t.parts[t.shard].codec.max {
		one, err := t.prefix(op, src, n, int(i))
		if err != nil {
			return nil, err
		}
		if len(all) > 0 && all[0] == one {
			break // the sharded field has a value, or the prefix ends before the shard: the results do not depend on i
		}
		all = append(all, one)
	}
	return all, nil
}
