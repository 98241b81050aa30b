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

// maxLease bounds the lease of a session in milliseconds: that of a row that says more is not in order.
const maxLease = 24 * 60 * 60 * 1000

// ErrMalformed is the error of a row at a session's key that this package has not written.
var ErrMalformed = errors.New("malformed session row")

// Names are the names of a session row's attributes.
type Names struct {
	PK, Type, TTL string // from the table's scheme

	Owner, Lease, Beat, Expires, Dead, Ask string
}

// NamesOf are the names in a table with the given scheme. Names that the scheme does not give begin
// with prefix.
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
	Beat    int64    // renewals so far
	Expires int64    // epoch milliseconds at which it ends unless renewed; 0 where it does not say
	Dead    bool     // marked so, for good
	Ask     []string // the mailbox
}

// Parse reads a row. ErrMalformed is the error of one that no condition of this package would hold for.
func (n Names) Parse(item table.Item) (r Row, err error) {
	if typ, ok := item[n.Type].(*types.AttributeValueMemberS); !ok || typ.Value != Type {
		return r, fmt.Errorf("%w: it is of another type", ErrMalformed)
	}
	if ask, ok := item[n.Ask].(*types.AttributeValueMemberSS); ok {
		r.Ask = ask.Value
	}
	if r.Dead = item[n.Dead] != nil; r.Dead { // whatever else it has
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
