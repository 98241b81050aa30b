package differential

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// send is Do, but a scan continues to the end of the table, and a query of a global index with a limit continues to
// the end of the partition.
func send(ctx context.Context, c *dynamodb.Client, in any) (Answer, error) {
	first, err := Do(ctx, c, in)
	if err != nil || !first.OK() {
		return first, err
	}
	switch in := in.(type) {
	case *dynamodb.ScanInput:
		return wholeScan(ctx, c, in, first)
	case *dynamodb.QueryInput:
		if in.IndexName != nil && in.Limit != nil {
			return wholeQuery(ctx, c, in, first)
		}
	}
	return first, nil
}

// wholeScan follows a scan through all its pages and segments. Engines store partitions in different orders, so the
// contents of a page or a segment differ. The contents of all of them together do not. An answer of several pages has
// the sums of their counts, and no capacity, which is rounded up for each page.
func wholeScan(ctx context.Context, c *dynamodb.Client, in *dynamodb.ScanInput, first Answer) (Answer, error) {
	w := whole{Answer: first, pages: 1}
	segment, total := int32(0), int32(1)
	if in.TotalSegments != nil {
		segment, total = *in.Segment, *in.TotalSegments
	}
	page := *in
	for a := first; ; {
		if out := a.raw.(*dynamodb.ScanOutput); len(out.LastEvaluatedKey) > 0 {
			page.ExclusiveStartKey = out.LastEvaluatedKey
		} else if total--; total > 0 {
			segment = (segment + 1) % *in.TotalSegments
			page.ExclusiveStartKey, page.Segment = nil, aws.Int32(segment)
		} else {
			break
		}
		var err error
		if a, err = Do(ctx, c, &page); err != nil || !a.OK() {
			return a, err
		}
		w.add(a)
	}
	return w.answer(in.Limit != nil && in.TotalSegments == nil), nil
}

// wholeQuery follows a query of an index through all its pages, since rows
// with the same index key have no order.
func wholeQuery(ctx context.Context, c *dynamodb.Client, in *dynamodb.QueryInput, first Answer) (Answer, error) {
	w := whole{Answer: first, pages: 1}
	page := *in
	for a := first; ; w.add(a) {
		page.ExclusiveStartKey = a.raw.(*dynamodb.QueryOutput).LastEvaluatedKey
		if len(page.ExclusiveStartKey) == 0 {
			return w.answer(true), nil
		}
		var err error
		if a, err = Do(ctx, c, &page); err != nil || !a.OK() {
			return a, err
		}
	}
}

// whole puts the pages of one read together.
type whole struct {
	Answer
	pages int
}

func (w *whole) add(a Answer) {
	w.pages++
	items, _ := w.Output["Items"].([]any)
	more, _ := a.Output["Items"].([]any)
	if items != nil || more != nil {
		w.Output["Items"] = append(items, more...)
	}
	for _, name := range []string{"Count", "ScannedCount"} {
		x, _ := w.Output[name].(float64)
		y, _ := a.Output[name].(float64)
		w.Output[name] = x + y
	}
}

// answer returns the sum. countPages means that the number of pages follows from the request.
func (w *whole) answer(countPages bool) Answer {
	if w.pages == 1 {
		return w.Answer
	}
	if countPages {
		w.Output["Pages"] = float64(w.pages)
	}
	delete(w.Output, "LastEvaluatedKey")
	delete(w.Output, "ConsumedCapacity")
	w.raw = nil
	return w.Answer
}
