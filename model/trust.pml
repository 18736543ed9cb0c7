/*
 * What a node may believe, and for how long: the rules of src/core/hold.ts and src/core/deadline.ts, which serve leases
 * and runs alike. Included by lease.pml and slots.pml, which first define their calls and answers.
 *
 * Time comes in ticks of the store's clock, and only as what is left of it, so that runs of any length are covered. A
 * tick may come between any two steps. A node that takes no step while the clock ticks is paused, blocked or behind a
 * slow network: for as long as it likes, any number of times, all nodes at once.
 *
 *   deadline = just before the answered request was sent + what the answer says remains - margin      (Deadline.confirm)
 *
 *   age     ticks since a call was sent that the store has not answered yet
 *   offer   what the answer lets the node trust if it takes it in now; runs down while the answer is under way
 *   trust   for how long the node will go on believing; 0: not at all
 *
 * A node's clock falls behind the store's by DRIFT in the time of one lease. The worst is to be behind from the start, so
 * all three are counted that way: they say how long a slow node believes in truth, not by its own clock. So with
 * DRIFT == MARGIN they are what remains, less the age.
 */

#ifndef TTL
#define TTL 3
#endif
#define DRIFT 1
#ifdef NO_MARGIN
#define MARGIN 0
#else
#define MARGIN 1
#endif

/* How many faults there may be. Pauses and slow answers are not counted: there may be any number of them. */
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef LOST
#define LOST 1
#endif
#ifndef STRAYS
#define STRAYS 1
#endif
byte crashes = CRASHES;
byte losses = LOST;
byte strays = STRAYS;

/*
 * Nobody gets anywhere on a network that is always slower than the ttl. To show that somebody does get somewhere, ticks
 * come only while no call is in the air, but for one pause that is longer than the ttl.
 */
#ifdef LIVENESS
byte pauses = TTL + 1;
#define mayTick (pauses > 0 || !isInAir)
#else
#define mayTick true
#endif

/*
 * A token is minted for each acquisition or claim and never used again. So all that matters of one is whose it is: the
 * present one of node 1, 2 or 3; one that only a stray call still carries; or one that nobody has any more.
 */
#define NOBODY 0
#define STRAY 4
#define DEAD 5

/* Per node, from 1 to 3. It has one call in the air at a time. */
mtype:call call[4];
mtype:answer answer[4];
byte age[4];
byte offer[4];
byte trust[4];

byte spare;
int key1, key2;

/* A property, and what a trail ends with where it does not hold. */
#define demand(property, ifNot) if :: property :: else -> printf(ifNot); assert(false) fi
#define max(a, b) (a > b -> a : b)
#define isInAir (call[1] != none || call[2] != none || call[3] != none)
#define isUnanswered(n) (call[n] != none && answer[n] == pending)
#define mayStray(n) (isUnanswered(n) && strays > 0)

inline noCall(n) {
  call[n] = none;
  answer[n] = pending;
  age[n] = 0;
  offer[n] = 0
}

inline send(n, what) {
  noCall(n);
  call[n] = what
}

inline answerWith(n, what, remaining) {
  answer[n] = what;
#ifdef DEADLINE_FROM_ANSWER
  age[n] = 0;
#endif
  offer[n] = (remaining + DRIFT > age[n] + MARGIN -> remaining + DRIFT - age[n] - MARGIN : 0);
  age[n] = 0
}

/* The age of a stray call, whose answer may come to a node that still believes. */
byte strayAge;

/* The answer of a renewal that was given up counts as well, by the same rule: Hold.#take. */
inline answerLate(n, remaining) {
  if
  :: remaining + DRIFT > strayAge + MARGIN -> trust[n] = max(trust[n], remaining + DRIFT - strayAge - MARGIN)
  :: else
  fi
}

/* The node takes the answer in. Its deadline moves only here, and never back. */
inline confirm(n) {
  trust[n] = max(trust[n], offer[n]);
  noCall(n)
}

/* An answer after a ttl is worth nothing, so age is counted no further. */
inline tickOf(n) {
  if :: trust[n] > 0 -> trust[n]-- :: else fi;
#ifndef DEADLINE_FROM_ANSWER
  if :: offer[n] > 0 -> offer[n]-- :: else fi;
#endif
  if :: isUnanswered(n) && age[n] < TTL -> age[n]++ :: else fi
}

inline tickOfAll() {
  printf("a tick\n");
  if :: strayCall == refresh && strayAge < TTL -> strayAge++ :: else fi;
#ifdef LIVENESS
  if :: isInAir -> pauses-- :: else fi;
#endif
  tickOf(1);
  tickOf(2);
  tickOf(3)
}

inline swap(x, y) {
  spare = x;
  x = y;
  y = spare
}

inline rename(x, a, b) {
  if
  :: x == a -> x = b
  :: x == b -> x = a
  :: else
  fi
}
