package lock

import (
	"encoding/base64"
	"encoding/json"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/table"
)

// GuardToken is the guard of a lease as data. It lets another process, such as a child process or a worker that gets it with
// a job, write under this lease. [GuardToken.String] encodes it as text, and [ParseGuardToken] decodes the text.
//
// A write with the guard commits only while the lease holds the lock, as with [Lease.Guard]: DynamoDB compares ticket and
// fence, and no two leases have the same. The process that has acquired the lease goes on to renew it; a token does not. When
// the lease is over, writes with the token are refused.
//
// If the other process is to end the lease, let it call [Client.ForceRelease] with Ticket. A [Fixed] lease needs no renewal, so
// the process that has acquired it may have ended by then.
//
// Writes with tokens have no order, neither among each other nor with those of [Lease.Write]. A write whose answer was lost may
// be applied after a later one. If that matters, let the writes depend on a version of the row that they change.
//
// A token is no secret and grants no permission: the process needs its own permission to write to the table. A token contains the
// key of the lock's row. It is not signed: a forged token cannot do more than a write without a guard.
type GuardToken struct {
	Table           string      `json:"table"`            // name of the table
	Region          string      `json:"region,omitempty"` // in which the lock was acquired; empty if the client does not tell
	Scheme          keys.Scheme `json:"scheme"`
	AttributePrefix string      `json:"attribute_prefix,omitempty"` // [Config.AttributePrefix]
	Key             keys.Key    `json:"key"`                        // of the lock's row
	Ticket          string      `json:"ticket"`                     // [Lease.Ticket]
	Fence           int64       `json:"fence"`
	Permit          bool        `json:"permit,omitempty"` // the lease is a permit ([Permits])
	Text            string      `json:"text,omitempty"`   // of a permit or a reader ([Shared]): the ticket as the line has it
}

// GuardToken returns the guard of this lease for another process. See [GuardToken] for what it guarantees.
func (l *Lease) GuardToken() GuardToken {
	t := l.client.table
	return GuardToken{
		Table: t.Name(), Region: t.Region(), Scheme: t.Scheme(), AttributePrefix: l.client.config.AttributePrefix,
		Key: l.key, Ticket: l.holding.ID, Fence: l.holding.Fence, Permit: l.holding.Kind == lockrow.Permit, Text: l.holding.Text,
	}
}

// String encodes the token as text: letters, digits, '-' and '_'. It fits into an environment variable, a flag or a message.
func (g GuardToken) String() string {
	text, err := json.Marshal(g)
	if err != nil {
		return "" // only a scheme that no table can have is not encodable
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// ParseGuardToken decodes the result of [GuardToken.String]. Any other text is [ErrInvalid].
func ParseGuardToken(text string) (GuardToken, error) {
	g, err := parseGuardToken(text)
	return g, wrap("parse guard token", err)
}

func parseGuardToken(text string) (GuardToken, error) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return GuardToken{}, invalid("not a guard token")
	}
	var g GuardToken
	if err := json.Unmarshal(data, &g); err != nil || g.String() != text { // an unknown member is lost in String
		return GuardToken{}, invalid("not a guard token, or one of another version of this package")
	}
	if err := g.Key.Validate(); err != nil || g.Table == "" || g.Ticket == "" || g.Fence < 1 || g.Permit && g.Text == "" {
		return GuardToken{}, invalid("an incomplete guard token")
	}
	return g, nil
}

// Guard returns the condition that the token's lease holds the lock, as an operation for a transaction in the lock's table. The
// table's client has to be in the region in which the lock was acquired. If the lock was lost, the transaction fails with a
// [*table.ConditionError] that matches [ErrLost].
//
// Cost: two write units in the transaction.
func (g GuardToken) Guard(t *table.Table) table.Op {
	if t == nil {
		return table.Invalid(invalid("nil table"))
	}
	switch here := t.Region(); {
	case g == GuardToken{}:
		return table.Invalid(invalid("an empty guard token"))
	case t.Name() != g.Table || t.Scheme() != g.Scheme:
		return table.Invalid(invalid("the guard is one of table %s, or of another scheme", g.Table))
	case here != g.Region:
		return table.Invalid(invalid("the guard is one of region %q, and the table's client is in %q", g.Region, here))
	}
	h := lockrow.Holding{ID: g.Ticket, Fence: g.Fence, Text: g.Text}
	switch {
	case g.Permit:
		h.Kind = lockrow.Permit
	case g.Text != "":
		h.Kind = lockrow.Shared
	}
	return lockrow.NewRows(lockrow.NamesOf(g.Scheme, g.AttributePrefix), nil, t).Guard(g.Key, h).In(t).
		Explain(func(table.Item) error { return ErrLost })
}
