/*
 * Two locks, which some clients take together (AcquireAll) and others alone.
 *
 * Who wants both enters both lines in one transaction, keeps its places, and holds when it is
 * first in both. If one place is lost, the other is left, and both lines are entered again in
 * one transaction, with a new ticket.
 *
 * The same things go wrong as with one lock: see lock.pml. What is checked: nobody waits for
 * ever, which Spin calls an invalid end state, and nothing is written under somebody else's lock.
 */
#ifndef CLIENTS
#define CLIENTS 3               /* processes, each with a session of its own */
#endif
#ifndef WANTS
#define WANTS(c) ((c) == 2 -> LOCK_0 : BOTH)    /* what each of them wants */
#endif
#ifndef TICKETS
#define TICKETS 2               /* tickets of a client that wants both: how often it may enter */
#endif
#ifndef LATE
#define LATE 1                  /* late copies of requests of client 0, at most 1 */
#endif
#ifndef MARKS
#define MARKS 1                 /* living sessions that are marked dead */
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef FORCES
#define FORCES 0
#endif
#ifndef GIVE_UPS
#define GIVE_UPS 0
#endif
#ifndef CAP
#define CAP 4                   /* length of a line, at most 4; who finds one full waits in the lobby */
#endif

#define LOCK_0 1
#define LOCK_1 2
#define BOTH 3
#define wants(c, x) (WANTS(c) & (1 << (x)))
#define tickets(c) (WANTS(c) == BOTH -> TICKETS : 1)

#define NOBODY 0
#define owner(t) (((t) - 1) / TICKETS)

byte line[8];                   /* the places of lock x are line[4x] to line[4x + 3] */
byte fence[2] = 1;
byte value[2];                  /* the row that lock x protects: the ticket that has written last */
bit dead[CLIENTS + 1], down[CLIENTS + 1];
byte marks, crashes, late, forces, give_ups;

#define first(x) line[4 * (x)]
#define full(x) (line[4 * (x) + CAP - 1] != NOBODY)
#define stands(x, t) (line[4 * (x)] == (t) || line[4 * (x) + 1] == (t) || line[4 * (x) + 2] == (t) || line[4 * (x) + 3] == (t))
#define holds(x, t, f) (first(x) == (t) && fence[x] == (f))
#define is_missing(x) (wants(c, x) && !stands(x, t))

/* ---- Rules. ---- */

#ifndef enters
#define enters WANTS(c)                 /* in one transaction */
#endif
#ifndef when_a_place_is_missing
#define when_a_place_is_missing leave   /* gives up the other place, too */
#endif
#ifndef may_evict
#define may_evict(x, t, f) holds(x, t, f)
#endif
#ifndef guard
#define guard(x, f) holds(x, t, f)      /* of each lock that is wanted, in one transaction */
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

/* ---- The rows' side: a request is applied, or refused by its condition. ---- */

mtype = { NONE, ENTER, LEAVE, RELEASE, EVICT, FORCE };
mtype = { APPLIED, REFUSED, LOST };

bit ok;
byte i;

inline append(x, t) {
  i = 4 * x; do :: line[i] != NOBODY -> i++ :: else -> break od; line[i] = t
}
inline remove(x, p) {           /* REMOVE line[p]: those behind it move up */
  i = 4 * x + p; do :: i < 4 * x + 3 -> line[i] = line[i + 1]; i++ :: else -> break od; line[i] = NOBODY
}

/* x is a lock; an ENTER has a set of them. y is a fence; a LEAVE has a place. */
inline apply(op, x, t, y) {
  ok = false;
  if
  :: op == ENTER && (x == LOCK_1 || (!full(0) && !stands(0, t))) && (x == LOCK_0 || (!full(1) && !stands(1, t))) ->
     if :: x != LOCK_1 -> append(0, t) :: else fi;
     if :: x != LOCK_0 -> append(1, t) :: else fi;
     ok = true
  :: op == LEAVE && y > 0 && line[4 * x + y] == t -> remove(x, y); ok = true
  :: (op == RELEASE || op == FORCE) && holds(x, t, y) -> remove(x, 0); fence[x]++; ok = true
  :: op == EVICT && may_evict(x, t, y) ->
     promise("only the dead are evicted", dead[owner(first(x))]);
     remove(x, 0); fence[x]++; ok = true
  :: else
  fi;
  printf("%e of ticket %d (lock or locks %d): applied %d; lock 0: %d %d %d %d, fence %d; lock 1: %d %d %d %d, fence %d\n", op, t, x, ok, line[0], line[1], line[2], line[3], fence[0], line[4], line[5], line[6], line[7], fence[1]);
  i = 0
}

