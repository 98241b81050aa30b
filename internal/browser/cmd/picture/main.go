// Command picture makes the picture of the console that the documentation shows.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/mortise-go/mortise/internal/browser"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
)

func main() {
	out := flag.String("out", "", "folder for pictures of all pages; by default one of the locks, in docs/console.png")
	flag.Parse()
	if err := run(context.Background(), *out); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out string) error {
	scene, err := browser.NewScene(ctx, false)
	if err != nil {
		return err
	}
	defer func() { _ = scene.Close() }()
	if err := dress(scene); err != nil {
		return err
	}
	tab, done, err := browser.Open(ctx)
	if err != nil {
		return err
	}
	defer done()
	tab, cancel := context.WithTimeout(tab, 3*time.Minute)
	defer cancel()
	if out == "" {
		return visit(tab, scene.URL+"locks", view{filepath.Join("docs", "console.png"), 1100, 1.25, false, "#live"})
	}
	for name, page := range map[string]string{
		"locks": "locks", "lock": "lock?pk=TENANT%23acme&of=ORDER%23001007", "sessions": "sessions", "items": "items?pk=TENANT%23acme",
		"all": "items", "indexes": "indexes", "migrations": "migrations", "missing": "lock?name=nothing",
	} {
		file := func(kind string) string { return filepath.Join(out, name+"-"+kind+".png") }
		err := visit(tab, scene.URL+page,
			view{file("wide-light"), 1100, 1, false, "html"}, view{file("wide-dark"), 1100, 1, true, "html"},
			view{file("phone-light"), 375, 1, false, "html"}, view{file("phone-dark"), 375, 1, true, "html"},
		)
		if err != nil {
			return err
		}
	}
	return nil
}

// dress creates the locks that the picture shows.
func dress(s *browser.Scene) error {
	for _, l := range []struct {
		target lock.Target
		pace   time.Duration
		owners []string
	}{
		{lock.Name("search-index"), 0, []string{"indexer-1"}},
		{lock.Name("nightly-report"), 0, []string{"cron-a"}},
		{lock.Beside(keys.NewKey("TENANT#initech", "ORDER#001012")), 0, []string{"billing-2"}},
		{lock.Name("catalogue"), 65 * time.Second, []string{"importer-1", "importer-3", "importer-2"}},
		{lock.Beside(keys.NewKey("TENANT#globex", "ORDER#001031")), 12 * time.Second, []string{"settler-3", "settler-6"}},
		{lock.Beside(keys.NewKey("TENANT#acme", "ORDER#001007")), 3 * time.Second, []string{"settler-2", "settler-1", "billing-1", "settler-4", "settler-3", "settler-5", "billing-2", "settler-6", "settler-7"}},
	} {
		if _, err := s.Hold(l.target, l.pace, l.owners...); err != nil {
			return err
		}
		s.Pass(7 * time.Second)
	}
	if err := s.Silence(lock.Name("search-index"), 12*time.Second); err != nil {
		return err
	}
	_, err := s.Client("lambda").Acquire(context.Background(), lock.Name("webhooks"), lock.Fixed(time.Hour))
	return err
}

// view is one picture of a page.
type view struct {
	file  string
	width int64
	scale float64
	dark  bool
	last  string // selector of the last element in the picture, which decides its height
}

// visit opens a page, waits until it shows live data, and takes pictures of it.
func visit(tab context.Context, url string, views ...view) error {
	if err := chromedp.Do(tab, chromedp.Navigate(url), chromedp.Sleep(6*time.Second)); err != nil { // sessions are read after the locks
		return err
	}
	for _, v := range views {
		if err := chromedp.Do(tab, browser.Screen(v.width, 600, v.scale, v.dark), chromedp.Sleep(300*time.Millisecond)); err != nil {
			return err
		}
		height, err := chromedp.Run(tab, chromedp.Evaluate[int64](fmt.Sprintf(`Math.ceil(document.querySelector(%q).getBoundingClientRect().bottom + 24)`, v.last)))
		if err != nil {
			return err
		}
		if err := chromedp.Do(tab, browser.Screen(v.width, height, v.scale, v.dark), chromedp.Sleep(300*time.Millisecond)); err != nil {
			return err
		}
		picture, err := chromedp.Run(tab, chromedp.CaptureScreenshot())
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(v.file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(v.file, picture, 0o644); err != nil {
			return err
		}
	}
	return nil
}
