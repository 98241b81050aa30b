package entity

import (
	"fmt"

	"github.com/mortise-go/mortise/table"
)

// Sort gives a single row to the first sink that takes it, as Collect does with those that it
// reads: for the images of DynamoDB Streams, and for rows from anywhere else. It
// sends nothing.
//
// Images come as table.Item by attributevalue.FromDynamoDBStreamsMap, of the SDK, from records
// that a program reads itself, and by table.ItemFromJSON from those that a function
// receives as JSON.
//
// Unlike Collect, Sort does not hide rows that have expired: an old image may be of a row
// that DynamoDB deleted for that reason. Such a deletion is told from others by its record's
// userIdentity, whose type is "Service" and whose principalId is
// "dynamodb.amazonaws.com". Source: "DynamoDB Streams and Time to Live".
//
// A stream has the rows of all types of its table: give them sinks, or end the sinks with
// SkipUnknown. The toolkit's own rows, such as locks and sessions, are left out as by Collect.
//
// Images of a stream of keys only have no type attribute; the keys decide, and fields beside those
// of the key are empty. An entity whose Match names attributes takes none of them. The toolkit's own
// rows are not recognised by their keys, unless their entity has a sink.
//
// An empty image is refused with ErrInvalid: a record has none of a row that did not exist,
// and none that the stream's view leaves out.
func Sort(t *table.Table, image table.Item, sinks ...Sink) error {
	err := checkSinks(t, sinks)
	if err == nil && len(image) == 0 {
		err = fmt.Errorf("%w: empty image", ErrInvalid)
	}
	if err != nil {
		return fmt.Errorf("entity: sort: %w", err)
	}
	return sort(t, image, true, sinks)
}
