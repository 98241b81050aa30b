package lock

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/keys"
)

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

// Measure is the size of a payload.
func Measure(av types.AttributeValue) (int, error) { return measure(av, 1) }

// Heirs says how many acquisitions of this client wait to be handed the lock.
func Heirs(c *Client, key keys.Key) int {
	c.room.mu.Lock()
	defer c.room.mu.Unlock()
	if about := c.room.contests[key]; about != nil && about.trying == nil {
		return len(about.queue)
	}
	return 0
}

// Looking says whether the client has a goroutine that looks at locks.
func Looking(c *Client) bool {
	c.room.mu.Lock()
	defer c.room.mu.Unlock()
	return c.room.looking
}

// HandOver hands a lock to whoever waits for it in its process, and stops where the row names
// the heir already, and nothing in the process either of them.
func HandOver(ctx context.Context, l *Lease) (finish func(), err error) {
	if err := l.takeTurn(ctx); err != nil {
		return nil, err
	}
	p := l.part(false)
	err = l.client.table.Write(ctx, p.op)
	l.client.forget(l)
	return func() {
		defer l.endTurn()
		p.done()
	}, err
}

// TryTwice has one acquisition try again after its lease was given back.
func TryTwice(ctx context.Context, c *Client, target Target, opts ...Option) (first, next *Lease, err error) {
	a, err := c.acquisition(ctx, target, opts)
	if err != nil {
		return nil, nil, err
	}
	if first, err = a.try(ctx, nil); err != nil {
		return nil, nil, err
	}
	if err = first.Release(ctx); err != nil {
		return nil, nil, err
	}
	next, err = a.try(ctx, nil)
	return first, next, err
}

// EndedByClose is how what waits under the client has ended right after the client has, before
// anything that listens to that could run.
func EndedByClose(c *Client) (err, cause error) {
	ctx, stop := c.waiting(context.Background())
	defer stop()
	c.close()
	err = ctx.Err()
	return err, context.Cause(ctx)
}

// AcquireBefore acquires a free lock, and has something happen before it leaves the line.
func AcquireBefore(ctx context.Context, c *Client, target Target, happens func()) (*Lease, error) {
	a, err := c.acquisition(ctx, target, nil)
	if err != nil {
		return nil, err
	}
	w, _ := c.room.enter(a)
	lease, err := a.tryOnce(ctx)
	if err == nil {
		c.room.acquired(w, lease)
		happens()
	}
	if handed := c.room.leave(w); handed != nil {
		err = join(err, handed.giveBack(ctx))
	}
	a.letGo()
	return lease, err
}

// ServerAhead is between which bounds DynamoDB's clock is known to be ahead of the client's.
func ServerAhead(c *Client) (least, most time.Duration, known bool) {
	o := c.clock.offset()
	return o.least, o.most, o.known
}

// Remembered are those of requests, sent one after the other, that an acquisition knows of in the end.
func Remembered(lease time.Duration, sent ...time.Duration) (known []time.Duration) {
	var k stake
	begin := time.Now()
	for _, after := range sent {
		k.sending(doubt{instant: instant{mono: begin.Add(after), wall: begin.Add(after)}}, lease)
	}
	for _, d := range k.requests() {
		known = append(known, d.mono.Sub(begin))
	}
	return known
}
