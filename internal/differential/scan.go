package differential

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// send is Do, except that a scan goes on to the end of the table.
func send(ctx context.Context, c *dynamodb.Client, in any) (Answer, error) {
	first, err := Do(ctx, c, in)
	scan, ok := in.(*dynamodb.ScanInput)
	if err != nil || !ok || !first.OK() {
		return first, err
	}
	return wholeScan(ctx, c, scan, first)
}

// wholeScan follows a scan through all its pages and segments. Engines store
// partitions in different orders, so what a page or a segment holds differs;
// all of them together do not. An answer of several pages has the sums of
// their counts, and no capacity, which is rounded up for each page.
func wholeScan(ctx context.Context, c *dynamodb.Client, in *dynamodb.ScanInput, first Answer) (Answer, error) {
	whole, pages := first, 1
	items, _ := whole.Output["Items"].([]any)
	add := func(a Answer) {
		pages++
		more, _ := a.Output["Items"].([]any)
		items = append(items, more...)
		for _, name := range []string{"Count", "ScannedCount"} {
			x, _ := whole.Output[name].(float64)
			y, _ := a.Output[name].(float64)
			whole.Output[name] = x + y
		}
	}
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
		add(a)
	}
	if pages == 1 {
		return whole, nil
	}
	if in.Limit != nil && in.TotalSegments == nil {
		whole.Output["Pages"] = float64(pages)
	}
	if items != nil {
		whole.Output["Items"] = items
	}
	delete(whole.Output, "LastEvaluatedKey")
	delete(whole.Output, "ConsumedCapacity")
	return whole, nil
}
