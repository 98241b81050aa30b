package table_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/engines/faulty"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
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

func TestErrUnreachable_OfAnEndpointThatIsNotThere(t *testing.T) {
	tbl, err := table.Open(dynamodb.NewFromConfig(config()), table.Schema{Name: "app"}, eager(2))
	require.NoError(t, err)
	var usage table.Usage
	for name, call := range allCalls(tbl.Metered(&usage)) {
		before := usage.Totals()
		err := call(t.Context())
		require.ErrorIs(t, err, table.ErrUnreachable, name)
		var op *net.OpError
		assert.ErrorAs(t, err, &op, name)
		assert.False(t, table.RequestMayBeApplied(err), "%s: a refused connection carries nothing", name)
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

func TestErrCredentials_SendsNothing(t *testing.T) {
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
				assert.False(t, table.RequestMayBeApplied(err), name)
			}
			assert.Zero(t, usage.Totals(), "nothing was sent, nothing repeated")
		})
	}
}

func TestErrNoTable_OfAMissingTable(t *testing.T) {
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

func TestErrNoTable_OfAMissingIndex(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		s := testSchema(newFixture(t, e).Name())
		s.Indexes = append(s.Indexes, table.Index{Name: "later", PK: "x"})
		tbl, f := open(t, e, s)
		_, queried := tbl.QueryPage(t.Context(), table.Query{Index: "later", PK: "p"})
		_, scanned := tbl.ScanPage(t.Context(), table.Scan{Index: "later"})
		f.Script(faulty.Answer(400, `{"__type":"com.amazon.coral.validate#ValidationException","message":"Cannot read from backfilling global secondary index: later"}`))
		_, filling := tbl.QueryPage(t.Context(), table.Query{Index: "later", PK: "p"})
		for _, err := range []error{queried, scanned, filling} {
			assert.ErrorIs(t, err, table.ErrNoTable)
			assert.NotErrorIs(t, err, table.ErrInvalid)
		}
	})
}

func TestError_RefusalsHaveTheirKind(t *testing.T) {
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
				assert.False(t, table.RequestMayBeApplied(err), "%s of %s", code, name)
				assert.Len(t, f.faults.Sent(), 1, name)
			}
		}
		for name, outcome := range map[string]faulty.Outcome{
			"internal": faulty.Refuse(500, "InternalServerError"), "unavailable": faulty.Refuse(503, "ServiceUnavailable"), "lost": faulty.DropReply,
		} {
			for call, send := range allCalls(f.Table) {
				f.faults.Script(outcome)
				err := send(t.Context())
				assert.ErrorIs(t, err, table.ErrUnreachable, "%s, %s", name, call)
				assert.True(t, table.RequestMayBeApplied(err), "%s, %s", name, call)
			}
		}
		assert.False(t, table.RequestMayBeApplied(nil))
	})
}

// hanging never answers.
type hanging struct{}

func (hanging) Do(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestErrUnreachable_OfAnAnswerThatDoesNotComeInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tbl, err := table.Open(dynamodb.NewFromConfig(config(), func(o *dynamodb.Options) { o.HTTPClient = hanging{} }), table.Schema{Name: "app"})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // before Retry.Timeout
		defer cancel()
		ctx, usage := table.WithUsage(ctx)
		err = tbl.Write(ctx, table.Delete(key("p", "s")))
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorIs(t, err, table.ErrUnreachable)
		assert.True(t, table.RequestMayBeApplied(err))
		assert.Equal(t, int64(1), usage.Totals().Requests)

		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		err = tbl.Write(ctx, table.Delete(key("p", "s")))
		assert.ErrorIs(t, err, context.Canceled)
		assert.NotErrorIs(t, err, table.ErrUnreachable)
		assert.True(t, table.RequestMayBeApplied(err))
	})
}

