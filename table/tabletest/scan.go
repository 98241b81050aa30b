package tabletest

import (
	"encoding/binary"
	"math/bits"
)

const maxSegments = 1000000

// segment is a worker's share of a parallel scan: a range of partition hashes. of returns the number of a row's segment.
type segment struct{ number, total int }

func (s segment) of(k rowKey) int {
	hi, _ := bits.Mul64(binary.BigEndian.Uint64([]byte(k.part)), uint64(s.total))
	return int(hi)
}

func scan(c *call) ([]byte, error) {
	p := c.newPage()
	seg, err := p.readScan()
	if err != nil {
		return nil, err
	}
	if err := p.locate(); err != nil {
		return nil, err
	}
	if err := p.checkStart(); err != nil {
		return nil, err
	}
	if err := p.readSelect(); err != nil {
		return nil, err
	}
	if err := p.checkGlobal(); err != nil {
		return nil, err
	}
	if err := p.checkStartKey(); err != nil {
		return nil, err
	}
	if p.start != nil && seg.of(p.startKey()) != seg.number {
		return nil, invalid("%s: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment. TotalSegments: %d Segment: %d", badStart, seg.total, seg.number)
	}
	if err := p.checkScalars(); err != nil {
		return nil, err
	}
	return p.scan(seg), nil
}

// readScan reads the parts that need no table.
func (p *page) readScan() (segment, error) {
	in := &p.c.in
	if err := refuseMixed(in,
		[]string{"AttributesToGet", "ScanFilter", "ConditionalOperator"},
		[]string{"ProjectionExpression", "FilterExpression"}); err != nil {
		return segment{}, err
	}
	if err := checkUsers(in, []string{"FilterExpression", "ProjectionExpression"}); err != nil {
		return segment{}, err
	}
	if err := p.readLegacyFilter("ScanFilter"); err != nil {
		return segment{}, err
	}
	if err := p.readStart(); err != nil {
		return segment{}, err
	}
	seg, err := readSegment(in)
	if err != nil {
		return segment{}, err
	}
	if p.env, err = expressions(in, "FilterExpression", "ProjectionExpression"); err != nil {
		return segment{}, err
	}
	if err := p.readFilter(); err != nil {
		return segment{}, err
	}
	if p.proj, err = readProjection(in, p.env); err != nil {
		return segment{}, err
	}
	return seg, p.env.Unused()
}

func readSegment(in *fields) (segment, error) {
	number, hasNumber := in.number("Segment")
	total, hasTotal := in.number("TotalSegments")
	switch {
	case !hasNumber && !hasTotal:
		return segment{total: 1}, nil
	case !hasTotal:
		return segment{}, invalid("The TotalSegments parameter is required but was not present in the request when Segment parameter is present")
	case !hasNumber:
		return segment{}, invalid("The Segment parameter is required but was not present in the request when parameter TotalSegments is present")
	case number >= total:
		return segment{}, invalid("The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: %d is not less than TotalSegments: %d", number, total)
	}
	return segment{number, total}, nil
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
	parts := p.t.partitions()
	p.at, _ = seg.within(parts)
	if p.start != nil {
		p.at = parts.of(start)
	}
	source.ascend(at, func(r *row) bool {
		if seg.of(r.rowKey) != seg.number {
			return false
		}
		p.enter(parts.of(r.rowKey))
		return p.visit(r, fetch)
	})
	if !p.full {
		_, last := seg.within(parts)
		p.enter(last)
	}
	return p.output()
}

// newPartitions is the number of physical partitions of a new on-demand table, and of each of its indexes.
const newPartitions = 4

// partitions divides the rows among the physical partitions of a table or of one of its indexes: each partition is a segment. A local index
// shares the partitions of its table.
func (t *table) partitions() segment {
	if t.onDemand {
		return segment{total: newPartitions}
	}
	return segment{total: 1}
}

// within returns the first and the last physical partition that the segment overlaps.
func (s segment) within(parts segment) (first, last int) {
	first = s.number * parts.total / s.total
	return first, max(first, ((s.number+1)*parts.total-1)/s.total)
}
