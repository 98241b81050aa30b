package tabletest_test

import (
	"flag"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/proof/differential"
	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/table/tabletest"
)

var (
	differentialOps    = flag.Int("differential.ops", 20_000, "number of generated `operations` to compare")
	differentialSeed   = flag.Uint64("differential.seed", 1, "`seed` of the generated operations")
	differentialShrink = flag.Bool("differential.shrink", true, "look for the fewest operations that show a difference")
	differentialShow   = flag.Int("differential.show", 20, "number of unexplained `differences` to print")
)

// streams are sequences of operations that run side by side, each on tables
// of its own, so that both engines are kept busy.
const streams = 3

// TestDifferential sends the same generated operations to the in-process
// engine and to DynamoDB Local and compares every answer.
func TestDifferential(t *testing.T) {
	engines.Run(t, func(t *testing.T, reference *engines.Engine) {
		engines.Only(t, engines.DynamoDBLocal, "it is what the in-process engine is compared with")
		once := func(o *dynamodb.Options) { o.RetryMaxAttempts = 1 }
		report := differential.NewReport()
		ops := testkit.IfSmall(*differentialOps/10, *differentialOps)
		work, ctx := errgroup.WithContext(t.Context())
		for stream := range uint64(streams) {
			work.Go(func() error {
				own := tabletest.NewEngine()
				defer func() { _ = own.Close() }()
				c := differential.Comparison{
					Tested: own.Client(once), Reference: reference.Client(once),
					Rules: knownDifferences, Report: report, Shrink: *differentialShrink,
				}
				return c.Run(ctx, *differentialSeed, stream, (ops+streams-1)/streams)
			})
		}
		err := work.Wait()
		t.Logf("seed %d: %s", *differentialSeed, report)
		shown := map[string]int{}
		for _, d := range report.Differences {
			place := d.Place()
			shown[place]++
			if shown[place] == 1 && len(shown) <= *differentialShow {
				t.Errorf("seed %d, %s\n    place:     %s", *differentialSeed, d, place)
			}
		}
		for place, n := range shown {
			t.Logf("%d unexplained: %s", n, place)
		}
		require.NoError(t, err)
		require.Zero(t, report.Unexplained, "unexplained differences")
		require.LessOrEqual(t, report.Explained[severalMistakes], report.Compared/1000, severalMistakes)
		require.GreaterOrEqual(t, report.Compared, ops)
	})
}
