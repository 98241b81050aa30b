package lock

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/keys"
)

// SessionID is the ID of the client's session; empty where it has none.
func SessionID(c *Client) string {
	if s := c.currentSession(); s != nil {
		return s.id
	}
	return ""
}

// SettingFields are the fields of Config that the table of settings has a row for.
func SettingFields() (fields []string) {
	for i := range settings {
		fields = append(fields, fieldName(settings[i].name)[len("Config."):])
	}
	return fields
}

// Measure is the size of a payload.
func Measure(av types.AttributeValue) (int, error) { return measure(av, 1) }

// Heirs says how many acquisitions of this client wait to be handed the lock.
func Heirs(c *Client, key keys.Key) int {
	c.room.mu.Lock()
	defer c.room.mu.Unlock()
	if about := c.room.contests[key]; about != nil && about.trying == nil {
		return len(about.queue)
	}
	return 0
}
