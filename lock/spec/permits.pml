/*
 * Permits: the first n tickets in the line hold, each of them one of n permits.
 *
 * The row has two lists side by side: the line of tickets, and the number of each ticket's stay. Each
 * enter takes the next number. A ticket that is put into the line again by a late copy of its enter has
 * another number, so a stay names one presence in the line, and never two. Places only move up. So what
 * has held once holds until it leaves the line, whoever comes, leaves, or changes n; and the guard is that
 * the stay is in the line still.
 *
 * The row's updates and conditions, as they are to be built, are in README.md, "Permits".
 *
 * The same things go wrong as with one lock: see lock.pml. What differs: the number of permits is changed
 * while others act by the old one (CHANGES), and a client may hold its permit for good (KEEPS).
 */
#ifndef CLIENTS
#define CLIENTS 3               /* processes, each with a session of its own */
#endif
#ifndef TICKETS
#define TICKETS 1               /* of each client */
#endif
#ifndef PERMITS
#define PERMITS 2               /* that the row has at first */
#endif
#ifndef CHANGES
#define CHANGES 0               /* of the number of permits, to any from 1 to 3 */
#endif
#ifndef WRITES
#define WRITES 1                /* guarded writes of a lease */
#endif
#ifndef KEEPS
#define KEEPS(c) false          /* which clients never give their permit back */
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
#ifndef CAP
#define CAP 3                   /* length of the line, at most 3 */
#endif

#define NOBODY 0
#define NOWHERE 3
#define ALL (CLIENTS * TICKETS)
#define owner(t) (((t) - 1) / TICKETS)

/* The lock's row: place p has the ticket line[p], and stay[p]. */
byte line[3], stay[3];
byte next = 1;                  /* number of the next stay */
byte permits = PERMITS;
byte forced;                    /* next, when somebody was forced out last */

bit dead[CLIENTS], down[CLIENTS];

/* What happened, for the checks and the bounds only. */
byte applied[ALL + 1];          /* of a ticket: a bit for each write that DynamoDB has applied, and remembers */
bit held[ALL + 1];              /* this ticket has been among the first since it came into the line */
bit removed[ALL + 1];           /* it was taken out of the line since its lease was granted */
bit given[ALL + 1];             /* its own process has ended the stay of its lease */
byte marks, crashes, late, forces, give_ups, changes;

#define full (line[CAP - 1] != NOBODY)
#define stands(t) (line[0] == (t) || line[1] == (t) || line[2] == (t))
#define place(t) (line[0] == (t) -> 0 : (line[1] == (t) -> 1 : (line[2] == (t) -> 2 : NOWHERE)))
#define stays(k) (stay[0] == (k) || stay[1] == (k) || stay[2] == (k))
#define among_the_first(t) (place(t) < permits)

/* ---- Rules: conditions of the requests. ---- */

#ifndef may_enter
#define may_enter(t) (!full && !stands(t))
#endif
#ifndef may_leave
#define may_leave(t, k, p) (line[p] == (t) && stay[p] == (k))
#endif
#ifndef may_evict
#define may_evict(t, k, p) (line[p] == (t))     /* a dead session has no ticket that it may keep, ghosts neither */
#endif
#ifndef guard
#define guard(t, k) stays(k)
#endif

/* ---- Rules: how a client judges and what it does. ---- */

#ifndef holds
#define holds(t) among_the_first(t)             /* by the number of permits in the row, in the same look */
#endif
#ifndef is_alive_after
#define is_alive_after (!dead[c])               /* the own session, read after a refusal */
#endif
#ifndef was_forced
#define was_forced(k) (forced > (k))            /* somebody was, since this stay has begun */
#endif
#ifndef in_doubt
#define in_doubt true                           /* after a lost answer: the request may have been applied */
#endif
/* A refused leave had been applied before: nobody else can have ended this stay. */
#define was_left(k) (doubt && !was_forced(k) && is_alive_after)
#ifndef sees_to
#define sees_to(p) ((p) < permits)              /* whoever waits marks and evicts each holder that is dead */
#endif
#ifndef removes_ghosts
#define removes_ghosts true
#endif

#define promise(name, condition) \
  if :: condition :: else -> printf("BROKEN: "); printf(name); printf("\n"); assert(false) fi

/* ---- The row's side: a request is applied, or refused by its condition. ---- */

bit ok;
byte i;

inline remove(p) {              /* REMOVE line[p], stay[p] */
  if :: line[p] != NOBODY -> removed[line[p]] = true; held[line[p]] = false :: else fi;
  if
  :: p == 0 -> line[0] = line[1]; stay[0] = stay[1]; line[1] = line[2]; stay[1] = stay[2]
  :: p == 1 -> line[1] = line[2]; stay[1] = stay[2]
  :: else
  fi;
  line[2] = NOBODY; stay[2] = 0
}

