mtype:phase = { idle, waiting, asking, holding, releasing };
mtype:call = { none, acquire, refresh, release };
mtype:answer = { pending, granted, held, spent, renewed, lost, released };

#include "trust.pml"

#define REASKED_TTL 2
#ifndef LOST
#define LOST 1
#endif
#ifndef STRAYS
#define STRAYS 1
#endif
#ifndef CRASHES
#define CRASHES 1
#endif

/* ---- tokens */
#define NOBODY 0
#define STRAY 4
#define DEAD 5

/* ---- the store's record of the key */
byte token, left, spentToken;

/* ---- the nodes */
mtype:phase phase[4];
bool isReasked[4];

/* ---- a call that */
mtype:call strayCall;
byte strayToken;

/* ---- faults that may still happen */
byte losses = LOST;
byte strays = STRAYS;
byte crashes = CRASHES;

#ifdef WRITES
byte fence, seen, lateWrite;
byte got[4];
#endif
#ifdef EXPIRY_AFTER_GRANT
bool isEndless;
#endif

hidden mtype:answer outcome;
hidden byte rank;
hidden int key1, key2;
hidden byte spare;

#define isHeld (token != NOBODY && left > 0)
#define believes(n) (phase[n] == holding && trust[n] > 0)
#define isHeldByNobody (isHeld && (token == STRAY || token == DEAD))
#define mayStray(n) (isUnanswered(n) && strays > 0)
#ifdef GRANTS
#define grantsLeft (fence < GRANTS)
#else
#define grantsLeft true
#endif

inline dropToken(n) {
  if
  :: strayCall != none && strayToken == n ->
      strayToken = STRAY;
      if :: token == n -> token = STRAY :: else fi;
      if :: spentToken == n -> spentToken = STRAY :: else fi
  :: else ->
      if :: token == n -> token = DEAD :: else fi;
      if :: spentToken == n -> spentToken = NOBODY :: else fi
  fi;
  forgetLapsed();
  isReasked[n] = false
}

inline forgetLapsed() {
  if :: token == DEAD && left == 0 -> token = NOBODY :: else fi
}

inline rest(n) {
  noCall(n);
  dropToken(n);
#ifdef WRITES
  got[n] = 0;
  renumber();
#endif
  phase[n] = idle;
  trust[n] = 0
}

inline giveBack(n) {
  send(n, release);
#ifdef WRITES
  got[n] = 0;
  renumber();
#endif
  phase[n] = releasing;
  trust[n] = 0
}

#ifdef WRITES
#define isRanked(r) (r == seen || r == lateWrite || r == got[1] || r == got[2] || r == got[3])
#define isBelowAll(f) (f < fence && (lateWrite == 0 || f < lateWrite) && (got[1] == 0 || f < got[1]) && (got[2] == 0 || f < got[2]) && (got[3] == 0 || f < got[3]))
inline lower(f) {
  if :: f > rank -> f-- :: else fi
}
inline renumber() {
#ifndef GRANTS
  if :: isBelowAll(seen) -> seen = 0 :: else fi;
  rank = 1;
  do
  :: rank >= fence -> break
  :: rank < fence && isRanked(rank) -> rank++
  :: else ->
      fence--;
      lower(seen);
      lower(lateWrite);
      lower(got[1]);
      lower(got[2]);
      lower(got[3])
  od;
  rank = 0
#else
  skip
#endif
}
#endif

inline storeAcquire(by, ttl) {
  if
  :: spentToken == by -> outcome = spent
  :: spentToken != by && isHeld && token == by -> left = max(left, ttl); outcome = granted
  :: spentToken != by && isHeld && token != by -> outcome = held
  :: spentToken != by && !isHeld ->
      assert(!believes(1) && !believes(2) && !believes(3));
      token = by;
      left = ttl;
#ifdef WRITES
      fence++;
      renumber();
#endif
#ifdef EXPIRY_AFTER_GRANT
      isEndless = true;
#endif
      outcome = granted
  fi
}

inline storeRefresh(by) {
  if
  :: isHeld && token == by -> left = max(left, TTL); outcome = renewed
#ifdef REFRESH_UPSERT
  :: !(isHeld && token == by) -> token = by; left = TTL; outcome = renewed
#else
  :: else -> outcome = lost
#endif
  fi
#ifdef EXPIRY_AFTER_GRANT
  ; isEndless = false
#endif
}

inline storeRelease(by) {
  if
  :: spentToken == by -> outcome = released
#ifdef RELEASE_WITHOUT_TOKEN
  :: spentToken != by -> 
#else
  :: spentToken != by && token == by ->
#endif
      outcome = (isHeld -> released : lost);
      token = NOBODY;
      left = 0;
      spentToken = by
  :: else -> outcome = lost
  fi
}

inline apply(what, by, ttl) {
  if
  :: what == acquire -> storeAcquire(by, ttl)
  :: what == refresh -> storeRefresh(by)
  :: what == release -> storeRelease(by)
  fi
}

inline deliver(n) {
  apply(call[n], n, (isReasked[n] -> REASKED_TTL : TTL));
  if
  :: outcome == held ->
      noCall(n);
      if
      :: isReasked[n] || strayToken == n -> phase[n] = waiting
      :: else -> rest(n)
      fi
  :: outcome == spent || phase[n] == releasing -> rest(n)
  :: else ->
#ifdef WRITES
      if :: outcome == granted -> got[n] = fence :: else fi;
#endif
#ifdef DEADLINE_PLUS_TTL
      answerWith(n, outcome, TTL);
#else
      answerWith(n, outcome, left);
#endif
      settle(n)
  fi;
  outcome = pending
}

