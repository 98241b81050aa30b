package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/mortise-go/mortise/internal/tty"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

func writeCommand() command {
	return command{
		name: "write", operands: "FILE.json", least: 1, most: 1, json: true,
		text: "write to the table, if the lock of exec is still held",
		more: `For scripts that mortise exec runs. FILE.json has a transaction, as "aws dynamodb transact-write-items --transact-items" takes
it; - is standard input. All of it is applied or none, and only if the lock is still held: DynamoDB decides that in the same
transaction. So a script that was stopped, or cut off, and that another has followed, cannot write any more.

  [{"Put":    {"Item": {"pk": {"S": "REPORT#7"}, "sk": {"S": "REPORT"}, "state": {"S": "done"}}}},
   {"Update": {"Key": {"pk": {"S": "REPORTS"}, "sk": {"S": "COUNT"}}, "UpdateExpression": "ADD n :one",
               "ExpressionAttributeValues": {":one": {"N": "1"}}}}]

Actions are Put, Update, Delete and ConditionCheck, at most 99, on the table of the lock; TableName can be left out.

The table, the names of its attributes, and the lock come from the guard token of exec, in MORTISE_GUARD. It is no secret: it
names the lock's row and what has to stand in it.

Exit codes: 76 if the lock is not held any more. 77 if a condition of the transaction's own does not hold. Nothing was written
then. 78 if no answer came: the transaction may have been applied, so look before you repeat it. Writes of several calls are not
kept in order: one without an answer may be applied after a later one.`,
		flags: func(f *flag.FlagSet, c *call) {
			f.StringVar(&c.guard, "guard", "", "`TOKEN` of a lock, in place of MORTISE_GUARD")
		},
		run: write,
	}
}

// writeDocument is the result of a transaction as JSON.
type writeDocument struct {
	Written bool            `json:"written"`
	Unknown bool            `json:"unknown,omitempty"` // it may have been written all the same
	Lost    bool            `json:"lost,omitempty"`
	Refused []refusedAction `json:"refused,omitempty"`
	Error   string          `json:"error,omitempty"`
}

// refusedAction is an action whose condition did not hold.
type refusedAction struct {
	Action int             `json:"action"`          // counted from 0
	Found  json.RawMessage `json:"found,omitempty"` // the item that was found, if there was one
}

func write(ctx context.Context, c *call) error {
	text := cmp.Or(c.guard, c.env(envGuard))
	if text == "" {
		return usagef("no lock to write under: call it in a script that mortise exec runs, or with --guard")
	}
	token, err := lock.ParseGuardToken(text)
	if err != nil {
		return usagef("--guard or %s: %w", envGuard, err)
	}
	actions, err := readAll(ctx, c.operands[0], c.stdin)
	if err != nil {
		return err
	}
	if c.table != "" && c.table != token.Table {
		return usagef("--table %s: the lock is in table %s", c.table, token.Table)
	}
	c.table = token.Table // as if --table named it
	s, err := c.settings()
	if err != nil {
		return err
	}
	s.schema = table.Schema{Name: token.Table, Keys: token.Scheme, MustExist: true}
	s.locks.Index = "" // the guard needs no index, and this schema has none
	if s.engine == engineDemo {
		return usagef("--engine demo: a demo is the engine of exec, which its command finds by %s", envEngine)
	}
	o, err := s.open(ctx, false)
	if err != nil {
		return err
	}
	ops, err := o.table.OpsFromJSON(actions)
	if err == nil && len(ops) == 0 {
		err = fmt.Errorf("%w: no actions", table.ErrInvalid)
	}
	if err == nil && len(ops) >= table.MaxOps {
		err = fmt.Errorf("%w: %d actions, and the guard is one: at most %d", table.ErrInvalid, len(ops), table.MaxOps-1)
	}
	if err != nil {
		return errors.Join(err, o.close(ctx))
	}
	err = o.table.Write(ctx, append(ops, token.Guard(o.table))...)
	d, result := judge(ctx, err, len(ops))
	if c.json {
		if err := tty.JSON(c.stdout, d, "  "); err != nil {
			if d.Written {
				err = fmt.Errorf("it was written, but %w", err)
			}
			result = errors.Join(result, err) // the exit code stays that of the result
		}
	}
	return errors.Join(result, o.close(ctx))
}

// maxTransaction is the greatest size of a request, in bytes. DynamoDB takes no greater one.
const maxTransaction = 16 << 20

// readAll reads a file, or standard input, until ctx ends. The file can be a pipe, too.
func readAll(ctx context.Context, name string, stdin io.Reader) ([]byte, error) {
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() { // it stays behind if ctx ends first: nothing can end the read
		if name == "-" {
			text, err := readAtMost(stdin, "standard input", maxTransaction)
			done <- result{text, err}
			return
		}
		text, err := readFile(name, maxTransaction)
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// judge turns the error of a transaction into its result. actions is the number of actions; the guard is the operation after them.
func judge(ctx context.Context, err error, actions int) (d writeDocument, _ error) {
	if err == nil {
		return writeDocument{Written: true}, nil
	}
	pending := false
	for _, f := range table.Conditions(err) {
		pending = pending || f.Pending
		if f.Index == actions {
			d.Lost = true
			continue
		}
		found, bad := table.ItemToJSON(f.Item)
		if bad != nil || f.Item == nil {
			found = nil
		}
		d.Refused = append(d.Refused, refusedAction{Action: f.Index, Found: found})
	}
	code := exitFailure
	switch {
	case d.Lost: // final, even if an earlier attempt is pending: the ticket never stands first under this fence again
		code, err = exitLost, errors.New("the lock is not held any more: nothing was written")
	case len(d.Refused) > 0 && !pending:
		code, err = exitRefused, fmt.Errorf("the condition of action %d does not hold (counted from 0): nothing was written", d.Refused[0].Action)
	case pending, table.MayBeApplied(err), ctx.Err() != nil:
		d.Unknown = true
		code, err = exitUnknown, fmt.Errorf("no answer: the transaction may have been applied: %w", err)
	}
	d.Error = err.Error()
	return d, &exit{code, err}
}
