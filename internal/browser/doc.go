// Package browser shows the console in a real Chromium: tests of what only a browser can tell, and the picture for the
// documentation (cmd/picture).
package browser
