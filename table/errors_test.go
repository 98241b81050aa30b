package table_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/engines/faulty"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

func allCalls(tbl *table.Table) map[string]func(context.Context) error {
	k := keys.NewKey("p", "s")
	item := tbl.KeyItem(k)
	return map[string]func(context.Context) error{
		"get":         func(ctx context.Context) error { _, err := tbl.Get(ctx, k, false); return err },
		"put":         func(ctx context.Context) error { return tbl.Write(ctx, table.Put(item)) },
		"update":      func(ctx context.Context) error { return tbl.Write(ctx, table.Update(k, table.Attr("v").Set(1))) },
		"delete":      func(ctx context.Context) error { return tbl.Write(ctx, table.Delete(k)) },
		"transaction": func(ctx context.Context) error { return tbl.WriteOnce(ctx, rand.Text(), table.Delete(k)) },
		"query": func(ctx context.Context) error {
			_, err := tbl.QueryPage(ctx, table.Query{PK: "p"})
			return err
		},
		"scan":        func(ctx context.Context) error { _, err := tbl.ScanPage(ctx, table.Scan{}); return err },
		"batch get":   func(ctx context.Context) error { _, err := tbl.BatchGet(ctx, []keys.Key{k}, false); return err },
		"batch write": func(ctx context.Context) error { return tbl.BatchWrite(ctx, []table.Op{table.Delete(k)}) },
		"plan":        func(ctx context.Context) error { _, err := tbl.Plan(ctx); return err },
		"ensure":      tbl.Ensure,
	}
}

func config() aws.Config {
	return aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""), BaseEndpoint: aws.String("http://127.0.0.1:1")}
}

func TestAnUnreachableEndpoint(t *testing.T) {
	tbl, err := table.Open(dynamodb.NewFromConfig(config()), table.Schema{Name: "app"}, eager(2))
	require.NoError(t, err)
	var usage table.Usage
	for name, call := range allCalls(tbl.Metered(&usage)) {
		before := usage.Totals()
		err := call(t.Context())
		require.ErrorIs(t, err, table.ErrUnreachable, name)
		var op *net.OpError
		assert.ErrorAs(t, err, &op, name)
		assert.False(t, table.MayHaveApplied(err), "%s: a refused connection carries nothing", name)
		assert.Equal(t, int64(3), usage.Totals().Requests-before.Requests, name)
		assert.Equal(t, int64(2), usage.Totals().Retries-before.Retries, name)
		assert.NotContains(t, err.Error(), "\n", name)
	}
}

// counting fails a test in which anything is sent.
type counting struct{ t *testing.T }

func (c counting) Do(*http.Request) (*http.Response, error) {
	c.t.Error("a request was sent")
	return nil, errors.New("sent")
}

func TestMissingCredentialsSendNothing(t *testing.T) {
	metadata := &smithy.OperationError{ServiceID: "ec2imds", OperationName: "GetMetadata", Err: &smithy.GenericAPIError{Code: "ThrottlingException"}}
	for name, provider := range map[string]aws.CredentialsProvider{
		"empty": credentials.NewStaticCredentialsProvider("", "", ""),
		"failing": aws.NewCredentialsCache(aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, metadata // which looks like something to retry
		})),
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config()
			cfg.Credentials = provider
			tbl, err := table.Open(dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.HTTPClient = counting{t} }), table.Schema{Name: "app"}, eager(3))
			require.NoError(t, err)
			var usage table.Usage
			for name, call := range allCalls(tbl.Metered(&usage)) {
				err := call(t.Context())
				require.ErrorIs(t, err, table.ErrCredentials, name)
				assert.NotErrorIs(t, err, table.ErrThrottled, name)
				assert.False(t, table.MayHaveApplied(err), name)
			}
			assert.Zero(t, usage.Totals(), "nothing was sent, nothing repeated")
		})
	}
}

func TestAMissingTable(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		tbl, err := table.Open(e.Client(), table.Schema{Name: e.TableName(t)}, eager(2))
		require.NoError(t, err)
		for name, call := range allCalls(tbl) {
			if name != "plan" && name != "ensure" {
				assert.ErrorIs(t, call(t.Context()), table.ErrNoTable, name)
			}
		}
	})
}

func TestRefusalsHaveTheirKind(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e, eager(0))
		for code, kind := range map[string]error{
			"AccessDeniedException": table.ErrDenied, "UnrecognizedClientException": table.ErrCredentials, "ExpiredTokenException": table.ErrCredentials,
			"InvalidSignatureException": table.ErrCredentials, "MissingAuthenticationTokenException": table.ErrCredentials,
			"ResourceNotFoundException": table.ErrNoTable, "ValidationException": table.ErrInvalid, "ThrottlingException": table.ErrThrottled,
			"RequestLimitExceeded": table.ErrThrottled, "TransactionConflictException": table.ErrConflict, "ItemCollectionSizeLimitExceededException": table.ErrInvalid,
		} {
			for name, call := range allCalls(f.Table) {
				if code == "ResourceNotFoundException" && (name == "plan" || name == "ensure") {
					continue // where it is the answer
				}
				f.faults.Script(faulty.Refuse(400, code))
				err := call(t.Context())
				require.ErrorIs(t, err, kind, "%s of %s", code, name)
				var api smithy.APIError
				require.ErrorAs(t, err, &api)
				assert.Equal(t, code, api.ErrorCode())
				assert.False(t, table.MayHaveApplied(err), "%s of %s", code, name)
				assert.Len(t, f.faults.Sent(), 1, name)
			}
		}
		f.faults.Script(faulty.Refuse(500, "InternalServerError"))
		assert.True(t, table.MayHaveApplied(f.Write(t.Context(), table.Put(f.item("p", "s")))))
		f.faults.Script(faulty.DropReply)
		err := f.Write(t.Context(), table.Put(f.item("p", "s")))
		assert.True(t, table.MayHaveApplied(err))
		assert.ErrorIs(t, err, table.ErrUnreachable)
		assert.False(t, table.MayHaveApplied(nil))
	})
}

