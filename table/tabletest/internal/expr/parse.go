package expr

import (
	"strconv"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
)

const (
	// maxLength is the maximum size of an expression in bytes. It also bounds the recursion of the parser.
	maxLength = 4096
	// maxListIndex is the largest index that the service's parser accepts.
	maxListIndex = 1<<31 - 1
)

const errLength = attr.InvalidError("Expression size has exceeded the maximum allowed size;")

type parser struct{ *lexer }

func newParser(src string) (*parser, error) {
	if src == "" {
		return nil, attr.InvalidError("The expression can not be empty;")
	}
	if len(src) > maxLength {
		return nil, errLength
	}
	return &parser{newLexer(src)}, nil
}

func (p *parser) expect(k tokenKind) (token, error) {
	if p.cur.kind != k {
		return token{}, p.syntaxError()
	}
	return p.next(), nil
}

func parseCondition(src string) (*node, error) {
	p, err := newParser(src)
	if err != nil {
		return nil, err
	}
	n, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.cur.kind != tokEOF {
		return nil, p.syntaxError()
	}
	return n, nil
}

// or parses a condition; it refuses a bare operand.
func (p *parser) or() (*node, error) {
	left, err := p.and()
	if err != nil {
		return nil, err
	}
	for p.cur.kind == tokOr {
		p.next()
		right, err := p.and()
		if err != nil {
			return nil, err
		}
		left = &node{op: opOr, args: []*node{left, right}}
	}
	return left, nil
}

func (p *parser) and() (*node, error) {
	left, err := p.not()
	if err != nil {
		return nil, err
	}
	for p.cur.kind == tokAnd {
		p.next()
		right, err := p.not()
		if err != nil {
			return nil, err
		}
		left = &node{op: opAnd, args: []*node{left, right}}
	}
	return left, nil
}

func (p *parser) not() (*node, error) {
	if p.cur.kind == tokNot {
		p.next()
		arg, err := p.not()
		if err != nil {
			return nil, err
		}
		return &node{op: opNot, args: []*node{arg}}, nil
	}
	n, err := p.condition()
	if err != nil {
		return nil, err
	}
	if b := n.bare().op; b == opPath || b == opValue {
		return nil, p.syntaxError()
	}
	return n, nil
}

// condition parses a comparison, a function, or an expression in parentheses. The result can still be a bare operand.
func (p *parser) condition() (*node, error) {
	n, err := p.primary()
	if err == nil && n.isOperand() {
		n, err = p.comparison(n)
	}
	if err != nil {
		return nil, err
	}
	if b := n.bare().op; b == opPath || b == opValue {
		return n, nil
	}
	return n, n.parentheses()
}

func (p *parser) comparison(left *node) (*node, error) {
	var o op
	switch p.cur.kind {
	case tokEq:
		o = opEq
	case tokNe:
		o = opNe
	case tokLt:
		o = opLt
	case tokLe:
		o = opLe
	case tokGt:
		o = opGt
	case tokGe:
		o = opGe
	case tokBetween:
		return p.between(left)
	case tokIn:
		return p.in(left)
	default:
		return left, nil
	}
	p.next()
	right, err := p.operand()
	if err != nil {
		return nil, err
	}
	return &node{op: o, args: []*node{left, right}}, nil
}

func (p *parser) between(left *node) (*node, error) {
	p.next()
	low, err := p.operand()
	if err != nil {
		return nil, err
	}
	if _, err := p.expect(tokAnd); err != nil {
		return nil, err
	}
	high, err := p.operand()
	if err != nil {
		return nil, err
	}
	return &node{op: opBetween, args: []*node{left, low, high}}, nil
}

func (p *parser) in(left *node) (*node, error) {
	p.next()
	if _, err := p.expect(tokOpen); err != nil {
		return nil, err
	}
	rest, err := p.arguments()
	if err != nil {
		return nil, err
	}
	return &node{op: opIn, args: append([]*node{left}, rest...)}, nil
}

// arguments parses one or more operands, and the closing parenthesis.
func (p *parser) arguments() ([]*node, error) {
	var args []*node
	for {
		arg, err := p.operand()
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
		if p.cur.kind != tokComma {
			break
		}
		p.next()
	}
	_, err := p.expect(tokClose)
	return args, err
}

// primary parses an operand, or a condition or operand in parentheses.
func (p *parser) primary() (*node, error) {
	if p.cur.kind != tokOpen {
		return p.operand()
	}
	p.next()
	inner, err := p.parenthesized()
	if err != nil {
		return nil, err
	}
	if _, err := p.expect(tokClose); err != nil {
		return nil, err
	}
	return &node{op: opParen, args: []*node{inner}}, nil
}

// parenthesized parses the content of parentheses: a whole condition, or a single operand.
func (p *parser) parenthesized() (*node, error) {
	if p.cur.kind == tokNot {
		return p.or()
	}
	first, err := p.condition()
	if err != nil {
		return nil, err
	}
	if b := first.bare().op; b == opPath || b == opValue {
		return first, nil
	}
	for p.cur.kind == tokAnd {
		p.next()
		right, err := p.not()
		if err != nil {
			return nil, err
		}
		first = &node{op: opAnd, args: []*node{first, right}}
	}
	for p.cur.kind == tokOr {
		p.next()
		right, err := p.and()
		if err != nil {
			return nil, err
		}
		first = &node{op: opOr, args: []*node{first, right}}
	}
	return first, nil
}

// operand parses a path, a value or a function, with or without parentheses.
func (p *parser) operand() (*node, error) {
	switch p.cur.kind {
	case tokOpen:
		p.next()
		inner, err := p.operand()
		if err != nil {
			return nil, err
		}
		if _, err := p.expect(tokClose); err != nil {
			return nil, err
		}
		n := &node{op: opParen, args: []*node{inner}}
		return n, n.parentheses()
	case tokValueRef:
		t := p.next()
		return &node{op: opValue, name: p.text(t)}, nil
	case tokName:
		if p.scan(p.cur.end).kind == tokOpen {
			name := p.text(p.next())
			p.next()
			args, err := p.arguments()
			if err != nil {
				return nil, err
			}
			return &node{op: opFunc, name: name, args: args}, nil
		}
		return p.path()
	case tokNameRef:
		return p.path()
	}
	return nil, p.syntaxError()
}

func (p *parser) path() (*node, error) {
	first, err := p.pathName()
	if err != nil {
		return nil, err
	}
	n := &node{op: opPath, steps: []pathStep{first}}
	for {
		switch p.cur.kind {
		case tokDot:
			p.next()
			s, err := p.pathName()
			if err != nil {
				return nil, err
			}
			n.steps = append(n.steps, s)
		case tokOpenIndex:
			p.next()
			t, err := p.expect(tokIndex)
			if err != nil {
				return nil, err
			}
			index, convErr := strconv.Atoi(p.text(t))
			if convErr != nil || index > maxListIndex {
				return nil, attr.Invalidf("List index is not within the allowable range; index: [%s]", p.text(t))
			}
			if _, err := p.expect(tokCloseIndex); err != nil {
				return nil, err
			}
			n.steps = append(n.steps, pathStep{index: index})
		default:
			return n, nil
		}
	}
}

func (p *parser) pathName() (pathStep, error) {
	if p.cur.kind != tokName && p.cur.kind != tokNameRef {
		return pathStep{}, p.syntaxError()
	}
	return pathStep{text: p.text(p.next()), index: -1}, nil
}
