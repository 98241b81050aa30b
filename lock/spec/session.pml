/*
 * A session: renewed by its process, watched by others, marked dead once and for all.
 *
 * A renewal writes a beat, and the time at which the session ends unless it is renewed. Each attempt
 * has a beat of its own, larger than all before, and is applied only to a smaller one: a late copy
 * never sets the beat back. The process counts its lease from the moment at which it sent the
 * attempt that was answered. Others mark the session as dead on either evidence, and each time the
 * condition checks again what was seen:
 *
 *   observed  the same beat for a whole lease, on the observer's own clock
 *   recorded  the end in the row lies back
 *
 * So a session that is marked has ended before by its own clock.
 *
 * Time is one clock. What clocks that differ need is a margin (clocks that run at different rates)
 * and a skew (recorded times), and not here.
 */
#ifndef LEASE
#define LEASE 3
#endif
#ifndef END
#define END 8                   /* of time */
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 4
#endif
#ifndef LATE
#define LATE 2                  /* late copies of renewals, at most 2 */
#endif

byte now;

/* The session's row, which was created at time 0. */
byte beat;
byte expires = LEASE;
bit dead;

byte until = LEASE;             /* the end of the lease, as its process counts */
byte late;
byte copy_beat[2], copy_expires[2];     /* renewals that arrive late */

/* ---- Rules. ---- */

#ifndef may_renew
#define may_renew(b) (beat < (b) && !dead)
#endif
#ifndef is_silent
#define is_silent(b) (beat == (b))      /* observed */
#endif
#ifndef has_ended
#define has_ended (expires < now)       /* recorded */
#endif
#ifndef next_beat
#define next_beat b + 1                 /* each attempt has a beat of its own */
#endif
#ifndef counted_from
#define counted_from start              /* the attempt that was answered, and not its answer */
#endif

#define promise(name, condition) \
  if :: condition :: else -> printf("BROKEN: "); printf(name); printf("\n"); assert(false) fi

inline arrive(k) {
  if
  :: may_renew(copy_beat[k]) -> beat = copy_beat[k]; expires = copy_expires[k]; printf("late renewal: beat %d, expires %d\n", beat, expires)
  :: else
  fi;
  copy_beat[k] = 0; copy_expires[k] = 0
}

active proctype Network() {
  do
  :: atomic { copy_beat[0] != 0 -> arrive(0) }
  :: atomic { copy_beat[1] != 0 -> arrive(1) }
  od
}

active proctype Clock() {
  do :: now < END -> now++ od
}

active proctype Process() {
  byte b, start, attempts;      /* the attempt under way: its beat, and when it was sent */
  byte answered;                /* the last beat that is known to be in the row */
  do
  :: attempts < ATTEMPTS && now < until ->
     atomic {
       attempts++; start = now;
       b = next_beat;
       if :: late < LATE -> copy_beat[late] = b; copy_expires[late] = start + LEASE; late++ :: true fi
     };
     /* the request is on its way: time passes */
     if
     :: atomic {                /* applied, or refused since the row has this beat: answered */
          if :: may_renew(b) -> beat = b; expires = start + LEASE; printf("renewal at %d: beat %d\n", start, beat) :: else fi;
          if
          :: beat == b && !dead -> answered = b;
             if :: now < until -> until = counted_from + LEASE :: else fi       /* an end that has come stays */
          :: else -> break      /* marked dead */
          fi
        }
     :: atomic { may_renew(b) -> beat = b; expires = start + LEASE; printf("renewal at %d: beat %d, answer lost\n", start, beat) }
     :: true                    /* not applied, or late */
     fi
  :: else -> break
  od
}

inline mark() {
  dead = true; printf("marked at %d: beat %d, expires %d\n", now, beat, expires);
  promise("a session that is marked dead has ended by its own clock", until <= now)
}

active proctype Observer() {
  byte seen, since;
  do
  :: atomic { seen = beat; since = now }        /* sees another beat than before, and counts anew */
  :: atomic {
       now >= since + LEASE;                    /* sees none: its looks may be out of date, and this may come late */
       if :: is_silent(seen) && !dead -> mark() :: else fi
     }
  :: atomic { has_ended && !dead -> mark() }
  od
}
