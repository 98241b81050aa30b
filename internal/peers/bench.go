package peers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mortise-go/mortise/internal/engines"
)

// closeTimeout limits the end of a scene, which is not measured.
const closeTimeout = 10 * time.Second

// bench is one run of the comparison.
type bench struct {
	config   Config
	progress io.Writer
	connect  func() (*dynamodb.Client, *Meter) // returns a new client, for one process
	id       string                            // in the names of this run's tables
	tables   int                               // number of tables created so far
}

// Run measures what config names, and prints its progress. If it returns an error, the report contains what was measured before, or is
// nil if the run could not begin.
func Run(ctx context.Context, config Config, progress io.Writer) (*Report, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	report := &Report{Config: config, Machine: thisMachine(), Begun: time.Now()}
	b := &bench{config: config, progress: progress, id: strings.ToLower(rand.Text()[:8])}
	if config.Endpoint == "" {
		b.say("starting DynamoDB Local")
		local, err := engines.StartApart(ctx, "") // an interrupt does not end it, so that the run can still close clients and delete tables
		if err != nil {
			return nil, err
		}
		defer local.Stop()
		b.connect = connectTo(local.Config())
		report.Engine = engineName(local.Log())
	} else {
		b.connect = connectTo(endpoint(config.Endpoint))
		report.Engine = "DynamoDB at " + config.Endpoint
	}

	for _, scene := range []struct {
		name string
		run  func(context.Context, *Report) error
	}{
		{"pairs", b.pairs},
		{"herd", b.herds},
		{"contention", b.contentions},
		{"lost", b.losses},
		{"held", b.holds},
	} {
		if !slices.Contains(config.Scenes, scene.name) {
			continue
		}
		if err := scene.run(ctx, report); err != nil {
			return report, fmt.Errorf("%s: %w", scene.name, err)
		}
	}
	report.Took = time.Since(report.Begun)
	return report, nil
}

func (b *bench) say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.progress, "peers: "+format+"\n", args...) // there is nowhere to report an error
}

// process is a process of the comparison: a client of a library on an SDK client of its own.
type process struct {
	Locker
	meter *Meter
}

// pair acquires a lock that nobody holds, and releases it.
func (p *process) pair(ctx context.Context, name string) error {
	held, err := p.Acquire(ctx, name)
	if err != nil {
		return err
	}
	return p.Release(ctx, held)
}

// crew is some processes of one candidate, on a table of their own.
type crew struct {
	table string
	list  []*process
	admin *dynamodb.Client
}

// start creates a table for a candidate and n processes that use it. Each process acquires a lock of its own once, so
// that connections and sessions exist. The caller has to end the crew.
func (b *bench) start(ctx context.Context, c Candidate, n int, lease time.Duration) (*crew, error) {
	b.tables++
	crew := &crew{table: fmt.Sprintf("peers-%s-%03d", b.id, b.tables)} // always of the same length, since the name is in every request
	crew.admin, _ = b.connect()
	if err := c.Create(ctx, crew.admin, crew.table); err != nil {
		return nil, fmt.Errorf("%s: create table: %w", c.Name, err)
	}
	for i := range n {
		p, err := b.open(c, crew.table, lease)
		if err == nil {
			crew.list = append(crew.list, p)
			err = p.pair(ctx, fmt.Sprintf("warm-%d", i))
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", c.Name, err), crew.end(ctx))
		}
	}
	return crew, nil
}

// end closes the processes and deletes the table, even if ctx has ended. Locks that cannot be released in time stay held, and are
// deleted with the table.
func (c *crew) end(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	var all sync.WaitGroup
	for _, p := range c.list {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, closeTimeout)
			defer cancel()
			_ = p.Close(ctx)
		})
	}
	all.Wait()
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	if _, err := c.admin.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &c.table}); err != nil {
		return fmt.Errorf("delete table %s: %w", c.table, err)
	}
	return nil
}

func (b *bench) open(c Candidate, table string, lease time.Duration) (*process, error) {
	client, meter := b.connect()
	locker, err := c.Open(client, table, lease)
	if err != nil {
		return nil, err
	}
	return &process{Locker: locker, meter: meter}, nil
}

// connectTo makes clients with connections of their own and the SDK's default settings.
func connectTo(engine aws.Config) func() (*dynamodb.Client, *Meter) {
	return func() (*dynamodb.Client, *Meter) {
		return newClient(engine, awshttp.NewBuildableClient().GetTransport())
	}
}

func endpoint(url string) aws.Config {
	return aws.Config{
		Region:       "us-east-1",
		Credentials:  credentials.NewStaticCredentialsProvider("mortise", "mortise", ""),
		BaseEndpoint: aws.String(url),
	}
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
