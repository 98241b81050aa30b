package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/table"
)

// Kind is what a question asks.
type Kind string

const (
	// Claim asks whether the process knows a ticket. One that it does not know is a ghost, which a
	// request has entered that came in late, and it removes it.
	Claim Kind = "claim"
	// Revoke asks the holder to release.
	Revoke Kind = "revoke"
	// Forced tells the holder that the lock was taken by force.
	Forced Kind = "forced"
)

// Question is what one process wants of another about a lock. The mailbox keeps it as JSON.
type Question struct {
	Kind   Kind
	Ticket string   // its ID
	Fence  int64    // under which it was seen first
	Key    keys.Key // of the lock's row
}

// maxQuestions bounds a mailbox. With keys of usual lengths it has 100 KB then. One whose questions have the
// longest keys reaches the 400 KB of an item before, which DynamoDB refuses.
const maxQuestions = 1000

// MaxAsked is how many questions one request asks at most.
const MaxAsked = 100

// ErrBusy is the error of a question to a session whose mailbox is full.
var ErrBusy = fmt.Errorf("%w: too many requests wait for the holder's next renewal", table.ErrThrottled)

// ErrNobody is the error of a question to a session that is dead or gone, or whose recorded end is past.
var ErrNobody = errors.New("the session has ended")

func stringSet(list []string) types.AttributeValue { return &types.AttributeValueMemberSS{Value: list} }

// Ask puts questions into the mailbox of another process's session. ErrBusy and ErrNobody say why they
// were not, or are there in vain.
//
// Cost: one conditional write.
func (o *Others) Ask(ctx context.Context, id string, questions ...Question) error {
	texts := make([]string, len(questions))
	for i, q := range questions {
		text, err := json.Marshal(q)
		if err != nil {
			return err
		}
		texts[i] = string(text)
	}
	slices.Sort(texts)
	texts = slices.Compact(texts) // several who wait for one lock ask the same
	n := o.config.Names
	ask := table.Attr(n.Ask)
	op := table.Update(o.config.Key(id), ask.Add(stringSet(texts))).If(
		table.Attr(n.Type).Equal(Type), table.Attr(n.Dead).NotExists(),
		table.Or(ask.NotExists(), ask.Size().AtMost(maxQuestions-len(texts))))
	var item table.Item
	_, err := o.repeater.Do(ctx, attempt.MaxTimeout, func(ctx context.Context) (err error) {
		item, err = o.repeater.Table.Apply(ctx, op, table.ReturnNew)
		return err
	})
	var failed *table.ConditionError
	switch {
	case errors.Is(err, table.ErrInvalid): // the row is as large as it can be
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
	return nil // they are there, from this call or from an earlier one
}

// answer has the questions answered that others ask. Those that were, and what is no question, are taken
// out of the mailbox with the next renewal.
func (s *Session) answer(ctx context.Context, asked []string) {
	var mu sync.Mutex
	s.answered = nil
	_ = attempt.Each(attempt.OthersFirst(asked, attempt.AtOnce, &s.tried), func(text string) error {
		var q Question
		if json.Unmarshal([]byte(text), &q) == nil && q.Key.Validate() == nil && !s.keeper.config.Hooks.Asked(ctx, q) {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		s.answered = append(s.answered, text)
		return nil
	})
	slices.Sort(s.answered) // whichever was faster
}
