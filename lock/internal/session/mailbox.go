package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/table"
)

// Kind is what a question asks.
type Kind string

const (
	// Claim asks whether the process knows a ticket. If it does not, the ticket is a ghost, which a late request has entered, and the
	// process removes it.
	Claim Kind = "claim"
	// Revoke asks the holder to release the lock.
	Revoke Kind = "revoke"
	// Forced tells the holder that the lock was taken by force.
	Forced Kind = "forced"
)

// Question is a message of one process to another about a lock. The mailbox keeps it as JSON.
type Question struct {
	Kind   Kind
	Ticket string   // ID of the ticket
	Fence  int64    // under which the ticket was seen to hold; of a permit, the number of its stay; 0 in a Revoke
	Key    keys.Key // key of the lock's row
}

// maxQuestions bounds a mailbox, to about 100 KB with keys of usual lengths. With the longest keys, the row reaches the 400 KB of an item
// earlier, and DynamoDB refuses more.
const maxQuestions = 1000

// MaxAsked is the greatest number of questions in one request. The caller has to keep to it.
const MaxAsked = 100

// ErrBusy means that the mailbox of the session is full.
var ErrBusy = fmt.Errorf("%w: too many requests wait for the holder's next renewal", table.ErrThrottled)

// ErrNobody means that the session is dead or gone, or that its recorded end is past.
var ErrNobody = errors.New("the session has ended")

func stringSet(list []string) types.AttributeValue { return &types.AttributeValueMemberSS{Value: list} }

// Ask puts questions into the mailbox of another process's session. ErrBusy means that some of them are not there. ErrNobody means that
// nobody will read them, even if they are there.
//
// Cost: one conditional write.
func (o *Others) Ask(ctx context.Context, id string, questions ...Question) error {
	texts := make([]string, len(questions))
	for i, q := range questions {
		var text strings.Builder
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false) // the longest keys fit MaxAsked times, but not with six bytes for a character
		_ = enc.Encode(q)        // cannot fail: it has only strings and a number
		texts[i] = strings.TrimSpace(text.String())
	}
	slices.Sort(texts)
	texts = slices.Compact(texts) // waiters for one lock ask the same question
	n := o.config.Names
	ask := table.Attr(n.Ask)
	key, ok := o.Key(id)
	if !ok {
		return ErrNobody
	}
	op := table.Update(key, ask.Add(stringSet(texts))).If(
		table.Attr(n.Type).Equal(Type), table.Attr(n.Dead).NotExists(),
		table.Or(ask.NotExists(), ask.Size().AtMost(maxQuestions-len(texts))))
	var item table.Item
	_, err := o.repeater.Do(ctx, attempt.MaxTimeout, func(ctx context.Context) (err error) {
		item, err = o.repeater.Table.Apply(ctx, op, table.ReturnNew)
		return err
	})
	var failed *table.ConditionError
	switch {
	case errors.Is(err, table.ErrInvalid): // the row has reached its greatest size
		return ErrBusy
	case errors.As(err, &failed):
		item = failed.Item
	case err != nil:
		return err
	}
	row, bad := n.Parse(item)
	past, usable := o.repeater.Clock.Past()
	switch {
	case bad != nil, row.Dead, usable && row.Expires > 0 && row.Expires <= past:
		return ErrNobody
	case slices.ContainsFunc(texts, func(q string) bool { return !slices.Contains(row.Ask, q) }):
		return ErrBusy
	}
	return nil // the questions are there, from this call or from an earlier one
}

// answer lets Hooks.Asked answer the questions of others. The next renewal removes answered questions from the mailbox, and texts that
// are no questions.
func (s *Session) answer(ctx context.Context) {
	var mu sync.Mutex
	s.answered = nil
	_ = attempt.Each(attempt.OthersFirst(s.asked, &s.tried), func(text string) error {
		var q Question
		if json.Unmarshal([]byte(text), &q) == nil && q.Key.Validate() == nil && !s.keeper.config.Hooks.Asked(ctx, q) {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		s.answered = append(s.answered, text)
		return nil
	})
	slices.Sort(s.answered) // so that the next write does not depend on which answer came first
}
