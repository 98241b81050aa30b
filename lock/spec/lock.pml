/*
 * One lock: its line, its fence, its sessions and its guarded writes.
 *
 * The lock's row holds a line of tickets. The first ticket holds the lock. The fence counts how
 * often the first place has changed. Every request is an update of that row under a condition,
 * and a client judges each answer by the old row that a refusal returns.
 *
 * What can go wrong, at every single request: the answer is lost, and the request was applied or
 * was not; a copy of it arrives later, after anything else (LATE); the process stops for good
 * (CRASHES); its session is marked dead although it lives (MARKS), which stands for every pause
 * and every wrong clock; an operator takes the lock away (FORCES); a caller gives up (GIVE_UPS).
 *
 * A step of a client is one request with the judgement of its answer. Between two steps everybody
 * else may do anything, so what a client acts on may be long out of date.
 *
 * Names in capitals are bounds. Lower-case macros under "rules" are what the protocol demands:
 * each negative twin replaces one of them, and a check has to fail.
 */
#ifndef CLIENTS
#define CLIENTS 3               /* processes, each with a session of its own */
#endif
#ifndef TICKETS
#define TICKETS 1               /* tickets of client 0; with more than one it passes, or enters again */
#endif
#ifndef OTHERS
#define OTHERS 1                /* tickets of each other client, at most TICKETS */
#endif
#ifndef WRITES
#define WRITES 1                /* guarded writes of a lease, besides a commit */
#endif
#ifndef COMMITS
#define COMMITS false           /* the last write may be one that releases */
#endif
#ifndef LATE
#define LATE 1                  /* late copies of requests of client 0, at most 2 */
#endif
#ifndef MARKS
#define MARKS 1                 /* living sessions that are marked dead */
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef GIVE_UPS
#define GIVE_UPS 1
#endif
#ifndef FORCES
#define FORCES 0
#endif
#ifndef TRIES
#define TRIES(c) false          /* which clients do not wait (TryAcquire) */
#endif
#ifndef CAP
#define CAP 3                   /* length of the line, at most 3; who finds it full waits in the lobby */
#endif
#ifndef HANDOFFS
#define HANDOFFS 1              /* passes in a row while others stand in line */
#endif

#define NOBODY 0
#define owner(t) (((t) - 1) / TICKETS)
#define tickets(c) ((c) == 0 -> TICKETS : OTHERS)

/* The lock's row. A place without a ticket is NOBODY; line[0] is NOBODY when the lock is free. */
byte line[3];
byte fence = 1;
byte writes;                    /* number of the last guarded write under this fence; 0 if there is none */
byte forced;                    /* fence of the last ticket that was forced out */

/* The sessions' rows, and the processes that have crashed. */
bit dead[CLIENTS];
bit down[CLIENTS];

/* The row that the lock protects has the last write: a ticket and the write's number. */
byte value;
#define write_id(t, n) (((t) - 1) * (WRITES + 1) + (n))
#define writer(v) (((v) - 1) / (WRITES + 1) + 1)

/* DynamoDB remembers for ten minutes which transactions it has applied. */
byte applied[CLIENTS * TICKETS + 1];    /* of a ticket: a bit for each number */
bit forgotten;                          /* the ten minutes are over */
#define is_applied(t, n) (applied[t] & (1 << (n)))

/* What happened, for the checks and the bounds only. */
bit given[CLIENTS * TICKETS + 1];       /* this ticket's lease was ended by its own process */
bit entered_late[CLIENTS * TICKETS + 1];/* a late copy has put this ticket into the line: a ghost */
byte overtaken[CLIENTS * TICKETS + 1];  /* passes that went ahead of this ticket */
byte marks, crashes, late, forces, give_ups;

#define full (line[CAP - 1] != NOBODY)
#define stands(t) (line[0] == (t) || line[1] == (t) || line[2] == (t))
#define holds(t, f) (line[0] == (t) && fence == (f))

/* ---- Rules: conditions of the requests. ---- */

