package browser_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/browser"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
)

// required is the environment variable that makes a machine without Chromium a failure: `make browser` sets it.
const required = "MORTISE_BROWSER"

// patience is how long a test waits for what has to happen.
const patience = 2 * time.Minute

// page is a tab of a browser, and the scene that it shows.
type page struct {
	*testing.T
	scene *browser.Scene
	tab   context.Context
}

// show starts a scene and a browser.
func show(t *testing.T, showData bool) *page {
	t.Helper()
	tab, done, err := browser.Open(t.Context())
	if errors.Is(err, browser.ErrNoBrowser) && os.Getenv(required) != "required" {
		t.Skipf("%v; without it these tests show nothing, and with %s=required they fail", err, required)
	}
	require.NoError(t, err)
	t.Cleanup(done)
	tab, cancel := context.WithTimeout(tab, 2*patience)
	t.Cleanup(cancel)
	scene, err := browser.NewScene(t.Context(), showData)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, scene.Close()) })
	return &page{T: t, scene: scene, tab: tab}
}

func (p *page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	require.NoError(p, chromedp.Do(p.tab, steps...))
}

// visit loads a page of the console, and waits until it is live if it can be.
func (p *page) visit(path string) {
	p.Helper()
	p.do(chromedp.Navigate(p.scene.URL + path))
	p.until(`!document.getElementById("live").dataset.events || document.getElementById("status").dataset.state === "live"`)
}

// ask evaluates an expression in the page.
func ask[T any](p *page, expression string) T {
	p.Helper()
	v, err := chromedp.Run(p.tab, chromedp.Evaluate[T](expression))
	require.NoError(p, err, expression)
	return v
}

