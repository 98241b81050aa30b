package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/migrations/migratecmd"
)

// migrateCommand is the first argument that makes the program run migrations
// and nothing else.
const migrateCommand = "migrate"

// migrate runs a subcommand of migratecmd, and returns the exit code.
func (o *options) migrate(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) int {
	command := migratecmd.Command{Name: "app " + migrateCommand, Stdin: stdin, Stdout: stdout, Stderr: stderr}
	if done, err := command.Help(o.command); done {
		return migratecmd.ExitCode(err)
	}
	told := false
	err := o.onMigrator(ctx, stderr, func(m *migrations.Migrator) error {
		told = true
		return command.Run(ctx, m, o.command)
	})
	if told {
		return migratecmd.ExitCode(err)
	}
	return exitCode(ctx, err, stderr)
}

func (o *options) onMigrator(ctx context.Context, stderr io.Writer, use func(*migrations.Migrator) error) (err error) {
	if o.target.Data != "" {
		say(stderr, "table %s in DynamoDB Local, kept in %s\n", o.table, o.target.Data)
	}
	client, closing, err := o.target.open(ctx, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closing()) }()
	s, err := openStore(client, o.table, o.scheme)
	if err != nil {
		return err
	}
	return s.withMigrator(ctx, client, ownerName(), use)
}

// ownerName is who holds the locks of this process, for people.
func ownerName() string { return fmt.Sprintf("app (pid %d)", os.Getpid()) }