#ifndef may_enter
#define may_enter(t) (!full && !stands(t))
#endif
#ifndef may_release
#define may_release(t, f) holds(t, f)
#endif
#ifndef may_leave
#define may_leave(t, x) (line[x] == (t))
#endif
#ifndef may_evict
#define may_evict(t, f) holds(t, f)
#endif
#ifndef may_evict_beside
#define may_evict_beside(x, other) ((x) == 0 || line[x] == (other))     /* another ticket of the same session, at place x */
#endif
#ifndef may_replace
#define may_replace(t, f) (holds(t, f) && line[1] == NOBODY)
#endif
#ifndef guard
#define guard(t, f) holds(t, f)
#endif
#ifndef is_next_write
#define is_next_write(n) (writes < (n))
#endif
#ifndef is_remembered
#define is_remembered(t, n) (is_applied(t, n) && !forgotten)    /* each write has one token for all its attempts */
#endif
#ifndef forget_writes
#define forget_writes writes = 0        /* with every change of the first place. In the code the next holder counts on from there, which is the same */
#endif

/* ---- Rules: how a client judges and what it does. ---- */

#ifndef is_alive_after
#define is_alive_after (!dead[c])       /* the own session, read after a refusal */
#endif
#ifndef in_doubt
#define in_doubt true                   /* after a lost answer: the request may have been applied */
#endif
#ifndef was_forced
#define was_forced(f) (forced >= (f))   /* this ticket, or a later one */
#endif
/* A refused release had been applied before: nobody else can have ended this lease. */
#define was_released(f) (doubt && fence > (f) && !was_forced(f) && is_alive_after)
#ifndef shows_write
#define shows_write(f, n) (fence == (f) && writes == (n))       /* the row: this write was applied */
#endif
#ifndef was_committed
#define was_committed (answer == APPLIED)
#endif
#ifndef was_passed
#define was_passed(f) (line[0] == target && fence == (f) + 1)
#endif
#ifndef is_target
#define is_target(t) ((t) != NOBODY && (t) == target)
#endif
#ifndef leave_first
#define leave_first(t, f) send(RELEASE, t, f, 0, 0)
#endif
#ifndef may_pass
#define may_pass (handoffs < HANDOFFS)
#endif
#ifndef removes_ghosts
#define removes_ghosts true             /* tickets of its own that it does not know */
#endif
#ifndef sees_to_the_first
#define sees_to_the_first true          /* whoever waits, also in the lobby, evicts the dead */
#endif

/* A promise is checked where it could be broken. */
#define promise(name, condition) \
  if :: condition :: else -> printf("BROKEN: "); printf(name); printf("\n"); assert(false) fi

/* ---- The row's side: a request is applied, or refused by its condition. ---- */

bit ok;
byte first, before, i;

inline remove(p) {              /* REMOVE line[p]: those behind it move up */
  if
  :: p == 0 -> line[0] = line[1]; line[1] = line[2]
  :: p == 1 -> line[1] = line[2]
  :: else
  fi;
  line[2] = NOBODY
}

inline turn_over() {            /* the first ticket goes; the next one holds */
  remove(0); fence++; forget_writes;
  i = 1; do :: i <= CLIENTS * TICKETS -> overtaken[i] = 0; i++ :: else -> break od
}

inline overtake() {             /* a pass goes ahead of all who wait */
  i = 1;
  do
  :: i < 3 && line[i] != NOBODY ->
     overtaken[line[i]]++;
     promise("a waiter is overtaken by HANDOFFS passes at most", overtaken[line[i]] <= HANDOFFS); i++
  :: else -> break
  od
}

inline change_value(t, n, read) {
  promise("a guarded write is based on the last one", value == read || (value != 0 && writer(value) == t));
  promise("the writes of a lease are applied in their order", value == 0 || writer(value) != t || value < write_id(t, n));
  value = write_id(t, n); applied[t] = applied[t] | (1 << n)
}

/*
 * All requests have the same parameters: the ticket and the fence that they name; x: the number of
 * a write, the target of a pass, a place, the ticket that is replaced, or for ENTER whether the lock
 * has to be free; and read: * the value that a guarded write is based on, or the other ticket that an eviction takes along.
 */
