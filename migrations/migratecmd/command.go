package migratecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mortise-go/mortise/migrations"
)

// DefaultName is how the help calls a command that has no name of its own.
const DefaultName = "migrate"

var (
	// ErrUsage reports that the arguments make no sense; nothing was sent.
	ErrUsage = errors.New("usage")

	// ErrNotApproved reports that repair has found something to mend, had nobody to ask, and was
	// not told -yes. Nothing was changed.
	ErrNotApproved = errors.New("fixes wait for approval: run repair on a terminal, or with -yes")

	// ErrChanged reports that a fix was approved and not made, because by then it was not what
	// had been shown.
	ErrChanged = errors.New("what was to be mended has changed meanwhile: run repair again")
)

// Command is the command, ready to use as its zero value. It keeps no state and is safe for
// concurrent use if its streams are.
type Command struct {
	// Name is how the command is called, for its help and in front of errors: "shop migrate".
	// Defaults to DefaultName.
	Name string

	// Stdin is where answers to questions come from; only repair asks, and only a terminal.
	// Defaults to os.Stdin.
	Stdin io.Reader

	// Stdout gets the result. Defaults to os.Stdout.
	Stdout io.Writer

	// Stderr gets errors, progress and what is logged. Defaults to os.Stderr.
	Stderr io.Writer

	// terminal is the width of a stream in columns, and whether it is a terminal at all. Nil,
	// but in tests, asks the system.
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
		c.terminal = terminal
	}
	return c
}

// call is one subcommand under way.
type call struct {
	Command
	options
	m       *migrations.Migrator
	console *console
}

// Run runs one subcommand: args are its name and its arguments. It sends progress and logs of
// m to Stderr, in place of where they went before; m itself stays as it is.
//
// It returns what the Migrator's method returned, ErrUsage, ErrNotApproved or ErrChanged, or
// the error of a stream; that was written to Stderr already, on one line. An error after ctx
// has ended matches ctx.Err() too.
func (c Command) Run(ctx context.Context, m *migrations.Migrator, args []string) error {
	if done, err := c.Help(args); done {
		return err
	}
	c = c.withDefaults()
	if ctx == nil {
		return c.tell(fmt.Errorf("%w: nil context", migrations.ErrInvalid))
	}
	err := c.run(ctx, m, args)
	if ended := ctx.Err(); err != nil && ended != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", ended, err)
	}
	return c.tell(err)
}

// Help does what needs no Migrator, for programs in which it takes something to have one: it
// explains, where args ask for that, and refuses args that make no sense, as Run does. done
// says that nothing is left to do.
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

// tell says on Stderr what err is, and returns it.
func (c Command) tell(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if errors.Is(err, ErrUsage) {
		text += fmt.Sprintf(" (%s help explains)", c.Name)
	}
	say(c.Stderr, "%s: %s\n", c.Name, clean(text))
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

// result writes what a subcommand has found out, as JSON or as text for people, and returns
// err or what went wrong with that.
func (c *call) result(err error, document any, text func(w io.Writer)) error {
	c.console.close() // so that nothing comes between
	var b strings.Builder
	if c.json {
		if problem := encode(&b, document); problem != nil && err == nil {
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

// ExitCode returns what a program should exit with after Run: 0 where err is nil, 2 for ErrUsage,
// 130 when the context was cancelled, as shells report an interrupt, and 1 for all else.
func ExitCode(err error) int {
	const failure, usage, interrupted = 1, 2, 130
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrUsage):
		return usage
	case errors.Is(err, context.Canceled):
		return interrupted
	}
	return failure
}

// say writes what nobody is left to be told about when it fails.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
