package lock_test

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// Copies of helpers of contract_test.go, data_test.go and time_test.go of the first edition, for tests that
// are ported apart from those.

// lockRow is a lock's row in order, as another client would have left it: free, or held under a lease of its
// own that ended long ago.
func (p *place) lockRow(key keys.Key, held bool, change func(table.Item)) table.Item {
	now := time.Now()
	item := p.table.KeyItem(key)
	item["type"], item["fence"], item["line"] = text("mortise.Lock"), numeral(7), listOf()
	item["since"], item["ttl"] = numeral(now.Add(-time.Hour).UnixMilli()), numeral(now.Add(48*time.Hour).Unix())
	if held {
		item["line"] = listOf(text(fmt.Sprintf("ANOTHER@%013d+1000 another", now.Add(-time.Hour).UnixMilli())))
	}
	if change != nil {
		change(item)
	}
	return item
}

func (p *place) keyOf(target lock.Target) keys.Key {
	p.Helper()
	l, err := p.client.Acquire(p.Context(), target)
	require.NoError(p, err)
	require.NoError(p, l.Release(p.Context()))
	return l.Key()
}
