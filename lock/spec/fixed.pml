/*
 * Leases of a length of their own (Fixed), without a session: the ticket carries the lease.
 *
 * A ticket is a name and a stamp: when it was taken. It never changes. A renewal writes the row's attribute
 * renewed, which the next holder finds there. The lease ends when its length has passed
 * since the stamp, since the ticket became first, or since the renewal, whichever is latest. After that others
 * evict it. Its holder counts from the moment at which it sent the request that was answered, so that its own
 * end is never later.
 *
 * Conditions compare the whole first ticket, an eviction also the renewal that it has seen.
 *
 * Time is one clock that everybody reads: how far clocks may differ is a margin, and not here.
 */
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef LENGTH
#define LENGTH 2                /* of a lease */
#endif
#ifndef END
#define END 5                   /* of time */
#endif
#ifndef WRITES
#define WRITES 2                /* guarded writes of one lease */
#endif
#ifndef RENEWALS
#define RENEWALS 2              /* attempts to renew of client 1 while it holds, or before it does */
#endif
#ifndef LATE
#define LATE 1                  /* late copies of requests of client 1, at most 2 */
#endif

#define NOBODY 0
#define ticket(name, stamp) ((name) * 16 + (stamp))
#define name(t) ((t) / 16)
#define stamp(t) ((t) % 16)
#define later(a, b) ((a) > (b) -> (a) : (b))

/* The lock's row. */
byte line[3];
byte fence = 1, writes, since, renewed;
byte now = 1;

/* The row that the lock protects has the last write: a name and the write's number. */
byte value;
#define write_id(t, n) (name(t) * 4 + (n))
#define writer(v) ((v) / 4)

/* For the checks only. */
bit applied[(CLIENTS + 1) * 4]; /* a write was */
byte until[CLIENTS + 1];        /* until when a client believes that it holds; 0: it does not */
bit given[CLIENTS + 1];         /* its lease was ended by its own process */
byte late;

#define contains(t) (line[0] == (t) || line[1] == (t) || line[2] == (t))
#define holds(t, f) (line[0] == (t) && fence == (f))

#define promise(name, condition) \
  if :: condition :: else -> printf("BROKEN: "); printf(name); printf("\n"); assert(false) fi

/* ---- Rules. ---- */

#ifndef may_enter
#define may_enter(t) (!contains(t))             /* a ticket never changes: its late copy is recognised */
#endif
#ifndef may_renew
#define may_renew(t, f, x) (holds(t, f) && renewed < x)                 /* a late copy never sets the renewal back */
#endif
#ifndef may_evict
#define may_evict(t, f, x) (holds(t, f) && renewed == x)                /* nobody has renewed it since it was seen */
#endif
#ifndef keep_writes
#define keep_writes skip                        /* a renewal leaves the number of the last write as it is */
#endif
#ifndef end_of
#define end_of(t) (later(later(stamp(t), since), renewed) + LENGTH)
#endif
#ifndef next_stamp
#define next_stamp later(now, last + 1)         /* later than the renewal that has refused the attempt before */
#endif
#ifndef counted_from
#define counted_from start                      /* the request that was answered, and not its answer */
#endif
#ifndef goes_on
#define goes_on (now < until[c])                /* the lease, by the holder's own clock, after a refusal */
#endif
#ifndef renewed_when_first
#define renewed_when_first true                 /* a client that became first while it waited holds when it has renewed */
#endif

/* ---- The row's side: a request is applied, or refused by its condition. ---- */

bit ok;
byte i;

inline apply_ENTER(t, f, x, read) {
  if
  :: may_enter(t) && line[2] == NOBODY ->
     promise("no ticket is in the line twice", !contains(t));
     i = 0; do :: line[i] != NOBODY -> i++ :: else -> break od; line[i] = t; ok = true
  :: else
  fi
}

inline turn_over() { line[0] = line[1]; line[1] = line[2]; line[2] = NOBODY; fence++; writes = 0; since = now; ok = true }

