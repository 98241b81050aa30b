package lock_test

import (
	"context"
	"encoding/base64"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// wallClock is a wall clock that can be set.
type wallClock struct {
	mu sync.Mutex
	by time.Duration
}

func (c *wallClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.by)
}

func (c *wallClock) jump(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by += by
}

func every(d time.Duration) func() backoff.BackOff {
	return func() backoff.BackOff { return backoff.NewConstantBackOff(d) }
}

// askBack asks the holder for the lock, as another process does.
func (w *world) askBack(ctx context.Context, c *lock.Client, l *lock.Lease) {
	w.Helper()
	r, err := c.Inspect(ctx, l.Target())
	require.NoError(w, err)
	b64 := base64.RawURLEncoding.EncodeToString
	question := strings.Join([]string{"revoke", r.Holder().Ticket, b64([]byte(l.Key().PK)), b64([]byte(l.Key().SK))}, " ")
	id := "SESSION#" + r.Holder().Session
	require.NoError(w, w.table.Write(ctx, table.Update(keys.NewKey(id, id), table.Attr("ask").Add(&types.AttributeValueMemberSS{Value: []string{question}}))))
}
