package lock

import (
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// stake is what an acquisition may hold without knowing: the requests that it has sent, which
// the network may deliver late or twice, and the nonces that they would be recognised by. While
// a row may name one of these, nobody else in this process is to take it for a ghost, and free
// what was granted. An acquisition of several locks has one for all.
type stake struct {
	mu      sync.Mutex    // guards the following
	sent    doubts        // attempts, and hand-overs to this one, answered or not
	unclear doubts        // those of them, and of hand-overs, without an answer
	kept    []reservation // what sessions know, and stay open for, while there are doubts
	tried   []reservation // what sessions know for as long as the acquisition goes on
}

// reservation has a session know a nonce.
type reservation struct {
	session *session
	nonce   string
}

// doubt is a request that nobody knows of whether it was applied.
type doubt struct {
	instant // when it was sent

	handed int // how often in a row the lock was handed over, should it have been by this one
}

type doubts []doubt

// of is the one that has written a row, going by when that says that it was acquired; else
// the first, since a lease may well be taken to have begun too early. There is one at least.
func (d doubts) of(acquired types.AttributeValue) doubt {
	if one, ok := d.wrote(acquired); ok {
		return one
	}
	return d[0]
}

// wrote is the one that has written a row, if the row says so.
func (d doubts) wrote(acquired types.AttributeValue) (one doubt, ok bool) {
	i := slices.IndexFunc(d, func(one doubt) bool { return isNumber(acquired, one.wall.UnixMilli()) })
	if i < 0 {
		return doubt{}, false
	}
	return d[i], true
}

// sending takes in a request that is about to be sent. Those that lie back further than the lease
// are left out, but for the first, which stands for them: what they may yet take has ended.
func (k *stake) sending(d doubt, lease time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.sent) > 1 && d.mono.Sub(k.sent[1].mono) > lease {
		k.sent = slices.Delete(k.sent, 1, 2)
	}
	k.sent = append(k.sent, d)
}

// doubt takes in a request without an answer.
func (k *stake) doubt(d doubt) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !slices.Contains(k.unclear, d) { // attempts of one transaction have one start
		k.unclear = append(k.unclear, d)
	}
}

func (k *stake) doubts() doubts {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.unclear)
}

// written is the request that has written a row which names this acquisition.
func (k *stake) written(acquired types.AttributeValue) doubt { return k.requests().of(acquired) }

// knows is written, if there is such a request.
func (k *stake) knows(acquired types.AttributeValue) (doubt, bool) {
	return k.requests().wrote(acquired)
}

// requests are those that may have written a row.
func (k *stake) requests() doubts {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append(slices.Clone(k.sent), k.unclear...)
}

// keep ends what a try, or a hand-over, has reserved, unless it leaves a doubt: then letGo does.
// In any case the nonces are known until then.
func (k *stake) keep(s *session, nonces ...string) {
	if s == nil {
		return
	}
	for _, nonce := range nonces {
		doubtful, first := k.retain(reservation{s, nonce})
		if first {
			s.await(nonce)
		}
		if !doubtful {
			s.unreserve(nonce)
		}
	}
}

// retain books a reservation, each once: a session counts them.
func (k *stake) retain(r reservation) (doubtful, first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if first = !slices.Contains(k.tried, r); first {
		k.tried = append(k.tried, r)
	}
	if doubtful = len(k.unclear) > 0 && !slices.Contains(k.kept, r); doubtful {
		k.kept = append(k.kept, r)
	}
	return doubtful, first
}

// letGo ends what was kept, and forgets what was sent.
func (k *stake) letGo() {
	k.mu.Lock()
	kept, tried := k.kept, k.tried
	k.kept, k.tried, k.unclear, k.sent = nil, nil, nil, nil
	k.mu.Unlock()
	for _, r := range kept {
		r.session.unreserve(r.nonce)
	}
	for _, r := range tried {
		r.session.forgo(r.nonce)
	}
}
