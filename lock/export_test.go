package lock

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

// RevokeLease tells a holder that the lock is wanted.
func RevokeLease(l *Lease) { l.revoke() }
