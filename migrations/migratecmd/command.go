package migratecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mortise-go/mortise/internal/tty"
	"github.com/mortise-go/mortise/migrations"
)

// DefaultName is the name of a [Command] in its help if it has none.
const DefaultName = "migrate"

var (
	// ErrUsage reports invalid arguments. Nothing was sent.
	ErrUsage = errors.New("usage")

	// ErrNotApproved reports that repair found possible fixes, but could not ask and had no -yes. Nothing was changed.
	ErrNotApproved = errors.New("fixes wait for approval: run repair on a terminal, or with -yes")

	// ErrPending reports that plan with -exit-code found something for up to do. Nothing has failed.
	ErrPending = errors.New("up has something to do")

	// ErrChanged reports that an approved fix was not made, because it had changed since it was shown.
	ErrChanged = errors.New("the fix has changed since it was shown, and was not made: run repair again")
)

// Command is the command. The zero value is ready to use. It has no state, and is safe for concurrent use if its
// streams are.
type Command struct {
	// Name is the name of the command in its help and in error messages, such as "shop migrate". Defaults to
	// [DefaultName].
	Name string

	// Stdin provides answers to questions. Only repair asks, and only on a terminal. Defaults to os.Stdin.
	Stdin io.Reader

	// Stdout receives the result. Defaults to os.Stdout.
	Stdout io.Writer

	// Stderr receives errors, progress and logs. Defaults to os.Stderr.
	Stderr io.Writer

	// terminal returns the width of a stream in columns, and whether it is a terminal. Tests set it. If it is nil, the
	// operating system is asked.
	terminal func(stream any) (width int, ok bool)
}

func (c Command) withDefaults() Command {
	if c.Name == "" {
		c.Name = DefaultName
	}
	if c.Stdin == nil {
		c.Stdin = os.Stdin
	}
	if c.Stdout == nil {
		c.Stdout = os.Stdout
	}
	if c.Stderr == nil {
		c.Stderr = os.Stderr
	}
	if c.terminal == nil {
		c.terminal = tty.Width
	}
	return c
}

// call is one call of a subcommand.
type call struct {
	Command
	options
	m       *migrations.Migrator
	console *console
}

// Run runs one subcommand. args are its name and its arguments. It writes progress and logs of m to Stderr instead of
// their usual destinations; m itself does not change.
//
// It returns the error of the Migrator's method, [ErrUsage], [ErrNotApproved], [ErrPending], [ErrChanged], or the error of a stream.
// The error has already been written to Stderr, on one line. After ctx has ended, the error also matches ctx.Err().
func (c Command) Run(ctx context.Context, m *migrations.Migrator, args []string) error {
	if done, err := c.Help(args); done {
		return err
	}
	c = c.withDefaults()
	if ctx == nil {
		return c.tell(fmt.Errorf("%w: nil context", migrations.ErrInvalid))
	}
	err := c.run(ctx, m, args)
	if ended := ctx.Err(); err != nil && ended != nil {
		err = &interruptedError{err, ended}
	}
	return c.tell(err)
}

// interruptedError is an error after ctx has ended. ExitCode needs it: the error of a lost lock can match context.Canceled, too.
type interruptedError struct{ err, ended error }

func (e *interruptedError) Error() string {
	if errors.Is(e.err, e.ended) {
		return e.err.Error()
	}
	return e.ended.Error() + ": " + e.err.Error()
}

func (e *interruptedError) Unwrap() []error { return []error{e.err, e.ended} }

// Help handles arguments that need no Migrator. It prints help if args ask for it, and refuses invalid args as Run
// does. done reports that nothing is left to do. Use it in a program in which creating a Migrator is expensive.
func (c Command) Help(args []string) (done bool, err error) {
	c = c.withDefaults()
	sub, opts, err := parse(args)
	if err == nil {
		if sub.run != nil && !opts.help {
			return false, nil
		}
		err = c.help(sub, opts)
	}
	return true, c.tell(err)
}

// tell writes err to Stderr and returns it.
func (c Command) tell(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if errors.Is(err, ErrUsage) {
		text += fmt.Sprintf(" (%s help explains)", c.Name)
	}
	tty.Say(c.Stderr, "%s: %s\n", c.Name, tty.Clean(text))
	return err
}

func (c Command) run(ctx context.Context, m *migrations.Migrator, args []string) (err error) {
	sub, opts, err := parse(args)
	if err != nil {
		return err
	}
	if m == nil {
		return fmt.Errorf("%w: nil Migrator", migrations.ErrInvalid)
	}
	k := &call{Command: c, options: opts}
	width := func() int { w, _ := c.terminal(c.Stderr); return w }
	k.console = newConsole(c.Stderr, width)
	defer k.console.close()
	if k.m, err = m.With(migrations.WithProgress(k.console.progress), migrations.WithLogger(k.console.logger())); err != nil {
		return err
	}
	return sub.run(ctx, k)
}

// result writes the result of a subcommand, as JSON or as text. It returns err, or the error of writing.
func (c *call) result(err error, document any, text func(w io.Writer)) error {
	c.console.close() // so that no progress is written in between
	var b strings.Builder
	if c.json {
		if problem := tty.JSON(&b, document, "  "); problem != nil && err == nil {
			err = problem
		}
	} else {
		text(&b)
	}
	if _, problem := io.WriteString(c.Stdout, b.String()); problem != nil && err == nil {
		err = fmt.Errorf("standard output: %w", problem)
	}
	return err
}

// ExitCode returns the exit code of a program after Run: 0 if err is nil, 2 for [ErrUsage], 3 for [ErrPending], 130 if the
// context was cancelled (as shells report an interrupt), and 1 for any other error.
func ExitCode(err error) int {
	const failure, usage, pending, interrupted = 1, 2, 3, 130
	var ended *interruptedError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrUsage):
		return usage
	case errors.As(err, &ended) && errors.Is(ended.ended, context.Canceled):
		return interrupted
	case errors.Is(err, ErrPending):
		return pending
	}
	return failure
}
