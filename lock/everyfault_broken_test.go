package lock_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// breakage breaks the protocol of clients: it changes their requests on the way to the engine.
type breakage struct {
	name     string
	scenario string // in which a violation has to show
	violates string // the promise, by the beginning of its violation

	// rewrite changes a request. If it returns false, the request is not sent, and is answered
	// as if it had been applied.
	rewrite func(operation string, request object) bool
}

// object is an object of JSON.
type object = map[string]any

// breakages are the broken clients that have to be noticed.
func breakages() []breakage {
	unguarded := unconditional("writes", "")
	unreleased := unconditional("hold", "") // of all updates that change the first place, only a release writes how long it was held
	return []breakage{
		// These two are noticed after hundreds of cases.
		{"commits without a guard", "take over from a dead Fixed lease", "exclusion: a holder went on", unreleased},
		{"releases without a condition", "take over from a dead session", "exclusion: a holder went on", unreleased},
		{"writes without a guard", "take over from a dead session", "exclusion: a holder went on", unguarded},
		{"writes without a guard after it stood still", "guarded write", "exclusion: a write under fence", unguarded},
		{"enters at the front", "wait for another process", "fence: ", func(_ string, request object) bool {
			rewriteExpression(request, regexp.MustCompile(`list_append\((if_not_exists\([^()]*\)), ?([^()]*)\)`), "list_append($2, $1)")
			return true
		}},
		{"sends no token twice, nor numbers", "guarded write", "effect: applied 2 times", func(operation string, request object) bool {
			if operation == "TransactWriteItems" {
				request["ClientRequestToken"] = rand.Text()
			}
			return unguarded(operation, request)
		}},
		{"says that it has released", "release", "answer: the row still names a lease", func(operation string, request object) bool {
			return operation != "UpdateItem" || !sets(request, "hold")
		}},
		{"enters twice", "acquire", "liveness: acquired after", unconditional("line", "")},
		{"leaves the fence as it is", "acquire a row with a past", "fence: ", func(_ string, request object) bool {
			if sets(request, "since") {
				fence := placeholder(request, "fence")
				expression, _ := request["UpdateExpression"].(string)
				condition, _ := request["ConditionExpression"].(string)
				values, _ := request["ExpressionAttributeValues"].(object)
				pattern := regexp.MustCompile(fence + ` ?= ?(:\w+)`)
				next, is := pattern.FindStringSubmatch(expression), pattern.FindStringSubmatch(condition)
				if next != nil && is != nil {
					values[next[1]] = values[is[1]]
				}
			}
			return true
		}},
		{"says that leases are shorter than they are", "wait for another process", "exclusion: a lock was granted before its holder was told", leased("100", "")},
		{"says that leases are longer than they are", "release", "liveness: acquired after", leased("3600000", "32503680000000")},
	}
}

// seen reports whether the expected violation is among those found.
func (b *breakage) seen(found []string) bool {
	return slices.ContainsFunc(found, func(v string) bool { return strings.Contains(v, b.violates) })
}

// through is a connection to the engine with the breakage on it.
func (b *breakage) through(to aws.HTTPClient) aws.HTTPClient { return rewriting{to, b.rewrite} }

type rewriting struct {
	to      aws.HTTPClient
	rewrite func(operation string, request object) bool
}

func (c rewriting) Do(r *http.Request) (*http.Response, error) {
	var request object
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		return nil, err
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if !c.rewrite(operation, request) {
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
			Body: io.NopCloser(strings.NewReader("{}")), ContentLength: 2, Request: r,
		}, nil
	}
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return c.to.Do(r)
}

// actionsOf are the actions of a transaction.
func actionsOf(operation string, request object) (list []object) {
	if operation != "TransactWriteItems" {
		return nil
	}
	for _, action := range request["TransactItems"].([]any) {
		list = append(list, action.(object))
	}
	return list
}

// unconditional leaves the condition out of single updates, and of those in transactions, that
// set one attribute and not the other.
func unconditional(one, other string) func(operation string, request object) bool {
	return func(operation string, request object) bool {
		list := []object{request}
		for _, action := range actionsOf(operation, request) {
			if update, ok := action["Update"].(object); ok {
				list = append(list, update)
			}
		}
		for _, update := range list {
			if sets(update, one) && (other == "" || !sets(update, other)) {
				forget(update)
			}
		}
		return true
	}
}

// leased has whatever sets how long a lease is, and when it ends, say so many milliseconds.
func leased(milliseconds, end string) func(string, object) bool {
	return func(_ string, request object) bool {
		for attribute, to := range map[string]string{"lease": milliseconds, "expires": end} {
			if name := placeholder(request, attribute); name != "" && to != "" {
				change(request, regexp.MustCompile(name+` ?= ?(:\w+)`), to)
			}
		}
		return true
	}
}

// rewriteExpression changes how an update is written.
func rewriteExpression(request object, pattern *regexp.Regexp, to string) {
	if expression, ok := request["UpdateExpression"].(string); ok {
		request["UpdateExpression"] = pattern.ReplaceAllString(expression, to)
	}
}

// placeholder is what stands for an attribute in a request's expressions; empty for none.
func placeholder(request object, attribute string) string {
	names, _ := request["ExpressionAttributeNames"].(object)
	for name, is := range names {
		if is == attribute {
			return name
		}
	}
	return ""
}

// sets reports whether an update sets an attribute.
func sets(request object, attribute string) bool {
	expression, _ := request["UpdateExpression"].(string)
	name := placeholder(request, attribute)
	return name != "" && regexp.MustCompile(name+` ?=`).MatchString(expression)
}

// change gives a number that the pattern finds in an update another value.
func change(request object, pattern *regexp.Regexp, to string) {
	expression, _ := request["UpdateExpression"].(string)
	if found := pattern.FindStringSubmatch(expression); found != nil {
		request["ExpressionAttributeValues"].(object)[found[1]] = object{"N": to}
	}
}

// forget leaves the condition out, and the parameters that nothing else has.
func forget(update object) {
	expression, _ := update["UpdateExpression"].(string)
	delete(update, "ConditionExpression")
	delete(update, "ReturnValuesOnConditionCheckFailure")
	used := map[string]bool{}
	for _, word := range regexp.MustCompile(`[#:]\w+`).FindAllString(expression, -1) {
		used[word] = true
	}
	for _, kind := range []string{"ExpressionAttributeNames", "ExpressionAttributeValues"} {
		parameters, _ := update[kind].(object)
		for name := range parameters {
			if !used[name] {
				delete(parameters, name)
			}
		}
	}
}