func TestError_QuotesNoValues(t *testing.T) {
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
		for name, c := range map[string]table.Cond{
			"bounds out of order": v.Between(canary+"b", canary+"a"), "bounds of two types": v.Between(canary, 7777), "numbers out of order": v.Between(7777, 7),
			"binaries out of order": v.Between([]byte(canary+"b"), []byte(canary+"a")), "no type": v.IsType(canary), "no prefix": v.HasPrefix(7777),
			"size of a number": table.Value(7777).Size().Equal(1), "bounds that do not compare": v.Between(true, 7777), "types that do not compare": v.Less([]string{canary}),
			"a constant": table.Value(canary).Equal(canary), "prefix of itself": table.Value(canary).HasPrefix(canary),
		} {
			if err := f.Write(t.Context(), table.Update(k, v.Set(canary)).If(c)); !errors.Is(err, table.ErrCondition) {
				errs[name] = err
			}
			if err := f.Write(t.Context(), table.Check(k, c)); !errors.Is(err, table.ErrCondition) {
				errs["transaction: "+name] = err
			}
			_, errs["filter: "+name] = f.ScanPage(t.Context(), table.Scan{Filter: c})
		}
		maps.DeleteFunc(errs, func(_ string, err error) bool { return err == nil }) // a constant can be a valid operand
		f.faults.Script(faulty.DropRequest, faulty.DropRequest)
		errs["lost"] = f.Write(t.Context(), table.Put(f.item(canary, canary, "v", canary)))
		for name, err := range errs {
			require.Error(t, err, name)
			assert.NotContains(t, err.Error(), canary, name)
			assert.NotContains(t, id.ReplaceAllLiteralString(err.Error(), ""), "7777", name)
		}
		assert.ErrorContains(t, errs["duplicates in set"], "contains duplicates", "what is wrong is told all the same")
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

// keyCalls are calls whose requests name keys.
func keyCalls(tbl *table.Table) map[string]func(context.Context) error {
	k, other := key("p", "s"), key("p", "t")
	calls := allCalls(tbl)
	delete(calls, "plan")
	delete(calls, "ensure")
	calls["check"] = func(ctx context.Context) error { return tbl.Write(ctx, table.Check(k, table.Attr("v").Exists())) }
	calls["puts"] = func(ctx context.Context) error {
		return tbl.Write(ctx, table.Put(tbl.KeyItem(k)), table.Put(tbl.KeyItem(other)))
	}
	calls["update and delete"] = func(ctx context.Context) error {
		return tbl.Write(ctx, table.Update(k, table.Attr("v").Set(1)), table.Delete(other))
	}
	calls["batch put"] = func(ctx context.Context) error { return tbl.BatchWrite(ctx, []table.Op{table.Put(tbl.KeyItem(k))}) }
	calls["scan, and find nothing on the first page"] = func(ctx context.Context) error {
		_, err := tbl.ScanPage(ctx, table.Scan{PageSize: 1, Filter: table.Attr("none").Exists()})
		return err
	}
	calls["scan all with a filter that no item meets"] = func(ctx context.Context) error {
		_, err := tbl.ScanPage(ctx, table.Scan{Filter: table.Attr("none").Exists()})
		return err
	}
	calls["query a range"] = func(ctx context.Context) error {
		_, err := tbl.QueryPage(ctx, table.Query{PK: "p", SK: keys.Range{Lo: "a", Hi: "b"}})
		return err
	}
	return calls
}

// That the live table has other keys than the schema says is one kind of error, whatever call
// finds it out.
func TestErrSchema_OfKeysThatTheTableDoesNotHave(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		live := newFixture(t, e)
		live.put(t, live.item("p", "s"))
		for _, names := range []keys.Scheme{{PK: "other", SK: "SortKey"}, {PK: "PartKey", SK: "other"}, {PK: "one", SK: "two"}} {
			tbl, _ := open(t, e, table.Schema{Name: live.Name(), NoTTL: true, Keys: names})
			for name, call := range keyCalls(tbl) {
				err := call(t.Context())
				require.ErrorIs(t, err, table.ErrSchema, "%s with %s and %s", name, names.PK, names.SK)
				assert.NotErrorIs(t, err, table.ErrInvalid, "%s with %s and %s", name, names.PK, names.SK)
				assert.ErrorContains(t, err, " on "+live.Name()+": ", name)
			}
		}
	})
}

