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

// breakage makes clients of another protocol of ours, one that lacks something: it changes
// their requests on the way.
type breakage struct {
	name     string
	scenario string // in which that must show
	violates string // which promise

	// rewrite changes a request; false keeps it from the engine, with an answer as if it had
	// been applied.
	rewrite func(operation string, request object) bool
}

// object is an object of JSON.
type object = map[string]any

// breakages is what has to be noticed.
func breakages() []breakage {
	unguarded := unconditional("writes")
	return []breakage{
		{"writes without a guard", "take over from a dead session", "exclusion: a holder went on", unguarded},
		{"writes without a guard after it stood still", "guarded write", "exclusion: a write under fence", unguarded},
		{"commits without a guard", "take over from a dead Fixed lease", "exclusion: a holder went on", unconditional("since")},
		{"releases without a condition", "take over from a dead session", "exclusion: a holder went on", unconditional("since")},
		{"enters without a condition", "wait for another process", "a lock is held although everybody is gone", unconditional("line")},
		{"marks sessions dead without a condition", "take over from a dead session", "exclusion: ", func(operation string, request object) bool {
			return leased("100")(operation, request) && unconditional("dead")(operation, request)
		}},
		{"sends no token twice", "guarded write", "effect: applied 2 times", func(operation string, request object) bool {
			if operation == "TransactWriteItems" {
				request["ClientRequestToken"] = rand.Text()
			}
			return true
		}},
		{"says that it has released", "release", "answer: the row still names a lease", func(operation string, request object) bool {
			return operation != "UpdateItem" || !sets(request, "since")
		}},
		{"leaves the fence as it is", "acquire a row with a past", "fence: ", func(_ string, request object) bool {
			if name := placeholder(request, "fence"); name != "" {
				change(request, regexp.MustCompile(name+` ?= ?(:\w+)`), "5")
			}
			return true
		}},
		{"says that leases are shorter than they are", "wait for another process", "exclusion: a lock was granted before its holder was told", leased("100")},
		{"says that leases are longer than they are", "release", "liveness: acquired after", leased("3600000")},
	}
}

// seen says whether the violation that has to show is among those found.
func (b *breakage) seen(found []string) bool {
	return slices.ContainsFunc(found, func(v string) bool { return strings.Contains(v, b.violates) })
}

// through puts the breakage on the way to the engine.
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

// unconditional leaves the condition out of single updates, and of those in transactions, that set an
// attribute.
func unconditional(attribute string) func(operation string, request object) bool {
	return func(operation string, request object) bool {
		list := []object{request}
		for _, action := range actionsOf(operation, request) {
			if update, ok := action["Update"].(object); ok {
				list = append(list, update)
			}
		}
		for _, update := range list {
			if sets(update, attribute) {
				forget(update)
			}
		}
		return true
	}
}

// leased has sessions record that their leases are so many milliseconds long, and end in a thousand years.
func leased(milliseconds string) func(string, object) bool {
	return func(_ string, request object) bool {
		for name, is := range map[string]string{"lease": milliseconds, "expires": "32503680000000"} {
			if at := placeholder(request, name); at != "" {
				change(request, regexp.MustCompile(at+` ?= ?(:\w+)`), is)
			}
		}
		return true
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

// sets says whether an update sets an attribute.
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