inline apply_ENTER(t, f, x, read) {
  if :: may_enter(t) && (x == 0 || line[0] == NOBODY) -> i = 0; do :: line[i] != NOBODY -> i++ :: else -> break od; line[i] = t; ok = true :: else fi
}
inline apply_LEAVE(t, f, x, read) {
  if
  :: may_leave(t, x) -> promise("only the own place is left", line[x] == t); remove(x); overtaken[t] = 0; ok = true
  :: else
  fi
}
inline apply_RELEASE(t, f, x, read) {
  if :: may_release(t, f) -> if :: fence == f -> given[t] = true :: else fi; turn_over(); ok = true :: else fi
}
inline apply_EVICT(t, f, x, read) {
  if
  :: may_evict(t, f) && may_evict_beside(x, read) ->
     promise("only the dead are evicted", dead[owner(line[0])] && (x == 0 || (line[x] != NOBODY && dead[owner(line[x])])));
     if :: x > 0 -> overtaken[line[x]] = 0; remove(x) :: else fi;
     turn_over(); ok = true
  :: else
  fi
}
inline apply_FORCE(t, f, x, read) {
  if :: holds(t, f) -> turn_over(); forced = f; ok = true :: else fi
}
inline apply_PASS(t, f, x, read) {
  if :: holds(t, f) -> given[t] = true; line[0] = x; fence++; forget_writes; overtake(); ok = true :: else fi
}
inline apply_REPLACE(t, f, x, read) {   /* t takes the place of x, which is dead, or a ghost of the same process */
  if
  :: may_replace(x, f) ->
     promise("only the dead are evicted", dead[owner(line[0])] || owner(line[0]) == owner(t));
     promise("nobody is overtaken by a client that does not wait", line[1] == NOBODY);
     line[0] = t; fence++; forget_writes; ok = true
  :: else
  fi
}
inline apply_WRITE(t, f, x, read) {     /* a transaction with a token of its own */
  if
  :: is_remembered(t, x) -> ok = true
  :: else -> if :: guard(t, f) && is_next_write(x) -> change_value(t, x, read); writes = x; ok = true :: else fi
  fi
}
#define commit_number(x) ((x) % 8)      /* x has the target of a pass, too, or NOBODY */
#define commit_target(x) ((x) / 8)
inline apply_COMMIT(t, f, x, read) {    /* the same, with a release or a pass in it */
  if
  :: is_remembered(t, commit_number(x)) -> ok = true
  :: else ->
     if
     :: guard(t, f) -> change_value(t, commit_number(x), read); given[t] = true; ok = true;
        if
        :: commit_target(x) == NOBODY -> turn_over()
        :: else -> line[0] = commit_target(x); fence++; forget_writes; overtake()
        fi
     :: else
     fi
  fi
}

inline begin_request() { ok = false; first = line[0]; before = fence }
inline end_request(op, t, f, x) {
  printf("%e of ticket %d (fence %d, x %d): applied %d; line %d %d %d, fence %d, writes %d\n", op, t, f, x, ok, line[0], line[1], line[2], fence, writes);
  promise("the bounds of the model are kept", fence < 255);
  promise("one holder per fence", line[0] == first || first == NOBODY || fence != before);
  first = 0; i = 0; before = 0
}

mtype = { NONE, ENTER, LEAVE, RELEASE, EVICT, FORCE, PASS, REPLACE, WRITE, COMMIT };
mtype = { APPLIED, REFUSED, LOST };

/* ---- The network: late copies. ---- */

mtype copy_op[2]; byte copy_t[2], copy_f[2], copy_x[2], copy_read[2];
#define no_copies (copy_op[0] == 0 && copy_op[1] == 0)

