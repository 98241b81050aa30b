package attrvalue

import "time"

// Moment returns a time whose text is of the same moment. The offset from UTC has whole minutes in the text, but the local times of
// earlier centuries differ from UTC by seconds too. Such a time is returned in UTC.
func Moment(at time.Time) time.Time {
	if _, offset := at.Zone(); offset%60 != 0 {
		return at.UTC()
	}
	return at
}
