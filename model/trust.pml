/*
 * What a node may believe, and for how long. Included by lease.pml and slots.pml, as Hold and Deadline
 * (src/core/hold.ts, src/core/deadline.ts) serve leases and runs alike.
 *
 * Time comes in ticks, and only as what is left of it: no state holds an absolute time, so runs of any length are
 * covered. A tick may come between any two steps. A node that takes no step while the clock ticks is paused, slow or
 * blocked: for as long as it likes, any number of times, all of them at once.
 *
 * A deadline is "just before the request was sent + what the answer says remains - margin". Here:
 *
 *   age     ticks since the call was sent, while the store has not answered it
 *   offer   what the answer would let the node trust if it came in now; counts down while it is under way
 *   trust   what the node trusts its lease or run for; 0: not at all
 *
 * A node's clock may fall behind the store's by DRIFT within one lease. The worst of that is to be behind from the
 * start, so that is what `trust` counts: how long the node will in truth go on believing.
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

/* Nodes are 1, 2 and 3. */
byte age[4];
byte offer[4];
byte trust[4];

/* The call that a node has in the air, one at a time, and what the store has answered. */
mtype:call call[4];
mtype:answer answer[4];

#define isUnanswered(n) (call[n] != none && answer[n] == pending)
#define max(a, b) (a > b -> a : b)

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

/* The store answers. `remaining` is its own, at this moment. */
inline answerWith(n, what, remaining) {
  answer[n] = what;
#ifdef DEADLINE_FROM_ANSWER
  age[n] = 0;
#endif
  offer[n] = (remaining + DRIFT > age[n] + MARGIN -> remaining + DRIFT - age[n] - MARGIN : 0);
  age[n] = 0
}

/* The node takes the answer in: its deadline never moves back. */
inline confirm(n) {
  trust[n] = max(trust[n], offer[n]);
  noCall(n)
}

inline tickOf(n) {
  if :: trust[n] > 0 -> trust[n]-- :: else fi;
#ifndef DEADLINE_FROM_ANSWER
  if :: offer[n] > 0 -> offer[n]-- :: else fi;
#endif
  /* Past the ttl, more age changes nothing: no answer is worth anything then. */
  if :: isUnanswered(n) && age[n] < TTL -> age[n]++ :: else fi
}
