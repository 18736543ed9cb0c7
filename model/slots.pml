/*
 * One task with three slots: claim, takeover, refresh and completion, by three nodes.
 *
 *   (none)    onCrash: 'skip', overlap: 'skip'
 *   RETRY     onCrash: 'retry', two attempts
 *   QUEUE     overlap: 'queue'
 *
 * The store decides by the rules of TaskDriver (src/driver/task-driver.ts), which are written in src/driver/task-rules.ts:
 *
 *   storeClaim     claimSlot     rules 3 to 11, in their order: own run re-armed; lapsed run taken over, or lost and
 *                                cleared; early; decided; behind; overlap; granted
 *   moveMark       decideSlot    a compare-and-set of the mark; its row accounts for the slots in between
 *   startRun       startRun      attempt, token, greater fence and expiry in the step of the grant
 *   storeRefresh   refreshRun    as for leases
 *   storeComplete  completeRun   compares the fence only: neither token nor expiry; never moves the mark
 *
 * The nodes behave as the scheduler does:
 *
 *   ask            Task, policies.ts   the newest due slot, or none after the mark to see to a lapsed run; a clock that is
 *                                      ahead claims early, one that is behind is a claim that was long under way
 *   owe            Claimer             the token stays as long as an answer is owed; a grant that comes in past its own
 *                                      deadline is not begun but asked for again
 *   running        Run, Hold           begun only while it is trusted; goes on after a loss, as handlers may
 *   complete       Run, Completion     asked until there is an answer, also after a loss
 *
 * Properties, all of the sound model (see README.md for the flaws that break them):
 *
 *   a slot is decided once; no slot is decided before it is due                                        (G5)
 *   no two runs are trusted at once                                                                    (G1)
 *   a slot is not run too often: once, or as often as there are attempts; never after its end           (G5)
 *   a run that reported its end is neither run again nor lost                                          (G5)
 *   a granted slot has ended or is under way; it is lost for good only after the last attempt          (G5, G6)
 *   every slot up to the mark is accounted for                                                         (G6)
 *   every run has an expiry                                                                            (G4)
 *   every_slot_ends   in the end all slots are decided and no run is left                              (G4, G6, LIVENESS)
 */

mtype:phase = { idle, asking, running };
mtype:call = { none, claim, refresh, complete };
mtype:answer = { pending, granted, renewed, lost, over, refused };

#include "trust.pml"

#define SLOTS 3
#ifdef RETRY
#define MAX_ATTEMPTS 2
#else
#define MAX_ATTEMPTS 1
#endif

/* The record of the task. No run under way or to be dealt with: runSlot == 0. */
byte mark;
byte runSlot, attempt, token, fence, left;

/* The slots that are due by the store's clock: 1 to `due`. */
byte due;

/* What the run log says of a slot, as far as it matters: decided without a run, or its run has ended. */
mtype:became = { undecided, started, decided };
mtype:became became[SLOTS + 1];
/* How often a handler was called for a slot. */
byte begun[SLOTS + 1];
/* The run that is under way reported its end, and is under way all the same. */
bool isReported;

mtype:phase phase[4];
/* An answer to a claim under the present token was given up, or came too late. */
bool isOwed[4];
/* The slot that is claimed, and the mark that the claim follows. Once granted: the slot to run, and its fence. */
byte claimed[4], after[4];
byte got[4];

/* A call that was given up or sent twice, and is carried out at any later time. */
mtype:call strayCall;
byte strayToken, strayClaimed, strayAfter, strayFence;

mtype:answer outcome;
byte s;

#ifdef QUEUE
#define MAY_DECIDE (runSlot == 0)
#else
#define MAY_DECIDE true
#endif
#define isUnderWay (runSlot > 0 && left > 0)
#define hasLapsed (runSlot > 0 && left == 0)
#define believes(n) (phase[n] == running && trust[n] > 0)
#define noneButBelieves(n) ((n == 1 || !believes(1)) && (n == 2 || !believes(2)) && (n == 3 || !believes(3)))

