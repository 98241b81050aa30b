package docscheck

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
)

func open(t *testing.T) *Repository {
	t.Helper()
	r, err := Open("../..")
	require.NoError(t, err)
	return r
}

// tree is a repository with these files.
func tree(t *testing.T, files map[string]string) *Repository {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	r, err := Open(dir)
	require.NoError(t, err)
	return r
}

// The pages of this repository have no problems.
func TestPages_HaveNoProblems(t *testing.T) {
	for _, p := range open(t).Check() {
		assert.Fail(t, p.String())
	}
}

// The page for troubleshooting explains every text that users can meet.
func TestTroubleshooting_IsComplete(t *testing.T) {
	r := open(t)
	missing, stale := r.Unexplained("docs/troubleshooting.md")
	for _, m := range missing {
		assert.Fail(t, "not explained", "`%s` (%s:%d)", m.Text, m.File, m.Line)
	}
	for _, p := range stale {
		assert.Fail(t, p.String())
	}
	assert.Greater(t, len(r.Texts()), 100, "the texts were not found")
}

// The page for troubleshooting is sorted, as it says. The last part is not: it has no texts of errors.
func TestTroubleshooting_IsSorted(t *testing.T) {
	page, err := open(t).read("docs/troubleshooting.md")
	require.NoError(t, err)
	errors, _, found := strings.Cut(page, "\n## No error")
	require.True(t, found)
	row := regexp.MustCompile("(?m)^\\| `(.*?)` \\|")
	for _, part := range strings.Split(errors, "\n## ")[1:] {
		var texts []string
		for _, m := range row.FindAllStringSubmatch(part, -1) {
			texts = append(texts, m[1])
		}
		assert.IsIncreasing(t, texts)
	}
}

// The commands of the pages that can run here do, and print what the pages show.
func TestCommands_PrintWhatThePagesShow(t *testing.T) {
	if testkit.Small() {
		t.Skip("compiles what the pages run: make docs-check runs it")
	}
	r := open(t)
	// The quickstart needs the modules of this one, whose sums are in go.sum: usually no network.
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOSUMDB", "off")
	t.Setenv("GOWORK", "off")
	pages := r.Runnable()
	require.Contains(t, pages, "docs/quickstart.md")
	for _, name := range pages {
		t.Run(name, func(t *testing.T) {
			problems, err := r.RunPage(t.Context(), name, t.TempDir())
			require.NoError(t, err)
			for _, p := range problems {
				assert.Fail(t, p.String())
			}
		})
	}
}

// Each kind of mistake is found.
func TestCheck_FindsMistakes(t *testing.T) {
	r := tree(t, map[string]string{
		"Makefile":            "N ?= 1\ntest: ## all tests\n\tgo test ./...\n",
		"thing/thing.go":      "// Package thing is one.\npackage thing\n\n// T has a field.\ntype T struct{ Field int }\n\n// Do does.\nfunc (T) Do() {}\n",
		"thing/thing_test.go": "package thing\n\nimport \"testing\"\n\nfunc TestDo(t *testing.T) {}\n\nfunc ExampleT() {\n\tvar x T\n\tx.Do()\n}\n",
		"other.md":            "# A heading, with `code`\n\n## Twice\n\n## Twice\n\n<a id=\"here\"></a>\n",
		"page.md": `# Page

[good](other.md), [good](other.md#a-heading-with-code), [good](other.md#twice-1), [good](other.md#here), [good](#page)
[no file](missing.md), [no heading](other.md#nothing), [own heading](#nothing), ![no picture](missing.svg)
[http](http://example.com), [good](https://pkg.go.dev/github.com/mortise-go/mortise/thing#T.Do), [no name](https://pkg.go.dev/github.com/mortise-go/mortise/thing#T.Undo)
[T.Do], [T.Gone], [thing.T]

` + "`make test`, `make tset`, `make test N=2`, `make test M=2`, `go test ./thing -run 'TestDo|TestGone'`, `go test ./gone`, `go run ./gone`\n" +
			"`thing.T`, `thing.Gone`, `T.Field`, `T.Gone`, `gone.T`, `fmt.Errorf`, `TestDo`, `TestGone`, `thing/thing.go`, `thing/gone.go`, `thing.go`, `gone.go`\n" + `
<!-- from: thing/thing_test.go#ExampleT -->
` + "```go\nvar x T\nx.Do()\n```" + `

<!-- from: thing/thing_test.go#ExampleT -->
` + "```go\nvar x T\nx.Undo()\n```" + `

<!-- from: thing/thing_test.go#Gone -->
` + "```go\nvar x T\n```" + `

<!-- from: gone/gone.go -->
` + "```go\nvar x T\n```" + `

` + "```go\nvar x T\n```" + `

<!-- whole: thing/thing_test.go -->
` + "```go\npackage thing\n```\n",
	})
	var got []string
	for _, p := range r.Check() {
		assert.Equal(t, "page.md", p.Page)
		got = append(got, p.Text)
	}
	assert.ElementsMatch(t, []string{
		`link "missing.md": no file missing.md`,
		`link "other.md#nothing": other.md has no heading of that name`,
		`link "#nothing": page.md has no heading of that name`,
		`link "missing.svg": no file missing.svg`,
		`link "http://example.com": want https`,
		`link "https://pkg.go.dev/github.com/mortise-go/mortise/thing#T.Undo": package thing has no exported T.Undo`,
		`[T.Gone]: no such exported name`,
		`make: no target tset`,
		`make: no variable M`,
		`go test: no test in ./thing matches TestGone`,
		`go test: no package ./gone`,
		`go run: no command ./gone`,
		"`thing.Gone`: package thing exports no Gone",
		"`T.Gone`: no type T has an exported Gone",
		"`gone.T`: no package or variable gone is known",
		"`TestGone`: no such test",
		"`thing/gone.go`: no such file",
		"`gone.go`: no such file",
		`not in thing/thing_test.go#ExampleT any more: it has no line x.Undo()`,
		`from thing/thing_test.go#Gone: no such declaration`,
		`from gone/gone.go: no such file`,
		`a block of Go without a marker: want <!-- from: FILE#DECLARATION --> before it`,
		`the Go blocks from here on are not thing/thing_test.go: the page ends before `,
	}, got)
}