inline apply_copy(op, t, f, x, read) {
  printf("late: "); begin_request();
  if
  :: op == ENTER -> apply_ENTER(t, f, x, read); if :: ok -> entered_late[t] = true :: else fi
  :: op == LEAVE -> apply_LEAVE(t, f, x, read)
  :: op == RELEASE -> apply_RELEASE(t, f, x, read)
  :: op == EVICT -> apply_EVICT(t, f, x, read)
  :: op == PASS -> apply_PASS(t, f, x, read)
  :: op == REPLACE -> apply_REPLACE(t, f, x, read); if :: ok -> entered_late[t] = true :: else fi
  :: op == WRITE -> apply_WRITE(t, f, x, read)
  :: op == COMMIT -> apply_COMMIT(t, f, x, read)
  fi;
  end_request(op, t, f, x); ok = false
}
inline arrive(k) {
  if :: d_step { apply_copy(copy_op[k], copy_t[k], copy_f[k], copy_x[k], copy_read[k]) } :: true fi;   /* or never */
  d_step { copy_op[k] = 0; copy_t[k] = 0; copy_f[k] = 0; copy_x[k] = 0; copy_read[k] = 0 }
}

active proctype Network() {
end:
  do
  :: atomic { copy_op[0] != 0 -> arrive(0) }
#if LATE > 1
  :: atomic { copy_op[1] != 0 -> arrive(1) }
#endif
  od
}

#if FORCES > 0
active proctype Operator() {
end:
  do
  :: atomic {
       forces < FORCES && line[0] != NOBODY -> forces++;
       d_step { begin_request(); apply_FORCE(line[0], fence, 0, 0); end_request(FORCE, first, before, 0); ok = false }
     }
  od
}
#endif
#ifdef TOKENS_END
active proctype Tokens() { forgotten = true }
#endif

/* ---- A client. ---- */

/* One request and its answer. What a refusal returns is the row at this moment. */
#define send(op, t, f, x, read) \
  if \
  :: c == 0 && late < LATE -> \
     copy_op[late] = op; copy_t[late] = t; copy_f[late] = f; copy_x[late] = x; copy_read[late] = read; late++ \
  :: true \
  fi; \
  if \
  :: d_step { \
       begin_request(); apply_##op(t, f, x, read); end_request(op, t, f, x); \
       answer = (ok -> APPLIED : REFUSED); ok = false \
     }; \
     if :: true :: answer = LOST fi \
  :: answer = LOST \
  fi; \
  if :: crashes < CRASHES -> crashes++; down[c] = true; forget(); used = 0; goto end_crashed :: true fi

inline forget() {
  t = 0; f = 0; n = 0; read = 0; target = 0; handoffs = 0; head = 0; beside = 0; doubt = false; entered = false; answer = 0
}

inline acquire_next() {         /* with a new ticket, if the client has one left */
  if :: no_copies -> applied[t] = 0; given[t] = 0 :: else fi;
  forget();
  if
  :: used < tickets(c) && !dead[c] -> used++; t = c * TICKETS + used; goto enter
  :: else -> goto end_idle
  fi
}

/* The ticket was seen first, under this fence: it holds, unless its session is known to be dead. */
inline granted(fence_seen) {
  f = fence_seen; head = 0; doubt = false; target = 0; n = 0; entered = true;
  if :: dead[c] -> acquire_next() :: work() fi
}

/* The holder reads what it needs, and decides what to do. */
inline work() {
  answer = 0; doubt = false;
  if
  :: n < WRITES -> n++; read = value; goto write
  :: COMMITS -> n++; read = value;
     if :: true :: used < tickets(c) && may_pass -> used++; target = c * TICKETS + used fi;
     goto commit
  :: n = 0; read = 0; goto release
  :: used < tickets(c) && may_pass -> n = 0; read = 0; used++; target = c * TICKETS + used; goto pass
  fi
}

/* The caller is told that somebody else has ended its lease. */
inline told_lost() {
  promise("a lock that is told as lost is not held", !holds(t, f)); acquire_next()
}
/* The caller is told that its lock is passed. */
inline passed() {
  promise("what is told as passed was passed", given[t]);
  handoffs = (line[1] == NOBODY -> 0 : handoffs + 1);           /* the answer shows the line */
  t = target; target = 0; doubt = false; answer = 0;
  if :: granted(f + 1) :: f++; n = 0; read = 0; goto release fi /* unless the waiter has left meanwhile */
}
inline told_release_lost() {
  promise("a release that was applied is not told as lost", !given[t] || dead[c] || forced >= f); told_lost()
}

