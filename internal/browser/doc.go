// Package browser shows the console in a real Chromium: for tests that need a browser, and for the picture in the documentation
// (cmd/picture).
package browser
