// Package migratecmd is a small command for the migrations of an application, to mount into
// the application's own binary: the list of migrations is code, so only that binary knows it.
//
//	if len(os.Args) > 1 && os.Args[1] == "migrate" {
//		err := migratecmd.Command{Name: "shop migrate"}.Run(ctx, migrator, os.Args[2:])
//		os.Exit(migratecmd.ExitCode(err))
//	}
//
// It takes arguments and returns an error, so it fits under any library for command lines.
// With cobra:
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
//	status              list all migrations and how they stand, and how far backfills have come
//	plan                list what up would do
//	up [-to ID]         run what is pending
//	down [-to ID|-all]  take the last one back, or all after ID
//	baseline ID         record all up to ID as applied, without running them
//	repair [-yes]       mend what keeps up from running
//	validate            fail unless table and program go together
//	help [SUBCOMMAND]   explain
//
// Each takes -json. Flags are written with one hyphen or two, before or after operands.
//
// # Output
//
// Results go to standard output: aligned tables for people, cut to the width of a terminal, or
// with -json one JSON document, also when the subcommand fails (its member "error" says why). Everything else goes to
// standard error: the error, what the migrator logs at level Info and above, and the progress
// of backfills, as a bar on a terminal and as plain lines, one in five seconds at most,
// elsewhere. What comes from the table or the application and cannot be printed is replaced.
//
// The error's text is the one exception to Mortise's rule that errors carry nothing of the
// application's: a migration's own error is shown as its author wrote it.
//
// # Interrupts
//
// When the context ends, the migration that runs is told so through its context, what became
// of it is recorded, the lock is released, and the command says what is recorded. So does it
// after every other failure. Give it a context that ends with the signal:
//
//	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
//
// A question of repair is asked while no lock is held, so an answer may take its time. If a
// fix is not any more what was shown when the answer comes, it is not made.
//
// # Cost
//
// That of the Migrator's method of the same name. A repair that makes fixes costs one
// consistent query more, as does every failure of a subcommand that writes.
package migratecmd
