package lock

// SessionID is the ID of the client's session; empty where it has none.
func SessionID(c *Client) string {
	if s := c.currentSession(); s != nil {
		return s.id
	}
	return ""
}