inline apply_RELEASE(t, f, x, read) {
  if :: holds(t, f) -> given[name(t)] = (until[name(t)] != 0); turn_over() :: else fi
}

inline apply_EVICT(t, f, x, read) {
  if
  :: may_evict(t, f, x) -> promise("who is evicted does not believe that it holds", until[name(t)] <= now); turn_over()
  :: else
  fi
}

inline apply_RENEW(t, f, x, read) {
  if :: may_renew(t, f, x) -> renewed = x; ok = true; keep_writes :: else fi
}

inline apply_WRITE(t, f, x, read) {
  if
  :: holds(t, f) && writes < x ->
     promise("a guarded write is applied once", !applied[write_id(t, x)]);
     promise("a guarded write is based on the last one", value == read || (value != 0 && writer(value) == name(t)));
     promise("the writes of a lease are applied in their order", value == 0 || writer(value) != name(t) || value < write_id(t, x));
     value = write_id(t, x); applied[value] = true; writes = x; ok = true
  :: else
  fi
}

inline end_request(op, t, f, x) {
  printf("%e of %d@%d (fence %d, x %d): applied %d; line %d@%d %d@%d %d@%d, fence %d, writes %d, since %d, renewed %d; now %d\n", op, name(t), stamp(t), f, x, ok, name(line[0]), stamp(line[0]), name(line[1]), stamp(line[1]), name(line[2]), stamp(line[2]), fence, writes, since, renewed, now);
  i = 0
}

mtype = { NONE, ENTER, RELEASE, EVICT, RENEW, WRITE };
mtype = { APPLIED, REFUSED, LOST };

mtype copy_op[2]; byte copy_t[2], copy_f[2], copy_x[2], copy_read[2];

inline apply_copy(op, t, f, x, read) {
  printf("late: "); ok = false;
  if
  :: op == ENTER -> apply_ENTER(t, f, x, read)
  :: op == RELEASE -> apply_RELEASE(t, f, x, read)
  :: op == EVICT -> apply_EVICT(t, f, x, read)
  :: op == RENEW -> apply_RENEW(t, f, x, read)
  :: op == WRITE -> apply_WRITE(t, f, x, read)
  fi;
  end_request(op, t, f, x); ok = false
}
inline arrive(k) {
  if :: d_step { apply_copy(copy_op[k], copy_t[k], copy_f[k], copy_x[k], copy_read[k]) } :: true fi;   /* or never */
  d_step { copy_op[k] = 0; copy_t[k] = 0; copy_f[k] = 0; copy_x[k] = 0; copy_read[k] = 0 }
}

active proctype Network() {
  do
  :: atomic { copy_op[0] != 0 -> arrive(0) }
#if LATE > 1
  :: atomic { copy_op[1] != 0 -> arrive(1) }
#endif
  od
}

active proctype Clock() {
  do :: atomic { now < END -> now++ } od
}

/* ---- A client. ---- */

#define send(op, t, f, x, read) \
  if \
  :: c == 1 && late < LATE -> \
     copy_op[late] = op; copy_t[late] = t; copy_f[late] = f; copy_x[late] = x; copy_read[late] = read; late++ \
  :: true \
  fi; \
  if \
  :: d_step { \
       ok = false; apply_##op(t, f, x, read); end_request(op, t, f, x); \
       answer = (ok -> APPLIED : REFUSED); ok = false \
     }; \
     if :: true :: c == 1 -> answer = LOST fi \
  :: c == 1 -> answer = LOST \
  fi

inline told_lost() {
  promise("a lock that is told as lost is not held", !holds(t, f)); until[c] = 0; goto over
}

inline hold() {                 /* what the holder does next */
  answer = 0; x = 0; start = 0; last = 0;
  if
  :: now >= until[c] -> until[c] = 0; goto over                 /* its own clock says so */
  :: now < until[c] && renewals < RENEWALS && c == 1 -> renewals++; goto renew
  :: now < until[c] && n < WRITES -> n++; read = value; goto write
  :: now < until[c] -> n = 0; read = 0; doubt = false; goto release
  fi
}

