/*
 * Shared leases: readers hold together, a writer alone, in the order of the line.
 *
 * A ticket is shared or exclusive, which its mark tells. Where the first ticket is exclusive it holds alone;
 * else all shared tickets before the first exclusive one hold. The fence is raised with every change of
 * the first place, but for one from a shared ticket to a shared one. So while the fence stays the same
 * no writer comes or goes, and a reader's guard names its fence.
 *
 * The row's updates and conditions, as they are to be built, are in README.md, "Shared leases".
 *
 * The same things go wrong as with one lock: see lock.pml.
 */
#ifndef CLIENTS
#define CLIENTS 3               /* processes, each with a session and one ticket of its own */
#endif
#ifndef WRITES_ALONE
#define WRITES_ALONE(c) ((c) == 2)      /* which clients are writers; the others are readers */
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

#define NOBODY 0
#define NOWHERE 4
#define owner(t) ((t) - 1)
#define exclusive(t) ((t) != NOBODY && WRITES_ALONE(owner(t)))
#define is_shared(t) ((t) != NOBODY && !WRITES_ALONE(owner(t)))

/* The lock's row; the line has room for all tickets. */
byte line[4];
byte fence = 1;
byte forced;                    /* fence under which somebody was forced out last */

byte turns;                     /* how often a writer has come to hold: each may have written all that the lock protects */

bit dead[CLIENTS], down[CLIENTS];

/* What happened, for the checks and the bounds only. */
bit ousted[CLIENTS + 1];        /* others took this ticket out of the line since its lease was granted */
bit given[CLIENTS + 1];         /* its own process did, and nobody before */
bit applied[CLIENTS + 1];       /* its guarded write was applied: its token is remembered */
bit entered_late[CLIENTS + 1];  /* a late copy has put it into the line: a ghost */
byte marks, crashes, late, forces, give_ups;

#define stands(t) (line[0] == (t) || line[1] == (t) || line[2] == (t) || line[3] == (t))
#define place(t) (line[0] == (t) -> 0 : (line[1] == (t) -> 1 : (line[2] == (t) -> 2 : (line[3] == (t) -> 3 : NOWHERE))))
#define full (line[3] != NOBODY)
/* All before it, and it, are shared; or it is the first. */
#define holds(t) (line[0] == (t) || (is_shared(t) && is_shared(line[0]) && \
  (line[1] == (t) || (is_shared(line[1]) && (line[2] == (t) || (is_shared(line[2]) && line[3] == (t)))))))
/* The first writer behind readers: it stops the readers behind it. */
#define stops(p) (exclusive(line[p]) && is_shared(line[0]) && (p == 1 || (is_shared(line[1]) && (p == 2 || is_shared(line[2])))))

/* ---- Rules: conditions of the requests, and what they change. ---- */

#ifndef may_enter
#define may_enter(t) (!full && !stands(t))
#endif
/* What a request that removes the first ticket has seen, its condition demands: whether the next one is shared. */
#ifndef is_as_seen
#define is_as_seen(t, f, next_is_shared) (line[0] == (t) && (exclusive(t) -> fence == (f) : is_shared(line[1]) == (next_is_shared)))
#endif
#ifndef may_leave
#define may_leave(t, p) (line[p] == (t))        /* any other place */
#endif
#ifndef raises_fence
#define raises_fence(t, next_is_shared) (exclusive(t) || !(next_is_shared))
#endif
#ifndef eviction_raises_fence
#define eviction_raises_fence(t, next_is_shared) raises_fence(t, next_is_shared)
#endif
#ifndef guard
#define guard(t, f) (exclusive(t) -> (line[0] == (t) && fence == (f)) : (stands(t) && fence == (f)))
#endif

/* ---- Rules: how a client judges and what it does. ---- */

#ifndef is_alive_after
#define is_alive_after (!dead[c])               /* the own session, read after a refusal */
#endif
#ifndef was_forced
#define was_forced(f) (forced >= (f))           /* this ticket, another one of its group, or a later one */
#endif
#ifndef is_released
#define is_released (is_alive_after && !was_forced(f))  /* a leave that was applied: else it may have met a ghost of its own */
#endif
#ifndef in_doubt
#define in_doubt true                           /* after a lost answer: the request may have been applied */
#endif
#ifndef sees_to
#define sees_to(p) true                         /* whoever waits marks and evicts each one in the way that is dead, wherever it stands */
#endif
#ifndef removes_ghosts
#define removes_ghosts true
#endif
/* A refused leave had been applied before: nobody else can have taken the ticket out. */
#define was_left(f) (doubt && !was_forced(f) && is_alive_after && (!exclusive(t) || fence > (f)))

#define promise(name, condition) \
  if :: condition :: else -> printf("BROKEN: "); printf(name); printf("\n"); assert(false) fi

/* ---- The row's side: a request is applied, or refused by its condition. ---- */

