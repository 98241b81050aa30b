package migratecmd

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/mortise-go/mortise/internal/tty"
)

// options are the arguments of a subcommand.
type options struct {
	json, help, all, yes, exitCode bool

	to      string
	operand string // ID for baseline, or the subcommand to explain
}

// subcommand is one of the command's subcommands.
type subcommand struct {
	name    string
	operand string // name of the operand in the help; empty if there is none
	needed  bool   // whether the operand is required
	text    string // one line of help
	more    string // further help
	flags   func(fs *flag.FlagSet, o *options)
	run     func(ctx context.Context, c *call) error // nil for help
}

// subcommands returns the subcommands in the order of the help.
func subcommands() []subcommand {
	return []subcommand{
		{name: "status", text: "list all migrations with their states", run: status},
		{
			name: "plan", text: "list what up would do, and change nothing", run: plan,
			more: "Also fails if up would refuse to run anything.",
			flags: func(fs *flag.FlagSet, o *options) {
				fs.BoolVar(&o.exitCode, "exit-code", false, "exit with 3 if up has something to do, for scripts")
			},
		},
		{
			name: "up", text: "run pending migrations", run: up,
			more: "If another process runs migrations, up waits for it. A migration that was interrupted or has failed\n" +
				"continues if it is idempotent; otherwise it needs repair.",
			flags: func(fs *flag.FlagSet, o *options) {
				fs.StringVar(&o.to, "to", "", "run migrations up to and including `ID`, and no repeatable ones")
			},
		},
		{
			name: "down", text: "take the last migration back", run: down,
			flags: func(fs *flag.FlagSet, o *options) {
				fs.StringVar(&o.to, "to", "", "take back all migrations after `ID`, the last one first")
				fs.BoolVar(&o.all, "all", false, "take back all migrations")
			},
		},
		{
			name: "baseline", operand: "ID", needed: true, text: "record all migrations up to ID as applied, without running them", run: baseline,
			more: "For a table that already has these changes.",
		},
		{
			name: "repair", text: "fix what prevents up from running", run: repair,
			more: "Explains each fix, and asks whether to make it. If a migration can be fixed in two ways, it asks for\n" +
				"the second if the first is declined; -yes takes the first. Without a terminal and without -yes, it\n" +
				"lists the fixes, makes none, and fails.",
			flags: func(fs *flag.FlagSet, o *options) {
				fs.BoolVar(&o.yes, "yes", false, "make the first fix of each migration without asking")
			},
		},
		{
			name: "validate", text: "fail unless the table's records and this program agree", run: validate,
			more: "They agree if no migration is drifted, unknown or out of order, and up continues each one that has failed or was\ninterrupted. Pending migrations are allowed.",
		},
		{name: "help", operand: "SUBCOMMAND", text: "explain a subcommand, or list them"},
	}
}

func find(name string) (subcommand, bool) {
	for _, s := range subcommands() {
		if s.name == name {
			return s, true
		}
	}
	return subcommand{}, false
}

// flagSet returns the flags of a subcommand.
func (s *subcommand) flagSet(o *options) *flag.FlagSet {
	fs := flag.NewFlagSet(s.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	if s.flags != nil {
		s.flags(fs, o)
	}
	if s.run != nil {
		fs.BoolVar(&o.json, "json", false, "write the result as JSON")
	}
	return fs
}

func usagef(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrUsage, fmt.Errorf(format, args...))
}

// parse finds the subcommand and reads its arguments.
func parse(args []string) (s subcommand, o options, err error) {
	if len(args) == 0 {
		return s, o, usagef("no subcommand")
	}
	name, args := args[0], args[1:]
	switch name {
	case "-h", "-help", "--help":
		name = "help"
	}
	s, ok := find(name)
	if !ok {
		return s, o, usagef("no subcommand %q", name)
	}
	fs := s.flagSet(&o)
	var operands []string
	for { // flags can stand before and after an operand
		if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
			o.help = true
			return s, o, nil
		} else if err != nil {
			return s, o, usagef("%s: %w", name, err)
		}
		if args = fs.Args(); len(args) == 0 {
			break
		}
		operands, args = append(operands, args[0]), args[1:]
	}
	to := false
	fs.Visit(func(f *flag.Flag) { to = to || f.Name == "to" })
	switch {
	case s.operand == "" && len(operands) > 0:
		return s, o, usagef("%s: unexpected argument %q", name, operands[0])
	case len(operands) > 1:
		return s, o, usagef("%s: unexpected argument %q", name, operands[1])
	case s.needed && (len(operands) == 0 || operands[0] == ""):
		return s, o, usagef("%s: no %s", name, s.operand)
	case to && o.to == "": // for example from a variable that is not set
		return s, o, usagef("%s: -to: empty", name)
	case to && o.all:
		return s, o, usagef("%s: -to and -all exclude each other", name)
	}
	if len(operands) > 0 {
		o.operand = operands[0]
	}
	return s, o, nil
}

// help explains one subcommand, or lists all.
func (c Command) help(s subcommand, o options) error {
	if s.run == nil && o.operand != "" {
		var ok bool
		if s, ok = find(o.operand); !ok {
			return usagef("help: no subcommand %q", o.operand)
		}
	}
	var b strings.Builder
	if s.run == nil {
		tty.Say(&b, "usage: %s SUBCOMMAND [flags]\n\nRuns this program's migrations.\n\n", c.Name)
		g := tty.Grid{}
		for _, s := range subcommands() {
			g.Add("  "+s.synopsis(), s.text)
		}
		g.Write(&b, 0)
		tty.Say(&b, "\n%s help SUBCOMMAND tells more.\n", c.Name)
	} else {
		tty.Say(&b, "usage: %s %s\n\n%s.\n", c.Name, s.synopsis(), strings.ToUpper(s.text[:1])+s.text[1:])
		if s.more != "" {
			tty.Say(&b, "%s\n", s.more)
		}
		tty.Say(&b, "\n")
		fs := s.flagSet(&options{})
		fs.SetOutput(&b)
		fs.PrintDefaults()
	}
	_, err := io.WriteString(c.Stdout, b.String())
	return err
}

// synopsis returns a subcommand's name with its own flags and its operand.
func (s *subcommand) synopsis() string {
	text := s.name
	s.flagSet(&options{}).VisitAll(func(f *flag.Flag) {
		if f.Name == "json" {
			return // common to all subcommands
		}
		value, _ := flag.UnquoteUsage(f)
		text += " [" + strings.TrimSpace("-"+f.Name+" "+value) + "]"
	})
	switch {
	case s.needed:
		text += " " + s.operand
	case s.operand != "":
		text += " [" + s.operand + "]"
	}
	return text
}
