package entity

import (
	"fmt"

	"github.com/mortise-go/mortise/table"
)

// Sort gives a single row to the first sink that takes it. It works as [Collect] does for the rows that it reads. Use
// it for images of DynamoDB Streams, and for rows from other sources. It sends no request.
//
// Convert an image to a [table.Item] with the SDK's attributevalue.FromDynamoDBStreamsMap, or with [table.ItemFromJSON]
// if a function receives it as JSON. A stream contains rows of all types of its table: pass a sink for each, or end the
// sinks with [SkipUnknown]. The module's own rows, such as locks and sessions, are left out as by Collect. An empty
// image is [ErrInvalid]; a record has none if the row did not exist, or if the stream's view leaves it out.
//
// Unlike Collect, Sort does not hide expired rows, since an old image can be of a row that DynamoDB deleted because it
// expired. The userIdentity of such a record has the type "Service" and the principalId "dynamodb.amazonaws.com".
// Source: "DynamoDB Streams and Time to Live".
//
// Images of a keys-only stream have no type attribute. The keys determine the entity, and fields outside of the key are
// empty. An entity whose Match names attributes, or whose rows have a schema, takes none of these images. The module's
// own rows are not recognised by their keys unless a sink takes their entity.
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