bit ok;
byte first, i;

inline remove(p) {              /* REMOVE line[p]: those behind it move up */
  i = p;
  do :: i < 3 -> line[i] = line[i + 1]; i++ :: else -> break od; line[3] = NOBODY
}

/*
 * Of a request: its ticket; the fence that it names; p: the place at which the ticket was seen; and s: whether the
 * next ticket was shared, or of a write what it is based on.
 */
inline apply_ENTER(t, f, p, s) {
  if :: may_enter(t) -> i = 0; do :: line[i] != NOBODY -> i++ :: else -> break od; line[i] = t; ok = true :: else fi
}
inline apply_LEAVE(t, f, p, s) {
  if
  :: (p == 0 && is_as_seen(t, f, s)) || (p > 0 && may_leave(t, p)) ->
     promise("only the own place is left", line[p] == t);
     given[t] = !ousted[t]; remove(p);
     if :: p == 0 && raises_fence(t, s) -> fence++ :: else fi; ok = true
  :: else
  fi
}
inline apply_EVICT(t, f, p, s) {
  if
  :: (p == 0 && is_as_seen(t, f, s)) || (p > 0 && line[p] == t) ->
     promise("only the dead are evicted", dead[owner(t)]);
     ousted[t] = true; remove(p);
     if :: p == 0 && eviction_raises_fence(t, s) -> fence++ :: else fi; ok = true
  :: else
  fi
}
inline apply_FORCE(t, f, p, s) {
  if
  :: (p == 0 && is_as_seen(t, f, s)) || (p > 0 && line[p] == t) ->
     ousted[t] = true; remove(p); forced = fence;
     if :: p == 0 && raises_fence(t, s) -> fence++ :: else fi; ok = true
  :: else
  fi
}
inline apply_WRITE(t, f, p, s) {
  if
  :: applied[t] -> ok = true
  :: else ->
     if
     :: guard(t, f) ->
        promise("no other writer has held since a lease that writes was granted", turns == s);
        applied[t] = true; ok = true
     :: else
     fi
  fi
}

inline begin_request() { ok = false; first = line[0] }
inline end_request(op, t, f, p, s) {
  if :: line[0] != first && exclusive(line[0]) -> turns++ :: else fi;
  printf("%e of ticket %d (fence %d, place %d, %d): applied %d; line %d %d %d %d, fence %d\n", op, t, f, p, s, ok, line[0], line[1], line[2], line[3], fence);
  promise("the bounds of the model are kept", fence < 255);
  first = 0; i = 0
}

mtype = { NONE, ENTER, LEAVE, EVICT, FORCE, WRITE };
mtype = { APPLIED, REFUSED, LOST };

/* ---- The network, and an operator. ---- */

mtype copy_op[2]; byte copy_t[2], copy_f[2], copy_p[2], copy_s[2];

