package lock

import (
	"unicode/utf8"

	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/keys"
)

// Target says which lock is meant. Targets are comparable.
type Target struct {
	name   string
	beside keys.Key
}

// Name is a lock that stands for itself, in a row of its own partition. Names have 1 to 512 bytes of UTF-8.
func Name(name string) Target { return Target{name: name} }

// Beside is the lock of the row at key: the lock row stands in the same item collection,
// so that one query reads both. The row need not exist.
func Beside(key keys.Key) Target { return Target{beside: key} }

// String says what kind of lock it is, for logs, without the name or the key.
func (t Target) String() string {
	if t.name != "" {
		return "lock with a name"
	}
	return "lock beside a row"
}

// Name is the name of a lock that stands for itself; empty for others.
func (t Target) Name() string { return t.name }

// Beside is the key of the row that the lock stands beside; zero for others.
func (t Target) Beside() keys.Key { return t.beside }

// key is where the lock's row is.
func (c *Client) key(t Target) (keys.Key, error) {
	if t.name == "" {
		if t.beside.IsZero() {
			return keys.Key{}, invalid("empty target")
		}
		if err := t.beside.Validate(); err != nil {
			return keys.Key{}, errs.Kind(ErrInvalid, err)
		}
		key, err := c.keyIn(t.beside.PK, t.beside.SK)
		if err == nil && key == t.beside {
			return key, invalid("Config.RowKey %q: the lock beside a row would be that row", c.config.RowKey)
		}
		return key, err
	}
	if len(t.name) > MaxName || !utf8.ValidString(t.name) {
		return keys.Key{}, invalid("a name has 1 to %d bytes of UTF-8", MaxName)
	}
	pk, err := c.layout.standalone.Format(t.name)
	if err != nil {
		return keys.Key{}, errs.Kind(ErrInvalid, err)
	}
	return c.keyIn(pk, t.name)
}

// keyIn is the key of the lock row in a partition for what has the sort key or name of. It
// is what the entity of lock rows makes, without a Record to make it from.
func (c *Client) keyIn(pk, of string) (keys.Key, error) {
	sk, err := c.layout.rowKey.Format(of)
	key := keys.NewKey(pk, sk)
	if err == nil {
		err = key.Validate()
	}
	if err != nil {
		return keys.Key{}, errs.Kind(ErrInvalid, err)
	}
	return key, nil
}
