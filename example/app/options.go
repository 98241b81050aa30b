package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/mortise-go/mortise/keys"
)

// Bounds of what one run starts.
const (
	defaultWorkers = 4
	maxWorkers     = 256 // goroutines in one process
	maxProcesses   = 64
)

// options are the settings of the command line.
type options struct {
	orders    string // file; "" is the sample, "-" standard input
	workers   int    // goroutines per process
	processes int    // 0: the workers run in this process
	stall     int    // workers that freeze
	target    target
	table     string
	scheme    keys.Scheme
	json      bool
	command   []string // of migratecmd; nil settles orders
}

// usageError is a command line that makes no sense: exit code 2.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() + " (-h lists the flags)" }

func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// parseOptions reads the command line. For -h it writes the help to stdout and
// returns flag.ErrHelp; every other error is a *usageError.
func parseOptions(args []string, stdout io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("app", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	fs.StringVar(&o.orders, "orders", "", "read orders from `FILE`, JSON lines; - is standard input (default: the embedded sample)")
	fs.IntVar(&o.workers, "workers", defaultWorkers, "`N` workers, goroutines, in each process")
	fs.IntVar(&o.processes, "processes", 0, "start `N` worker processes; 0 settles in this one")
	fs.IntVar(&o.stall, "stall", 0, "`N` workers freeze while they hold a lock, until their lease is lost, then try to write")
	fs.StringVar(&o.target.Endpoint, "endpoint", "", "use the DynamoDB at `URL`, such as DynamoDB Local (default: an in-process engine)")
	fs.BoolVar(&o.target.AWS, "aws", false, "use DynamoDB on AWS, with the SDK's usual configuration")
	fs.StringVar(&o.target.Data, "data", "", "start DynamoDB Local with tables kept in `DIRECTORY`; one program at a time\n(\"make engine\" installs it; default for migrate: one in the user's cache directory)")
	fs.StringVar(&o.table, "table", "mortise-example", "`name` of the table; it is created if it does not exist")
	fs.StringVar(&o.scheme.PK, "pk", "pk", "`name` of the partition key attribute")
	fs.StringVar(&o.scheme.SK, "sk", "sk", "`name` of the sort key attribute")
	fs.StringVar(&o.scheme.Prefix, "prefix", "", "`text` before every partition key, such as shop/")
	fs.BoolVar(&o.json, "json", false, "end with one line of JSON")
	err := fs.Parse(args)
	if rest := fs.Args(); err == nil && len(rest) > 0 && rest[0] == migrateCommand {
		var own []string
		own, o.command = splitArgs(fs, rest[1:])
		err = fs.Parse(own)
	}
	if err != nil {
		if errors.Is(err, flag.ErrHelp) {
			say(stdout, "usage: app [flags]\n       app migrate [flags] SUBCOMMAND\n\n"+
				"Settles orders under lock rows that stand beside them, on one DynamoDB table.\n"+
				"migrate runs the table's migrations and nothing else: app migrate help.\n\n")
			fs.SetOutput(stdout)
			fs.PrintDefaults()
			return o, err
		}
		return o, &usageError{err}
	}
	if err := o.validate(fs.Args()); err != nil {
		return o, err
	}
	if o.command != nil {
		err = o.validateMigrate(fs)
	}
	return o, err
}

// splitArgs takes this program's flags out of the arguments of migrate; -json is
// the subcommand's. It does not return nil for the rest.
func splitArgs(fs *flag.FlagSet, args []string) (own, rest []string) {
	rest = []string{}
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return own, append(rest, args[i:]...)
		}
		text := strings.TrimPrefix(strings.TrimPrefix(args[i], "-"), "-")
		name, _, hasValue := strings.Cut(text, "=")
		f := fs.Lookup(name)
		if f == nil || text == args[i] || name == "json" {
			rest = append(rest, args[i])
			continue
		}
		own = append(own, args[i])
		if b, ok := f.Value.(interface{ IsBoolFlag() bool }); hasValue || ok && b.IsBoolFlag() {
			continue
		}
		if i++; i < len(args) {
			own = append(own, args[i])
		}
	}
	return own, rest
}

// validateMigrate refuses flags that migrate has no use for, and finds a place
// for a table that is kept.
func (o *options) validateMigrate(fs *flag.FlagSet) (err error) {
	fs.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "orders", "workers", "processes", "stall":
			err = usagef("-%s: not with migrate", f.Name)
		}
	})
	if o.json {
		o.command = append(o.command, "-json")
	}
	if err != nil || o.target != (target{}) {
		return err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return usagef("migrate: say where the table is, with -data, -endpoint or -aws: %w", err)
	}
	o.target.Data = filepath.Join(cache, "mortise-example")
	return nil
}

func (o *options) validate(rest []string) error {
	switch {
	case len(rest) > 0:
		return usagef("unexpected argument %q", rest[0])
	case o.workers < 1 || o.workers > maxWorkers:
		return usagef("-workers: want 1 to %d, not %d", maxWorkers, o.workers)
	case o.processes < 0 || o.processes > maxProcesses:
		return usagef("-processes: want 0 to %d, not %d", maxProcesses, o.processes)
	case o.stall < 0 || o.stall > o.workers*max(1, o.processes):
		return usagef("-stall: want 0 to %d, the number of workers, not %d", o.workers*max(1, o.processes), o.stall)
	case o.target.AWS && o.target.Endpoint != "":
		return usagef("-aws and -endpoint exclude each other")
	case o.target.Data != "" && (o.target.AWS || o.target.Endpoint != ""):
		return usagef("-data excludes -aws and -endpoint")
	case !validTableName(o.table):
		return usagef("-table: want 3 to 255 of a-z A-Z 0-9 _ - .")
	}
	if o.target.Endpoint != "" {
		u, err := url.Parse(o.target.Endpoint)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil || u.RawQuery != "" {
			return usagef("-endpoint: want a URL such as http://localhost:8000")
		}
	}
	for _, name := range []struct{ flag, value string }{{"-pk", o.scheme.PK}, {"-sk", o.scheme.SK}} {
		if name.value == "" {
			return usagef("%s: empty", name.flag)
		}
	}
	if len(o.scheme.Prefix) > maxIdentifier {
		return usagef("-prefix: longer than %d bytes", maxIdentifier)
	}
	if err := o.scheme.Validate(); err != nil {
		return usagef("-pk, -sk, -prefix: %w", err)
	}
	return nil
}

func validTableName(name string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
	return len(name) >= 3 && len(name) <= 255 && strings.Trim(name, allowed) == ""
}