mtype copy_op; byte copy_x, copy_t, copy_y;

active proctype Network() {     /* late copies */
end:
  do
  :: atomic {
       copy_op != 0 ->
       if :: d_step { printf("late: "); apply(copy_op, copy_x, copy_t, copy_y); ok = false } :: true fi;
       d_step { copy_op = 0; copy_x = 0; copy_t = 0; copy_y = 0 }
     }
  od
}

#if FORCES > 0
active proctype Operator() {
end:
  do
  :: atomic { forces < FORCES && first(0) != NOBODY -> forces++; d_step { apply(FORCE, 0, first(0), fence[0]); ok = false } }
  :: atomic { forces < FORCES && first(1) != NOBODY -> forces++; d_step { apply(FORCE, 1, first(1), fence[1]); ok = false } }
  od
}
#endif

/* ---- A client. ---- */

inline send(op, x, t, y) {
  if
  :: c == 0 && late < LATE -> late++; copy_op = op; copy_x = x; copy_t = t; copy_y = y
  :: true
  fi;
  if
  :: d_step { apply(op, x, t, y); answer = (ok -> APPLIED : REFUSED); ok = false };
     if :: true :: answer = LOST fi
  :: answer = LOST
  fi;
  if :: crashes < CRASHES -> crashes++; down[c] = true; forget(); goto end_crashed :: true fi
}

inline forget() {
  t = 0; f0 = 0; f1 = 0; read0 = 0; read1 = 0; head = 0; f = 0; x = 0; entered = false; answer = 0
}

inline acquire_next() {         /* with a new ticket, if there is one */
  forget();
  if
  :: used < tickets(c) && !done && !dead[c] -> used++; t = c * TICKETS + used; goto enter
  :: else -> goto end_idle
  fi
}

#define is_others(x) (first(x) != NOBODY && owner(first(x)) != c)
#define sees_dead(x) (is_others(x) && (dead[owner(first(x))] || down[owner(first(x))] || marks < MARKS) && sees_to_the_first)
#define sees_ghost(x) (first(x) != NOBODY && owner(first(x)) == c && first(x) != t && removes_ghosts)

inline look_at_first(l) {       /* it is a ghost, or its session is marked dead */
  x = l; head = first(l); f = fence[l];
  if
  :: owner(head) == c || dead[owner(head)]
  :: else -> if :: down[owner(head)] :: !down[owner(head)] -> marks++ fi; dead[owner(head)] = true
  fi
}