inline settle(n) {
#ifdef WRITES
  if :: phase[n] == holding && trust[n] == 0 && got[n] > 0 -> got[n] = 0; renumber() :: else fi;
#endif
  if
  :: answer[n] == granted && offer[n] == 0 -> giveBack(n)
  :: answer[n] == renewed && offer[n] <= trust[n] -> noCall(n)
  :: else
  fi;
  if :: phase[n] == holding && trust[n] == 0 && !isUnanswered(n) -> giveBack(n) :: else fi
}

inline leaveBehind(n) {
  strays--;
  strayCall = call[n];
  strayToken = n
}

#ifndef WRITES
#define keyOf(n) ((((((((phase[n] * 2 + isReasked[n]) * 8 + call[n]) * 16 + answer[n]) * 4) + age[n]) * 4 + offer[n]) * 4) + trust[n])
#else
#define keyOf(n) (((((((((phase[n] * 2 + isReasked[n]) * 8 + call[n]) * 16 + answer[n]) * 4) + age[n]) * 4 + offer[n]) * 4) + trust[n]) * 8 + got[n])
#endif
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
  :: key1 > key2 || (key1 == key2 && (token == b || (token != a && (spentToken == b || (spentToken != a && strayToken == b))))) ->
      swap(phase[a], phase[b]);
      swap(isReasked[a], isReasked[b]);
      swap(call[a], call[b]);
      swap(answer[a], answer[b]);
      swap(age[a], age[b]);
      swap(offer[a], offer[b]);
      swap(trust[a], trust[b]);
#ifdef WRITES
      swap(got[a], got[b]);
#endif
      rename(token, a, b);
      rename(spentToken, a, b);
      rename(strayToken, a, b)
  :: else
  fi;
  spare = 0;
  key1 = 0;
  key2 = 0
}
inline tidy() {
#ifdef SORT
  order(1, 2);
  order(2, 3);
  order(1, 2)
#else
  skip
#endif
}

proctype Node(byte me) {
  do
  :: d_step { (phase[me] == idle || phase[me] == waiting) && grantsLeft -> phase[me] = asking; send(me, acquire); tidy() }
  :: d_step { phase[me] == waiting ->
      if
      :: isReasked[me] -> giveBack(me)
      :: else -> rest(me)
      fi; tidy() }
  :: d_step { answer[me] == granted -> phase[me] = holding; confirm(me);
      assert(believes(1) + believes(2) + believes(3) <= 1); tidy() }
  :: d_step { believes(me) && call[me] == none -> send(me, refresh); tidy() }
  :: d_step { believes(me) && answer[me] == renewed -> confirm(me); tidy() }
  :: d_step { phase[me] == holding && (!isUnanswered(me) || trust[me] == 0) -> giveBack(me); tidy() }
  :: d_step { phase[me] == holding && mayStray(me) -> leaveBehind(me); giveBack(me); tidy() }

#ifdef WRITES
  :: d_step { believes(me) -> assert(got[me] >= seen); seen = got[me]; renumber(); tidy() }
  :: d_step { believes(me) && lateWrite == 0 -> lateWrite = got[me]; tidy() }
#endif

  /* ---- faults */
  :: d_step { phase[me] == asking && losses > 0 -> losses--; phase[me] = waiting; isReasked[me] = true; noCall(me); tidy() }
  :: d_step { phase[me] == asking && mayStray(me) -> leaveBehind(me); phase[me] = waiting; isReasked[me] = true; noCall(me); tidy() }
  :: d_step { phase[me] == holding && mayStray(me) -> leaveBehind(me); noCall(me); tidy() }
  :: d_step { phase[me] == releasing && losses > 0 -> losses--; rest(me); tidy() }
  :: d_step { phase[me] == releasing && mayStray(me) -> leaveBehind(me); rest(me); tidy() }
  :: d_step { phase[me] != idle && crashes > 0 -> crashes--; rest(me); tidy() }
  :: d_step { phase[me] != idle && crashes > 0 && mayStray(me) -> crashes--; leaveBehind(me); rest(me); tidy() }

  /* ---- line */
  :: d_step { isUnanswered(me) -> deliver(me); tidy() }
  :: d_step { mayStray(me) -> leaveBehind(me); deliver(me); tidy() }
  od
}

proctype Network() {
  do
  :: d_step { strayCall != none ->
      apply(strayCall, strayToken, TTL);
      outcome = pending;
      strayCall = none;
      strayToken = NOBODY;
      if :: token == STRAY -> token = DEAD :: else fi;
      if :: spentToken == STRAY -> spentToken = NOBODY :: else fi;
      forgetLapsed(); tidy() }
#ifdef WRITES
  :: d_step { lateWrite > 0 ->
      if
      :: lateWrite >= seen -> seen = lateWrite
      :: else
      fi; lateWrite = 0; renumber(); tidy() }
#endif
  od
}

proctype Clock() {
  do
  :: d_step { 
      if
#ifdef EXPIRY_AFTER_GRANT
      :: left > 0 && !isEndless -> left--
#else
      :: left > 0 -> left--
#endif
      :: else fi;
      forgetLapsed();
      tickOf(1); tickOf(2); tickOf(3);
      settle(1); settle(2); settle(3); tidy() }
  od
}

init {
  atomic {
    strayCall = none; outcome = pending;
    phase[1] = idle; phase[2] = idle; phase[3] = idle;
    noCall(1); noCall(2); noCall(3);
    run Node(1); run Node(2); run Node(3); run Network(); run Clock()
  }
}