// hanging never answers.
type hanging struct{}

func (hanging) Do(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestAnAnswerThatDoesNotComeInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tbl, err := table.Open(dynamodb.NewFromConfig(config(), func(o *dynamodb.Options) { o.HTTPClient = hanging{} }), table.Schema{Name: "app"})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // before Retry.Timeout
		defer cancel()
		ctx, usage := table.WithUsage(ctx)
		err = tbl.Write(ctx, table.Delete(key("p", "s")))
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorIs(t, err, table.ErrUnreachable)
		assert.True(t, table.MayHaveApplied(err))
		assert.Equal(t, int64(1), usage.Totals().Requests)

		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		err = tbl.Write(ctx, table.Delete(key("p", "s")))
		assert.ErrorIs(t, err, context.Canceled)
		assert.NotErrorIs(t, err, table.ErrUnreachable)
		assert.True(t, table.MayHaveApplied(err))
	})
}

func TestErrorTextsQuoteNoValues(t *testing.T) {
	const canary = "cAnArY"
	id := regexp.MustCompile(`RequestID: [\w-]+`) // which texts do quote, and which may have any digits
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e, eager(1))
		f.put(t, f.item(canary, canary, "v", canary, "n", 1))
		k := key(canary, canary)
		v := table.Attr("v")
		big := strings.Repeat(canary, 80_000)
		long := strings.Repeat(canary, 400)
		errs := map[string]error{
			"condition":          f.Write(t.Context(), table.Put(f.item(canary, canary, "v", canary)).If(v.Equal(canary+"x"))),
			"transaction":        f.Write(t.Context(), table.Delete(k).If(v.Equal("other"+canary)), table.Check(key(canary, "x"), v.Equal(canary))),
			"type of an operand": f.Write(t.Context(), table.Update(k, v.Add(1))),
			"duplicates in set":  f.Write(t.Context(), table.Put(f.item(canary, "x", "s", strs(canary, canary)))),
			"empty set":          f.Write(t.Context(), table.Put(f.item(canary, "x", "s", strs()))),
			"not a number":       f.Write(t.Context(), table.Put(f.item(canary, "x", "n", num(canary)))),
			"too precise":        f.Write(t.Context(), table.Put(f.item(canary, "x", "n", num(strings.Repeat("7777", 10))))),
			"too large":          f.Write(t.Context(), table.Put(f.item(canary, "x", "v", big))),
			"long key":           f.Write(t.Context(), table.Delete(key(canary, long))),
			"bad key":            f.Write(t.Context(), table.Delete(key(canary+"\xff", "s"))),
			"index key type":     f.Write(t.Context(), table.Put(f.item(canary, "x", "g1pk", 7777))),
			"long index key":     f.Write(t.Context(), table.Put(f.item(canary, "x", "g1pk", canary, "g1sk", long))),
			"empty index key":    f.Write(t.Context(), table.Put(f.item(canary, "x", "g1pk", ""))),
			"twice":              f.Write(t.Context(), table.Delete(k), table.Delete(k)),
			"path":               f.Write(t.Context(), table.Update(k, v.Field("x").Set(canary))),
			"overlap":            f.Write(t.Context(), table.Update(k, v.Set(canary), v.Remove())),
			"not found":          func() error { _, err := f.Get(t.Context(), key(canary, "none"), true); return err }(),
			"filter on a key": func() error {
				_, err := f.QueryPage(t.Context(), table.Query{PK: canary, Filter: table.Attr("SortKey").Equal(canary)})
				return err
			}(),
			"bad start": func() error {
				_, err := f.QueryPage(t.Context(), table.Query{PK: canary, Start: table.Item{"PartKey": str(canary), "SortKey": num("7777")}})
				return err
			}(),
			"start of another": func() error {
				_, err := f.QueryPage(t.Context(), table.Query{PK: canary, Start: f.KeyItem(key("other"+canary, canary))})
				return err
			}(),
		}
		f.faults.Script(faulty.DropRequest, faulty.DropRequest)
		errs["lost"] = f.Write(t.Context(), table.Put(f.item(canary, canary, "v", canary)))
		for name, err := range errs {
			require.Error(t, err, name)
			assert.NotContains(t, err.Error(), canary, name)
			assert.NotContains(t, id.ReplaceAllLiteralString(err.Error(), ""), "7777", name)
		}
		_, err := table.Encode(spilling(canary))
		require.ErrorIs(t, err, table.ErrInvalid)
		assert.NotContains(t, err.Error(), canary)
		var cause *table.EncodeError
		require.ErrorAs(t, err, &cause)
		assert.ErrorContains(t, cause.Err, canary, "who asks is told")
	})
}

// spilling is a type whose error quotes its value, as many do.
type spilling string

func (s spilling) MarshalText() ([]byte, error) {
	return nil, errors.New("cannot marshal " + string(s))
}