func TestErrSchema_OfKeysOfAnotherType(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		name := existing(t, e, func(in *dynamodb.CreateTableInput) {
			in.AttributeDefinitions[1].AttributeType = types.ScalarAttributeTypeN
		})
		tbl, _ := open(t, e, table.Schema{Name: name, NoTTL: true, Keys: keys.Scheme{PK: "PartKey", SK: "SortKey"}})
		_, err := e.Client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: table.Item{"PartKey": str("p"), "SortKey": num("1")}})
		require.NoError(t, err)
		for name, call := range keyCalls(tbl) {
			err := call(t.Context())
			require.ErrorIs(t, err, table.ErrSchema, name)
			assert.NotErrorIs(t, err, table.ErrInvalid, name)
		}
	})
}

func TestErrSchema_OfKeysThatAnIndexDoesNotHave(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		live := newFixture(t, e)
		schema := testSchema(live.Name())
		schema.Indexes = []table.Index{{Name: "gsi1", PK: "other", SK: "g1sk"}, {Name: "only-pk", PK: "g2pk", PKType: table.Number}}
		tbl, _ := open(t, e, schema)
		for index, pk := range map[string]string{"gsi1": "p", "only-pk": "1"} {
			_, err := tbl.QueryPage(t.Context(), table.Query{Index: index, PK: pk})
			require.ErrorIs(t, err, table.ErrSchema, index)
			assert.NotErrorIs(t, err, table.ErrInvalid, index)
		}
	})
}

// A [table.Index] cannot describe an index of several attributes in one role, and a query cannot read one.
func TestErrSchema_OfAnIndexOfSeveralAttributes(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		element := func(name string, role types.KeyType) types.KeySchemaElement {
			return types.KeySchemaElement{AttributeName: &name, KeyType: role}
		}
		for _, tc := range []struct {
			live   []types.KeySchemaElement
			schema table.Index
		}{
			{
				[]types.KeySchemaElement{element("customer", types.KeyTypeHash), element("PartKey", types.KeyTypeHash), element("score", types.KeyTypeRange)},
				table.Index{Name: "by-score", PK: "customer"},
			},
			{
				[]types.KeySchemaElement{element("customer", types.KeyTypeHash), element("score", types.KeyTypeRange), element("placed", types.KeyTypeRange)},
				table.Index{Name: "by-score", PK: "customer", SK: "placed"},
			},
		} {
			name := existing(t, e, func(in *dynamodb.CreateTableInput) { in.GlobalSecondaryIndexes[0].KeySchema = tc.live })
			tbl, _ := open(t, e, table.Schema{Name: name, NoTTL: true, Keys: existingKeys, Indexes: []table.Index{tc.schema}})
			q := table.Query{Index: "by-score", PK: "p"}
			if tc.schema.SK != "" {
				q.SK = keys.Range{Lo: "a", Hi: "b"}
			}
			_, err := tbl.QueryPage(t.Context(), q)
			require.ErrorIs(t, err, table.ErrSchema)
			assert.NotErrorIs(t, err, table.ErrInvalid)
		}
	})
}

// Source of the text: tests/tier3/error-messages/queryKeyConditionOperands.test.ts of github.com/paritysuite/dynamodb-conformance.
func TestErrSchema_OfMoreConditionsThanKeysInTheServicesNewerText(t *testing.T) {
	f := &faulty.Client{}
	tbl, err := table.Open(tabletest.New(t).Client(f.Options), table.Schema{Name: "app"})
	require.NoError(t, err)
	f.Script(faulty.Answer(http.StatusBadRequest, `{"__type":"com.amazon.coral.validate#ValidationException",
		"message":"The number of query conditions (2) exceeds the number of key attributes defined in the schema (1)"}`))
	_, err = tbl.QueryPage(t.Context(), table.Query{PK: "p", SK: keys.Range{Lo: "a", Hi: "b"}})
	require.ErrorIs(t, err, table.ErrSchema)
	assert.NotErrorIs(t, err, table.ErrInvalid)
}