/* Of a request: the ticket and the stay that it names, and x: a place, the number of a write, or of permits. */
inline apply_ENTER(t, k, x) {
  if
  :: may_enter(t) -> i = 0; do :: line[i] != NOBODY -> i++ :: else -> break od; line[i] = t; stay[i] = next; next++; ok = true
  :: else
  fi
}
inline apply_LEAVE(t, k, x) {
  if
  :: may_leave(t, k, x) ->
     promise("only the own place is left", line[x] == t);
     if :: stay[x] == k -> given[t] = true :: else fi;
     remove(x); ok = true
  :: else
  fi
}
inline apply_EVICT(t, k, x) {
  if :: may_evict(t, k, x) -> promise("only the dead are evicted", line[x] != NOBODY && dead[owner(line[x])]); remove(x); ok = true :: else fi
}
inline apply_FORCE(t, k, x) {
  if :: line[x] == t && stay[x] == k -> remove(x); forced = next; ok = true :: else fi
}
inline apply_CHANGE(t, k, x) { permits = x; ok = true }
inline apply_WRITE(t, k, x) {
  if
  :: applied[t] & (1 << x) -> ok = true         /* its token is remembered */
  :: else ->
     if
     :: guard(t, k) ->
        promise("only the first n write", held[t]);
        promise("a permit that was given to others writes no more", !removed[t]);
        applied[t] = applied[t] | (1 << x); ok = true
     :: else
     fi
  fi
}
inline end_request(op, t, k, x) {
  i = 0; do :: i < permits && i < 3 && line[i] != NOBODY -> held[line[i]] = true; i++ :: else -> break od; i = 0;
  printf("%e of ticket %d (stay %d, x %d): applied %d; line %d %d %d, stays %d %d %d, permits %d\n", op, t, k, x, ok, line[0], line[1], line[2], stay[0], stay[1], stay[2], permits);
  promise("the bounds of the model are kept", next < 255)
}

mtype = { NONE, ENTER, LEAVE, EVICT, FORCE, CHANGE, WRITE };
mtype = { APPLIED, REFUSED, LOST };

/* ---- The network, and operators. ---- */

mtype copy_op[2]; byte copy_t[2], copy_k[2], copy_x[2];

inline apply_copy(op, t, k, x) {
  printf("late: "); ok = false;
  if
  :: op == ENTER -> apply_ENTER(t, k, x)
  :: op == LEAVE -> apply_LEAVE(t, k, x)
  :: op == EVICT -> apply_EVICT(t, k, x)
  :: op == WRITE -> apply_WRITE(t, k, x)
  fi;
  end_request(op, t, k, x); ok = false
}
inline arrive(n) {
  if :: d_step { apply_copy(copy_op[n], copy_t[n], copy_k[n], copy_x[n]) } :: true fi;    /* or never */
  d_step { copy_op[n] = 0; copy_t[n] = 0; copy_k[n] = 0; copy_x[n] = 0 }
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
  :: atomic { forces < FORCES && line[0] != NOBODY -> forces++; d_step { apply_FORCE(line[0], stay[0], 0); end_request(FORCE, 0, 0, 0); ok = false } }
  :: atomic { forces < FORCES && line[1] != NOBODY -> forces++; d_step { apply_FORCE(line[1], stay[1], 1); end_request(FORCE, 0, 0, 1); ok = false } }
  od
}
#endif
#if CHANGES > 0
active proctype Setter() {
  byte n;
end:
  do
  :: atomic {
       changes < CHANGES -> changes++; select(n : 1 .. 3);
       d_step { apply_CHANGE(0, 0, n); end_request(CHANGE, 0, 0, n); ok = false; n = 0 }
     }
  od
}
#endif

/* ---- A client. ---- */