// A text of the code that the page does not have, and one that the code does not have, are found.
func TestUnexplained_FindsBoth(t *testing.T) {
	r := tree(t, map[string]string{
		"Makefile": "test:\n",
		"lock/lock.go": "package lock\n\nimport (\n\t\"errors\"\n\t\"fmt\"\n)\n\n// ErrHeld is one.\nvar ErrHeld = errors.New(\"lock is held\")\n\n" +
			"// Do does.\nfunc Do(n int) error { return fmt.Errorf(\"%w by %d of the others\", ErrHeld, n) }\n",
		"page.md": "| text | cause |\n| --- | --- |\n| `lock is held` | somebody |\n| `lock is gone` | nobody |\n",
	})
	missing, stale := r.Unexplained("page.md")
	require.Len(t, missing, 1)
	assert.Equal(t, Text{"by … of the others", "lock/lock.go", 12}, missing[0])
	assert.Equal(t, []Problem{{"page.md", 4, "`lock is gone`: the code has no such text"}}, stale)
}

// The links in the comments of the public packages lead somewhere.
func TestComments_LinkSomewhere(t *testing.T) {
	for _, p := range open(t).Comments() {
		assert.Fail(t, p.String())
	}
}

// The workflow for a hosted CI calls targets that the Makefile has.
func TestWorkflow_CallsTargets(t *testing.T) {
	r := open(t)
	text, err := r.read(".github/workflows/ci.yml")
	require.NoError(t, err)
	found := regexp.MustCompile(`'(\[[^]]*\])'`).FindAllStringSubmatch(text, -1)
	require.Len(t, found, 2, "lists of targets: of each night, and of each push")
	for _, list := range found {
		var targets []string
		require.NoError(t, json.Unmarshal([]byte(list[1]), &targets))
		for _, name := range targets {
			assert.True(t, r.make.targets[name], name)
		}
	}
}

func TestComments_FindsMistakes(t *testing.T) {
	r := tree(t, map[string]string{
		"Makefile": "test:\n",
		"thing/thing.go": "// Package thing is one. See [T.Do], [*T] and [thing.T].\n//\n//\tcode := list[Gone]\npackage thing\n\nimport \"context\"\n\n" +
			"// T is a [context.Context], no [Gone], no [T.Gone], no [gone.T] and no [thing.Gone].\ntype T struct{ context.Context }\n\n// Do does.\nfunc (T) Do() {}\n",
	})
	assert.Equal(t, []Problem{
		{"thing/thing.go", 8, "[Gone]: no such exported name"},
		{"thing/thing.go", 8, "[T.Gone]: no such exported name"},
		{"thing/thing.go", 8, "[gone.T]: no such exported name"},
		{"thing/thing.go", 8, "[thing.Gone]: no such exported name"},
	}, r.Comments())
}

// Flags and subcommands are those that a command prints when it is asked for help.
func TestCheck_AsksCommandsForHelp(t *testing.T) {
	help := "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"usage\\n  exec NAME  runs\\n  -wait D    waits\") }\n"
	r := tree(t, map[string]string{
		"Makefile":            "test:\n",
		"go.mod":              "module example.com/thing\n\ngo 1.25\n",
		"cmd/mortise/main.go": help,
		"cmd/other/main.go":   help,
		"page.md": "```sh\nmortise exec --wait 1s -- sh -gone\nmortise exec --gone\nmortise gone\necho -gone | mortise exec -wait=1s # -gone\n" +
			"go run ./cmd/other -wait 1s > -gone\ngo run ./cmd/other -gone\n```\n\n    go run ./cmd/gone\n",
	})
	var got []string
	for _, p := range r.Check() {
		got = append(got, p.String())
	}
	assert.Equal(t, []string{
		"page.md:3: go run ./cmd/mortise: no flag -gone",
		"page.md:4: mortise: no subcommand gone",
		"page.md:7: go run ./cmd/other: no flag -gone",
		"page.md:10: go run: no command ./cmd/gone",
	}, got)
}
