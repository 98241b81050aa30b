package lock

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/inside"
	"github.com/mortise-go/mortise/internal/toolkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/lock/internal/session"
	"github.com/mortise-go/mortise/table"
)

// layout tells where the rows of locks and sessions are in the table, and what their attributes are called.
type layout struct {
	rows       *lockrow.Rows
	names      lockrow.Names
	session    session.Names
	records    *entity.Entity[Record]
	sessions   *entity.Entity[sessionRecord]
	standalone *keys.Template
	rowKey     *keys.Template
	index      *sparse // nil for none
}

func newLayout(t *table.Table, config *Config) (*layout, error) {
	scheme := t.Scheme()
	l := &layout{
		names:   lockrow.NamesOf(scheme, config.AttributePrefix),
		session: session.NamesOf(scheme, config.AttributePrefix),
	}
	var err error
	if l.standalone, err = template(scheme.PKTemplate, config.StandaloneKey, "name"); err != nil {
		return nil, invalid("Config.StandaloneKey: %w", err)
	}
	if l.rowKey, err = template(scheme.SKTemplate, config.RowKey, "of"); err != nil {
		return nil, invalid("Config.RowKey: %w", err)
	}
	if err := l.checkNames(t.Schema()); err != nil {
		return nil, err
	}
	if err := config.agree(t, false); err != nil {
		return nil, err
	}
	toolkit.Claim(t.Inside(inside.Key{}), lockrow.Type, session.Type)
	l.records, err = entity.Define(t, entity.Spec[Record]{
		Type: lockrow.Type, PK: "{Partition:key}", SK: config.RowKey, TTL: "DeleteAfter", ReadOnly: true, AttributePrefix: config.AttributePrefix,
	})
	if err != nil {
		return nil, fmt.Errorf("Config.RowKey, or attributes of lock rows: %w", err)
	}
	l.sessions, err = entity.Define(t, entity.Spec[sessionRecord]{
		Type: session.Type, PK: config.SessionKey, SK: config.SessionKey, TTL: "DeleteAfter", ReadOnly: true, AttributePrefix: config.AttributePrefix,
	})
	if err != nil {
		return nil, fmt.Errorf("Config.SessionKey, or attributes of session rows: %w", err)
	}
	if l.index, err = newSparse(t.Schema(), l.names, config.Index); err != nil {
		return nil, fmt.Errorf("Config.Index: %w", err)
	}
	var index *lockrow.Index
	if l.index != nil {
		index = &l.index.Index
	}
	l.rows = lockrow.NewRows(l.names, index, t)
	return l, config.agree(t, true)
}

// sessionAt returns the key of a session's row. If the ID is not valid in a key, all calls refuse the result.
func (l *layout) sessionAt(id string) keys.Key { return l.sessions.Key(sessionRecord{ID: id}) }

// sessionMark is the end of the IDs of sessions, if their rows have other keys than without any setting. It differs with the keys.
func (l *layout) sessionMark() string {
	const plain = "SESSION#x"
	key := l.sessionAt("x")
	if key == keys.NewKey(plain, plain) {
		return ""
	}
	sum := sha256.Sum256([]byte(key.PK + "\x00" + key.SK))
	return base32.StdEncoding.EncodeToString(sum[:])[:4]
}

// template compiles a template that has to have exactly one field, which keeps rows apart.
func template(compile func(string) (*keys.Template, error), text, field string) (*keys.Template, error) {
	t, err := compile(text)
	if err == nil && (len(t.Fields()) != 1 || t.Fields()[0].Name != field) {
		err = fmt.Errorf("want the one field %s", field)
	}
	return t, err
}

// checkNames refuses names of attributes that have another meaning in the table.
func (l *layout) checkNames(schema table.Schema) error {
	n := l.session
	if name, what := toolkit.Conflict(schema, append(l.names.Own(), l.names.Nonce, n.Owner, n.Lease, n.Beat, n.Expires, n.Dead, n.Ask)); name != "" {
		return invalid("attribute %q of lock and session rows is %s of the table: "+
			"set Config.AttributePrefix, the same for all clients of the table", name, what)
	}
	return nil
}

// agree refuses settings that differ from those of another client of the same Table: the clients would not find each other's rows. If
// register is set, it also makes this client's settings known.
func (c *Config) agree(t *table.Table, register bool) error {
	mine := [...]string{c.RowKey, c.SessionKey, c.AttributePrefix}
	var value any
	if register {
		value = mine
	}
	return t.Inside(inside.Key{}).Register("lock.Config", value, func(_ string, other any) error {
		theirs, ok := other.([len(mine)]string)
		for i, field := range [...]string{"RowKey", "SessionKey", "AttributePrefix"} {
			if ok && theirs[i] != mine[i] {
				return invalid("Config.%s: %q, and another client of this table has %q: all have to have the same", field, mine[i], theirs[i])
			}
		}
		return nil
	})
}