#ifdef CLAIM_WITHOUT_AFTER
#define follows(mark, after) true
#else
#define follows(mark, after) (mark == after)
#endif
#ifdef CLAIM_BEFORE_DUE
#define isDue(slot) true
#else
#define isDue(slot) (slot <= due)
#endif
#ifdef CLAIM_DROPS_RETRY
#define isRetryDue false
#else
#define isRetryDue (attempt < MAX_ATTEMPTS)
#endif
#ifdef TAKEOVER_BY_OWN_TOKEN
#define mayTakeOver(by) hasLapsed
#else
#define mayTakeOver(by) (hasLapsed && token != by)
#endif
#ifdef COMPLETE_WITHOUT_FENCE
#define isRun(slot, with) (runSlot > 0 && runSlot == slot)
#else
#define isRun(slot, with) (runSlot > 0 && fence == with)
#endif

/* ---- the store: src/driver/task-rules.ts */

/* The row of the run log that moves the mark accounts for the slots since the mark that its claim followed. */
inline moveMark(slot, from, what) {
  for (s : from + 1 .. slot) {
    demand(became[s] == undecided, "BROKEN: a slot is decided once\n");
    became[s] = (s == slot -> what : decided)
  }
  s = 0;
  demand(slot <= due, "BROKEN: no slot is decided before it is due\n");
  mark = slot
}

inline startRun(slot, number, by) {
  fence++;
  printf("the store grants slot %d, attempt %d, fence %d to token %d\n", slot, number, fence, by);
  demand(noneButBelieves(by), "BROKEN: no two runs are trusted at once\n");
  demand(!isReported, "BROKEN: a run that reported its end is not run again\n");
  demand(token != by, "BROKEN: a token is granted one run\n");
  runSlot = slot;
  attempt = number;
  token = by;
  left = TTL;
  outcome = granted
}

inline endRun() {
  became[runSlot] = decided;
  begun[runSlot] = MAX_ATTEMPTS;
  runSlot = 0;
  attempt = 0;
  token = NOBODY;
  left = 0
}

/* Rules 3 to 11 of TaskDriver.claim, in their order. */
inline storeClaim(by, slot, from) {
  outcome = pending;
  if
  :: isUnderWay && token == by ->
      left = max(left, TTL);
      outcome = granted
#ifndef CLAIM_IGNORES_LAPSE
  /* Who holds the token of a lapsed run gets none again: that claim decides nothing, the one after it has another token. */
  :: mayTakeOver(by) && isRetryDue -> startRun(runSlot, attempt + 1, by)
  :: mayTakeOver(by) && !isRetryDue ->
      printf("the store writes the run of slot %d off as lost\n", runSlot);
      demand(attempt == MAX_ATTEMPTS, "BROKEN: a run is lost for good only after the last attempt\n");
      demand(!isReported, "BROKEN: a run that reported its end is not lost\n");
      endRun()
#endif
  :: else
  fi;
  if
  :: outcome == granted
  :: outcome != granted && (!isDue(slot) || slot <= mark || !follows(mark, from)) -> outcome = refused
  :: else ->
      if
      :: runSlot > 0 ->
#ifndef QUEUE
          if
          :: left > 0 ->
              printf("the store skips slot %d: overlap\n", slot);
              moveMark(slot, from, decided)
          :: else
          fi;
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
  :: isUnderWay && token == by ->
      left = max(left, TTL);
      outcome = renewed
  :: else -> outcome = lost
  fi
}

/* Compares the fence only. Whether it was recorded or was too late, the run is over. */
inline storeComplete(slot, with) {
  if
#ifdef COMPLETE_CHECKS_EXPIRY
  :: isRun(slot, with) && left > 0 ->
#else
  :: isRun(slot, with) ->
#endif
      printf("the store records the end of slot %d\n", runSlot);
#ifdef MARK_REMOVED_ON_COMPLETE
      mark = runSlot - 1;
#endif
      endRun()
  :: else
  fi;
  isReported = isReported || (runSlot > 0 && fence == with);
  outcome = over
}