proctype Client(byte c) {
  byte t;                       /* my ticket, in all lines that I want */
  byte f0, f1;                  /* the fences under which I was seen first; 0: not yet */
  byte read0, read1;            /* what my write is based on */
  byte x, head, f;              /* what a look showed: the lock, a ticket or my place, the fence */
  byte used;
  bit entered, done;
  mtype answer;

  atomic { acquire_next() };
enter:
  atomic {
    if :: dead[c] -> acquire_next() :: else fi;
    if :: is_missing(0) -> f0 = 0 :: else fi;
    if :: is_missing(1) -> f1 = 0 :: else fi;
    send(ENTER, enters, t, 0);
    if
    :: answer == LOST -> goto enter
    :: answer == LOST && give_ups < GIVE_UPS -> give_ups++; done = true; goto leave
    :: answer != LOST -> answer = 0; entered = stands(0, t) || stands(1, t); goto wait
    fi
  };
wait:                           /* a look at one of the rows; what it shows is acted on in a later step */
  atomic {
    if
    :: wants(c, 0) && first(0) == t && f0 == 0 -> f0 = fence[0]; goto wait
    :: wants(c, 1) && first(1) == t && f1 == 0 -> f1 = fence[1]; goto wait
    :: (f0 != 0 || !wants(c, 0)) && (f1 != 0 || !wants(c, 1)) ->        /* holds all, unless it knows that it is dead */
       if :: dead[c] -> done = true; goto leave :: read0 = value[0]; read1 = value[1]; goto write fi
    :: entered && (is_missing(0) || is_missing(1)) -> goto when_a_place_is_missing
    :: !entered && !(wants(c, 0) && full(0)) && !(wants(c, 1) && full(1)) -> goto enter                 /* from the lobby */
    :: wants(c, 0) && (sees_ghost(0) || sees_dead(0)) -> look_at_first(0); goto remove_first
    :: wants(c, 1) && (sees_ghost(1) || sees_dead(1)) -> look_at_first(1); goto remove_first
    :: give_ups < GIVE_UPS -> give_ups++; done = true; goto leave
    fi
  };
remove_first:
  atomic {
    if :: owner(head) == c -> send(RELEASE, x, head, f) :: else -> send(EVICT, x, head, f) fi;
    head = 0; f = 0; x = 0; answer = 0; goto wait
  };
write:                          /* one transaction with the guards of all locks */
  atomic {
    if
    :: (!wants(c, 0) || guard(0, f0)) && (!wants(c, 1) || guard(1, f1)) ->
       promise("a guarded write is based on the last one", (!wants(c, 0) || value[0] == read0) && (!wants(c, 1) || value[1] == read1));
       if :: wants(c, 0) -> value[0] = t :: else fi;
       if :: wants(c, 1) -> value[1] = t :: else fi;
       done = true
    :: else                     /* lost: again, with a new ticket */
    fi;
    read0 = 0; read1 = 0; goto leave
  };
leave:                          /* in any order, until its ticket stands nowhere; the first place under its fence */
  atomic {
    f0 = 0; f1 = 0; answer = 0; entered = false;
    if
    :: stands(0, t) -> x = 0
    :: stands(1, t) -> x = 1
    :: !stands(0, t) && !stands(1, t) -> acquire_next()
    fi;
    if
    :: first(x) == t -> f = fence[x]; head = 0
    :: line[4 * x + 1] == t -> head = 1
    :: line[4 * x + 2] == t -> head = 2
    :: line[4 * x + 3] == t -> head = 3
    fi
  };
  atomic {
    if :: head == 0 -> send(RELEASE, x, t, f) :: else -> send(LEAVE, x, t, head) fi;
    head = 0; f = 0; x = 0; goto leave
  };
end_idle:                       /* removes a ghost, when somebody asks */
  atomic {
    if
    :: sees_ghost(0) && !dead[c] -> x = 0
    :: sees_ghost(1) && !dead[c] -> x = 1
    fi;
    head = first(x); f = fence[x]
  };
  atomic { send(RELEASE, x, head, f); forget(); goto end_idle };
end_crashed:
  false
}

#ifdef WAITS_IN_MEMORY
/* What must not be: one goroutine holds lock 0; another wants both, enters lock 1, and waits in memory to be passed lock 0. */
proctype Process(byte c) {
  byte t = c * TICKETS + 1;
  d_step { append(0, t); i = 0 };
  d_step { first(0) == t -> append(1, t + 1); i = 0 };
  d_step { first(0) = t + 1; fence[0]++ };
  d_step { first(1) == t + 1 -> remove(0, 0); remove(1, 0); fence[0]++; fence[1]++; i = 0 }
}
#endif

init {
  atomic {
    byte x = 0;
    if :: marks = MARKS :: true fi;             /* whether there are such faults at all: */
    if :: forces = FORCES :: true fi;           /* nobody may need one of them in order to go on */
    if :: give_ups = GIVE_UPS :: true fi;
    do :: x < CLIENTS -> run Client(x); x++ :: else -> break od;
#ifdef WAITS_IN_MEMORY
    run Process(CLIENTS)
#endif
  }
}
