// Package console is a read-only page over a table: who holds its locks, who waits for them, and what else is in it. It is an
// [http.Handler] to mount into your own server.
//
//	c, err := console.New(console.Config{
//		Table: tbl, Locks: locks, Migrations: migrator, Entities: []console.Entity{customers, orders},
//	})
//	defer c.Close()
//	mux.Handle("/ops/", requireOperator(c))
//
// The command `mortise serve` serves the same pages on 127.0.0.1.
//
// # Pages
//
//	locks        the locks that are held or awaited, each with its line: who holds it, who waits, for how long
//	lock         one lock: all places, whether its holder's process lives, and what has changed since the page was opened
//	sessions     the processes that hold locks or wait for them, and whether they live
//	items        the items of a collection, or of the whole table, by entity
//	indexes      keys, indexes and entities, and how the table differs from its schema
//	migrations   the state of each migration, and the progress of backfills
//
// The first three and the last one go live: the server sends the page's content again when it has changed (server-sent
// events). Without JavaScript they show what was known when they were loaded. All pages are readable on a phone. They
// are light or dark, as the reader's system is set.
//
// # Mounting, and who may look
//
// Only the last part of the path counts, and all links are relative. So the handler works below any prefix that ends with a
// slash, with [http.StripPrefix] or without.
//
// There is no authentication in this package: wrap the handler in your own middleware. Until you have
// one, listen on the loopback interface only. By default the console answers only requests whose Host is the
// loopback interface. So a page of another site cannot read it through a name that points to that interface (DNS rebinding).
// For a server that others can reach, list its names in [Config].Hosts.
// Pages of other sites can have links to the console, but cannot load it as an image, in a frame, or with a script.
//
// When a server shuts down, it waits for open event streams, which do not end by themselves. Close the console first:
//
//	server.RegisterOnShutdown(func() { c.Close() })
//
// # Guarantees
//
//   - It never writes to the table, and acquires nothing.
//   - Without ShowData no answer contains a payload of a lock, the value of an attribute that is not one of the two keys of
//     the table, or the text of a migration's error. Names of attributes, keys, owners of locks, and the reason of a lock that
//     was taken by force are shown. Keys of indexes count as attributes. Of a request that fails, an answer has the operation and
//     the kind of error, but not the text of the SDK, which can name accounts, roles, hosts and files of the server.
//   - What comes from the table is text, never markup. A strict Content-Security-Policy allows no script and no style but the
//     console's own files.
//   - Each kind of page reads at most twice a second, and at most 25 read units a second on average, however many locks there
//     are and however many readers have it open: they share what is read. The page of each single lock counts
//     as a kind of its own. A list that needs more reads is refreshed more slowly, and the page shows that.
//   - Nothing is read while nobody looks. Reading stops 15 s after the last reader has left. A browser tab in the background
//     counts as left.
//   - Close ends every event stream and every goroutine.
//
// # Not guaranteed
//
//   - One moment. A list of locks is put together from several reads, most of them eventually consistent. A holder whose lease has ended is
//     shown as alive until a row that is read after the end shows that.
//   - Every change. A lock's page reads it once a second. Of several changes between two reads it shows the last holder, and
//     how many there were.
//   - All locks. 2,000 are kept and shown; more are counted.
//
// # Cost
//
// For each kind of page that somebody has open:
//
//	locks, sessions   with lock.Config.Index: 16 queries for all locks, as the budget allows, over and over. Otherwise scans of
//	                  the whole table. 0.5 read units for each of the first 50 locks every 4 s, and for each of up to 50
//	                  sessions every 4 s
//	lock              1 consistent read a second; 0.5 read units for each session in its line every 4 s
//	migrations        what Migrator.Status costs, every 2 s while a migration runs, else every 5 s
//	items             1 query or scan of 50 items each time it is loaded
//	indexes           2 to 5 describing requests each time it is loaded
//
// # Permissions
//
// dynamodb:GetItem, BatchGetItem, Query, Scan, DescribeTable and DescribeTimeToLive, on the table; Query on the index of locks.
// Without Scan, the page of locks needs that index, and items are shown by collection. If the schema has PointInTimeRecovery or
// Tags, the page of indexes needs DescribeContinuousBackups or ListTagsOfResource.
package console