// A value that does not fit is the program's fault, not the table's.
func TestErrInvalid_OfValuesThatDoNotFitAnIndex(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		for name, err := range map[string]error{
			"alone":            f.Write(t.Context(), table.Put(f.item("p", "s", "g1pk", 1))),
			"in a transaction": f.Write(t.Context(), table.Put(f.item("p", "s", "g1pk", 1)), table.Delete(key("p", "t"))),
		} {
			require.ErrorIs(t, err, table.ErrInvalid, name)
			assert.NotErrorIs(t, err, table.ErrSchema, name)
		}
	})
}

// A request over 16 MB is refused without an error code.
func TestErrInvalid_OfARequestThatIsTooLarge(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		ops := make([]table.Op, 50)
		for i := range ops {
			ops[i] = table.Put(f.item("p", fmt.Sprint(i), "v", strings.Repeat("x", 380_000)))
		}
		err := f.Write(t.Context(), ops...)
		require.ErrorIs(t, err, table.ErrInvalid)
		assert.False(t, table.MayBeApplied(err))
	})
}

// closing cuts off the first request, as a server does that has read enough of it, and answers the next ones with a status.
type closing struct {
	status   int
	requests *atomic.Int32
}

func (c closing) Do(r *http.Request) (*http.Response, error) {
	if c.requests.Add(1) == 1 {
		return nil, syscall.EPIPE
	}
	return &http.Response{StatusCode: c.status, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
}

func TestMayBeApplied_OfARequestThatIsTooLargeWhenRepeated(t *testing.T) {
	for status, may := range map[int]bool{http.StatusRequestEntityTooLarge: false, http.StatusBadRequest: true} {
		client := dynamodb.NewFromConfig(config(), func(o *dynamodb.Options) { o.HTTPClient = closing{status, new(atomic.Int32)} })
		tbl, err := table.Open(client, table.Schema{Name: "app"}, eager(1))
		require.NoError(t, err)
		err = tbl.Write(t.Context(), table.Delete(key("p", "s")))
		require.ErrorContains(t, err, fmt.Sprintf("StatusCode: %d", status))
		assert.Equal(t, may, table.MayBeApplied(err), err)
	}
}

// cutting answers with a status, but its answer is not DynamoDB's, or breaks off.
type cutting struct {
	status int
	body   func() io.Reader
}

func (c cutting) Do(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: c.status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: io.NopCloser(c.body()), Request: r}, nil
}

// The connection breaks while the answer is being read. DynamoDB has applied the request, or has refused it.
func TestErrUnreachable_OfAnAnswerThatBreaksOff(t *testing.T) {
	broken := func() io.Reader { return io.MultiReader(strings.NewReader("{"), iotest.ErrReader(io.ErrUnexpectedEOF)) }
	for name, client := range map[string]cutting{
		"answer":          {http.StatusOK, broken},
		"refusal":         {http.StatusBadRequest, broken},
		"reset":           {http.StatusOK, func() io.Reader { return iotest.ErrReader(&net.OpError{Op: "read", Err: syscall.ECONNRESET}) }},
		"page of a proxy": {http.StatusOK, func() io.Reader { return strings.NewReader("<html>") }},
		"empty refusal":   {http.StatusRequestTimeout, func() io.Reader { return strings.NewReader("") }}, // of a proxy that has given up waiting
		"without a code":  {http.StatusTooManyRequests, func() io.Reader { return strings.NewReader(`{"message":"slow down"}`) }},
	} {
		t.Run(name, func(t *testing.T) {
			tbl, err := table.Open(dynamodb.NewFromConfig(config(), func(o *dynamodb.Options) { o.HTTPClient = client }), table.Schema{Name: "app"}, eager(2))
			require.NoError(t, err)
			for name, call := range allCalls(tbl) {
				ctx, usage := table.WithUsage(t.Context())
				err := call(ctx)
				require.ErrorIs(t, err, table.ErrUnreachable, name)
				assert.True(t, table.RequestMayBeApplied(err), name)
				assert.True(t, tbl.Retryable(err), name)
				assert.Equal(t, int64(3), usage.Totals().Requests, name)
			}
		})
	}
}

