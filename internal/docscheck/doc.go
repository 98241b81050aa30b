// Package docscheck checks the Markdown pages of this repository against its code. It reports
//
//   - links to files, headings and Go declarations that do not exist,
//   - snippets of Go that differ from the compiled code that they are taken from,
//   - commands with make targets, packages, tests or flags that do not exist,
//   - code spans with names of packages, types, functions, methods, fields, tests or files that do not exist,
//   - error texts of the code that the page for troubleshooting does not explain,
//   - links in the comments of public packages to names that do not exist.
//
// Snippets and commands have markers, which are comments that Markdown does not show, directly before their block:
//
//	<!-- from: lock/readme_test.go -->           the lines stand together in that file
//	<!-- from: lock/readme_test.go#Account -->   and within that declaration
//	<!-- whole: example/northwind/main.go -->    all Go blocks of the page that follow are that file, from its first line to its last
//	<!-- save: hello/main.go -->                 the block is written into that file before the commands below it run
//	<!-- run: mortise -->                        the commands run in that directory; a block of text after it is what they print
//
// The directories of save and run are within a directory of the page's own, in which "mortise" is the checkout. The test
// of this package runs the check: `make docs-check`.
package docscheck
