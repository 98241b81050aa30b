package peers

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
)

// Machine describes the machine of the comparison, and the versions of software.
type Machine struct {
	Platform string            // operating system and architecture
	CPU      string            // model, if it is known
	Cores    int               // number that this process can use
	Go       string            // version
	Commit   string            // commit of this tree, if the build has recorded it
	Modules  map[string]string // versions of modules, by path
}

func thisMachine() Machine {
	m := Machine{
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
		CPU:      cpuModel(), Cores: runtime.GOMAXPROCS(0), Go: runtime.Version(),
		Modules: map[string]string{},
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return m
	}
	for _, dep := range info.Deps {
		m.Modules[dep.Path] = dep.Version
	}
	changed := ""
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			m.Commit = setting.Value[:min(len(setting.Value), 12)]
		case setting.Key == "vcs.modified" && setting.Value == "true":
			changed = " with changes"
		}
	}
	if m.Commit != "" {
		m.Commit += changed
	}
	return m
}

// cpuModel returns the processor's name on Linux, and "" elsewhere.
func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // it was only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

var engineVersion = regexp.MustCompile(`(?m)^\s*Version:\s*(\S+)`)

// engineName reads the version from what DynamoDB Local has printed.
func engineName(log string) string {
	if found := engineVersion.FindStringSubmatch(log); found != nil {
		return "DynamoDB Local " + found[1]
	}
	return "DynamoDB Local"
}

func (m Machine) String() string {
	cpu := ""
	if m.CPU != "" {
		cpu = ", " + m.CPU
	}
	return fmt.Sprintf("%d cores (%s%s), %s", m.Cores, m.Platform, cpu, m.Go)
}
