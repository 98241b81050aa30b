/*
 * The life of a lock's row: it is created by an enter, deleted by DynamoDB's time to live when
 * nobody has used it for the retention, and created again.
 *
 * A new row's fence begins at the time of the attempt that creates it. So fences grow from one
 * life of the row to the next, as long as no request arrives later than the retention after it
 * was made: a request dies with its signature. Every change puts the deletion off, and so does a
 * living process while its ticket is first, so a row in use is never deleted.
 *
 * Time is one clock. A fence that begins at time s is 10 s, and changes less than 10 times in a
 * unit of time.
 */
#ifndef CLIENTS
#define CLIENTS 3
#endif
#ifndef RETENTION
#define RETENTION 3
#endif
#ifndef SIGNATURE
#define SIGNATURE 1             /* how long a request can be on its way */
#endif
#ifndef END
#define END 9                   /* of time */
#endif
#ifndef LATE
#define LATE 1                  /* requests of client 1 that arrive late, at most 1 */
#endif
#define NOBODY 0

byte now = 1;

/* The row. Without one, fence and ttl mean nothing. */
bit exists;
byte line[3];
byte fence, ttl;

byte largest;                   /* the largest fence under which anybody has been first */
bit alive[CLIENTS + 1];         /* the client's process runs, and wants or holds the lock */
byte late;

/* ---- Rules. ---- */

#ifndef is_valid
#define is_valid(sent) (now <= (sent) + SIGNATURE)      /* a request dies with its signature */
#endif
#ifndef seed
#define seed(begun) (10 * now)                          /* of a new row: the time of the attempt, not of the acquisition */
#endif
#ifndef puts_off
#define puts_off true                                   /* the deletion, by the session of whoever is first */
#endif

#define stands(t) (line[0] == (t) || line[1] == (t) || line[2] == (t))
#define promise(name, condition) \
  if :: condition :: else -> printf("BROKEN: "); printf(name); printf("\n"); assert(false) fi

inline became_first() {
  if
  :: line[0] != NOBODY -> promise("fences increase strictly", fence > largest); largest = fence
  :: else
  fi
}

inline apply_enter(t, seed) {
  if
  :: !exists -> exists = true; line[0] = t; fence = seed; ttl = now + RETENTION; became_first()
  :: exists && !stands(t) && line[2] == NOBODY -> ttl = now + RETENTION;
     if
     :: line[0] == NOBODY -> line[0] = t; became_first()
     :: line[0] != NOBODY && line[1] == NOBODY -> line[1] = t
     :: else -> line[2] = t
     fi
  :: else
  fi;
  printf("ticket %d enters at %d with seed %d: line %d %d %d, fence %d\n", t, now, seed, line[0], line[1], line[2], fence)
}

inline apply_leave_first(t, f) {        /* a release, or an eviction */
  if
  :: exists && line[0] == t && fence == f ->
     line[0] = line[1]; line[1] = line[2]; line[2] = NOBODY; fence++; ttl = now + RETENTION; became_first()
  :: else
  fi;
  printf("ticket %d leaves at %d: line %d %d %d, fence %d\n", t, now, line[0], line[1], line[2], fence)
}

byte copy_t, copy_seed, copy_sent;

active proctype Network() {
  do
  :: atomic {
       copy_t != 0 ->
       if :: is_valid(copy_sent) -> d_step { apply_enter(copy_t, copy_seed) } :: else fi;
       copy_t = 0; copy_seed = 0; copy_sent = 0
     }
  od
}

#define is_alive(t) ((t) != NOBODY && alive[t])

active proctype Clock() {
  do
  :: atomic {                   /* a dead ticket is evicted by those behind it in less than a unit of time */
       now < END && !(line[0] != NOBODY && !alive[line[0]] && (is_alive(line[1]) || is_alive(line[2]))) -> now++;
       if :: exists && is_alive(line[0]) && puts_off -> ttl = now + RETENTION :: else fi
     }
  od
}

active proctype TimeToLive() {
  do
  :: atomic {
       exists && now > ttl ->
       promise("a row in use is not deleted", !is_alive(line[0]) && !is_alive(line[1]) && !is_alive(line[2]));
       exists = false; line[0] = NOBODY; line[1] = NOBODY; line[2] = NOBODY; fence = 0; ttl = 0; printf("deleted at %d\n", now)
     }
  od
}

proctype Client(byte t) {
  byte begun, f;
  atomic { now < END -> begun = now; alive[t] = true };
  do
  :: atomic {                   /* an attempt: applied, lost, or late */
       if :: t == 1 && late < LATE -> late++; copy_t = t; copy_seed = seed(begun); copy_sent = now :: true fi;
       if :: d_step { apply_enter(t, seed(begun)) }; break :: true fi
     }
  :: atomic { alive[t] = false; goto gone }                     /* gives up, or crashes */
  od;
  do
  :: atomic { exists && line[0] == t -> f = fence; break }
  :: atomic { !exists || !stands(t) -> goto gone }              /* evicted, or deleted while it was taken for dead */
  :: atomic { exists && line[0] != NOBODY && line[0] != t && !alive[line[0]] -> d_step { apply_leave_first(line[0], fence) } }
  :: atomic { alive[t] = false; goto gone }
  od;
  if
  :: d_step { apply_leave_first(t, f); alive[t] = false }
  :: atomic { alive[t] = false }                                /* crashes as the holder */
  fi;
gone:
  atomic { begun = 0; f = 0; alive[t] = false }
}

init {
  atomic { byte t = 1; do :: t <= CLIENTS -> run Client(t); t++ :: else -> break od }
}
