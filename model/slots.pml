mtype:phase = { idle, asking, running };
mtype:call = { none, claim, refresh, complete };
mtype:answer = { pending, granted, renewed, lost, refused };

#include "trust.pml"

#define SLOTS 3
#define FLAWLESS
#ifdef RETRY
#define MAX_ATTEMPTS 2
#else
#define MAX_ATTEMPTS 1
#endif
#ifndef LOST
#define LOST 1
#endif
#ifndef STRAYS
#define STRAYS 1
#endif
#ifndef CRASHES
#define CRASHES 1
#endif

#define NOBODY 0
#define STRAY 4
#define DEAD 5

/* ---- the record of the task */
byte mark;
byte runSlot, attempt, token, left;
#define CURRENT 2
#define OLD 1

/* ---- the run log */
mtype:became = { undecided, started, decided };
mtype:became became[SLOTS + 1];

byte due;

/* ---- nodes */
mtype:phase phase[4];
bool isOwed[4];
byte claimed[4], after[4];
byte got[4];

byte begun[SLOTS + 1];

mtype:call strayCall;
byte strayToken, strayClaimed, strayAfter, strayFence;

byte losses = LOST;
byte strays = STRAYS;
byte crashes = CRASHES;

hidden mtype:answer outcome;
hidden byte s;
hidden int key1, key2;
hidden byte spare;

#define isUnderWay (runSlot > 0 && left > 0)
#define hasLapsed (runSlot > 0 && left == 0)
#define believes(n) (phase[n] == running && trust[n] > 0)
#define mayStray(n) (isUnanswered(n) && strays > 0)

inline dropToken(n) {
  if
  :: strayCall != none && strayToken == n ->
      strayToken = STRAY;
      if :: token == n -> token = STRAY :: else fi
  :: else ->
      if :: token == n -> token = DEAD :: else fi
  fi;
  isOwed[n] = false
}

inline rest(n) {
  noCall(n);
  claimed[n] = 0;
  after[n] = 0;
  got[n] = 0;
  phase[n] = idle;
  trust[n] = 0
}

inline forget(n) {
  rest(n);
  dropToken(n)
}

inline decide(slot, what) {
  assert(became[slot] == undecided);
  assert(slot <= due);
  became[slot] = what
}

inline moveMark(slot, from, what) {
  s = from + 1;
  do
  :: s < slot -> decide(s, decided); s++
  :: else -> break
  od;
  s = 0;
  decide(slot, what);
  mark = slot
}

inline outdate(f) {
  if :: f == CURRENT -> f = OLD :: else fi
}

inline endRun() {
  outdate(got[1]); outdate(got[2]); outdate(got[3]); outdate(strayFence);
  became[runSlot] = decided;
  begun[runSlot] = MAX_ATTEMPTS;
  runSlot = 0;
  attempt = 0;
  token = NOBODY;
  left = 0
}

inline startRun(slot, number, by) {
  assert(!believes(1) && !believes(2) && !believes(3));
  runSlot = slot;
  attempt = number;
  token = by;
  outdate(got[1]); outdate(got[2]); outdate(got[3]); outdate(strayFence);
  left = TTL;
  outcome = granted
}

inline storeClaim(by, slot, from) {
  outcome = pending;
  if
  :: isUnderWay && token == by -> left = TTL; outcome = granted
  :: hasLapsed && attempt < MAX_ATTEMPTS -> startRun(runSlot, attempt + 1, by)
  :: hasLapsed && attempt >= MAX_ATTEMPTS -> assert(attempt == MAX_ATTEMPTS); endRun()
  :: else
  fi;
  if
  :: outcome != pending
  :: outcome == pending && (slot > due || slot <= mark || from != mark) -> outcome = refused
  :: else ->
      if
      :: isUnderWay ->
#ifndef QUEUE
        moveMark(slot, from, decided);
#endif
        outcome = refused
      :: else ->
        moveMark(slot, from, started);
        startRun(slot, 1, by)
      fi
  fi
}

inline storeRefresh(by) {
  if
  :: isUnderWay && token == by -> left = TTL; outcome = renewed
  :: else -> outcome = lost
  fi
}

inline storeComplete(with) {
  if
  :: runSlot > 0 && with == CURRENT -> endRun()
  :: else
  fi;
  outcome = refused
}

inline apply(what, by, slot, from, with) {
  if
  :: what == claim -> storeClaim(by, slot, from)
  :: what == refresh -> storeRefresh(by)
  :: what == complete -> storeComplete(with)
  fi
}

inline deliver(n) {
  apply(call[n], n, claimed[n], after[n], got[n]);
  if
  :: outcome == refused -> forget(n)
  :: else ->
      if :: outcome == granted -> got[n] = CURRENT :: else fi;
      claimed[n] = 0;
      after[n] = 0;
      answerWith(n, outcome, left);
      settle(n)
  fi;
  outcome = pending
}

inline tidy(n) {
#ifdef FLAWLESS
  if
  :: call[n] == claim && (after[n] != mark || claimed[n] <= mark) ->
      claimed[n] = 0;
      after[n] = 0;
      age[n] = 0
  :: phase[n] == running && trust[n] == 0 && got[n] == OLD -> forget(n)
  :: else
  fi
#else
  skip
#endif
}
inline tidyStray() {
#ifdef FLAWLESS
  if
  :: strayCall == claim && (strayAfter != mark || strayClaimed <= mark) -> strayClaimed = 0; strayAfter = 0
  :: else
  fi;
  if
  :: strayCall == complete && strayFence == OLD -> dropStray()
  :: strayCall == refresh && (token != strayToken || left == 0) -> dropStray()
  :: else
  fi
#else
  skip
#endif
}