inline apply_copy(op, t, f, p, s) {
  printf("late: "); begin_request();
  if
  :: op == ENTER -> apply_ENTER(t, f, p, s); if :: ok -> entered_late[t] = true :: else fi
  :: op == LEAVE -> apply_LEAVE(t, f, p, s)
  :: op == EVICT -> apply_EVICT(t, f, p, s)
  :: op == WRITE -> apply_WRITE(t, f, p, s)
  fi;
  end_request(op, t, f, p, s); ok = false
}
inline arrive(n) {
  if :: d_step { apply_copy(copy_op[n], copy_t[n], copy_f[n], copy_p[n], copy_s[n]) } :: true fi;  /* or never */
  d_step { copy_op[n] = 0; copy_t[n] = 0; copy_f[n] = 0; copy_p[n] = 0; copy_s[n] = 0 }
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
#define force_at(x) \
  atomic { \
    forces < FORCES && line[x] != NOBODY && holds(line[x]) -> forces++; \
    d_step { \
      t = line[x]; f = fence; s = is_shared(line[x + 1]); \
      begin_request(); apply_FORCE(t, f, x, s); end_request(FORCE, t, f, x, s); ok = false; t = 0; f = 0; s = 0 \
    } \
  }
active proctype Operator() {
  byte t, f, s;
end:
  do :: force_at(0) :: force_at(1) od
}
#endif

/* ---- A client. ---- */

#define send(op, t, f, p, s) \
  if \
  :: c == 0 && late < LATE -> copy_op[late] = op; copy_t[late] = t; copy_f[late] = f; copy_p[late] = p; copy_s[late] = s; late++ \
  :: true \
  fi; \
  if \
  :: d_step { begin_request(); apply_##op(t, f, p, s); end_request(op, t, f, p, s); answer = (ok -> APPLIED : REFUSED); ok = false }; \
     if :: true :: answer = LOST fi \
  :: answer = LOST \
  fi; \
  if :: crashes < CRASHES -> crashes++; down[c] = true; forget(); goto end_crashed :: true fi

inline forget() { t = 0; f = 0; read = 0; head = 0; p = 0; s = 0; doubt = false; entered = false; answer = 0 }

inline over() {                 /* what the checks know of the ticket is not needed any more */
  if :: copy_op[0] == 0 && copy_op[1] == 0 -> applied[t] = false :: else fi;
  given[t] = false; ousted[t] = false; forget(); goto end_idle
}

#define is_others(x) (line[x] != NOBODY && owner(line[x]) != c)
#define sees_dead(x) (is_others(x) && (holds(line[x]) || stops(x)) && (dead[owner(line[x])] || down[owner(line[x])] || marks < MARKS) && sees_to(x))

inline look_at(x) {             /* a ticket, its place, and for the first the fence and whether the next is shared */
  head = line[x]; p = x; f = fence; s = (x == 0 && is_shared(line[1]))
}
inline mark(x) {                /* first marked, then evicted */
  look_at(x);
  if :: dead[owner(head)] || down[owner(head)] :: else -> marks++ fi;
  dead[owner(head)] = true
}
inline told_lost() {
  promise("a lease that is told as lost is not held", !stands(t) || entered_late[t]); over()
}

proctype Client(byte c) {
  byte t, f;                    /* my ticket, and the fence of my lease */
  byte read;                    /* what my guarded write is based on */
  byte head, p, s;              /* what a look has shown */
  bit doubt, entered;
  mtype answer;

  t = c + 1;
enter:
  atomic {
    if :: dead[c] -> over() :: !dead[c] || !doubt fi;
    send(ENTER, t, 0, 0, 0);
    if
    :: answer == LOST -> doubt = in_doubt; if :: goto enter :: give_ups < GIVE_UPS -> give_ups++; goto give_up fi
    :: answer != LOST -> answer = 0; doubt = false; entered = stands(t); goto wait
    fi
  };
wait:                           /* a look at the row; what it shows is acted on in a later step */
  atomic {
    if
    :: stands(t) && holds(t) -> f = fence; given[t] = false; ousted[t] = false; read = turns; doubt = false; answer = 0;
       if :: dead[c] -> over() :: goto write fi
    :: entered && !stands(t) -> over()         /* evicted, or forced out */
    :: !entered && !stands(t) -> goto enter
    :: !(stands(t) && holds(t)) && sees_dead(0) -> mark(0); goto evict
    :: !(stands(t) && holds(t)) && sees_dead(1) -> mark(1); goto evict
    :: !(stands(t) && holds(t)) && sees_dead(2) -> mark(2); goto evict
    :: give_ups < GIVE_UPS -> give_ups++; goto give_up
    fi
  };
evict:
  atomic { send(EVICT, head, f, p, s); head = 0; p = 0; s = 0; f = 0; answer = 0; goto wait };

write:
  atomic {
    if :: goto leave :: true fi;
    send(WRITE, t, f, 0, read);
    if
    :: answer == APPLIED -> answer = 0; goto leave
    :: answer == REFUSED -> told_lost()
    :: answer == LOST -> answer = 0; if :: goto write :: goto leave fi
    fi
  };
leave:                          /* release: reads where it stands, and what is next to it */
  atomic {
    answer = 0; read = 0;
    if
    :: stands(t) -> p = place(t); s = (p == 0 && is_shared(line[1]))
    :: !stands(t) -> p = 0; s = 0                               /* sent all the same: its refusal is judged */
    fi
  };
  atomic {
    send(LEAVE, t, f, p, s);
    if
    :: (answer == APPLIED && is_released) || (answer == REFUSED && !stands(t) && was_left(f)) ->
       promise("what is told as released was released", given[t]);
       promise("a ticket that is told as released is gone", !stands(t) || entered_late[t]); over()
    :: (answer == APPLIED && !is_released) || (answer == REFUSED && !stands(t) && !was_left(f)) ->
       promise("a release that was applied is not told as lost", !given[t] || dead[c] || forced >= f); told_lost()
    :: answer == REFUSED && stands(t) ->        /* it has moved up, or another one stands next to it: a copy may be applied yet */
       doubt = in_doubt; goto leave
    :: answer == LOST -> doubt = in_doubt; goto leave
    fi
  };
give_up:                        /* reads, consistently, where its ticket is */
  atomic {
    answer = 0;
    if
    :: !stands(t) -> over()
    :: stands(t) -> f = fence; p = place(t); s = (p == 0 && is_shared(line[1]))
    fi
  };
  atomic {
    send(LEAVE, t, f, p, s);
    if :: answer == APPLIED || answer == LOST -> over() :: answer != APPLIED -> goto give_up fi
  };
end_idle:                       /* removes its ticket, a ghost, when somebody asks */
  atomic { stands(c + 1) && !dead[c] && removes_ghosts -> look_at(place(c + 1)) };
  atomic { send(LEAVE, head, f, p, s); forget(); goto end_idle };
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