proctype Client(byte c) {
  byte t, f;                    /* my ticket, and the fence of my lease */
  byte n, read;                 /* number of the guarded write under way, and what it is based on */
  byte x, last, start;          /* what a renewal writes, the one before, and when it was sent */
  byte renewals;
  byte head, head_fence, head_renewed;  /* what a look showed */
  bit doubt;
  mtype answer;

  atomic { now < END -> t = ticket(c, now) };
enter:
  atomic {
    send(ENTER, t, 0, 0, 0);
    if
    :: answer == LOST -> goto enter
    :: answer != LOST && line[0] == t -> f = fence; last = renewed; until[c] = stamp(t) + LENGTH; hold()
    :: answer != LOST && line[0] != t -> answer = 0; goto wait
    fi
  };
wait:
  atomic {
    if
    :: line[0] == t -> f = fence; last = renewed;
       if :: renewed_when_first -> goto renew :: !renewed_when_first -> until[c] = now + LENGTH; hold() fi
    :: !contains(t) -> goto over        /* was evicted */
    :: line[0] != t && line[0] != NOBODY && now > end_of(line[0]) -> head = line[0]; head_fence = fence; head_renewed = renewed
    fi
  };
  atomic { send(EVICT, head, head_fence, head_renewed, 0); head = 0; head_fence = 0; head_renewed = 0; answer = 0; goto wait };
renew:
  atomic {
    if :: until[c] != 0 && now >= until[c] -> until[c] = 0; goto over :: else fi;
    start = now; last = next_stamp; x = last
  };
  atomic {                      /* the request is on its way: time passes */
    send(RENEW, t, f, x, 0);
    if
    :: answer == APPLIED || (answer == REFUSED && holds(t, f) && renewed == x) ->
       if
       :: until[c] == 0 || now < until[c] -> until[c] = counted_from + LENGTH; hold()
       :: else -> until[c] = 0; goto over       /* an end that has come stays */
       fi
    :: answer == REFUSED && holds(t, f) && renewed != x -> last = renewed; answer = 0; goto renew       /* again, with a later one */
    :: answer == REFUSED && !holds(t, f) -> told_lost()
    :: answer == LOST ->
       if
       :: renewals < RENEWALS -> renewals++; answer = 0; goto renew     /* again */
       :: until[c] != 0 -> hold()                                       /* on without knowing */
       :: until[c] == 0 -> goto over
       fi
    fi
  };
write:
  atomic {
    send(WRITE, t, f, n, read);
    if
    :: answer == APPLIED || (answer == REFUSED && holds(t, f) && writes == n) ->
       promise("an acknowledged write was applied", applied[write_id(t, n)]); hold()
    :: answer == REFUSED && !(holds(t, f) && writes == n) -> told_lost()
    :: answer == LOST -> if :: goto write :: hold() fi                  /* again, or on without knowing */
    fi
  };
release:
  atomic {
    send(RELEASE, t, f, 0, 0);
    if
    :: answer == APPLIED || (answer == REFUSED && doubt && fence > f && goes_on) ->
       promise("what is told as released was released", given[c]); until[c] = 0; goto over
    :: answer == REFUSED && !(doubt && fence > f && goes_on) ->
       promise("a release that was applied is not told as lost", !given[c] || now >= until[c]); told_lost()
    :: answer == LOST -> doubt = true; goto release
    fi
  };
over:
  atomic { t = 0; f = 0; n = 0; read = 0; x = 0; last = 0; start = 0; renewals = 0; head = 0; head_fence = 0; head_renewed = 0; doubt = false; answer = 0 }
}

init {
  atomic { byte x = 1; do :: x <= CLIENTS -> run Client(x); x++ :: else -> break od }
}
