package tabletest

import "github.com/mortise-go/mortise/table/tabletest/internal/expr"

// pathsOf is an expression that lists its paths.
type pathsOf interface{ Paths(yield func(expr.Path)) }

// checkScalars refuses an expression with a path into a key attribute, of the table or of an index.
func (t *table) checkScalars(e pathsOf) error {
	var err error
	e.Paths(func(p expr.Path) {
		if len(p) == 1 || err != nil {
			return
		}
		name, what := p[0].Name, ""
		if t.keys.has(name) {
			what = "Key"
		}
		for _, x := range t.indexes {
			if what == "" && x.keys.has(name) {
				what = "IndexKey"
			}
		}
		if what != "" {
			err = invalid("Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: %s: %s", what, name)
		}
	})
	return err
}

// checkCondition is checkScalars for conditions and filters. Their older form has no paths, so it needs no check.
func (t *table) checkCondition(c condition) error {
	if e, ok := c.(pathsOf); ok {
		return t.checkScalars(e)
	}
	return nil
}
