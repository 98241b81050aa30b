package lock

import (
	"unicode/utf8"

	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/keys"
)

// Target identifies a lock: [Name] or [Beside]. Targets can be compared with ==.
type Target struct {
	name   string
	beside keys.Key
}

// Name is a lock with a name. Its row has a partition of its own. A name has 1 to 512 bytes of UTF-8. (Characters that the key's
// template escapes count twice: a name that consists almost only of these can be too long for the sort key.)
func Name(name string) Target { return Target{name: name} }

// Beside is the lock of the row with the given key. The lock's row is in the same item collection, so one query reads
// both. The row with the key need not exist.
func Beside(key keys.Key) Target { return Target{beside: key} }

// String returns the kind of the lock, without its name or key, so that it can be logged.
func (t Target) String() string {
	if t.name != "" {
		return "lock with a name"
	}
	return "lock beside a row"
}

// Name returns the name of a lock that was made by [Name], and "" for others.
func (t Target) Name() string { return t.name }

// Beside returns the key of the row that the lock belongs to, and the zero Key for a lock that was made by [Name].
func (t Target) Beside() keys.Key { return t.beside }

// Key returns the key of a lock's row, which exists once somebody has acquired the lock. It sends nothing.
func (c *Client) Key(t Target) (keys.Key, error) {
	key, err := c.key(t)
	return key, wrap("key", err)
}

// key returns the key of the lock's row. The entity of lock rows makes the same key of a Record.
func (c *Client) key(t Target) (keys.Key, error) {
	pk, of := t.beside.PK, t.beside.SK
	var err error
	switch {
	case t.name == "" && t.beside.IsZero():
		return keys.Key{}, invalid("the target is empty: want a name (Name), or the key of a row (Beside)")
	case t.name == "":
		err = t.beside.Validate()
	case len(t.name) > MaxName || !utf8.ValidString(t.name):
		return keys.Key{}, invalid("a name has 1 to %d bytes of UTF-8", MaxName)
	default:
		of = t.name
		pk, err = c.layout.standalone.Format(t.name)
	}
	if err != nil {
		return keys.Key{}, errs.Kind(ErrInvalid, err)
	}
	sk, err := c.layout.rowKey.Format(of)
	key := keys.NewKey(pk, sk)
	if err == nil {
		err = key.Validate()
	}
	switch {
	case err != nil:
		return keys.Key{}, errs.Kind(ErrInvalid, err)
	case key == t.beside:
		return keys.Key{}, invalid("Config.RowKey %q: the lock beside a row would be that row", c.config.RowKey)
	}
	return key, nil
}
