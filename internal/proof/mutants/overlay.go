package mutants

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// overlay writes the file with m's mistake, and the description that go test -overlay takes, into dir. It returns the
// path of the description. root is absolute.
func (m *Mutant) overlay(root, dir string) (path string, err error) {
	file := filepath.Join(root, filepath.FromSlash(m.File))
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("mutants: mutation %s: %w", m.Name, err)
	}
	mutated, err := m.Apply(text)
	if err != nil {
		return "", err
	}
	replacement := filepath.Join(dir, filepath.Base(file))
	if err := os.WriteFile(replacement, mutated, 0o600); err != nil {
		return "", fmt.Errorf("mutants: mutation %s: %w", m.Name, err)
	}
	description, err := json.Marshal(struct{ Replace map[string]string }{map[string]string{file: replacement}})
	if err == nil {
		path = filepath.Join(dir, "overlay.json")
		err = os.WriteFile(path, description, 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("mutants: mutation %s: %w", m.Name, err)
	}
	return path, nil
}