// until waits for an expression to hold. While the browser goes to another page there is no document, and an expression can fail.
func (p *page) until(expression string) {
	p.Helper()
	deadline := time.Now().Add(patience)
	for {
		holds, err := chromedp.Run(p.tab, chromedp.Evaluate[bool](expression))
		if holds && err == nil {
			return
		}
		if time.Now().After(deadline) {
			require.NoError(p, err, expression)
			p.Fatalf("after %v it does not hold: %s\n%s", patience, expression, ask[string](p, "document.body.innerText"))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func contains(text string) string { return fmt.Sprintf("document.body.innerText.includes(%q)", text) }

// dress takes the locks that the pages show.
func (p *page) dress() {
	p.Helper()
	for target, owners := range map[lock.Target][]string{
		busy:                        {"settler-9", "settler-3", "billing-1", "settler-7", "a-process-with-a-name-that-is-very-much-longer-than-others"},
		lock.Name("nightly-report"): {"cron-a"},
	} {
		_, err := p.scene.Hold(target, 0, owners...)
		require.NoError(p, err)
	}
}

var (
	busy  = lock.Beside(keys.NewKey("TENANT#acme", "ORDER#001007"))
	pages = []string{
		"locks", "lock?pk=TENANT%23acme&of=ORDER%23001007", "lock?name=nothing", "sessions", "items", "items?pk=TENANT%23acme", "items?type=Order",
		"indexes", "migrations", "nothing",
	}
)

// Every page, light and dark, wide and on a phone: it loads without a message in the browser's console, fits the screen, has
// the colours of the scheme, and shows nothing that is hidden.
func TestPages_LoadFitAndHideWhatIsHidden(t *testing.T) {
	p := show(t, false)
	p.dress()
	ctx, cancel := context.WithCancel(p.tab)
	defer cancel()
	messages := chromedp.Console(ctx)
	for _, path := range pages {
		p.visit(path)
		if path == "locks" || path == "sessions" {
			p.until(contains("settler-9"))
		}
		for _, width := range []int64{1200, 375} {
			for _, dark := range []bool{false, true} {
				where := fmt.Sprintf("%s, %d wide, dark %t", path, width, dark)
				p.do(browser.Screen(width, 700, 1, dark))
				assert.LessOrEqual(p, ask[int64](p, "document.documentElement.scrollWidth"), width, where)
				assert.Equal(p, dark, ask[int](p, brightness("backgroundColor")) < 128, "background: %s", where)
				assert.Equal(p, dark, ask[int](p, brightness("color")) > 128, "text: %s", where)
			}
		}
		assert.NotContains(p, ask[string](p, "document.documentElement.outerHTML"), browser.Marker, path)
	}
	p.do(chromedp.Navigate("about:blank"))
	_, err := chromedp.Run(p.tab, chromedp.Evaluate[bool](`console.log("end"), true`))
	require.NoError(p, err)
	for m, err := range messages {
		require.NoError(p, err)
		if m.Text == "end" {
			break
		}
		if !strings.Contains(m.Text, "404") { // of the page that does not exist
			assert.Fail(p, "the browser's console says", "%s %s %s", m.Type, m.Text, m.URL)
		}
	}
}

// brightness is an expression for how bright a colour of the page is, from 0 to 255.
func brightness(property string) string {
	return fmt.Sprintf(`Math.round(getComputedStyle(document.body).%s.match(/\d+/g).slice(0, 3).map(Number).reduce((a, b) => a + b) / 3)`, property)
}

func TestLocks_AppearAndChangeWithoutReload(t *testing.T) {
	p := show(t, false)
	p.visit("locks")
	ask[bool](p, "window.loaded = true")
	p.until("!" + contains("being read"))
	require.False(p, ask[bool](p, contains("nightly-report")))

	lease, err := p.scene.Hold(lock.Name("nightly-report"), 0, "cron-a", "cron-b")
	require.NoError(p, err)
	p.until(contains("nightly-report") + " && " + contains("cron-b"))
	// The row stays the same element: what a reader has selected in it stays selected.
	ask[bool](p, `window.row = document.querySelector('[data-key*="nightly-report"]'), true`)
	require.NoError(p, lease.Release(t.Context()))
	p.until("!" + contains("cron-a"))
	p.until(contains("cron-b"))
	assert.True(p, ask[bool](p, `window.row.isConnected && window.row.querySelector(".holds .who").textContent === "cron-b"`))
	assert.True(p, ask[bool](p, "window.loaded === true"), "the page was not loaded again")
}

func TestLine_IsDrawnInOrder(t *testing.T) {
	p := show(t, false)
	p.dress()
	for _, path := range []string{"locks", "lock?pk=TENANT%23acme&of=ORDER%23001007"} {
		p.visit(path)
		p.until(contains("settler-7"))
		for _, width := range []int64{1200, 375} {
			p.do(browser.Screen(width, 700, 1, false))
			// By where the reader sees them: from top to bottom, from left to right.
			seen := ask[[]string](p, `[...document.querySelector(".line").querySelectorAll(".place")]
				.map((e) => ({ text: e.querySelector(".mark").innerText + " " + e.querySelector(".who").innerText, box: e.getBoundingClientRect() }))
				.sort((a, b) => Math.round(a.box.top - b.box.top) || a.box.left - b.box.left).map((e) => e.text.trim())`)
			assert.Equal(p, []string{"settler-9", "1 settler-3", "2 billing-1", "3 settler-7", "4 a-process-with-a-name-that-is-very-much-longer-than-others"}, seen, "%s, %d wide", path, width)
			colours := ask[[]string](p, `[...document.querySelector(".line").querySelectorAll(".place")].map((e) => getComputedStyle(e).backgroundColor)`)
			assert.NotEqual(p, colours[0], colours[1], "the holder stands out")
			assert.Equal(p, colours[1], colours[3])
		}
	}
}

func TestLock_HasAHistory(t *testing.T) {
	p := show(t, false)
	lease, err := p.scene.Hold(lock.Name("nightly-report"), 0, "cron-a", "cron-b")
	require.NoError(p, err)
	p.visit("locks")
	p.until(contains("nightly-report"))
	p.do(chromedp.Click(chromedp.CSS(`[data-key*="nightly-report"] a`)))
	p.until(contains("Nothing has changed."))
	require.NoError(p, lease.Release(t.Context()))
	p.until(contains("cron-a has left") + " && " + contains("cron-b holds the lock"))
}

func TestPages_WorkWithoutJavaScript(t *testing.T) {
	p := show(t, false)
	p.dress()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
	for path, want := range map[string]string{
		"locks": "settler-9", "lock?name=nightly-report": "cron-a", "sessions": "settler-3", "items?pk=TENANT%23acme": "ORDER#001007", "migrations": "3_status",
	} {
		p.do(chromedp.Navigate(p.scene.URL + path))
		assert.Contains(p, ask[string](p, "document.body.innerText"), want, path)
		assert.NotContains(p, ask[string](p, "document.body.innerText"), "connecting", path)
	}
}

func TestStatus_TellsWhetherThePageIsLive(t *testing.T) {
	p := show(t, true)
	p.visit("locks")
	// A tab in the background.
	ask[bool](p, `Object.defineProperty(document, "hidden", { value: true, configurable: true }), document.dispatchEvent(new Event("visibilitychange"))`)
	p.until(`document.getElementById("status").textContent === "paused"`)
	ask[bool](p, `delete document.hidden, document.dispatchEvent(new Event("visibilitychange"))`)
	p.until(`document.getElementById("status").textContent === "live"`)
	assert.True(p, ask[bool](p, contains("Data is shown.")))
	p.scene.Server.CloseClientConnections()
	p.until(`document.getElementById("status").textContent !== "live"`)
	p.until(`document.getElementById("status").textContent === "live"`)
}
