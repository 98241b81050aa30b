package lock

import (
	"context"
	"time"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
)

// Session is the row of a session, as it was when it was read. All tickets of a process depend on its session.
type Session struct {
	ID      string
	Owner   string        // [Config.Owner] of its client; cut to [MaxOwner] bytes
	Lease   time.Duration // how long it lasts after a renewal
	Expires time.Time     // when it ends without another renewal; zero if its process is not sure that its clock is right
	Dead    time.Time     // when another client marked it as dead; zero if none has. A dead session is never renewed again
	Asked   int           // number of requests that wait for its next renewal, such as those of [Client.Revoke]
}

// Sessions reads the sessions with the given IDs, in their order. A [Place] has the ID of its session. A session
// without a row has ended, and is left out. If some rows cannot be read, Sessions returns the others and an error. Its
// reads are eventually consistent.
//
// Cost: half a read unit each, one request per 100.
func (c *Client) Sessions(ctx context.Context, ids ...string) ([]Session, error) {
	wanted := make([]sessionRecord, 0, len(ids))
	for _, id := range ids {
		// A place with a Fixed lease has no session. A row by another hand can name a session that cannot exist.
		if _, ok := c.others.Key(id); ok {
			wanted = append(wanted, sessionRecord{ID: id})
		}
	}
	rows, err := c.layout.sessions.BatchGet(c.within(ctx), wanted, entity.WithExpired())
	list := make([]Session, 0, len(rows))
	for _, r := range rows {
		if r != nil {
			list = append(list, Session{
				ID: r.ID, Owner: lockrow.Cut(r.Owner, MaxOwner), Lease: time.Duration(r.Lease) * time.Millisecond,
				Expires: fromMillis(r.Expires), Dead: fromMillis(r.Dead), Asked: len(r.Ask),
			})
		}
	}
	return list, wrap("sessions", err)
}
