package tabletest

import (
	"encoding/binary"
	"math/bits"
)

const maxSegments = 1000000

// segment is a worker's share of a parallel scan: a range of partition hashes.
type segment struct{ number, total int }

func (s segment) of(k rowKey) int {
	hi, _ := bits.Mul64(binary.BigEndian.Uint64([]byte(k.part)), uint64(s.total))
	return int(hi)
}

func scan(c *call) ([]byte, error) {
	p, err := c.readPage()
	if err != nil {
		return nil, err
	}
	in := &c.in
	if err := p.checkConsistent(); err != nil {
		return nil, err
	}
	if err := refuseMixed(in,
		[]string{"AttributesToGet", "ScanFilter", "ConditionalOperator"},
		[]string{"ProjectionExpression", "FilterExpression"}); err != nil {
		return nil, err
	}
	if p.env, err = expressions(in, "FilterExpression", "ProjectionExpression"); err != nil {
		return nil, err
	}
	if in.has("ExpressionAttributeValues") && in.text("FilterExpression") == "" {
		return nil, invalid("ExpressionAttributeValues can only be specified when using expressions: FilterExpression is null")
	}
	if err := p.readFilter("ScanFilter"); err != nil {
		return nil, err
	}
	if p.proj, err = readProjection(in, p.env); err != nil {
		return nil, err
	}
	if err := p.env.Unused(); err != nil {
		return nil, err
	}
	seg, err := readSegment(in)
	if err != nil {
		return nil, err
	}
	if err := p.readStart(); err != nil {
		return nil, err
	}
	if err := p.readSelect(); err != nil {
		return nil, err
	}
	if err := p.checkGlobal(); err != nil {
		return nil, err
	}
	if err := seg.check(); err != nil {
		return nil, err
	}
	if err := p.checkScalars(); err != nil {
		return nil, err
	}
	if p.start != nil && seg.of(p.startKey()) != seg.number {
		return nil, invalid("Exclusive start key must lie within the segment")
	}
	return p.scan(seg), nil
}

func readSegment(in *fields) (segment, error) {
	number, hasNumber := in.number("Segment")
	total, hasTotal := in.number("TotalSegments")
	switch {
	case in.err != nil:
		return segment{}, in.err
	case !hasNumber && !hasTotal:
		return segment{total: 1}, nil
	case !hasTotal:
		return segment{}, invalid("If segment is specified, total segment must also be specified")
	case !hasNumber:
		return segment{}, invalid("If total segments is specified, a particular segment must also be specified for this request")
	}
	return segment{number, total}, nil
}

// check refuses numbers out of range.
func (s segment) check() error {
	const prefix = "1 validation error detected: Value '%d' at '%s' failed to satisfy constraint: Member must have value less than or equal to %d"
	switch {
	case s.number < 0 || s.number >= s.total:
		return invalid(prefix, s.number, "segment", s.total-1)
	case s.total > maxSegments:
		return invalid(prefix, s.total, "totalSegments", maxSegments)
	}
	return nil
}

func (p *page) scan(seg segment) []byte {
	source := p.c.source(p.t, p.x, p.consistent)
	fetch := p.fetches()
	var start rowKey
	if p.start != nil {
		start = p.startKey()
	}
	at := source.seek(func(r *row) bool {
		if p.start != nil {
			return r.compare(start) > 0
		}
		return seg.of(r.rowKey) >= seg.number
	})
	source.ascend(at, func(r *row) bool {
		return seg.of(r.rowKey) == seg.number && p.visit(r, fetch)
	})
	return p.output()
}
