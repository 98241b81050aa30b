package lock

import "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

// SessionID is the ID of the client's session; empty where it has none.
func SessionID(c *Client) string {
	if s := c.currentSession(); s != nil {
		return s.id
	}
	return ""
}

// Measure is the size of a payload.
func Measure(av types.AttributeValue) (int, error) { return measure(av, 1) }
