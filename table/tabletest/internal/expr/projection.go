package expr

import (
	"slices"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
)

// Projection is a set of paths that do not overlap.
type Projection struct {
	root  *branch
	paths []Path
}

// Paths calls yield with every path of the projection, in the order of the text.
func (p *Projection) Paths(yield func(Path)) {
	for _, path := range p.paths {
		yield(path)
	}
}

// ParseProjection parses and binds a ProjectionExpression.
func ParseProjection(src string, env *Env) (*Projection, error) {
	p, err := newParser(src)
	if err != nil {
		return nil, err
	}
	var nodes []*node
	for {
		n, err := p.path()
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
		if p.cur.kind != tokComma {
			break
		}
		p.next()
	}
	if p.cur.kind != tokEOF {
		return nil, p.syntaxError()
	}
	b := binder{env: env}
	if err := b.words(nodes...); err != nil {
		return nil, err
	}
	paths, err := b.resolvePaths(nodes)
	if err != nil {
		return nil, err
	}
	return ProjectPaths(paths), nil
}

// ProjectPaths returns the projection on paths that do not overlap.
func ProjectPaths(paths []Path) *Projection {
	root := &branch{}
	for _, p := range paths {
		root.add(p)
	}
	return &Projection{root: root, paths: paths}
}

// Roots returns the names of the top-level attributes that the projection reads, sorted.
func (p *Projection) Roots() []string {
	names := make([]string, 0, len(p.root.names))
	for name := range p.root.names {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Apply returns the parts of the item at the paths. The selected elements of a list become adjacent.
func (p *Projection) Apply(item attr.Item) attr.Item {
	out := attr.Item{}
	for name, sub := range p.root.names {
		if v, ok := item[name]; ok {
			if part := sub.pick(v); part != nil {
				out[name] = part
			}
		}
	}
	return out
}

// branch is a node in a tree of paths. A branch without children selects the whole value.
type branch struct {
	names   map[string]*branch
	indexes map[int]*branch
}

func (b *branch) add(p Path) {
	for _, e := range p {
		var next *branch
		if e.Index < 0 {
			if next = b.names[e.Name]; next == nil {
				next = &branch{}
				if b.names == nil {
					b.names = map[string]*branch{}
				}
				b.names[e.Name] = next
			}
		} else if next = b.indexes[e.Index]; next == nil {
			next = &branch{}
			if b.indexes == nil {
				b.indexes = map[int]*branch{}
			}
			b.indexes[e.Index] = next
		}
		b = next
	}
}

func (b *branch) pick(v *attr.Value) *attr.Value {
	switch {
	case b.names == nil && b.indexes == nil:
		return v
	case b.names != nil && v.Kind == attr.M:
		m := attr.Item{}
		for name, sub := range b.names {
			if e, ok := v.Map[name]; ok {
				if part := sub.pick(e); part != nil {
					m[name] = part
				}
			}
		}
		if len(m) > 0 {
			return attr.Document(m)
		}
	case b.indexes != nil && v.Kind == attr.L:
		var list []*attr.Value
		for i, e := range v.List {
			if sub := b.indexes[i]; sub != nil {
				if part := sub.pick(e); part != nil {
					list = append(list, part)
				}
			}
		}
		if len(list) > 0 {
			return attr.Sequence(list)
		}
	}
	return nil
}
