// Package docscheck checks the Markdown pages of this repository against its code. It reports
//
//   - links to files, headings and Go declarations that do not exist,
//   - snippets of Go that differ from the compiled code from which they are taken,
//   - commands with make targets, packages, tests or flags that do not exist,
//   - code spans with names of packages, types, functions, methods, fields, tests or files that do not exist,
//   - error texts in the code that the troubleshooting page does not explain,
//   - links in the comments of public packages to names that do not exist.
//
// Blocks with snippets or commands have markers. A marker is an HTML comment directly before its block:
//
//	<!-- from: lock/readme_test.go -->           the block is a sequence of lines of that file
//	<!-- from: lock/readme_test.go#Account -->   the lines are in that declaration
//	<!-- whole: example/northwind/main.go -->    this Go block and the following ones, without those with from, are that whole file
//	<!-- save: hello/main.go -->                 the block is written to that file before the commands below it run
//	<!-- run: mortise -->                        the commands run in that directory; a text block after them is their output
//
// The paths of save and run are relative to a new directory for each page, in which "mortise" is a link to the checkout. The test of this
// package runs the check: `make docs-check`.
package docscheck
