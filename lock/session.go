package lock

import (
	"context"
	"time"

	"github.com/mortise-go/mortise/entity"
)

// Session is a session's row as it was read: that of one process, on which all of its tickets depend.
type Session struct {
	ID      string
	Owner   string        // Config.Owner of its client
	Lease   time.Duration // how long it lasts after a renewal
	Expires time.Time     // when it ends unless renewed; zero where its process does not know its clock to be right
	Dead    time.Time     // when another client marked it dead, which is for good; zero where none has
	Asked   int           // questions that wait for its next renewal
}

// Sessions reads the sessions with the given IDs, as [Place] has them, in their order. Those without a row are left out: they
// have ended. Where some rows cannot be read, it returns the others and an error. The reads are eventually consistent.
//
// Cost: half a read unit each, one request per 100.
func (c *Client) Sessions(ctx context.Context, ids ...string) ([]Session, error) {
	wanted := make([]sessionRecord, len(ids))
	for i, id := range ids {
		wanted[i].ID = id
	}
	rows, err := c.layout.sessions.BatchGet(ctx, wanted, entity.WithExpired())
	list := make([]Session, 0, len(rows))
	for _, r := range rows {
		if r != nil {
			list = append(list, Session{
				ID: r.ID, Owner: r.Owner, Lease: time.Duration(r.Lease) * time.Millisecond, Expires: fromMillis(r.Expires), Dead: fromMillis(r.Dead), Asked: len(r.Ask),
			})
		}
	}
	return list, wrap("sessions", err)
}
