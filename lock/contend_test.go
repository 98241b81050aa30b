package lock_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table/tabletest"
)

// contender is a goroutine that takes locks again and again.
type contender struct {
	take func(ctx context.Context) (list []*lock.Lease, release func(context.Context) error, err error)
	once bool // or only once

	served  []time.Time // when its locks were granted
	longest time.Duration
}

// one takes one lock at a time, which may be another one each time.
func one(c *lock.Client, target func() lock.Target) *contender {
	return &contender{take: func(ctx context.Context) ([]*lock.Lease, func(context.Context) error, error) {
		l, err := c.Acquire(ctx, target())
		if err != nil {
			return nil, nil, err
		}
		return []*lock.Lease{l}, l.Release, nil
	}}
}

// several takes several locks together.
func several(c *lock.Client, targets func() []lock.Target) *contender {
	return &contender{take: func(ctx context.Context) ([]*lock.Lease, func(context.Context) error, error) {
		b, err := c.AcquireAll(ctx, targets())
		if err != nil {
			return nil, nil, err
		}
		return b.Leases(), b.Release, nil
	}}
}

// contend lets all contenders take locks for the time during, and keep each for hold. It fails the test if two hold one lock
// at once, and returns for how long any lock was held.
func (w *world) contend(hold, during time.Duration, list ...*contender) (held time.Duration) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), during)
	defer cancel()
	var all sync.WaitGroup
	var mu sync.Mutex
	holds := map[lock.Target]bool{}
	note := func(leases []*lock.Lease, is bool) {
		mu.Lock()
		defer mu.Unlock()
		for _, l := range leases {
			if is && holds[l.Target()] {
				w.Errorf("two hold a lock at once")
			}
			holds[l.Target()] = is
		}
		if is {
			held += hold
		}
	}
	for _, c := range list {
		all.Go(func() {
			for ctx.Err() == nil {
				start := time.Now()
				leases, release, err := c.take(ctx)
				c.longest = max(c.longest, time.Since(start))
				if err != nil {
					if ctx.Err() == nil {
						w.Errorf("acquire: %v", err)
					}
					return
				}
				c.served = append(c.served, time.Now())
				note(leases, true)
				time.Sleep(hold)
				note(leases, false)
				if err := release(context.WithoutCancel(ctx)); err != nil {
					w.Errorf("release: %v", err)
				}
				if c.once {
					return
				}
			}
		})
	}
	all.Wait()
	return held
}

// longest is the longest wait of all contenders, also of those that gave up in the end.
func longest(list []*contender) (d time.Duration) {
	for _, c := range list {
		d = max(d, c.longest)
	}
	return d
}

// jain is Jain's index of fairness: 1 if all have got the same, 1/n if one has got all.
func jain(list []int) float64 {
	sum, squares := 0.0, 0.0
	for _, n := range list {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(list)) * squares)
}

// clients are n processes, each of which has held a lock before.
func (w *world) clients(n int) []*lock.Client {
	w.Helper()
	list := make([]*lock.Client, n)
	for i := range list {
		list[i] = w.client(quiet)
	}
	return list
}

// passing is a process's connection to DynamoDB on which a test sees each request, and may do something else than send it.
type passing struct {
	to   aws.HTTPClient
	each func(operation, body string, send func() (*http.Response, error)) (*http.Response, error)
}

func (p passing) Do(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = peek(r); err != nil {
			return nil, err
		}
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	return p.each(operation, string(body), func() (*http.Response, error) { return p.to.Do(r) })
}

// passing is a connection to the engine that calls each for every request.
func (w *world) passing(each func(operation, body string, send func() (*http.Response, error)) (*http.Response, error)) *line {
	return &line{to: passing{w.engine.HTTPClient(), each}}
}

// ofLocks reports whether a request is for lock rows, and not for rows of sessions.
func ofLocks(r tabletest.Request) bool {
	for _, k := range r.Keys {
		if pk, ok := k.Attrs["pk"].(*types.AttributeValueMemberS); ok && strings.HasPrefix(pk.Value, "LOCK#") {
			return true
		}
	}
	return false
}

// acquireFor is acquireAsync with a limit on the wait.
func acquireFor(ctx context.Context, patience time.Duration, c *lock.Client, target lock.Target, opts ...lock.Option) <-chan *lock.Lease {
	short, cancel := context.WithTimeout(ctx, patience)
	context.AfterFunc(short, cancel)
	return acquireAsync(short, c, target, opts...)
}

// takers are all ways to take two locks. Tests look at the second.
func takers(c *lock.Client, opts ...lock.Option) map[string]func(ctx context.Context) (release func(context.Context) error, err error) {
	single := func(acquire func(context.Context, lock.Target, ...lock.Option) (*lock.Lease, error)) func(context.Context) (func(context.Context) error, error) {
		return func(ctx context.Context) (func(context.Context) error, error) {
			l, err := acquire(ctx, names(2)[1], opts...)
			if err != nil {
				return nil, err
			}
			return l.Release, nil
		}
	}
	both := func(acquire func(context.Context, []lock.Target, ...lock.Option) (*lock.Bundle, error)) func(context.Context) (func(context.Context) error, error) {
		return func(ctx context.Context) (func(context.Context) error, error) {
			b, err := acquire(ctx, names(2), opts...)
			if err != nil {
				return nil, err
			}
			return b.Release, nil
		}
	}
	return map[string]func(context.Context) (func(context.Context) error, error){
		"Acquire": single(c.Acquire), "TryAcquire": single(c.TryAcquire), "AcquireAll": both(c.AcquireAll), "TryAcquireAll": both(c.TryAcquireAll),
	}
}
