package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/mortise-go/mortise/console"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

func Example() {
	ctx := context.Background()
	tbl, err := table.Open(tabletest.NewEngine().Client(), table.Schema{Name: "app"}) // dynamodb.NewFromConfig(cfg) for the service
	check(err)
	check(tbl.Ensure(ctx))
	locks, err := lock.New(tbl, lock.Config{Owner: "worker-1"})
	check(err)
	defer func() { check(locks.Close(ctx)) }()
	_, err = locks.Acquire(ctx, lock.Name("nightly-report"))
	check(err)

	c, err := console.New(console.Config{Table: tbl, Locks: locks})
	check(err)
	defer func() { check(c.Close()) }()
	mux := http.NewServeMux()
	mux.Handle("/ops/", requireOperator(c))

	// A browser.
	for _, user := range []string{"", "ann"} {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/ops/locks", nil)
		r.SetBasicAuth(user, "")
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, r)
		fmt.Println(answer.Code, strings.Contains(answer.Body.String(), "worker-1"))
	}
	// Output:
	// 401 false
	// 200 true
}

// requireOperator is the application's own authentication.
func requireOperator(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, _, _ := r.BasicAuth(); user != "ann" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
