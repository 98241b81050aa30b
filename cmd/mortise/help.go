package main

import (
	"context"
	"flag"
	"io"
	"strings"

	"github.com/mortise-go/mortise/internal/tty"
)

const introduction = `usage: mortise COMMAND [flags] [operands]

Locks in a DynamoDB table: run commands under them, write only while they are held, see who holds them.
`

const manual = `
Try it, without a table and without AWS:

  mortise exec report --engine demo -- sh -c 'echo I hold $MORTISE_LOCK with fence $MORTISE_FENCE'

Which table:
  --table NAME         or MORTISE_TABLE: the table. It has to exist; only the demo creates one.
  --scheme FILE        or MORTISE_SCHEME: a JSON file with the names that the application uses. All members can be left out:
                         {"table": "app",
                          "keys": {"pk": "PK", "sk": "SK", "type": "_t", "ttl": "expiresAt", "delimiter": "#", "prefix": "shop/"},
                          "lock": {"lease": "20s", "attribute_prefix": "lock_", "index": "locks"},
                          "indexes": [{"name": "locks", "pk": "GSI1PK", "sk": "GSI1SK"}]}
                       keys are those of keys.Scheme, lock those of lock.Config (lock/REFERENCE.md, Settings). With "no_ttl": true
                       the table need not have time to live.
  MORTISE_KEYS_PK=PK   and so on: a member of "keys" of the file. MORTISE_LOCK_LEASE=10s: one of "lock".
  --engine aws         or MORTISE_ENGINE: DynamoDB on AWS, which is the default, with the usual AWS_REGION, AWS_PROFILE, ...
  --engine URL         another DynamoDB, such as DynamoDB Local (which has other tables for another region or access key,
                       unless it was started with -sharedDb)
  --engine demo        one in this process, empty, which ends with it
  A flag goes before the environment, and that before the file.

Exit codes:
  0   done                               75  exec: the lock was not acquired
  1   failed                             76  exec, write: the lock was lost
  2   wrong call                         77  write: a condition of the transaction's own does not hold
  130 interrupted                        78  write: whether it was applied is not known
                                         79  table: the table differs from its description
  exec ends with its command's code, and with 125, 126 and 127 where it could not run the command (mortise help exec).

mortise help COMMAND tells more.
`

// help explains one command, or lists all.
func help(_ context.Context, c *call) error {
	if len(c.operands) == 0 {
		return c.print(nil, func(w io.Writer) {
			tty.Say(w, "%s\n", introduction)
			g := tty.Grid{}
			for _, x := range commands() {
				g.Add("  "+strings.TrimSpace(x.name+" "+x.operands), x.text)
			}
			g.Write(w, 0)
			tty.Say(w, "%s", manual)
		})
	}
	x := find(c.operands[0])
	if x == nil {
		return usagef("no command %q", c.operands[0])
	}
	return c.print(nil, x.help)
}

// help explains a command.
func (x *command) help(w io.Writer) {
	synopsis := program + " " + strings.TrimSpace(x.name+" "+x.operands)
	if !x.offline {
		synopsis += " [flags]"
		if before, after, ok := strings.Cut(x.operands, " -- "); ok {
			synopsis = program + " " + x.name + " " + before + " [flags] -- " + after
		}
	}
	tty.Say(w, "usage: %s\n\n%s.\n", synopsis, strings.ToUpper(x.text[:1])+x.text[1:])
	if x.more != "" {
		tty.Say(w, "\n%s\n", strings.TrimSpace(x.more))
	}
	f := (&call{command: x}).flagSet()
	g := tty.Grid{}
	f.VisitAll(func(f *flag.Flag) {
		value, text := flag.UnquoteUsage(f)
		if f.DefValue != "" && f.DefValue != "false" {
			text += " (" + f.DefValue + ")"
		}
		g.Add("  --"+strings.TrimSpace(f.Name+" "+value), text)
	})
	if f.NFlag() > 0 || !x.offline || x.flags != nil {
		tty.Say(w, "\n")
		g.Write(w, 0)
	}
}
