package main

import (
	"errors"
	"flag"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// options are the settings of the command line.
type options struct {
	file      string // of orders; "" is the sample, "-" standard input
	workers   int    // goroutines per process
	processes int    // 0: the workers run in this process
	stall     int    // workers that freeze
	target    engines.Target
	tableName string
	scheme    keys.Scheme
	json      bool
	command   []string // of migrate; nil settles orders
}

// parseOptions reads the command line. For -h it writes the help to stdout and returns flag.ErrHelp.
func parseOptions(args []string, stdout io.Writer) (o options, err error) {
	fs := flag.NewFlagSet("app", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.file, "orders", "", "read orders from `FILE`, JSON lines; - is standard input (default: the embedded sample)")
	fs.IntVar(&o.workers, "workers", 4, "`N` workers, goroutines, in each process")
	fs.IntVar(&o.processes, "processes", 0, "start `N` worker processes; 0 settles in this one")
	fs.IntVar(&o.stall, "stall", 1, "`N` workers freeze while they hold a lock, until their lease is lost, then try to write; 0 for none")
	fs.StringVar(&o.target.Endpoint, "endpoint", "", "use the DynamoDB at `URL`, such as DynamoDB Local (default: an in-process engine)")
	fs.BoolVar(&o.target.AWS, "aws", false, "use DynamoDB on AWS, with the SDK's usual configuration")
	fs.StringVar(&o.target.Data, "data", "", "start DynamoDB Local with tables kept in `DIRECTORY`; one program at a time\n(\"make engine\" installs it; default for migrate: one in the user's cache directory)")
	fs.StringVar(&o.tableName, "table", "mortise-example", "`name` of the table; it is created if it does not exist")
	fs.StringVar(&o.scheme.PK, "pk", "pk", "`name` of the partition key attribute")
	fs.StringVar(&o.scheme.SK, "sk", "sk", "`name` of the sort key attribute")
	fs.StringVar(&o.scheme.Prefix, "prefix", "", "`text` before every partition key, such as shop/")
	fs.BoolVar(&o.json, "json", false, "end with one line of JSON")
	err = fs.Parse(args)
	if err == nil && fs.Arg(0) == "migrate" {
		var own []string
		own, o.command = splitArgs(fs, fs.Args()[1:])
		err = fs.Parse(own)
	}
	if errors.Is(err, flag.ErrHelp) {
		say(stdout, "usage: app [flags]\n       app migrate [flags] SUBCOMMAND\n\n"+
			"Settles orders under lock rows that stand beside them, on one DynamoDB table.\n"+
			"migrate runs the table's migrations and nothing else: app migrate help.\n\n")
		fs.SetOutput(stdout)
		fs.PrintDefaults()
	}
	if err != nil {
		return o, err
	}
	return o, o.validate(fs)
}

// splitArgs separates this program's flags from the arguments of migrate; -json is the subcommand's. rest is never nil.
func splitArgs(fs *flag.FlagSet, args []string) (own, rest []string) {
	rest = []string{}
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return own, append(rest, args[i:]...)
		}
		text := strings.TrimPrefix(strings.TrimPrefix(args[i], "-"), "-")
		name, _, hasValue := strings.Cut(text, "=")
		if text == args[i] || name == "json" || fs.Lookup(name) == nil {
			rest = append(rest, args[i])
			continue
		}
		own = append(own, args[i])
		if !hasValue && name != "aws" && i+1 < len(args) {
			i++
			own = append(own, args[i])
		}
	}
	return own, rest
}

// validate refuses settings that make no sense, and for migrate finds a place for a table that is kept.
func (o *options) validate(fs *flag.FlagSet) error {
	const maxWorkers, maxProcesses = 256, 64
	all := o.workers * max(1, o.processes)
	at, err := url.Parse(o.target.Endpoint)
	endpoint := err == nil && at.Host != "" && (at.Scheme == "http" || at.Scheme == "https") && at.User == nil && at.RawQuery == ""
	schema := table.Schema{Name: o.tableName, Keys: o.scheme}.Validate()
	err = errors.Join(
		check(fs.NArg() == 0, "unexpected argument %q", fs.Arg(0)),
		check(o.workers >= 1 && o.workers <= maxWorkers, "-workers: want 1 to %d, not %d", maxWorkers, o.workers),
		check(o.processes >= 0 && o.processes <= maxProcesses, "-processes: want 0 to %d, not %d", maxProcesses, o.processes),
		check(o.stall >= 0 && o.stall <= all, "-stall: want 0 to %d, the number of workers, not %d", all, o.stall),
		check(!o.target.AWS || o.target.Endpoint == "", "-aws and -endpoint exclude each other"),
		check(o.target.Data == "" || !o.target.AWS && o.target.Endpoint == "", "-data excludes -aws and -endpoint"),
		check(endpoint || o.target.Endpoint == "", "-endpoint: want a URL such as http://localhost:8000"),
		check(o.scheme.PK != "" && o.scheme.SK != "", "-pk, -sk: empty"),
		check(len(o.scheme.Prefix) <= maxIdentifier, "-prefix: longer than %d bytes", maxIdentifier),
		check(schema == nil, "-table, -pk, -sk, -prefix: %w", schema),
	)
	if o.command == nil || err != nil {
		return err
	}
	fs.Visit(func(f *flag.Flag) {
		err = errors.Join(err, check(!slices.Contains([]string{"orders", "workers", "processes", "stall"}, f.Name), "-%s: not with migrate", f.Name))
	})
	if o.json {
		o.command = append(o.command, "-json")
	}
	if o.target == (engines.Target{}) {
		cache, noCache := os.UserCacheDir()
		o.target.Data = filepath.Join(cache, "mortise-example")
		err = errors.Join(err, check(noCache == nil, "migrate: say where the table is, with -data, -endpoint or -aws: %w", noCache))
	}
	return err
}
