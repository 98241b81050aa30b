package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mortise-go/mortise/internal/tty"
	"github.com/mortise-go/mortise/keys"
)

// program is the name in messages.
const program = "mortise"

var errUsage = errors.New("usage")

func usagef(format string, args ...any) error {
	return fmt.Errorf("%w: %w", errUsage, fmt.Errorf(format, args...))
}

// command is one of the program's commands.
type command struct {
	name     string
	operands string // in the help; empty if there are none
	least    int    // smallest number of operands
	most     int    // greatest number of operands; negative for any number
	locks    bool   // the first operand is a lock's name, which --beside can replace
	names    bool   // all operands are names of locks
	pk       bool   // the first operand is a partition key
	offline  bool   // it uses no table, and has no flags for one
	json     bool   // it can write its result as JSON
	text     string // one line of help
	more     string // the rest of the help
	flags    func(f *flag.FlagSet, c *call)
	run      func(ctx context.Context, c *call) error

	ownCommand bool // it runs the command that follows --
	ownSignals bool // it handles signals itself, and its failures have other exit codes
}

// commands returns all commands, in the order of the help.
func commands() []command {
	return []command{
		execCommand(),
		writeCommand(),
		lsCommand(),
		showCommand(),
		watchCommand(),
		sessionsCommand(),
		revokeCommand(),
		forceCommand(),
		collectionCommand(),
		tableCommand(),
		serveCommand(),
		{name: "help", operands: "[COMMAND]", most: 1, offline: true, text: "explain a command, or all of this", run: help},
	}
}

func find(name string) *command {
	list := commands()
	i := slices.IndexFunc(list, func(c command) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// call is one call of a command.
type call struct {
	environ        []string
	stdin          io.Reader
	stdout, stderr io.Writer
	width          func(stream any) (columns int, terminal bool)

	command  *command
	operands []string
	argv     []string // the command after --
	beside   keys.Key // zero if not given

	file      *schemeFile // of --scheme, once it was read: a pipe can be read only once
	fileError error       // of reading it

	json                              bool
	engine, table, scheme             string
	maxWait, leaseLength, graceLength *time.Duration // of exec; nil if not given
	onLost                            string
	permits                           *int   // of exec; nil for a lock
	ticket                            string // of force
	guard                             string // of write
	all, yes                          bool
	in, reason                        string
	every                             time.Duration // of watch
	addr, hosts                       string        // of serve
	showData                          bool
}

func (c *call) name() string {
	if c.command == nil {
		return program
	}
	return program + " " + c.command.name
}

// say writes a message.
func (c *call) say(format string, args ...any) {
	tty.Say(c.stderr, "%s: %s\n", c.name(), tty.Clean(fmt.Sprintf(format, args...)))
}

// print writes the result of a command, as a document or as text.
func (c *call) print(document any, text func(w io.Writer)) error {
	var b strings.Builder
	if c.json {
		if err := tty.JSON(&b, document, "  "); err != nil {
			return err
		}
	} else {
		text(&b)
	}
	if _, err := io.WriteString(c.stdout, b.String()); err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}

// columns returns the width of the terminal to which results are written, or 0 if there is none.
func (c *call) columns() int {
	width, _ := c.width(c.stdout)
	return width
}

// flagSet returns the flags of the command.
func (c *call) flagSet() *flag.FlagSet {
	f := flag.NewFlagSet(c.command.name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	if c.command.locks {
		f.Var((*besideValue)(&c.beside), "beside", "the lock beside the row with the key `PK SK`, as the table has it, in place of NAME")
	}
	if c.command.flags != nil {
		c.command.flags(f, c)
	}
	if c.command.json {
		f.BoolVar(&c.json, "json", false, "write the result as JSON")
	}
	if !c.command.offline {
		f.StringVar(&c.table, "table", "", "`NAME` of the table")
		f.StringVar(&c.scheme, "scheme", "", "`FILE` that names the table, its attributes, and settings of locks")
		f.StringVar(&c.engine, "engine", "", "aws, demo, or the `URL` of a DynamoDB such as http://127.0.0.1:8000")
	}
	return f
}

// besideValue is the flag --beside in the help. Package flag has no flags with two values, so takeBeside removes it before.
type besideValue keys.Key

func (*besideValue) String() string { return "" }
func (*besideValue) Set(string) error {
	return errors.New("want two values: --beside PK SK")
}

// takeBeside removes --beside PK SK from the arguments, and keeps the key. It leaves empty values, as of variables that are not set, to the
// flag, which refuses them: otherwise they would mean no --beside at all.
func (c *call) takeBeside(args []string) []string {
	for i, a := range args {
		if (a == "--beside" || a == "-beside") && i+2 < len(args) && c.command.locks && args[i+1] != "" && args[i+2] != "" {
			c.beside = keys.NewKey(args[i+1], args[i+2])
			return slices.Concat(args[:i], args[i+3:])
		}
	}
	return args
}

// parse finds the command and reads its arguments. Flags can stand before and after operands.
func (c *call) parse(args []string) error {
	if len(args) == 0 {
		return usagef("no command")
	}
	name, args := args[0], args[1:]
	if slices.Contains([]string{"-h", "-help", "--help"}, name) {
		name = "help"
	}
	if c.command = find(name); c.command == nil {
		return usagef("no command %q", name)
	}
	var rest []string // after --: the command of exec, or operands that can look like flags
	if i := slices.Index(args, "--"); i >= 0 {
		args, rest = args[:i], args[i+1:]
	}
	args = c.takeBeside(args)
	f := c.flagSet()
	for {
		if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
			c.operands = []string{name}
			c.command = find("help")
			return nil
		} else if err != nil {
			return usagef("%w", err)
		}
		if args = f.Args(); len(args) == 0 {
			break
		}
		c.operands, args = append(c.operands, args[0]), args[1:]
	}
	if c.command.ownCommand {
		c.argv = rest
	} else {
		c.operands = append(c.operands, rest...)
	}
	var empty error // for example from a variable that is not set
	f.Visit(func(f *flag.Flag) {
		if text, ok := f.Value.(flag.Getter); ok && text.Get() == "" {
			empty = usagef("--%s: empty", f.Name)
		}
	})
	if empty != nil {
		return empty
	}
	return c.check()
}

// check refuses missing, empty and unexpected operands.
func (c *call) check() error {
	least, most, n := c.command.least, c.command.most, len(c.operands)
	besides := !c.beside.IsZero()
	switch {
	case c.command.locks && besides && n > 0:
		return usagef("both a NAME and --beside")
	case c.command.locks && besides:
	case n < least && c.command.locks:
		return usagef("no lock: want a NAME, or --beside PK SK")
	case n < least:
		return usagef("want %s", c.command.operands)
	case most >= 0 && n > most && c.command.ownCommand:
		return usagef("unexpected argument %q: the command stands after --", c.operands[most])
	case most >= 0 && n > most:
		return usagef("unexpected argument %q", c.operands[most])
	}
	if slices.Contains(c.operands, "") {
		return usagef("an empty argument")
	}
	if c.command.ownCommand && len(c.argv) == 0 {
		return usagef("no command: put it after --")
	}
	return nil
}

// env returns the value of an environment variable; empty if it is not set.
func (c *call) env(name string) string {
	for _, entry := range slices.Backward(c.environ) { // the last one counts
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}
