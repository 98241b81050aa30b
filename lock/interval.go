package lock

import "time"

const day = 24 * time.Hour

// intervals are the intervals of a job (Every). Each begins when the one before it ends. Times are in epoch milliseconds.
type intervals struct {
	millis, offset int64
	location       *time.Location // its clocks tell when an interval begins
}

func newIntervals(length, offset time.Duration, location *time.Location) (v intervals, err error) {
	switch {
	case length < MinInterval || length > MaxInterval:
		return v, invalid("interval %v: want %v to %v", length, MinInterval, MaxInterval)
	case offset < 0 || offset >= length:
		return v, invalid("At(%v): want less than the interval of %v, and not less than 0", offset, length)
	case location == time.Local:
		return v, invalid("At: time.Local is another location on another machine: want one by its name")
	case location == nil || location == time.UTC:
		location = time.UTC
	case length%day != 0:
		return v, invalid("At: an interval of %v in %s: want whole days, since those there have 23 to 25 hours", length, location)
	}
	const most = int(day / time.Second)
	if _, ahead := time.UnixMilli(0).In(location).Zone(); ahead <= -most || ahead >= most { // a time.FixedZone can have any number
		return v, invalid("At: a location that is %d seconds ahead of UTC: want less than a day", ahead)
	}
	return intervals{millis: length.Milliseconds(), offset: offset.Milliseconds(), location: location}, nil
}

// length is how long an interval lasts, unless clocks are put forward or back in it.
func (v *intervals) length() time.Duration { return time.Duration(v.millis) * time.Millisecond }

// start returns when the interval with this number begins, counted from 1970: at the first moment at which the clocks of the location
// show its time, or, if they are put forward past that time, a later one.
func (v *intervals) start(number int64) int64 {
	shown := number*v.millis + v.offset
	// A zone is a span of time in which the location's clocks have the same difference from UTC.
	for at := shown - 2*day.Milliseconds(); ; {
		zone := time.UnixMilli(at).In(v.location)
		_, seconds := zone.Zone()
		ahead := int64(seconds) * 1000
		_, end := zone.ZoneBounds()
		begin := max(at, shown-ahead) // at, if clocks were put forward past the time
		// ZoneBounds can return an end that is past: in years beyond the zone data, on the last day of a leap year.
		if end.IsZero() || end.UnixMilli() <= at || begin < end.UnixMilli() {
			return begin
		}
		at = end.UnixMilli()
	}
}

// number returns the number of the interval that contains a moment: the last interval that has begun by then.
func (v *intervals) number(moment int64) int64 {
	n := (moment-v.offset)/v.millis + 1 // an upper bound: clocks are ahead of UTC by less than a day
	for v.start(n) > moment {
		n--
	}
	return n
}

// at returns the start of the interval that contains a moment.
func (v *intervals) at(moment int64) int64 { return v.start(v.number(moment)) }

func (v *intervals) next(moment int64) int64 { return v.start(v.number(moment) + 1) }

func (v *intervals) before(start int64) int64 { return v.at(start - 1) }

func (v *intervals) time(start int64) time.Time { return time.UnixMilli(start).In(v.location) }

// longest is how long an interval lasts at most.
func (v *intervals) longest() time.Duration {
	if v.location == time.UTC {
		return v.length()
	}
	return v.length() + day
}
