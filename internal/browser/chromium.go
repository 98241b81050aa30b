package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// ErrNoBrowser reports that there is no Chromium on this machine.
var ErrNoBrowser = errors.New("no chromium on this machine: `make browser` installs it")

// path returns the path of Chromium.
func path() (string, error) {
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if name == "" {
			continue
		}
		if found, err := exec.LookPath(name); err == nil {
			return found, nil
		}
	}
	return "", ErrNoBrowser
}

// Open starts a Chromium with a new profile. closeIt ends it and deletes the profile.
func Open(ctx context.Context) (tab context.Context, closeIt func(), err error) {
	program, err := path()
	if err != nil {
		return nil, nil, err
	}
	profile, err := os.MkdirTemp("", "mortise-browser-")
	if err != nil {
		return nil, nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.UserDataDir(profile), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("headless", true), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.WSURLReadTimeout(time.Minute),
	)
	allocator, stop := chromedp.NewExecAllocator(ctx, options...)
	tab, cancel := chromedp.NewContext(allocator)
	closeIt = func() {
		cancel()
		stop()
		_ = os.RemoveAll(profile) // the browser has ended and does not use it any more
	}
	if err := chromedp.Do(tab); err != nil {
		closeIt()
		return nil, nil, fmt.Errorf("start %s: %w", program, err)
	}
	return tab, closeIt, nil
}

// Screen sets the tab's size in pixels, its scale, and its colour scheme, light or dark.
func Screen(width, height int64, scale float64, dark bool) chromedp.Action[chromedp.Void] {
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	return chromedp.Steps(
		chromedp.EmulateViewport(width, height, chromedp.EmulateScale(scale)),
		chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			})
			return err
		}),
	)
}
