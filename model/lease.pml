/*
 * One key: acquire, refresh, release and takeover, by three nodes that want it again and again.
 *
 * The store decides by the rules of LockDriver (src/driver/lock-driver.ts), which are written in src/driver/lease-rules.ts:
 *
 *   storeAcquire  acquireLease   spent token: nothing; held under this token: re-armed, never back, the fence stays;
 *                                held by another: refused; free or lapsed: granted
 *   mintFence     mintFence      a fence greater than the last, in the step of the grant
 *   storeRefresh  refreshLease   token matches and has not lapsed: re-armed, never back; otherwise lost, never created
 *   storeRelease  releaseLease   spent token: released; token matches: freed and spent, `lost` if it had lapsed
 *   isHeld        isHeld         a token, and time left: a lease always lapses
 *
 * The nodes behave as the core does:
 *
 *   mayAsk .. giveUp    Acquisition      one token until a grant or the end; re-asked for min(ttl, 60 s) after a lost answer
 *   settle, giveBack    Acquisition      a grant that comes in past its own deadline is given back
 *   confirm             Hold, Deadline   see trust.pml
 *   holding             Hold             refreshed while it believes; lost at its deadline or by the store's word, for good
 *   releasing           Lease, giveBack  not trusted from the call on; sent after a loss as well
 *
 * Properties, all of the sound model (see README.md for the flaws that break them):
 *
 *   no two nodes believe in one key: neither at once, nor one while the store grants the key to another    (G1)
 *   a fence is greater than every earlier one                                                             (G2, WRITES)
 *   no write is accepted after one with a higher fence; a believing holder's write is accepted            (G2, WRITES)
 *   granted_when_free      a free key is granted                                                          (G4)
 *   free_after_a_crash     a key whose holder is gone becomes free                                        (G4)
 *   trusted_again_and_again   somebody comes to believe in it, always again                               (G4, LIVENESS)
 */

mtype:phase = { idle, waiting, asking, holding, releasing };
mtype:call = { none, acquire, refresh, release };
mtype:answer = { pending, granted, held, spent, renewed, lost, released };

#include "trust.pml"

/* The 60 s of a re-asked acquire, which the ttl is longer than. */
#if TTL == 2
#define REASKED_TTL 1
#else
#define REASKED_TTL 2
#endif

/* The store's record of the key; `left` is what remains until it expires. */
byte token, left, spentToken;

mtype:phase phase[4];
/* An answer to a call under the present token was given up. */
bool isReasked[4];

/* A call that was given up or sent twice, and is carried out at any later time. */
mtype:call strayCall;
byte strayToken;

#ifdef WRITES
/* The record's fence, those of the leases, and a resource that compares fences. */
byte fence, got[4];
byte seen;
/* A write under way: its sender believed in its lease when it sent it. */
byte lateWrite;
#define UNMINTED 99
#define isMinted(f) (f > 0 && f != UNMINTED)
#endif
#ifdef EXPIRY_AFTER_GRANT
bool isEndless;
#endif

mtype:answer outcome;
byte rank;

#define isHeld (token != NOBODY && left > 0)
#define isOrphaned (isHeld && (token == STRAY || token == DEAD))
#define believes(n) (phase[n] == holding && trust[n] > 0)
#define noneButBelieves(n) ((n == 1 || !believes(1)) && (n == 2 || !believes(2)) && (n == 3 || !believes(3)))
#define wants(n) (phase[n] == idle || phase[n] == waiting)
#ifdef GRANTS
#define mayAsk(n) (wants(n) && fence < GRANTS)
#elif defined(LIVENESS)
/* It sleeps while it knows the key to be held by another. */
#define mayAsk(n) (wants(n) && (!isHeld || token == n))
#else
#define mayAsk(n) wants(n)
#endif

#include "lease-states.pml"

/* ---- the store: src/driver/lease-rules.ts */

/* One step with the grant. */
inline mintFence() {
#if defined(WRITES) && !defined(FENCE_AFTER_GRANT)
  rank = fence;
#ifdef TAKEOVER_KEEPS_FENCE
  if :: token == NOBODY -> fence++ :: else fi;
#else
  fence++;
#endif
  demand(fence > rank, "BROKEN: a fence is greater than every earlier one\n");
  rank = 0;
  renumber()
#else
  skip
#endif
}

inline extendTo(ttl) {
#ifdef EXPIRY_MOVES_BACK
  left = ttl
#else
  left = max(left, ttl)
#endif
}

inline storeAcquire(by, ttl) {
  if
  :: spentToken == by -> outcome = spent
  :: spentToken != by && isHeld && token == by ->
      extendTo(ttl);
      outcome = granted
  :: spentToken != by && isHeld && token != by -> outcome = held
  :: spentToken != by && !isHeld ->
      printf("the store grants the key to token %d\n", by);
      demand(noneButBelieves(by), "BROKEN: no two nodes believe in one key\n");
      mintFence();
      token = by;
      left = ttl;
#ifdef EXPIRY_AFTER_GRANT
      isEndless = true;
#endif
      outcome = granted
  fi
}

