// Package cli reads the arguments of this module's commands. A wrong call prints one line and ends with exit code 2. A call for help ends
// with exit code 0.
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

// Settings returns the settings with which a command was called. parse adds flags to f and reads the arguments. If it returns an error,
// Settings prints it, or the usage and the flags if the call asks for help, and ends the process.
func Settings[S any](f *flag.FlagSet, name, usage string, parse func(*flag.FlagSet, []string) (S, error)) S {
	f.Init(name, flag.ContinueOnError)
	f.SetOutput(io.Discard) // otherwise a wrong flag would print all flags
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

// Seeds is a flag.Value with a range of seeds: the first and the last one, such as 0-99. The zero value contains only seed 0.
type Seeds struct{ First, Last uint64 }

func (s *Seeds) String() string { return fmt.Sprintf("%d-%d", s.First, s.Last) }

// Set implements flag.Value.
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

// All returns the seeds in ascending order.
func (s Seeds) All() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for seed := s.First; yield(seed) && seed < s.Last; seed++ {
		}
	}
}

// Given returns the names of the flags that the call has set.
func Given(f *flag.FlagSet) map[string]bool {
	given := map[string]bool{}
	f.Visit(func(f *flag.Flag) { given[f.Name] = true })
	return given
}

// Parse is f.Parse for commands with flags only. It refuses other arguments.
func Parse(f *flag.FlagSet, args []string) error {
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unknown argument %q", f.Arg(0))
	}
	return nil
}
