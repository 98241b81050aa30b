package session

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/clock"
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

// Question is what one process wants of another about a lock.
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

// answeredAtOnce is how many questions are answered at a time.
const answeredAtOnce = 16

// ErrBusy is the error of a question to a session whose mailbox is full.
var ErrBusy = fmt.Errorf("%w: the holder has as many questions to answer as it can be asked", table.ErrThrottled)

// ErrNobody is the error of a question to a session that is dead or gone, or whose recorded end lies back.
var ErrNobody = errors.New("the session has ended")

// String is the question as the mailbox keeps it.
func (q Question) String() string {
	enc := base64.RawURLEncoding
	return strings.Join([]string{string(q.Kind), q.Ticket, strconv.FormatInt(q.Fence, 10), enc.EncodeToString([]byte(q.Key.PK)), enc.EncodeToString([]byte(q.Key.SK))}, " ")
}

func parseQuestion(text string) (q Question, ok bool) {
	parts := strings.Split(text, " ")
	if len(parts) != 5 {
		return q, false
	}
	enc := base64.RawURLEncoding
	fence, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return q, false
	}
	pk, err := enc.DecodeString(parts[3])
	if err != nil {
		return q, false
	}
	sk, err := enc.DecodeString(parts[4])
	if err != nil {
		return q, false
	}
	q = Question{Kind: Kind(parts[0]), Ticket: parts[1], Fence: fence, Key: keys.NewKey(string(pk), string(sk))}
	return q, q.Key.Validate() == nil
}

func stringSet(list []string) types.AttributeValue { return &types.AttributeValueMemberSS{Value: list} }

// Ask puts questions into the mailbox of another process's session. ErrBusy and ErrNobody say why they
// were not, or are there in vain.
//
// Cost: one conditional write.
func (o *Others) Ask(ctx context.Context, id string, questions ...Question) error {
	texts := make([]string, len(questions))
	for i, q := range questions {
		texts[i] = q.String()
	}
	n := o.names
	ask := table.Attr(n.Ask)
	op := table.Update(o.key(id), ask.Add(stringSet(texts))).If(
		table.Attr(n.Type).Equal(Type), table.Attr(n.Dead).NotExists(),
		table.Or(ask.NotExists(), ask.Size().AtMost(maxQuestions-len(texts))))
	var item table.Item
	var h attempt.History
	err := o.repeater.Do(ctx, attempt.MaxTimeout, &h, func(ctx context.Context, _ clock.Instant) (err error) {
		item, err = o.repeater.Table.Apply(ctx, op, table.ReturnNew)
		return err
	})
	var failed *table.ConditionError
	if errors.Is(err, table.ErrInvalid) { // the row is as large as it can be
		return ErrBusy
	}
	if errors.As(err, &failed) {
		item = failed.Item
	} else if err != nil {
		return err
	}
	row, err := o.names.Parse(item)
	switch {
	case err != nil || row.Dead || o.past(row):
		return ErrNobody
	case !slices.ContainsFunc(texts, func(q string) bool { return !slices.Contains(row.Ask, q) }):
		return nil // they are there already
	}
	return ErrBusy
}

// answer has the questions answered that others ask. Those that were, and what is no question, are taken
// out of the mailbox with the next renewal.
func (s *Session) answer(ctx context.Context, asked []string) {
	handled := make([]bool, len(asked))
	slots := make(chan struct{}, answeredAtOnce)
	var all sync.WaitGroup
	for i, text := range asked {
		q, ok := parseQuestion(text)
		if !ok {
			handled[i] = true
			continue
		}
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			handled[i] = s.keeper.config.Hooks.Asked(ctx, q)
		})
	}
	all.Wait()
	s.handled = s.handled[:0]
	for i, text := range asked {
		if handled[i] {
			s.handled = append(s.handled, text)
		}
	}
}
