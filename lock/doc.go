// Package lock is a distributed lock whose row stands in the application's own table, next
// to the rows that it protects. A write made under a lock commits only while the lock is
// still held: DynamoDB decides that in the same transaction.
//
//	locks, err := lock.New(tbl, lock.Config{})
//	defer locks.Close(ctx)
//
//	err = locks.Do(ctx, lock.Beside(orders.Key(o)), func(ctx context.Context, lease *lock.Lease) error {
//		...
//		return lease.Commit(ctx, orders.PutOp(o)) // and release, in one transaction
//	})
//
// # Not guaranteed
//
//   - Exclusion of what happens outside the table. A lease can end while its holder is
//     paused, and nobody can be told anything while paused. Hand Lease.Fence to whatever
//     is written to, and have that refuse smaller numbers than it has seen; or check
//     Lease.Context right before, which leaves a gap.
//   - Exclusion of writes to the table that are not made through Lease.Write or
//     Lease.Commit, or with Lease.Guard among their operations.
//   - Fairness between processes: they get the lock in no order. The goroutines of one
//     client are served first come, first served (who comes while a release fails may be
//     served before the one to whom it was to hand over), and after Config.Handoffs of them in a row
//     the lock is freed for everybody, which gives others a chance and no more.
//   - Progress of AcquireAll against steady contention: it takes all locks when all are free
//     at the same moment, and holds none until then. Those who acquire a single one of them
//     can come first for as long as they keep coming.
//   - Reentrance. Whoever holds a lock and acquires it again waits for itself. Pass the
//     *Lease down to what works under it.
//   - Tables with replicas in other regions: two regions can both grant. Such a table is
//     refused (ErrMultiRegion) unless Config.HomeRegion names the one region whose clients
//     acquire; that other regions do not is then the application's business. Global tables
//     with strong consistency take no transactions, hence no guarded writes.
//   - Fences after a table was restored from a backup: they go on from what the backup has.
//     Resources outside the table that remember greater ones refuse writes until the fences
//     have caught up; deleting the lock's row makes them begin at the time of day again.
//   - To be told of a lock row that somebody deletes or changes by hand under a live session:
//     the next guarded write, commit or release finds out, since renewals do not look at it.
//   - To be told before the first instruction after a pause. Lease.Context of a process that
//     was stopped, or of a container that was frozen, ends at once when it goes on, within
//     milliseconds, since the timers were due meanwhile. Those of a suspended machine stood
//     still with it: there it ends within a twentieth of the lease (50 ms to 1 s) after the
//     machine resumes.
//
// # Guarantees
//
//   - Guarded writes are exclusive, whatever clocks, pauses and networks do: one never
//     commits after another holder has acquired.
//   - Fences strictly increase per lock: across releases, expiry, deletion of the row by
//     time to live, and restarts.
//   - Lease.Context ends, with a cause, no later than the lease, also when every request
//     hangs; by the wall or the monotonic clock, whichever is earlier.
//   - A free lock is taken with one request. A lock whose holder died is taken soon after
//     its lease has ended, also when nobody was watching, where that end was recorded (see
//     below). Where it was not, somebody has to wait for it: TryAcquire does not watch.
//   - An answer that was lost never makes a client wait for itself, lose its lock, or leave
//     a row held that it has reported as released. A request that arrives late can take a
//     free lock for nobody: where the holder answers, it is free again within a lease and a
//     period of when somebody began to wait for it.
//   - A payload is what the last holder that wrote one has written: a SetData that arrives
//     late, of an older holder or an older call, changes nothing. An acquisition that arrives
//     late, for nobody, brings its WithData along: what must not go back is for SetData.
//   - After ForceRelease no guarded write of the old holder goes through.
//   - Any number of locks costs one renewal per period, and no goroutine each.
//   - Several locks are taken together (AcquireAll) or not at all: nobody holds some of them
//     while waiting for others, so there is no deadlock in whatever order they are named.
//   - Of the runs of one interval (Every) one is recorded at most, and what it commits is
//     applied together with that, whatever clocks, pauses and crashes do. An interval that
//     began to be run and was not finished is taken up again until the end of the next one; one
//     whose run has failed is not, unless RetryFailed says so.
//   - A row that is no lock, or a lock row that is not in order, is never changed.
//
// # When a holder is taken for dead
//
// Leases hang on their client's session, whose row alone is renewed; a Fixed lease is one of
// its own. A session is first declared dead in its row, which is terminal: it can never
// renew again. Then its locks are taken one by one. Either is enough, and the write that
// follows checks again what was seen:
//
//   - Observed: the row has shown no renewal for a whole lease, on the observer's own
//     monotonic clock. This needs no agreement of clocks.
//   - Recorded: the end that the holder has recorded lies further back than Config.Skew.
//     A client learns from DynamoDB's answers how far its own clock is off. One that may be
//     slow by more than the bound does not record ends; one that is off by more than it does
//     not use them; and what is uncertain goes to the holder. Config.Expiry switches this
//     way off. It needs Config.Skew to be the same in all processes, and the dates of
//     answers to be right: where both a clock and they are ahead, a lock may be taken from a
//     holder that lives, whose context ends with its next renewal or with its lease. Its
//     guarded writes are refused from then on, as always.
//
// # Failure handling
//
// Renewals are repeated until the lease ends. Everything else is repeated by the table's
// retry policy (table.Retry), each single request with a timeout of a third of the lease
// and at most 3 s. A transaction conflict is repeated like throttling, and never means
// that a lock was lost.
//
//   - ErrHeld (a *HeldError): somebody else has the lock; the error says who. Of several
//     locks a *HeldAllError lists all who stand in the way.
//   - ErrLost: the lock is not held any more. ErrExpired, ErrStolen and ErrMaxHold match it.
//   - ErrReleased: it was given up, by Release, Commit or Close.
//   - ErrNotHeld, ErrNoSession: there is nobody to take the lock from, or to ask for it.
//   - ErrNotLock, ErrMalformed: what stands at the key is not a lock row, or not in order.
//     Somebody has to look at it.
//   - ErrClosed, ErrInvalid: the client was closed; an argument is not acceptable. Nothing
//     was sent.
//   - *table.ConditionError: a condition of the caller's own operation did not hold; its
//     Index counts among the operations given.
//   - table.ErrUnreachable and others of package table: the request failed. A guarded write
//     may then have been applied; Release may be called again.
//
// What panics in the goroutine of a call (the function of Do, Lead and Every, a Logger) goes
// on to its caller, and no lock stays held by it. A panic of OnLost, of Backoff, or of a
// Logger in a goroutine of the client's own ends the process, as in any goroutine.
//
// Waiting ends with the context, with Close, when Config.Backoff stops, and when a request
// fails for longer than the retry policy goes on. No error text and nothing that is logged
// above debug level contains a lock's name, a key, or a payload.
//
// # Cost
//
//	call                           requests                  units
//	Acquire, TryAcquire, free      1 UpdateItem              1 write
//	... by a client without a      1 more, which opens the   1 write more
//	session (the first, or after   session; none if Fixed
//	a lease without any lock)
//	... cold client, HomeRegion    1 more, to record when    1 write more
//	                               the lease ends
//	TryAcquire, held               1 UpdateItem              1 write
//	... for longer than a lease,   1 more, at most once per  1 write more
//	by a session not known alive   lease and session
//	... cold client, ended lease   1 more                    1 write more
//	Acquire, held                  1 UpdateItem; 1           0.5 read per look, lock and
//	                               BatchGetItem per look at  session; 1 write per try; 1
//	                               all locks that are waited write after a lease, to ask
//	                               for (100 of them and of   a session whether it really
//	                               sessions), 1 to 3 per s   holds (up to 32 of its locks),
//	                                                         and 2 reads for it to see
//	taking over from a session     2 UpdateItem              2 writes
//	AcquireAll of n, free          1 TransactWriteItems, 1   2n writes, n reads
//	                               BatchGetItem
//	... cold client, HomeRegion    n UpdateItem more if Fixed  n writes more
//	TryAcquireAll of n, held       1 TransactWriteItems      2n writes
//	... all holders long dead      2 TransactWriteItems, 1   4n writes, 1 per session, n
//	                               UpdateItem per session,   reads
//	                               1 BatchGetItem
//	AcquireAll of n, k held        1 TransactWriteItems per  2n writes per try; n reads in
//	                               try, when each of the k   the end; per look 0.5 read for
//	                               could be had since; looks each of the k and its session
//	                               like Acquire
//	Write, Commit under n locks    1 TransactWriteItems      2n writes, and twice the
//	                               (at most 100 actions)     operations'
//	Release of n                   n UpdateItem              n writes
//	Lead                           as Acquire and Release, for each term
//	Every, per interval:
//	... the instance that runs     1 GetItem, 2 UpdateItem   1 read, 2 writes; with Commit
//	                                                         those of Commit for one
//	... that comes later           1 GetItem                 1 read
//	... that comes meanwhile       1 GetItem, 1 UpdateItem,  1 read, 1 write; looks like
//	                               looks, 1 GetItem          Acquire; 1 read
//	renewal of all locks           1 UpdateItem, every       1 write
//	                               quarter of the lease
//	lock held for long             1 UpdateItem, every       1 write
//	                               quarter of Config.Retention
//	Renew, of a Fixed lease        1 UpdateItem              1 write
//	Renew, under a session         none                      none
//	Release, also to hand over     1 UpdateItem              1 write
//	Write                          1 TransactWriteItems      2 writes, and twice the operations'
//	Commit                         1 TransactWriteItems      2 writes, and twice the operations'
//	Release after Commit           none                      none
//	SetData                        1 UpdateItem              1 write
//	Inspect                        1 GetItem                 1 read
//	List of In, Index              1 Query per 1 MB of       0.5 read per 4 KB of them
//	                               lock rows
//	List of WholeTable             1 Scan per 1 MB           0.5 read per 4 KB of the table
//	ForceRelease                   1 UpdateItem; 1 to tell;  1 write; 1 to tell; 1 more
//	                               1 more where the row
//	                               would be deleted soon
//	Revoke                         1 GetItem; 1 UpdateItem   1 read; 1 write
//	                               to ask
//	Close                          1 UpdateItem per lock,    1 write per lock, and 1
//	                               1 DeleteItem
//
// A client whose table has not been described yet (table.Table's Ensure, Plan, Verify) begins
// with one DescribeTable, unless Config.HomeRegion is set.
//
// Config.Index adds to what is written while a lock is held: see there.
//
// A lock row is smaller than 1 KB unless the application adds attributes, which survive, or
// a payload: each write then costs a unit per KB, and what is in a transaction twice that.
// Fixed leases take a timer each. A client takes one goroutine while it has a session, which
// ends when nothing has hung on it for a lease, and one while somebody waits.
//
// # Metrics
//
// Config.MeterProvider gets these, from the OpenTelemetry meter of this package's path. No
// attribute has a name, a key or an owner in it. Instruments marked async are observed on
// collection, until Close; the others are recorded as it happens.
//
//	instrument                         kind           unit           attributes             meaning
//	mortise.lock.acquisitions          counter        {lock}         mortise.lock.path      locks acquired: free, taken_over (from a holder that died), handed_over (in this process)
//	mortise.lock.acquisition.failures  counter        {acquisition}  error.type             calls of Acquire, TryAcquire, AcquireAll and TryAcquireAll that failed
//	mortise.lock.wait.duration         histogram      s              error.type             from such a call to its end; error.type only where it failed
//	mortise.lock.hold.duration         histogram      s              -                      from acquiring to release or loss
//	mortise.lock.releases              counter        {lock}         -                      locks given up, by whatever call
//	mortise.lock.release.failures      counter        {release}      error.type             attempts to release that failed; lost where somebody else has the lock
//	mortise.lock.renewal.remaining     histogram      s              -                      left of the lease, the margin taken off, when a renewal succeeded
//	mortise.lock.renewal.failures      counter        {request}      error.type             renewals that failed and were repeated
//	mortise.lock.losses                counter        {lock}         mortise.lock.loss      locks lost: expired, stolen, max_hold (which is released as well)
//	mortise.lock.revocations           counter        {lock}         -                      locks asked back, which is no loss
//	mortise.lock.held                  updowncounter  {lock}         -                      async: leases that were neither given up nor found lost
//	mortise.lock.session.remaining     gauge          s              -                      async: as Client.Remaining; nothing without a session
//	mortise.lock.clock.skew            gauge          s              -                      async: how far the local clock is behind DynamoDB's for certain; negative where ahead
//	mortise.lock.requests              counter        {request}      -                      async: requests sent, those of guarded writes included
//	mortise.lock.retries               counter        {request}      -                      async: of them, those sent again by the table's policy
//	mortise.lock.retries.exhausted     counter        {operation}    -                      operations that failed since the policy came to its end
//	mortise.lock.consumed_capacity     counter        {unit}         mortise.lock.capacity  async: capacity units: read, write; what DynamoDB refuses is not in it
//
// error.type is one of closed, context (the caller's has ended), held, invalid, lost,
// malformed, multi_region, not_lock, throttled, unreachable, _OTHER.
//
// # Events
//
// Config.Logger gets, besides what is of debug level:
//
//	level  event
//	info   taken over from a holder that died; asked back
//	warn   lost (with fence and cause); taken by force, from whoever held it; session lost; the clock is off (once per client);
//	       a run of Every has failed, with its error (unless OnFailed is told); Lead or Every campaigns again
//
// # Health
//
// Client.Healthy says whether the session is renewed in time, Client.Remaining how long it
// lasts. Neither sends anything.
//
// # Configuration
//
// A Config can be read from JSON, in which Config is a json.Unmarshaler, and from the
// environment (ConfigFromEnv):
//
//	{"lease": "10s", "max_hold": "5m", "expiry": "observed-only"}
//
//	MORTISE_LOCK_LEASE=10s
//	MORTISE_LOCK_MAX_HOLD=5m
//	MORTISE_LOCK_EXPIRY=observed-only
//
// # The cheap tier
//
// A write to a single item needs no transaction where that item carries the fence of its
// last writer:
//
//	fence := table.Attr("fence")
//	err := tbl.Write(ctx, table.Update(key, fence.Set(lease.Fence()), ...).
//		If(table.Or(fence.NotExists(), fence.AtMost(lease.Fence()))))
//
// This costs half as much, and refuses an older holder only from the moment at which the
// new one has touched that item: a holder that reads first, to write what follows from
// it, has to raise the fence with its read (the same update with ReturnNew, through
// Table.Apply) or an older one can still write in between. Lease.Write has no such gap.
//
// # The lock row
//
// Names of pk, sk, type and ttl come from the table's scheme. All others begin with
// Config.AttributePrefix, also those of the session row. Applications may read these rows, with
// Client.Records, and add attributes of other names. New refuses a table with an index over one of
// these attributes, such as data: a prefix is the way out, the same for all clients of the table. To a
// client with another prefix these rows are not in order (ErrMalformed).
//
//	attribute        type  meaning
//	pk, sk           S     Config.StandaloneKey or the partition key of the row beside it; Config.RowKey
//	type             S     "Lock"
//	fence            N     fencing token of the current or last holder
//	nonce            S     128 random bits per acquisition; absent means free
//	owner            S     Config.Owner of the current or last holder
//	session          S     ID of the holder's session, at most 256 bytes; absent for a Fixed lease, whose
//	                       holder's liveness is in this row. After ForceRelease still there
//	lease            N     length of the lease in milliseconds; with a holder only
//	beat             N     renewals so far; Fixed only
//	expires          N     Fixed only: epoch milliseconds at which the lease ends unless renewed; absent
//	                       where the holder does not know its clock to be right
//	acquired         N     epoch milliseconds
//	released         N     epoch milliseconds; absent while held, unless it was handed over
//	released_nonce   S     nonce of the last holder that released
//	ran              N     Every only: epoch milliseconds; start of the last interval whose run has
//	                       finished, or has failed for good
//	running          N     Every only: epoch milliseconds; start of the interval whose run has begun;
//	                       absent once it has finished or failed
//	failed           N     Every only: epoch milliseconds; start of the last interval whose run has
//	                       failed for good
//	data             any   payload, encoded like an entity's attribute; absent for none
//	edits            N     how often the holder has called SetData; absent for never
//	forced           S     why ForceRelease took the lock, until the next acquisition
//	forced_nonce     S     128 random bits of the last ForceRelease
//	forced_fence     N     the fence that the last ForceRelease has met
//	index keys       S     of Config.Index, while held: "LOCKS" with the scheme's prefix; acquired in
//	                       15 digits, the scheme's delimiter, and the nonce
//	ttl              N     epoch seconds: end of the lease and Config.Retention; for Every, and two
//	                       intervals; once released, no less than the fence as a time of day and
//	                       Config.Retention
//
// The row is kept on release, so that its fence survives. Where time to live has deleted it,
// fences begin anew at the time of day in milliseconds, which is more than a row can have
// counted to that nobody has used for the retention.
//
// Times to live go by the local clock, or by the dates of DynamoDB's answers where the clock is
// slow by more than Config.Skew or 15 minutes, or ahead of them by more than an hour. While a lock
// is held under a session its row is put off at least as fast as the process's clock runs, four times
// in Config.Retention; it may be deleted all the same where clock and dates together are behind by
// more than three quarters of that, or dates alone by an hour more. Its holder is told by the next
// guarded write, or when the row is to be put off again.
//
// Whoever releases has the row outlast what its fence says as a time of day by Config.Retention. A
// new row begins with a fence below that only where clock and dates together are behind by more than
// Config.Retention, or dates alone by an hour more. Where whoever acquired the old one last has
// crashed before its first renewal, it is enough that they are behind by more than half of that, or
// that dates were ahead when the old one was created. Fences that are more than a hundred years
// ahead are taken for no time of day.
//
// # The session row
//
// Both of its keys are Config.SessionKey. It is deleted when the session ends; where that
// fails, or its process has died, time to live does it. Do not write to it.
//
//	attribute        type  meaning
//	type             S     "LockSession"
//	owner            S     Config.Owner
//	lease            N     Config.Lease in milliseconds
//	beat             N     renewals so far
//	expires          N     epoch milliseconds at which the session ends unless renewed; absent
//	                       where its holder does not know its clock to be right
//	dead             N     epoch milliseconds at which another client declared it dead
//	ask              SS    what others want to know of the holder, which each renewal reads; at most 64
//	ttl              N     epoch seconds: end of the lease and Config.Retention
//
// # Permissions
//
// All on the table; IAM asks for the operations of a transaction as for single ones:
//
//	call                           dynamodb:                            partitions
//	Acquire, TryAcquire, Do        UpdateItem                           of locks and sessions
//	... while waiting              BatchGetItem, which names both       of locks and sessions
//	                               kinds of row in one request
//	renewals, Renew, Release       UpdateItem                           of locks and sessions
//	... where others wait, or      BatchGetItem, to see whether the     of locks
//	have taken it by force         lock is still the holder's
//	Write                          ConditionCheckItem, and what the     of locks; of their rows
//	                               operations need
//	Commit                         UpdateItem, and what the             of locks; of their rows
//	                               operations need
//	Guard, in a transaction        ConditionCheckItem                   of locks
//	Inspect, Revoke, Every         GetItem                              of locks
//	SetData, ForceRelease, Revoke  UpdateItem                           of locks and sessions
//	List of In                     Query                                of locks
//	List of Index                  Query, on the index                  "LOCKS", with the scheme's prefix
//	List of WholeTable             Scan, which is not in policy.json
//	AcquireAll                     UpdateItem, BatchGetItem             of locks and sessions
//	Close, and a session that      DeleteItem                           of sessions
//	has been idle
//	the first acquisition of a     DescribeTable
//	client without HomeRegion
//
// Partitions of locks are those of Config.StandaloneKey and, for locks beside rows, those of
// the rows; of sessions those of Config.SessionKey. The file policy.json beside this package's
// source is such a policy for the default templates, with dynamodb:LeadingKeys: put the
// region, the account, the table and the application's own partitions (APPLICATION#*, as
// many as there are) in place of its words in capitals. A Scan reads the whole table, whatever
// leading keys a policy asks for: an operator's tool that walks WholeTable is to have a
// policy of its own. It lets guarded writes put, update
// and delete the application's rows, and its locks' and sessions' rows be changed only in
// the ways above. Creating the table (Table.Ensure) and the application's own reads are
// not in it: they are somebody else's part, or the application's. The tests check each
// request that they send in-process against that file.
package lock
