package table

import (
	"math"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/assert"
)

func TestPageLimit_AsksForNoMoreThanIsWanted(t *testing.T) {
	for _, c := range []struct {
		limit, size     int
		filter, oneMore bool
		want            int32
	}{
		{0, 0, false, false, 0},
		{3, 0, false, false, 3},
		{3, 0, false, true, 4},
		{3, 2, false, true, 2},
		{3, 9, false, false, 3},
		{3, 9, true, false, 9},
		{3, 0, true, false, 0},
		{math.MaxInt, 0, false, false, 1 << 30},
		{0, math.MaxInt, false, false, 1 << 30},
	} {
		assert.Equal(t, c.want, aws.ToInt32(pageLimit(c.limit, c.size, c.filter, c.oneMore)), "%+v", c)
	}
}