/* The caller is told that its lock is released. */
inline told_released() {
  promise("what is told as released was released", given[t]);
  promise("a ticket that is told as released is gone", !stands(t) || entered_late[t]);
  promise("nobody is left behind by a release", line[0] == NOBODY || line[0] != target);
  acquire_next()
}

proctype Client(byte c) {
  byte t, f;                    /* my ticket, and the fence of my lease */
  byte n, read;                 /* number of the guarded write under way, and what it is based on */
  byte target;                  /* the ticket to which I may have passed */
  byte used, handoffs;
  byte head, beside;            /* what a look showed: the first ticket, or my place; another place of a dead session */
  bit doubt;                    /* an attempt of mine without an answer may have been applied */
  bit entered;                  /* my ticket was seen in the line */
  mtype answer;

  atomic { acquire_next() };
enter:
  atomic {
    if :: dead[c] -> acquire_next() :: !dead[c] || !doubt fi;   /* its process may know that it is dead, or not yet */
    if :: TRIES(c) -> goto try :: else fi;
    send(ENTER, t, 0, 0, 0);
    if
    :: answer == LOST -> doubt = in_doubt; if :: goto enter :: give_ups < GIVE_UPS -> give_ups++; goto leave fi
    :: answer != LOST && line[0] == t -> granted(fence)
    :: answer != LOST && line[0] != t -> entered = stands(t); doubt = false; answer = 0; goto wait
    fi
  };
wait:                           /* a look at the row; what it shows is acted on in a later step */
  atomic {
    if
    :: line[0] == t -> granted(fence)
    :: entered && !stands(t) -> acquire_next()                  /* evicted, or forced out */
    :: !entered && !full -> if :: used < tickets(c) -> acquire_next() :: else -> goto enter fi  /* from the lobby */
    :: line[0] != t && line[0] != NOBODY && owner(line[0]) == c && removes_ghosts ->
       head = line[0]; f = fence; goto clean
    :: line[0] != NOBODY && owner(line[0]) != c && (dead[owner(line[0])] || down[owner(line[0])] || marks < MARKS) && sees_to_the_first ->
       head = line[0]; f = fence;
       if :: dead[owner(head)] || down[owner(head)] :: else -> marks++ fi;
       dead[owner(head)] = true;                                /* first marked, then evicted */
       if
       :: line[1] != NOBODY && owner(line[1]) == owner(head) -> beside = 1; read = line[1]
       :: line[2] != NOBODY && owner(line[2]) == owner(head) -> beside = 2; read = line[2]
       :: true
       fi;
       goto evict
    :: give_ups < GIVE_UPS -> give_ups++; goto leave
    fi
  };
evict:
  atomic { send(EVICT, head, f, beside, read); head = 0; f = 0; beside = 0; read = 0; answer = 0; goto wait };
clean:                          /* a ghost */
  atomic { send(RELEASE, head, f, 0, 0); head = 0; f = 0; answer = 0; goto wait };

try:                            /* enters if the lock is free, or held by the dead, and nobody waits */
  atomic {
    send(ENTER, t, 0, 1, 0);
    if
    :: answer == LOST -> doubt = in_doubt; if :: goto enter :: goto leave fi
    :: answer != LOST && line[0] == t -> granted(fence)
    :: answer != LOST && line[0] != t ->
       if
       :: line[0] != NOBODY && line[1] == NOBODY && (dead[owner(line[0])] || down[owner(line[0])] || marks < MARKS) ->
          head = line[0]; f = fence; answer = 0;
          if :: owner(head) == c || dead[owner(head)] || down[owner(head)] :: else -> marks++ fi;
          if :: owner(head) == c :: else -> dead[owner(head)] = true fi;
          goto replace
       :: true -> goto leave
       fi
    fi
  };
replace:
  atomic {
    send(REPLACE, t, f, head, 0); head = 0; f = 0;
    if
    :: answer != LOST && line[0] == t -> granted(fence)
    :: answer == LOST || line[0] != t -> goto leave
    fi
  };

leave:                          /* gives up waiting: reads, consistently, where its ticket is */
  atomic {
    answer = 0;
    if
    :: !stands(t) -> acquire_next()
    :: line[0] == t -> f = fence; goto leave_the_first
    :: line[1] == t -> head = 1
    :: line[2] == t -> head = 2
    fi
  };
  atomic {
    send(LEAVE, t, 0, head, 0); head = 0;
    if
    :: answer == APPLIED -> acquire_next()
    :: answer != APPLIED -> goto leave
    :: answer == LOST -> acquire_next()         /* its ticket is a ghost where it stays */
    fi
  };
leave_the_first:
  atomic {
    leave_first(t, f); f = 0;
    if
    :: answer == APPLIED -> acquire_next()
    :: answer != APPLIED -> goto leave
    :: answer == LOST -> acquire_next()
    fi
  };

write:
  atomic {
    send(WRITE, t, f, n, read);
    if
    :: answer == APPLIED || (answer == REFUSED && shows_write(f, n)) ->
       promise("an acknowledged write was applied", is_applied(t, n)); work()
    :: answer == REFUSED && !shows_write(f, n) ->
       promise("a write that is told as refused was not applied", !is_applied(t, n) || (doubt && forgotten)); told_lost()
    :: answer == LOST -> if :: !forgotten -> doubt = in_doubt; goto write :: work() fi  /* again, or on without knowing */
    fi
  };
commit:
  atomic {
    send(COMMIT, t, f, n + 8 * target, read);
    if
    :: answer != LOST && was_committed ->
       promise("an acknowledged commit was applied", is_applied(t, n));
       if :: target == NOBODY -> acquire_next() :: else -> passed() fi
    :: answer != LOST && !was_committed ->
       promise("a commit that is told as refused was not applied", !is_applied(t, n) || (doubt && forgotten));
       if :: doubt && forgotten -> acquire_next() :: else -> told_lost() fi             /* not known, or lost */
    :: answer == LOST -> doubt = in_doubt;
       if
       :: !forgotten -> goto commit
       :: d_step { begin_request(); apply_RELEASE(t, f, 0, 0); end_request(RELEASE, t, f, 0); ok = false };
          goto commit           /* another goroutine of the process, or Close, releases meanwhile */
       :: n = 0; read = 0; goto release                                                 /* on without knowing */
       fi
    fi
  };
release:
  atomic {
    send(RELEASE, t, f, 0, 0);
    if
    :: answer == APPLIED -> told_released()
    :: answer == REFUSED && is_target(line[0]) && fence == f + 1 -> passed()            /* an attempt to pass was applied */
    :: answer == REFUSED && !(is_target(line[0]) && fence == f + 1) ->
       if :: was_released(f) -> told_released() :: else -> told_release_lost() fi
    :: answer == LOST -> doubt = in_doubt; answer = 0; goto release
    fi
  };
pass:
  atomic {
    send(PASS, t, f, target, 0);
    if
    :: answer == APPLIED || (answer == REFUSED && was_passed(f)) -> passed()
    :: answer == REFUSED && !was_passed(f) ->
       if :: was_released(f) -> told_released() :: else -> told_release_lost() fi
    :: answer == LOST -> doubt = in_doubt; answer = 0;
       if :: goto pass :: goto release fi       /* again; or the caller releases again, and the target is known still */
    fi
  };
end_idle:                       /* removes a ghost, when somebody asks */
  atomic { line[0] != NOBODY && owner(line[0]) == c && !dead[c] && removes_ghosts -> head = line[0]; f = fence };
  atomic { send(RELEASE, head, f, 0, 0); forget(); goto end_idle };
end_crashed:
  false
}

init {
  atomic {
    byte x = 0;
    if :: marks = MARKS :: true fi;             /* whether there are such faults at all: */
    if :: forces = FORCES :: true fi;           /* nobody may need one of them in order to go on */
    if :: give_ups = GIVE_UPS :: true fi;
    do :: x < CLIENTS -> run Client(x); x++ :: else -> break od
  }
}
