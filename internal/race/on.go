//go:build race

package race

// Enabled says whether the race detector is at work.
const Enabled = true
