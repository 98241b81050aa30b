// Package cli is how the commands of this module are called: what is wrong with a call is one
// line and exit code 2, and help is no failure.
package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"
	"strings"
)

// Settings are what a command was called with: what parse makes of the arguments and the
// flags that it adds to f. Where that is an error, or the usage is asked for, the process
// ends here.
func Settings[S any](f *flag.FlagSet, name, usage string, parse func(*flag.FlagSet, []string) (S, error)) S {
	f.Init(name, flag.ContinueOnError)
	f.SetOutput(io.Discard) // else a wrong flag prints them all
	s, err := parse(f, os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Println(usage)
		f.SetOutput(os.Stdout)
		f.PrintDefaults()
		os.Exit(0)
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(2)
	}
	return s
}

// Seeds is a flag.Value: the first and the last of some seeds, written as 0-99. The zero value is
// none but 0.
type Seeds struct{ First, Last uint64 }

func (s *Seeds) String() string { return fmt.Sprintf("%d-%d", s.First, s.Last) }

// Set is for package flag.
func (s *Seeds) Set(text string) error {
	first, last, _ := strings.Cut(text, "-")
	var errs [2]error
	s.First, errs[0] = strconv.ParseUint(first, 10, 64)
	s.Last, errs[1] = strconv.ParseUint(last, 10, 64)
	switch {
	case errors.Join(errs[:]...) != nil:
		return errors.New("not first-last")
	case s.Last < s.First:
		return errors.New("not first-last: the last is less than the first")
	}
	return nil
}

// All are the seeds in their order.
func (s Seeds) All() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for seed := s.First; yield(seed) && seed < s.Last; seed++ {
		}
	}
}

// Given are the flags that were.
func Given(f *flag.FlagSet) map[string]bool {
	given := map[string]bool{}
	f.Visit(func(f *flag.Flag) { given[f.Name] = true })
	return given
}

// Parse is f.Parse for commands that take flags alone.
func Parse(f *flag.FlagSet, args []string) error {
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unknown argument %q", f.Arg(0))
	}
	return nil
}