inline storeRefresh(by) {
  if
  :: isHeld && token == by ->
      extendTo(TTL);
      outcome = renewed
#ifdef REFRESH_UPSERT
  :: !(isHeld && token == by) ->
      token = by;
      left = TTL;
      outcome = renewed
#else
  :: else -> outcome = lost
#endif
  fi;
#ifdef EXPIRY_AFTER_GRANT
  isEndless = false
#else
  skip
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

/* ---- the node: src/core/acquisition.ts, src/core/hold.ts, src/core/lease.ts */

inline forgetLapsed() {
  if :: token == DEAD && left == 0 -> token = NOBODY :: else fi
}

/* The node will not use its token any more. */
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

inline dropStray() {
  strayCall = none;
  strayAge = 0;
  strayToken = NOBODY;
  if :: token == STRAY -> token = DEAD :: else fi;
  if :: spentToken == STRAY -> spentToken = NOBODY :: else fi;
  forgetLapsed()
}

inline dropFence(n) {
#ifdef WRITES
  got[n] = 0;
  renumber()
#else
  skip
#endif
}

inline rest(n) {
  noCall(n);
  dropToken(n);
  phase[n] = idle;
  trust[n] = 0;
  dropFence(n)
}

inline giveBack(n) {
  send(n, release);
  phase[n] = releasing;
  trust[n] = 0;
  dropFence(n)
}

inline giveUp(n) {
  noCall(n);
  phase[n] = waiting;
  isReasked[n] = true
}

/* What is certain to come next, and changes nothing by coming early. */
inline settle(n) {
  if
  :: answer[n] == granted && offer[n] == 0 ->
      printf("node %d: the grant comes too late, and is given back\n", n);
      giveBack(n)
  :: answer[n] == renewed && offer[n] <= trust[n] -> noCall(n)
  :: else
  fi;
  if
  :: phase[n] == holding && trust[n] == 0 && !isUnanswered(n) ->
      printf("node %d: its deadline has passed\n", n);
      giveBack(n)
  :: phase[n] == holding && trust[n] == 0 && isUnanswered(n) -> dropFence(n)
  :: else
  fi
}

/*
 * A call reaches the store and is answered. Answers that let nobody believe are taken in at once: nothing hangs on when.
 */
inline deliver(n) {
  apply(call[n], n, (isReasked[n] -> REASKED_TTL : TTL));
  printf("node %d: %e is answered %e, %d left\n", n, call[n], outcome, left);
  if
  :: outcome == held && (isReasked[n] || strayToken == n) ->
      noCall(n);
      phase[n] = waiting
  :: (outcome == held && !isReasked[n] && strayToken != n) || outcome == spent || phase[n] == releasing -> rest(n)
  :: else ->
#ifdef WRITES
#ifndef FENCE_AFTER_GRANT
      if :: outcome == granted -> got[n] = fence :: else fi;
#endif
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

inline leaveBehind(n) {
  strays--;
  strayCall = call[n];
  strayToken = n;
  strayAge = (strayCall == refresh -> age[n] : 0)
}

proctype Node(byte me) {
  do
  :: d_step { mayAsk(me) ->
      printf("node %d: asks for the key\n", me);
      send(me, acquire);
      phase[me] = asking;
      tidy() }
  :: d_step { phase[me] == waiting ->
      printf("node %d: waits no longer\n", me);
      if
      :: isReasked[me] -> giveBack(me)
      :: else -> rest(me)
      fi;
      tidy() }
  :: d_step { answer[me] == granted ->
      printf("node %d: takes the grant in, believes for %d\n", me, offer[me]);
      phase[me] = holding;
      confirm(me);
      demand(noneButBelieves(me), "BROKEN: no two nodes believe in one key\n");
      tidy() }
  :: d_step { believes(me) && call[me] == none ->
      printf("node %d: sends a refresh\n", me);
      send(me, refresh);
      tidy() }
  :: d_step { believes(me) && answer[me] == renewed ->
      printf("node %d: takes the renewal in, believes for %d\n", me, offer[me]);
      confirm(me);
      tidy() }
  :: d_step { phase[me] == holding && (!isUnanswered(me) || trust[me] == 0) ->
      printf("node %d: releases\n", me);
      giveBack(me);
      tidy() }
  :: d_step { phase[me] == holding && mayStray(me) ->
      printf("node %d: releases, with its refresh still on its way\n", me);
      leaveBehind(me);
      giveBack(me);
      tidy() }

  /* It writes to the resource while it believes, at once or not: the pause between the look and the write. */
#ifdef WRITES
  :: d_step { believes(me) && isMinted(got[me]) ->
      printf("node %d: writes, fence %d\n", me, got[me]);
      demand(got[me] >= seen, "BROKEN: a believing holder's write is accepted\n");
      seen = got[me];
      renumber();
      tidy() }
  :: d_step { believes(me) && isMinted(got[me]) && lateWrite == 0 ->
      printf("node %d: has looked, and is about to write, fence %d\n", me, got[me]);
      lateWrite = got[me];
      tidy() }
#ifdef FENCE_AFTER_GRANT
  :: d_step { believes(me) && got[me] == 0 ->
      fence++;
      got[me] = fence;
      printf("node %d: fetches its fence: %d\n", me, fence) }
  :: d_step { believes(me) && got[me] == 0 && lateWrite == 0 ->
      printf("node %d: has looked, and is about to fetch its fence and write\n", me);
      got[me] = UNMINTED;
      lateWrite = UNMINTED }
#endif
#endif

  /* An answer does not come, or the call is still on its way when it is given up. */
  :: d_step { phase[me] == asking && losses > 0 ->
      printf("node %d: gets no answer\n", me);
      losses--;
      giveUp(me);
      tidy() }
  :: d_step { phase[me] == asking && mayStray(me) ->
      printf("node %d: gives up its %e, which is still on its way\n", me, call[me]);
      leaveBehind(me);
      giveUp(me);
      tidy() }
  :: d_step { phase[me] == holding && mayStray(me) ->
      printf("node %d: gives up its %e, which is still on its way\n", me, call[me]);
      leaveBehind(me);
      noCall(me);
      tidy() }
  :: d_step { phase[me] == releasing && losses > 0 ->
      printf("node %d: its release is lost\n", me);
      losses--;
      rest(me);
      tidy() }
  :: d_step { phase[me] == releasing && mayStray(me) ->
      printf("node %d: gives up its %e, which is still on its way\n", me, call[me]);
      leaveBehind(me);
      rest(me);
      tidy() }

  /* It crashes, and starts again knowing nothing. */
  :: d_step { phase[me] != idle && crashes > 0 ->
      printf("node %d: crashes\n", me);
      crashes--;
      rest(me);
      tidy() }
  :: d_step { phase[me] != idle && crashes > 0 && mayStray(me) ->
      printf("node %d: crashes, with its %e still on its way\n", me, call[me]);
      leaveBehind(me);
      crashes--;
      rest(me);
      tidy() }

  /* Its call reaches the store, perhaps not for the last time. */
  :: d_step { isUnanswered(me) ->
      deliver(me);
      tidy() }
  :: d_step { mayStray(me) ->
      printf("node %d: its %e comes in twice\n", me, call[me]);
      leaveBehind(me);
      deliver(me);
      tidy() }
  od
}

/* What comes late. */
proctype Network() {
  do
  :: d_step { strayCall != none ->
      printf("a stray %e of token %d reaches the store\n", strayCall, strayToken);
      apply(strayCall, strayToken, TTL);
      outcome = pending;
      dropStray();
      tidy() }
  /* It was one that was asked again, for less. */
  :: d_step { strayCall == acquire ->
      printf("a stray acquire of token %d reaches the store, for %d\n", strayToken, REASKED_TTL);
      apply(strayCall, strayToken, REASKED_TTL);
      outcome = pending;
      dropStray();
      tidy() }
  /* Its answer comes all the same. */
  :: d_step { strayCall == refresh && strayToken <= 3 && believes(strayToken) ->
      apply(strayCall, strayToken, TTL);
      printf("a stray refresh of node %d reaches the store, and is answered %e, %d left\n", strayToken, outcome, left);
      if
      :: outcome == renewed -> answerLate(strayToken, left)
      :: else
      fi;
      outcome = pending;
      dropStray();
      tidy() }
#ifdef WRITES
  :: d_step { lateWrite > 0 ->
#ifdef FENCE_AFTER_GRANT
      if
      :: lateWrite == UNMINTED -> fence++; lateWrite = fence
      :: else
      fi;
#endif
      printf("a late write comes in, fence %d\n", lateWrite);
      if
#ifdef RESOURCE_WITHOUT_FENCE
      :: true ->
#else
      :: lateWrite >= seen ->
#endif
          demand(lateWrite >= seen, "BROKEN: no write is accepted after one with a higher fence\n");
          seen = lateWrite
      :: else
      fi;
      lateWrite = 0;
      renumber();
      tidy() }
#endif
  od
}

proctype Clock() {
  do
  :: d_step { mayTick ->
      if
#ifdef EXPIRY_AFTER_GRANT
      :: left > 0 && !isEndless -> left--
#else
      :: left > 0 -> left--
#endif
      :: else
      fi;
      forgetLapsed();
      tickOfAll();
      settle(1);
      settle(2);
      settle(3);
      tidy() }
  od
}

init {
  atomic {
    outcome = pending;
    strayCall = none;
    for (rank : 1 .. 3) {
      phase[rank] = idle;
      noCall(rank)
    }
    rank = 0;
    run Node(1);
    run Node(2);
    run Node(3);
    run Network();
    run Clock()
  }
}

#ifdef LIVENESS
ltl trusted_again_and_again { [] <> (believes(1) || believes(2) || believes(3)) }
#else
ltl granted_when_free { [] (!isHeld -> <> isHeld) }
ltl free_after_a_crash { [] (isOrphaned -> <> !isOrphaned) }
#endif