inline apply(what, by, slot, from, with) {
  if
  :: what == claim -> storeClaim(by, slot, from)
  :: what == refresh -> storeRefresh(by)
  :: what == complete -> storeComplete(slot, with)
  fi;
  for (s : 1 .. SLOTS) {
    demand(s > mark || became[s] != undecided, "BROKEN: every slot up to the mark is accounted for\n");
    demand(became[s] != started || runSlot == s, "BROKEN: a granted slot has ended or is under way\n")
  }
  s = 0;
  demand(left <= TTL, "BROKEN: every run has an expiry\n")
}

/* ---- the node: src/scheduler/claimer.ts, task.ts, run.ts, completion.ts and src/core/hold.ts */

/* Has nothing in the air and runs nothing. */
inline rest(n) {
  noCall(n);
  claimed[n] = 0;
  after[n] = 0;
  got[n] = 0;
  trust[n] = 0;
  phase[n] = idle
}

/* The node will not use its token any more. */
inline forget(n) {
  rest(n);
  isOwed[n] = false;
  if
  :: strayCall != none && strayToken == n ->
      strayToken = STRAY;
      if :: token == n -> token = STRAY :: else fi
  :: else ->
      if :: token == n -> token = DEAD :: else fi
  fi
}

/* As long as an answer is owed the token stays, whatever is claimed next. */
inline owe(n) {
  rest(n);
  isOwed[n] = true
}

inline dropStray() {
  strayCall = none;
  strayAge = 0;
  strayToken = NOBODY;
  strayClaimed = 0;
  strayAfter = 0;
  strayFence = 0;
  if :: token == STRAY -> token = DEAD :: else fi
}

inline leaveBehind(n) {
  strays--;
  strayCall = call[n];
  strayToken = n;
  strayAge = (strayCall == refresh -> age[n] : 0);
  strayClaimed = claimed[n];
  strayAfter = after[n];
  strayFence = got[n]
}

inline ask(n, slot) {
  printf("node %d: claims slot %d after %d\n", n, slot, mark);
  send(n, claim);
  claimed[n] = slot;
  after[n] = mark;
  phase[n] = asking
}

/* What is certain to come next, and changes nothing by coming early. */
inline settle(n) {
  if
  :: answer[n] == granted && offer[n] == 0 ->
      printf("node %d: the grant comes too late, and is not begun\n", n);
      owe(n)
  :: answer[n] == renewed && offer[n] <= trust[n] -> noCall(n)
  :: else
  fi
}

/*
 * A call reaches the store and is answered. Answers that let nobody believe are taken in at once: nothing hangs on when.
 */
inline deliver(n) {
  apply(call[n], n, claimed[n], after[n], got[n]);
  printf("node %d: %e is answered %e, %d left\n", n, call[n], outcome, left);
  if
  :: outcome == refused || outcome == over -> forget(n)
  :: else ->
      if
      :: outcome == granted ->
          claimed[n] = runSlot;
          after[n] = 0;
          got[n] = fence
      :: else
      fi;
      answerWith(n, outcome, left);
      settle(n)
  fi;
  outcome = pending
}

#include "slots-states.pml"