inline settle(n) {
  if
  :: answer[n] == granted && offer[n] == 0 -> rest(n); isOwed[n] = true
  :: answer[n] == renewed && offer[n] <= trust[n] -> noCall(n)
  :: else
  fi
}

inline dropStray() {
  strayCall = none;
  strayToken = NOBODY;
  strayClaimed = 0;
  strayAfter = 0;
  strayFence = 0;
  if :: token == STRAY -> token = DEAD :: else fi
}

#define keyOf(n) ((((((((((((phase[n] * 2 + isOwed[n]) * 8 + call[n]) * 16 + answer[n]) * 4) + age[n]) * 4 + offer[n]) * 4) + trust[n]) * 4 + claimed[n]) * 4) + after[n]) * 4 + got[n])
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
inline order(a, b) {
  key1 = keyOf(a);
  key2 = keyOf(b);
  if
  :: key1 > key2 || (key1 == key2 && (token == b || (token != a && strayToken == b))) ->
      swap(phase[a], phase[b]);
      swap(isOwed[a], isOwed[b]);
      swap(call[a], call[b]);
      swap(answer[a], answer[b]);
      swap(age[a], age[b]);
      swap(offer[a], offer[b]);
      swap(trust[a], trust[b]);
      swap(claimed[a], claimed[b]);
      swap(after[a], after[b]);
      swap(got[a], got[b]);
      rename(token, a, b);
      rename(strayToken, a, b)
  :: else
  fi;
  spare = 0;
  key1 = 0;
  key2 = 0
}

inline tidyAll() {
  tidy(1);
  tidy(2);
  tidy(3);
  tidyStray();
#ifdef SORT
  order(1, 2);
  order(2, 3);
  order(1, 2)
#else
  skip
#endif
}

inline leaveBehind(n) {
  strays--;
  strayCall = call[n];
  strayToken = n;
  strayClaimed = claimed[n];
  strayAfter = after[n];
  if :: call[n] == complete -> strayFence = got[n] :: else fi
}

inline ask(n, slot) {
  send(n, claim);
  phase[n] = asking;
  claimed[n] = slot;
  after[n] = mark
}

proctype Node(byte me) {
  do
  :: d_step { phase[me] == idle -> ask(me, mark); tidyAll() }
  :: d_step { phase[me] == idle && mark < due -> ask(me, due); tidyAll() }
  :: d_step { phase[me] == idle && due < SLOTS -> ask(me, due + 1); tidyAll() }
  :: d_step { answer[me] == granted ->
       phase[me] = running; confirm(me);
       begun[runSlot]++;
       assert(begun[runSlot] <= MAX_ATTEMPTS);
       isOwed[me] = false;
      assert(believes(1) + believes(2) + believes(3) <= 1); tidyAll() }
  :: d_step { believes(me) && call[me] == none -> send(me, refresh); tidyAll() }
  :: d_step { phase[me] == running && answer[me] == renewed && trust[me] > 0 -> confirm(me); tidyAll() }
  :: d_step { phase[me] == running && answer[me] == lost -> trust[me] = 0; noCall(me); tidyAll() }
  :: d_step { phase[me] == running && call[me] != complete && (!isUnanswered(me) || trust[me] == 0) -> send(me, complete); trust[me] = 0; tidyAll() }
  :: d_step { phase[me] == running && call[me] == refresh && mayStray(me) -> leaveBehind(me); send(me, complete); tidyAll() }

  /* ---- faults */
  :: d_step { phase[me] == asking && losses > 0 -> losses--; rest(me); isOwed[me] = true; tidyAll() }
  :: d_step { phase[me] == asking && mayStray(me) -> leaveBehind(me); rest(me); isOwed[me] = true; tidyAll() }
  :: d_step { phase[me] == running && call[me] == refresh && mayStray(me) -> leaveBehind(me); noCall(me); tidyAll() }
  :: d_step { phase[me] == running && call[me] == complete && losses > 0 -> losses--; noCall(me); tidyAll() }
  :: d_step { phase[me] == running && call[me] == complete && mayStray(me) -> leaveBehind(me); noCall(me); tidyAll() }
  :: d_step { (phase[me] != idle || isOwed[me]) && crashes > 0 -> crashes--; forget(me); tidyAll() }
  :: d_step { crashes > 0 && mayStray(me) -> crashes--; leaveBehind(me); forget(me); tidyAll() }

  /* ---- line */
  :: d_step { isUnanswered(me) -> deliver(me); tidyAll() }
  :: d_step { mayStray(me) -> leaveBehind(me); deliver(me); tidyAll() }
  od
}

proctype Network() {
  do
  :: d_step { strayCall != none ->
      apply(strayCall, strayToken, strayClaimed, strayAfter, strayFence);
      outcome = pending;
      dropStray();
      tidyAll() }
  od
}

proctype Schedule() {
  do
  :: due < SLOTS -> due++
  od
}

proctype Clock() {
  do
  :: d_step { 
      if
      :: left > 0 -> left--
      :: else fi;
      tickOf(1); tickOf(2); tickOf(3);
      settle(1); settle(2); settle(3); tidyAll() }
  od
}

init {
  atomic {
    strayCall = none; outcome = pending;
    phase[1] = idle; phase[2] = idle; phase[3] = idle;
    became[1] = undecided; became[2] = undecided; became[3] = undecided;
    noCall(1); noCall(2); noCall(3);
    run Node(1); run Node(2); run Node(3); run Network(); run Clock(); run Schedule()
  }
}
