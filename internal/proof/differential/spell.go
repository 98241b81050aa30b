package differential

import (
	"slices"
	"strings"

	"github.com/cockroachdb/apd/v3"
)

// Spell writes the numbers of a tree in one form, so that equal numbers are equal texts. It reports whether that
// changed anything.
func Spell(tree any) bool {
	changed := false
	switch v := tree.(type) {
	case map[string]any:
		if n, ok := v["N"].(string); ok && len(v) == 1 {
			v["N"] = spelled(n)
			return v["N"] != n
		}
		set, ok := v["NS"].([]any)
		if ok && len(v) == 1 {
			for i := range set {
				if s, ok := set[i].(string); ok {
					set[i] = spelled(s)
					changed = changed || set[i] != s
				}
			}
			slices.SortFunc(set, func(a, b any) int {
				x, _ := a.(string)
				y, _ := b.(string)
				return strings.Compare(x, y)
			})
			return changed
		}
		for _, e := range v {
			changed = Spell(e) || changed
		}
	case []any:
		for _, e := range v {
			changed = Spell(e) || changed
		}
	}
	return changed
}

func spelled(n string) string {
	d, _, err := apd.NewFromString(n)
	if err != nil {
		return n
	}
	d.Reduce(d)
	if d.IsZero() {
		d.Negative = false
	}
	return d.Text('E')
}