proctype Node(byte me) {
  do
#ifdef LIVENESS
  :: d_step { phase[me] == idle && mark < due && MAY_DECIDE ->
      ask(me, due);
      tidy() }
  :: d_step { phase[me] == idle && hasLapsed ->
      ask(me, mark);
      tidy() }
#else
  /* The newest slot that is due; the next one, by a clock that is ahead; a lapsed run, or none. */
  :: d_step { phase[me] == idle && mark < due ->
      ask(me, due);
      tidy() }
  :: d_step { phase[me] == idle && due < SLOTS ->
      ask(me, due + 1);
      tidy() }
  :: d_step { phase[me] == idle ->
      ask(me, mark);
      tidy() }
  :: d_step { believes(me) && call[me] == none ->
      printf("node %d: sends a refresh\n", me);
      send(me, refresh);
      tidy() }
  :: d_step { believes(me) && answer[me] == renewed ->
      printf("node %d: takes the renewal in, believes for %d\n", me, offer[me]);
      confirm(me);
      tidy() }
  :: d_step { phase[me] == running && answer[me] == lost ->
      printf("node %d: knows that its run is lost\n", me);
      trust[me] = 0;
      noCall(me);
      tidy() }
  :: d_step { phase[me] == running && call[me] == refresh && mayStray(me) ->
      printf("node %d: reports the end of slot %d, with its refresh still on its way\n", me, claimed[me]);
      leaveBehind(me);
      send(me, complete);
      trust[me] = 0;
      tidy() }
#endif
  :: d_step { answer[me] == granted ->
      printf("node %d: begins slot %d, fence %d, believes for %d\n", me, claimed[me], got[me], offer[me]);
      phase[me] = running;
      isOwed[me] = false;
      confirm(me);
      demand(noneButBelieves(me), "BROKEN: no two runs are trusted at once\n");
      begun[claimed[me]]++;
      demand(begun[claimed[me]] <= MAX_ATTEMPTS, "BROKEN: a slot is not run too often\n");
      tidy() }
  /* The handler has ended, whether its lease was lost meanwhile or not. Asked until there is an answer. */
  :: d_step { phase[me] == running && call[me] != complete && (!isUnanswered(me) || trust[me] == 0) ->
      printf("node %d: reports the end of slot %d, fence %d\n", me, claimed[me], got[me]);
      send(me, complete);
      trust[me] = 0;
      tidy() }

  /* An answer does not come, or the call is still on its way when it is given up. */
  :: d_step { phase[me] == asking && losses > 0 ->
      printf("node %d: gets no answer to its claim\n", me);
      losses--;
      owe(me);
      tidy() }
  :: d_step { phase[me] == asking && mayStray(me) ->
      printf("node %d: gives up its claim, which is still on its way\n", me);
      leaveBehind(me);
      owe(me);
      tidy() }
  :: d_step { phase[me] == running && call[me] == complete && losses > 0 ->
      printf("node %d: gets no answer to its report\n", me);
      losses--;
      noCall(me);
      tidy() }
  :: d_step { phase[me] == running && mayStray(me) ->
      printf("node %d: gives up its %e, which is still on its way\n", me, call[me]);
      leaveBehind(me);
      noCall(me);
      tidy() }

  /* It crashes, and starts again knowing nothing. */
  :: d_step { (phase[me] != idle || isOwed[me]) && crashes > 0 ->
      printf("node %d: crashes\n", me);
      crashes--;
      forget(me);
      tidy() }
  :: d_step { crashes > 0 && mayStray(me) ->
      printf("node %d: crashes, with its %e still on its way\n", me, call[me]);
      crashes--;
      leaveBehind(me);
      forget(me);
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
      apply(strayCall, strayToken, strayClaimed, strayAfter, strayFence);
      outcome = pending;
      dropStray();
      tidy() }
  /* Its answer comes all the same. */
  :: d_step { strayCall == refresh && strayToken <= 3 && believes(strayToken) ->
      apply(strayCall, strayToken, strayClaimed, strayAfter, strayFence);
      printf("a stray refresh of node %d reaches the store, and is answered %e, %d left\n", strayToken, outcome, left);
      if
      :: outcome == renewed -> answerLate(strayToken, left)
      :: else
      fi;
      outcome = pending;
      dropStray();
      tidy() }
  od
}

/* Slots come due, however many ticks apart. */
proctype Schedule() {
  do
  :: d_step { due < SLOTS ->
      due++;
      printf("slot %d is due\n", due);
      tidy() }
  od
}

proctype Clock() {
  do
  :: d_step { mayTick ->
      if :: left > 0 -> left-- :: else fi;
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
    for (s : 1 .. 3) {
      phase[s] = idle;
      noCall(s)
    }
    for (s : 1 .. SLOTS) {
      became[s] = undecided
    }
    s = 0;
    run Node(1);
    run Node(2);
    run Node(3);
    run Network();
    run Schedule();
    run Clock()
  }
}

#ifdef LIVENESS
ltl every_slot_ends { <> (mark == SLOTS && runSlot == 0) }
#endif