// cancelling refuses every transaction for a reason that its second action gives.
type cancelling struct{ code, message string }

func (c cancelling) Do(r *http.Request) (*http.Response, error) {
	body := `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","Message":"Transaction cancelled",` +
		`"CancellationReasons":[{"Code":"None"},{"Code":"` + c.code + `","Message":"` + c.message + `"}]}`
	return &http.Response{
		StatusCode: http.StatusBadRequest, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}, nil
}

// The service finds keys of a wrong type while it runs a transaction, and says so in a reason.
func TestError_ReasonsOfACancelledTransactionHaveTheSameKinds(t *testing.T) {
	for message, kind := range map[string]error{
		"The provided key element does not match the schema":                                                             table.ErrSchema,
		"One or more parameter values were invalid: Type mismatch for key SortKey expected: N actual: S":                 table.ErrSchema,
		"One or more parameter values were invalid: Type mismatch for Index Key data Expected: S Actual: N IndexName: x": table.ErrInvalid,
		"The provided expression refers to an attribute that does not exist in the item":                                 table.ErrInvalid,
	} {
		client := dynamodb.NewFromConfig(config(), func(o *dynamodb.Options) { o.HTTPClient = cancelling{"ValidationError", message} })
		tbl, err := table.Open(client, table.Schema{Name: "app"}, eager(0))
		require.NoError(t, err)
		err = tbl.Write(t.Context(), table.Delete(key("p", "s")), table.Delete(key("p", "t")))
		require.ErrorIs(t, err, kind, message)
		var api smithy.APIError
		require.ErrorAs(t, err, &api)
		for _, other := range []error{table.ErrSchema, table.ErrInvalid} {
			assert.Equal(t, errors.Is(kind, other), errors.Is(err, other), message)
		}
	}
}

func TestMayBeApplied_TellsClearAnswersFromLostOnes(t *testing.T) {
	refused, pending := &table.ConditionError{Index: 0}, &table.ConditionError{Index: 1, Pending: true}
	for _, tc := range []struct {
		err error
		may bool
	}{
		{nil, false},
		{refused, false},
		{pending, true},
		{&table.ConditionError{Repeated: true}, true},
		{table.ConditionErrors{refused, pending}, true},
		{fmt.Errorf("wrapped: %w", table.ConditionErrors{refused}), false},
		{&table.Error{Kind: table.ErrInvalid, Err: errors.New("cause")}, false},
		{&table.Error{Kind: table.ErrUnreachable, Err: errors.New("cause")}, true},
		{context.DeadlineExceeded, true},
	} {
		assert.Equal(t, tc.may, table.MayBeApplied(tc.err), "%v", tc.err)
	}
}

