// Package audited contains code for the test of the mutex audit.
package audited

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

type thing struct {
	table  *table.Table
	log    *slog.Logger
	call   func()
	polls  backoff.BackOff
	cancel context.CancelFunc
	work   sync.WaitGroup
	news   chan int

	mu  sync.RWMutex
	all map[string]int
}

func (t *thing) send(ctx context.Context) error {
	_, err := t.table.Get(ctx, keys.Key{}, true)
	return err
}

func (t *thing) sendUnder(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.send(ctx) // want send
}

func (t *thing) sendAfter(ctx context.Context, early bool) error {
	t.mu.Lock()
	if early {
		t.mu.Unlock()
		return t.send(ctx)
	}
	t.all["x"]++
	t.cancel()
	t.log.Info("x") // want log/slog
	t.mu.Unlock()
	return t.send(ctx)
}

func (t *thing) deep(n int) {
	if n > 0 {
		t.deep(n - 1)
	}
	t.call()
}

func (t *thing) deeper() { t.deep(3) }

func (t *thing) callbacks() {
	t.mu.RLock()
	t.deeper()                // want function value call
	t.call()                  // want function value call
	_ = t.polls.NextBackOff() // want anybody's code
	go t.call()               // runs without it
	t.work.Go(func() { t.call() })
	func() {
		t.call() // want function value call
	}()
	t.mu.RUnlock()
	t.call()
}

func (t *thing) waits(done bool) {
	t.mu.Lock()
	select {
	case t.news <- 1:
	default:
	}
	<-t.news      // want waits for a channel
	t.news <- 1   // want waits for a channel
	time.Sleep(1) // want waits in time.Sleep
	t.work.Wait() // want waits in
	select {      // want waits for a channel
	case <-t.news:
	}
	for range t.news { // want waits for a channel
	}
	if done {
		t.mu.Unlock()
	}
	time.Sleep(2) // want waits in time.Sleep
}

func (t *thing) loops() {
	for {
		t.mu.Lock()
		if len(t.all) > 3 {
			break
		}
		t.mu.Unlock()
		t.call()
	}
	t.call() // want function value call
	t.mu.Unlock()
	switch len(t.all) {
	case 1:
		t.mu.Lock()
	case 2:
		return
	}
	t.call() // want function value call
}

func (t *thing) deferred() {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer func() {
		t.call() // want function value call
	}()
	later := func() { t.call() }
	later() // want function value later
}
