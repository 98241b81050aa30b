package lock

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// question is something that others want of the process behind a session. It stands in the
// session row's ask set, which the next renewal brings back: the one channel to a holder.
type question struct {
	kind  questionKind
	nonce string
	key   keys.Key // of the lock row
}

type questionKind string

const (
	// askOwned: somebody has waited for most of a lease on this nonce. Whoever does not know it
	// frees the row: a request that came in late had acquired for nobody.
	askOwned questionKind = "owned"
	// askRelease: please release. Whoever does not know the nonce frees the row.
	askRelease questionKind = "release"
	// tellTaken: the lock was taken away by force.
	tellTaken questionKind = "taken"
)

func (q question) String() string {
	enc := base64.RawURLEncoding
	return strings.Join([]string{
		string(q.kind), q.nonce, enc.EncodeToString([]byte(q.key.PK)), enc.EncodeToString([]byte(q.key.SK)),
	}, " ")
}

// askable says that a question is about a nonce that this package may have made.
func (q question) askable() bool { return len(q.nonce) <= maxNonce && !strings.Contains(q.nonce, " ") }

func parseQuestion(text string) (q question, ok bool) {
	parts := strings.Split(text, " ")
	if len(parts) != 4 {
		return q, false
	}
	enc := base64.RawURLEncoding
	pk, err := enc.DecodeString(parts[2])
	if err != nil {
		return q, false
	}
	sk, err := enc.DecodeString(parts[3])
	if err != nil {
		return q, false
	}
	q = question{kind: questionKind(parts[0]), nonce: parts[1], key: keys.NewKey(string(pk), string(sk))}
	return q, q.key.Validate() == nil
}

func stringSet(list []string) types.AttributeValue { return &types.AttributeValueMemberSS{Value: list} }

const (
	// maxQuestions bounds an ask set. Each has 4.2 KB at most, by the limits of its parts, so
	// the session row stays within the 400 KB of an item, and can be renewed.
	maxQuestions = 64

	// maxNonce is longer than any that this package makes.
	maxNonce = 64
)

// maxAsked is how many questions one request puts: two of them fit into a set.
const maxAsked = maxQuestions / 2

// errAskedEnough says that a session has as many questions to answer as its row may have.
var errAskedEnough = fmt.Errorf("%w: the holder has %d questions to answer already", table.ErrThrottled, maxQuestions)

// ask puts questions to the holder behind a session, and returns the session's row. A
// failed condition means that the session has ended.
//
// Cost: one conditional write.
func (c *Client) ask(ctx context.Context, id string, list ...question) (*sessionRow, error) {
	texts := make([]string, len(list))
	for i, q := range list {
		if !q.askable() {
			return nil, malformed("%s is not one of this package's", attrNonce)
		}
		texts[i] = q.String()
	}
	asked := c.attr(attrAsk)
	fits := []table.Cond{asked.NotExists(), asked.Size().AtMost(maxQuestions - len(texts))}
	if len(texts) == 1 {
		fits = append(fits, asked.Contains(texts[0]))
	}
	item, err := c.table.Apply(ctx, table.Update(c.sessionKey(id), asked.Add(stringSet(texts))).If(
		table.Attr(c.scheme.Type).Equal(sessionType), c.attr(attrDead).NotExists(), table.Or(fits...),
	), table.ReturnNew)
	var failed *table.ConditionError
	if errors.As(err, &failed) && c.sessions.Owns(failed.Item) && !c.isDead(failed.Item) {
		if _, bad := c.sessionOf(failed.Item); bad != nil {
			return nil, bad
		}
		return nil, errAskedEnough
	}
	if err != nil {
		return nil, err
	}
	row, err := c.sessionOf(item)
	return &row, err
}

// answer acts on what was asked and returns what the next renewal can take back.
func (s *session) answer(asked []string) (handled []string) {
	var held []heldQuestion
	for _, text := range asked {
		q, ok := parseQuestion(text)
		if !ok {
			handled = append(handled, text)
			continue
		}
		switch l, known := s.knows(q.nonce); {
		case known && l == nil:
			continue // it stays in the set, since nobody knows yet what becomes of the acquisition
		case !known && (q.kind == askOwned || q.kind == askRelease):
			if !s.reclaim(q) {
				continue // it stays in the set, and comes back with the next renewal
			}
		case l != nil && (q.kind == askOwned || q.kind == tellTaken):
			held = append(held, heldQuestion{q, l, text})
			continue
		case l != nil && q.kind == askRelease:
			l.revoke()
		}
		handled = append(handled, text)
	}
	return append(handled, s.attest(held)...)
}

// heldQuestion is one about a lease that the session has, and that its row has the answer to.
type heldQuestion struct {
	question

	lease *Lease
	text  string
}

// attest answers what rows have the answer to. That a lease is held, since an acquisition may have come in
// late once more under a nonce that is known yet, and nobody would ask again once it is not. And that a
// lock was taken away, since that may have been from an attempt whose answer was lost, before another
// one got it. It returns what can be taken back.
//
// Cost: one read unit for each.
func (s *session) attest(list []heldQuestion) (handled []string) {
	if len(list) == 0 {
		return nil
	}
	ctx, cancel := s.spare()
	if ctx == nil {
		return nil
	}
	defer cancel()
	rows := make([]keys.Key, len(list))
	for i, q := range list {
		rows[i] = q.lease.key
	}
	items, err := s.client.table.BatchGet(ctx, rows, true)
	var unread []keys.Key // for now; what can never be read is answered unseen
	if err != nil && (ctx.Err() != nil || s.client.table.Retryable(err)) {
		unread = rows
		if busy := (*table.UnprocessedError)(nil); errors.As(err, &busy) {
			unread = busy.Keys
		}
	}
	for i, q := range list {
		switch l := q.lease; {
		case slices.Contains(unread, rows[i]):
			continue // it stays in the set
		case q.kind == tellTaken && !l.isNamed(items[i]):
			l.stolen()
		case q.kind == askOwned && l.isOvertaken(items[i]):
			if !l.overtaken(items[i]) || !s.reclaim(q.question) {
				continue // it comes back, and nobody knows the nonce any more
			}
		}
		handled = append(handled, q.text)
	}
	return handled
}

// reclaim frees a row that names a nonce which nobody in this process holds; false when it
// could not be sent.
func (s *session) reclaim(q question) bool {
	ctx, cancel := s.spare()
	if ctx == nil {
		return false
	}
	defer cancel()
	c := s.client
	err := c.free(ctx, q.key, q.nonce, c.clock.wall())
	c.config.Logger.Debug("lock: freed a row that nobody holds", "key", q.key, "error", err)
	return err == nil || errors.Is(err, table.ErrCondition)
}