func TestMayBeApplied_CoversEveryAttempt(t *testing.T) {
	server, running := faulty.Refuse(500, "InternalServerError"), faulty.Refuse(400, "TransactionInProgressException")
	throttled, denied := faulty.Throttle(), faulty.Refuse(400, "AccessDeniedException")
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e, eager(2))
		ctx := t.Context()
		missing := table.Attr("PartKey").NotExists()
		add := func(name string) table.Op { return table.Update(key("p", name), table.Attr("n").Add(1)) }
		one := func(name string) error { return f.Write(ctx, add(name)) }
		both := func(name string) error { return f.Write(ctx, add(name), add(name+" too")) }
		batch := func(name string) error { return f.BatchWrite(ctx, []table.Op{table.Put(f.item("p", name))}) }
		for name, tc := range map[string]struct {
			script []faulty.Outcome
			write  func(name string) error
			kind   error
			may    bool
		}{
			"refused by its own condition": {[]faulty.Outcome{faulty.DropReply}, func(name string) error {
				return f.Write(ctx, table.Put(f.item("p", name)).If(missing))
			}, table.ErrCondition, true},
			"refused by another's item": {nil, func(name string) error {
				f.put(t, f.item("p", name))
				return f.Write(ctx, table.Put(f.item("p", name)).If(missing))
			}, table.ErrCondition, false},
			"refused as invalid by its own effect": {[]faulty.Outcome{faulty.Pass, faulty.DropReply}, func(name string) error {
				f.put(t, f.item("p", name, "old", 1))
				return f.Write(ctx, table.Update(key("p", name), table.Attr("new").Set(table.Attr("old")), table.Attr("old").Remove()))
			}, table.ErrInvalid, true},
			"invalid": {nil, func(name string) error {
				return f.Write(ctx, table.Update(key("p", name), table.Attr("new").Set(table.Attr("old"))))
			}, table.ErrInvalid, false},
			"a server error":               {[]faulty.Outcome{server, denied}, one, table.ErrDenied, true},
			"a server error at last":       {[]faulty.Outcome{throttled, throttled, server}, one, nil, true},
			"lost, then throttled":         {[]faulty.Outcome{faulty.DropReply, throttled, throttled}, one, table.ErrThrottled, true},
			"throttled":                    {[]faulty.Outcome{throttled, throttled, throttled}, one, table.ErrThrottled, false},
			"denied":                       {[]faulty.Outcome{throttled, denied}, one, table.ErrDenied, false},
			"transaction: running":         {[]faulty.Outcome{server, running, running}, both, table.ErrConflict, true},
			"transaction: running already": {[]faulty.Outcome{running, running, running}, both, table.ErrConflict, true},
			"transaction: invalid":         {[]faulty.Outcome{server, faulty.Cancel("None", "ValidationError")}, both, table.ErrInvalid, true},
			"transaction: conflicts":       {[]faulty.Outcome{faulty.Cancel("None", "TransactionConflict"), throttled, throttled}, both, table.ErrThrottled, false},
			"transaction: a condition":     {[]faulty.Outcome{server, faulty.Cancel("None", "ConditionalCheckFailed")}, both, table.ErrCondition, true},
			"transaction: denied":          {[]faulty.Outcome{denied}, both, table.ErrDenied, false},
			"batch: lost, then throttled":  {[]faulty.Outcome{faulty.DropReply, throttled, throttled}, batch, table.ErrThrottled, true},
			"batch: throttled":             {[]faulty.Outcome{throttled, throttled, throttled}, batch, table.ErrThrottled, false},
			"batch: half of it": {nil, func(name string) error {
				var ops []table.Op
				for i := range 25 {
					ops = append(ops, table.Put(f.item(name, fmt.Sprint(i))))
				}
				return f.BatchWrite(ctx, append(ops, table.Put(f.item(name, "large", "v", strings.Repeat("x", 400<<10)))))
			}, table.ErrInvalid, true},
		} {
			f.faults.Script(tc.script...)
			err := tc.write(name)
			require.Error(t, err, name)
			assert.Equal(t, tc.may, table.MayBeApplied(err), "%s: %v", name, err)
			if tc.kind != nil {
				assert.ErrorIs(t, err, tc.kind, name)
			}
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		assert.False(t, table.MayBeApplied(f.Write(ended, add("ended"))), "nothing was sent")
	})
}

// A transaction is refused as invalid, and its first attempt arrives after that, when it is valid.
func TestMayBeApplied_OfARefusalBeforeALateAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := tabletest.New(t)
		tbl, err := table.Open(engine.Client(), testSchema("app"))
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(t.Context()))
		text := tbl.KeyItem(key("p", "s"))
		text["n"] = str("text")
		require.NoError(t, tbl.Write(t.Context(), table.Put(text)))
		engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "TransactWriteItems", Times: 1, For: time.Minute})
		err = tbl.Write(t.Context(), table.Update(key("p", "s"), table.Attr("n").Add(1)), table.Put(tbl.KeyItem(key("p", "other"))))
		require.ErrorIs(t, err, table.ErrInvalid)
		assert.True(t, table.MayBeApplied(err))
		require.NoError(t, tbl.Write(t.Context(), table.Delete(key("p", "s"))))
		time.Sleep(2 * time.Minute)
		_, err = tbl.Get(t.Context(), key("p", "other"), true)
		require.NoError(t, err, "it has come")
	})
}
