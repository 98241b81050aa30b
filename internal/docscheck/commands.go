package docscheck

import (
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// makefile is what a Makefile defines.
type makefile struct {
	targets, variables map[string]bool
}

var (
	target   = regexp.MustCompile(`(?m)^([a-z][a-z-]*):(?:[^=]|$)`)
	variable = regexp.MustCompile(`(?m)^([A-Z]+)\s*[:?]?=`)
)

func readMakefile(name string) (makefile, error) {
	m := makefile{map[string]bool{}, map[string]bool{}}
	text, err := os.ReadFile(name) //nolint:gosec // a file of the repository
	for _, t := range target.FindAllSubmatch(text, -1) {
		m.targets[string(t[1])] = true
	}
	for _, v := range variable.FindAllSubmatch(text, -1) {
		m.variables[string(v[1])] = true
	}
	return m, err
}

// shells are the languages of blocks with commands. Blocks without a language can contain commands, too.
var shells = []string{"sh", "shell", "bash", "console"}

// commands checks the commands in blocks and in code spans.
func (r *Repository) commands(p *page, report reporter) {
	for _, s := range p.spans {
		if strings.HasPrefix(s.text, "make ") || strings.HasPrefix(s.text, "go run ") || strings.HasPrefix(s.text, "go test ") {
			r.line(s.text, s.line, report)
		}
	}
	for i := range p.blocks {
		b := &p.blocks[i]
		if slices.Contains(shells, b.language) || b.language == "" {
			for n, line := range strings.Split(b.text, "\n") {
				r.line(strings.TrimPrefix(line, "$ "), b.line+n, report)
			}
		}
	}
}

// line checks those commands of a line that this repository defines. It ignores all others.
func (r *Repository) line(text string, line int, report reporter) {
	for _, words := range commandsOf(text) {
		for len(words) > 0 && strings.Contains(words[0], "=") { // skip variables of the environment
			words = words[1:]
		}
		switch {
		case len(words) > 1 && words[0] == "make":
			r.makes(words[1:], line, report)
		case len(words) > 1 && words[0] == path.Base(command):
			r.runs("./"+command, words[1:], line, report)
		case len(words) > 2 && words[0] == "go" && words[1] == "run" && strings.HasPrefix(words[2], "./"):
			r.runs(words[2], words[3:], line, report)
		case len(words) > 2 && words[0] == "go" && words[1] == "test":
			r.tests(words[2:], line, report)
		}
	}
}

func (r *Repository) makes(words []string, line int, report reporter) {
	for _, w := range words {
		name, _, assigns := strings.Cut(w, "=")
		switch {
		case strings.HasPrefix(w, "-"):
		case assigns && !r.make.variables[name]:
			report(line, "make: no variable %s", name)
		case !assigns && !r.make.targets[name]:
			report(line, "make: no target %s", name)
		}
	}
}

// command is the directory of the command that users install. They call it by its name, with a subcommand that has its own flags.
const command = "cmd/mortise"

// runs checks a call of a command of the repository: that the command exists and has the flags.
func (r *Repository) runs(dir string, args []string, line int, report reporter) {
	p := r.code.packages[path.Clean(dir)]
	if p == nil || p.name != "main" {
		if dir != "./" && dir != "./..." {
			report(line, "go run: no command %s", dir)
		}
		return
	}
	ask := []string{"-h"}
	if path.Clean(dir) == command && len(args) > 0 {
		if ask = []string{"help", args[0]}; !regexp.MustCompile(`(?m)^  ` + regexp.QuoteMeta(args[0]) + `\b`).MatchString(r.help(command, "help")) {
			report(line, "%s: no subcommand %s", path.Base(command), args[0])
			return
		}
	}
	var help string
	for _, a := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if !strings.HasPrefix(a, "-") || a == "--" || name == "" {
			if a == "--" {
				return // arguments of another program
			}
			continue
		}
		if help == "" {
			if help = r.help(path.Clean(dir), ask...); ask[0] == "help" {
				help += r.help(command, "help") // flags of all subcommands
			}
		}
		if !regexp.MustCompile(`(?m)(?:^|[\s\[(|])--?` + regexp.QuoteMeta(name) + `\b`).MatchString(help) {
			report(line, "go run %s: no flag -%s", dir, name)
		}
	}
}

var (
	helpOf   = map[string]string{}
	helpLock sync.Mutex
)

// help returns what a command prints with the arguments ask, which ask for its flags. It runs each call once.
func (r *Repository) help(dir string, ask ...string) string {
	helpLock.Lock()
	defer helpLock.Unlock()
	call := strings.Join(append([]string{"run", "./" + dir}, ask...), " ")
	if text, ok := helpOf[r.root+call]; ok {
		return text
	}
	cmd := exec.Command("go", strings.Fields(call)...) //nolint:gosec,noctx // a package of the repository; it ends at once
	cmd.Dir = r.root
	out, _ := cmd.CombinedOutput() // with -h, the exit code may be an error
	helpOf[r.root+call] = string(out)
	return string(out)
}

// tests checks that the packages exist, and that each alternative of -run matches the name of a test in one of them.
func (r *Repository) tests(words []string, line int, report reporter) {
	var dirs []string
	var run string
	for i, w := range words {
		switch {
		case strings.HasPrefix(w, "./"):
			if !r.exists(w) {
				report(line, "go test: no package %s", w)
				continue
			}
			dirs = append(dirs, w)
		case w == "-run" && i+1 < len(words):
			run = words[i+1]
		}
	}
	if run == "" || run == "^$" || strings.Contains(run, "…") {
		return
	}
	for alternative := range strings.SplitSeq(strings.Trim(run, "()"), "|") {
		pattern, err := regexp.Compile(strings.Split(alternative, "/")[0])
		if err != nil {
			report(line, "go test: -run %s: %v", run, err)
			continue
		}
		if !slices.ContainsFunc(dirs, func(dir string) bool { return r.hasTest(dir, pattern) }) {
			report(line, "go test: no test in %s matches %s", strings.Join(dirs, " "), alternative)
		}
	}
}

func (r *Repository) hasTest(dir string, pattern *regexp.Regexp) bool {
	root, below := strings.CutSuffix(path.Clean(dir), "/...")
	for in, list := range r.code.testsIn {
		if (in == root || below && strings.HasPrefix(in, root+"/")) && slices.ContainsFunc(list, pattern.MatchString) {
			return true
		}
	}
	return false
}

// commandsOf returns the words of each command of a line. A quoted text is part of one word. The line ends at #, which begins a comment,
// and at < or >, which redirect input and output.
func commandsOf(text string) (list [][]string) {
	var words []string
	var word strings.Builder
	end := func() {
		if len(words) > 0 {
			list = append(list, words)
		}
		words = nil
	}
	var quote rune
	inWord := false
	for _, c := range text {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			} else {
				word.WriteRune(c)
			}
		case c == '\'' || c == '"':
			quote, inWord = c, true
		case (c == '#' || c == '>' || c == '<') && !inWord:
			end()
			return list
		case strings.ContainsRune(" \t|&;", c):
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
			if c != ' ' && c != '\t' {
				end()
			}
		default:
			word.WriteRune(c)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	end()
	return list
}