#define send(op, t, k, x) \
  if \
  :: c == 0 && late < LATE -> copy_op[late] = op; copy_t[late] = t; copy_k[late] = k; copy_x[late] = x; late++ \
  :: true \
  fi; \
  if \
  :: d_step { ok = false; apply_##op(t, k, x); end_request(op, t, k, x); answer = (ok -> APPLIED : REFUSED); ok = false }; \
     if :: true :: answer = LOST fi \
  :: answer = LOST \
  fi; \
  if :: crashes < CRASHES -> crashes++; down[c] = true; forget(); used = 0; goto end_crashed :: true fi

inline forget() { t = 0; k = 0; n = 0; head = 0; p = 0; doubt = false; entered = false; answer = 0 }

inline acquire_next() {         /* with a new ticket, if the client has one left */
  if :: copy_op[0] == 0 && copy_op[1] == 0 -> applied[t] = 0 :: else fi;
  given[t] = false; removed[t] = false; forget();
  if
  :: used < TICKETS && !dead[c] -> used++; t = c * TICKETS + used; goto enter
  :: else -> goto end_idle
  fi
}
inline granted() {              /* it was seen among the first: its lease is the stay that was seen with it */
  p = place(t); k = stay[p]; removed[t] = false; given[t] = false; doubt = false; entered = false; answer = 0; head = 0;
  if :: dead[c] -> acquire_next() :: work() fi
}
inline work() {
  answer = 0;
  if :: n < WRITES -> n++; goto write :: n = 0; if :: KEEPS(c) -> goto end_keeping :: else -> goto leave fi fi
}
inline told_lost() {
  promise("a permit that is told as lost is not held", !stays(k)); acquire_next()
}

#define is_others(x) (line[x] != NOBODY && owner(line[x]) != c)
#define sees_dead(x) (is_others(x) && (dead[owner(line[x])] || down[owner(line[x])] || marks < MARKS) && sees_to(x))
#define sees_ghost(x) (line[x] != NOBODY && owner(line[x]) == c && line[x] != t && removes_ghosts)

inline mark(x) {                /* first marked, then evicted */
  head = line[x]; p = x;
  if :: dead[owner(head)] || down[owner(head)] :: else -> marks++ fi;
  dead[owner(head)] = true
}

proctype Client(byte c) {
  byte t, k;                    /* my ticket, and the stay of my lease */
  byte n;                       /* number of the guarded write under way */
  byte p, head;                 /* a place and a ticket that a look has shown */
  byte used;
  bit doubt;                    /* an attempt of mine without an answer may have been applied */
  bit entered;                  /* my ticket was seen in the line */
  mtype answer;

  atomic { acquire_next() };
enter:
  atomic {
    if :: dead[c] -> acquire_next() :: !dead[c] || !doubt fi;   /* its process may know that it is dead, or not yet */
    send(ENTER, t, 0, 0);
    if
    :: answer == LOST -> doubt = in_doubt; if :: goto enter :: give_ups < GIVE_UPS -> give_ups++; goto give_up fi
    :: answer != LOST -> answer = 0; doubt = false; entered = stands(t); goto wait
    fi
  };
wait:                           /* a look at the row; what it shows is acted on in a later step */
  atomic {
    if
    :: stands(t) && holds(t) -> granted()
    :: entered && !stands(t) -> acquire_next()                  /* evicted, or forced out */
    :: !entered && !full && !stands(t) -> goto enter            /* from the lobby */
    :: !among_the_first(t) && sees_dead(0) -> mark(0); goto evict
    :: !among_the_first(t) && sees_dead(1) -> mark(1); goto evict
    :: !among_the_first(t) && sees_dead(2) -> mark(2); goto evict
    :: sees_ghost(0) -> p = 0; goto clean
    :: sees_ghost(1) -> p = 1; goto clean
    :: sees_ghost(2) -> p = 2; goto clean
    :: give_ups < GIVE_UPS -> give_ups++; goto give_up
    fi
  };
clean:                          /* a ghost: the stay of a ticket of its own that it does not know */
  atomic { head = line[p]; k = stay[p]; if :: sees_ghost(p) :: else -> head = 0; k = 0; p = 0; goto wait fi };
  atomic { send(LEAVE, head, k, p); head = 0; k = 0; p = 0; answer = 0; goto wait };
evict:
  atomic { send(EVICT, head, 0, p); head = 0; p = 0; answer = 0; goto wait };

give_up:                        /* reads, consistently, where its ticket is, and leaves whatever stay that is */
  atomic { answer = 0; if :: !stands(t) -> acquire_next() :: stands(t) -> p = place(t); k = stay[p] fi };
  atomic {
    send(LEAVE, t, k, p); k = 0; p = 0;
    if :: answer == APPLIED || answer == LOST -> acquire_next() :: answer != APPLIED -> goto give_up fi
  };

write:
  atomic {
    send(WRITE, t, k, n);
    if
    :: answer == APPLIED -> work()
    :: answer == REFUSED -> told_lost()
    :: answer == LOST -> if :: answer = 0; goto write :: work() fi         /* again, or on without knowing */
    fi
  };
leave:                          /* release: at the place where it was seen last */
  atomic {
    send(LEAVE, t, k, p);
    if
    :: answer == APPLIED || (answer == REFUSED && !stays(k) && was_left(k)) ->
       promise("what is told as released was released", given[t]); acquire_next()
    :: answer == REFUSED && stays(k) ->                         /* it has moved up */
       p = (stay[0] == k -> 0 : (stay[1] == k -> 1 : 2)); answer = 0; goto leave
    :: answer == REFUSED && !stays(k) && !was_left(k) ->
       promise("a release that was applied is not told as lost", !given[t] || dead[c] || forced > k); told_lost()
    :: answer == LOST -> doubt = in_doubt; answer = 0; goto leave
    fi
  };
end_idle:                       /* removes a ghost, when somebody asks */
  atomic {
    if
    :: sees_ghost(0) && !dead[c] -> p = 0
    :: sees_ghost(1) && !dead[c] -> p = 1
    :: sees_ghost(2) && !dead[c] -> p = 2
    fi;
    head = line[p]; k = stay[p]
  };
  atomic { send(LEAVE, head, k, p); forget(); goto end_idle };
end_keeping:
  dead[c] -> atomic { forget(); goto end_idle };
end_crashed:
  false
}

init {
  atomic {
    byte x = 0;
    if :: marks = MARKS :: true fi;             /* whether there are such faults at all: */
    if :: forces = FORCES :: true fi;           /* nobody may need one of them in order to go on */
    if :: give_ups = GIVE_UPS :: true fi;
    if :: changes = CHANGES :: true fi;
    do :: x < CLIENTS -> run Client(x); x++ :: else -> break od
  }
}
