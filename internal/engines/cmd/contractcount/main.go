// Command contractcount prints how many contract tests ran on each engine.
//
//	contractcount [-engines inprocess,dynamodb-local] FILE
//
// FILE is what test binaries wrote to MORTISE_CONTRACT_LOG. The exit code is 1 if an engine ran no test or the
// engines did not run the same tests, and 2 if FILE cannot be read.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/mortise-go/mortise/internal/engines"
)

func main() {
	def := os.Getenv("MORTISE_ENGINE")
	if def == "" {
		def = engines.InProcess + "," + engines.DynamoDBLocal
	}
	want := flag.String("engines", def, "comma separated `names` of the engines that must have run")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: contractcount [-engines NAMES] FILE")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	f, err := os.Open(flag.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, "contractcount:", err)
		os.Exit(2)
	}
	sentence, err := engines.Count(f, strings.Split(*want, ","))
	_ = f.Close() // it was only read
	if sentence != "" {
		fmt.Println("contract tests:", sentence)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
