package session

import (
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/internal/toolkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Type is the value of the type attribute of session rows.
const Type = toolkit.Session

// maxLease is the greatest valid lease of a session, in milliseconds.
const maxLease = 24 * 60 * 60 * 1000

// ErrMalformed means that no client of this package writes such a row at a session's key.
var ErrMalformed = errors.New("malformed session row")

// Names are the names of the attributes of a session row.
type Names struct {
	PK, Type, TTL string // from the table's scheme

	Owner, Lease, Beat, Expires, Dead, Ask string
}

// NamesOf returns the names in a table with the given scheme. All names that the scheme does not give begin with prefix.
func NamesOf(s keys.Scheme, prefix string) Names {
	return Names{
		PK: s.PK, Type: s.Type, TTL: s.TTL,
		Owner: prefix + "owner", Lease: prefix + "lease", Beat: prefix + "beat",
		Expires: prefix + "expires", Dead: prefix + "dead", Ask: prefix + "ask",
	}
}

// Row is a session's row as it was read.
type Row struct {
	Lease   int64    // in milliseconds
	Beat    int64    // number of the last write, from 0
	Expires int64    // when the session ends unless it is renewed, in epoch milliseconds; 0 if that is not recorded
	Dead    bool     // the session was marked dead, for good
	Ask     []string // the mailbox
}

// Parse reads a row. It returns ErrMalformed for a row that no client with these names has written.
func (n Names) Parse(item table.Item) (r Row, err error) {
	if typ, ok := item[n.Type].(*types.AttributeValueMemberS); !ok || typ.Value != Type {
		return r, fmt.Errorf("%w: it is of another type", ErrMalformed)
	}
	if ask, ok := item[n.Ask].(*types.AttributeValueMemberSS); ok {
		r.Ask = ask.Value
	}
	if r.Dead = item[n.Dead] != nil; r.Dead { // the mark counts, whatever else the row has
		return r, nil
	}
	var lease, beat, expires bool
	r.Lease, lease = attrvalue.Natural(item[n.Lease])
	r.Beat, beat = attrvalue.Natural(item[n.Beat])
	r.Expires, expires = attrvalue.Natural(item[n.Expires])
	if !lease || !beat || !expires && item[n.Expires] != nil || r.Lease < 1 || r.Lease > maxLease {
		return r, fmt.Errorf("%w: %s, %s or %s is not a number, or out of range", ErrMalformed, n.Lease, n.Beat, n.Expires)
	}
	return r, nil
}
