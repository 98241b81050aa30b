// Package migratecmd is a command for an application's migrations. The list of migrations is code, so the command is part of
// the application's own binary:
//
//	if len(os.Args) > 1 && os.Args[1] == "migrate" {
//		err := migratecmd.Command{Name: "shop migrate"}.Run(ctx, migrator, os.Args[2:])
//		os.Exit(migratecmd.ExitCode(err))
//	}
//
// [Command.Run] takes arguments and returns an error, so it works with any command-line library. With cobra:
//
//	&cobra.Command{
//		Use: "migrate", DisableFlagParsing: true, SilenceErrors: true, SilenceUsage: true,
//		RunE: func(cmd *cobra.Command, args []string) error {
//			return migratecmd.Command{Name: cmd.CommandPath()}.Run(cmd.Context(), migrator, args)
//		},
//	}
//
// With urfave/cli:
//
//	&cli.Command{
//		Name: "migrate", SkipFlagParsing: true,
//		Action: func(ctx context.Context, cmd *cli.Command) error {
//			return migratecmd.Command{Name: "shop migrate"}.Run(ctx, migrator, cmd.Args().Slice())
//		},
//	}
//
// # Subcommands
//
//	status              list all migrations with their states, and the progress of backfills
//	plan                list what up would do
//	up [-to ID]         run pending migrations
//	down [-to ID|-all]  take the last migration back, or all after ID
//	baseline ID         record all migrations up to ID as applied, without running them
//	repair [-yes]       fix what prevents up from running
//	validate            fail unless the table's records and the program agree
//	help [SUBCOMMAND]   explain
//
// All subcommands but help take -json. Flags have one hyphen or two, before or after the operands.
//
// # Output
//
// Results go to standard output, as tables that fit the width of a terminal. With -json the result is one JSON document, even
// if the subcommand fails; its member "error" then has the error.
//
// Errors, logs of level Info and above, and the progress of backfills go to standard error. Progress is a bar on a terminal
// and otherwise lines, at most one in five seconds. Unprintable characters from the table or the application are
// replaced.
//
// An error of a migration is shown with its own text, which may contain data of the application. All other errors of this
// module contain none.
//
// # Exit codes
//
// [ExitCode] returns 0 after success, 2 for wrong arguments, 130 after an interrupt, and 1 for any other error. A script learns from
// plan with -exit-code whether up has something to do: then the code is 3 ([ErrPending]). That is no failure, so the JSON document has
// no error. The code is 0 if there is nothing to do, and 1 if up would refuse to run anything or the table could not be read.
//
// # Interrupts
//
// Pass a context that ends with the signal, and with the one that ends a container:
//
//	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//	context.AfterFunc(ctx, stop) // a second signal ends the program at once
//
// When the context ends, the command cancels the running migration, records the result, releases the lock, and prints the
// recorded state. It also prints that state after a migration has failed. A migration that takes no notice of its context is not
// ended by that. The second signal then ends the program as a crash does: the migration was interrupted.
//
// Repair holds no lock while it asks. If a fix has changed by the time of the answer, it is not made ([ErrChanged]).
//
// # Cost
//
// Each subcommand costs as much as the Migrator's method of the same name. A repair that makes fixes costs one more consistent query.
// After a migration has failed, or the context has ended, the recorded state costs as much as Status.
package migratecmd
