/*
 * Included by slots.pml: makes states equal that no step could tell apart, so that there are fewer of them.
 */

#ifndef REDUCED
inline tidy() {
  skip
}
#else

/* Of fences it only matters whether one is that of the run under way. */
inline renumber(f) {
  if
  :: f > 0 && runSlot > 0 && f == fence -> f = 2
  :: f > 0 && (runSlot == 0 || f < fence) -> f = 1
  :: else
  fi
}

inline renumberAll() {
  renumber(got[1]);
  renumber(got[2]);
  renumber(got[3]);
  renumber(strayFence);
  fence = (runSlot > 0 -> 2 : 1)
}

/*
 * The mark only grows. A claim that follows an earlier one, or names no slot after it, is good for a lapsed run at most.
 * Such a claim does not age here: it is answered as if it had been sent just now, which lets its sender believe longer.
 */
inline isolate(n) {
  if
  :: call[n] == claim && answer[n] == pending && (after[n] != mark || claimed[n] <= mark) ->
      claimed[n] = 0;
      after[n] = 0;
      age[n] = 0
  /* Too late for everything: its report changes nothing. */
  :: phase[n] == running && trust[n] == 0 && call[n] != refresh && (runSlot == 0 || got[n] != fence) -> forget(n)
  :: else
  fi
}

/* The same for a stray call; and one that comes too late for everything changes nothing. */
inline isolateStray() {
  if
  :: strayCall == claim && (strayAfter != mark || strayClaimed <= mark) ->
      strayClaimed = 0;
      strayAfter = 0
  :: strayCall == complete && (runSlot == 0 || strayFence != fence) -> dropStray()
  :: strayCall == refresh && (left == 0 || strayToken != token) -> dropStray()
  :: else
  fi
}

#define keyOf(n) (((((((((phase[n] * 2 + isOwed[n]) * 8 + call[n]) * 8 + answer[n]) * 4 + age[n]) * 4 + offer[n]) * 4 + trust[n]) * 4 + claimed[n]) * 4 + after[n]) * 4 + got[n])
#define isNamed(a, b) (token == b || (token != a && strayToken == b))

inline order(a, b) {
  key1 = keyOf(a);
  key2 = keyOf(b);
  if
  :: key1 > key2 || (key1 == key2 && isNamed(a, b)) ->
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

/* The nodes are alike: which of them is which makes no difference. */
inline tidy() {
  renumberAll();
  isolate(1);
  isolate(2);
  isolate(3);
  isolateStray()
#ifndef LIVENESS
  ;
  order(1, 2);
  order(2, 3);
  order(1, 2)
#endif
}
#endif
