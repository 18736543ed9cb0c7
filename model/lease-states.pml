/*
 * Included by lease.pml: makes states equal that no step could tell apart, so that there are fewer of them.
 */

#ifdef WRITES
#define isRanked(r) (r == seen || r == lateWrite || r == got[1] || r == got[2] || r == got[3])
#define isBelow(f, g) (g == 0 || f < g)

inline lower(f) {
  if :: f > rank -> f-- :: else fi
}

/* Of fences only the order matters: unused ones are left out. */
inline renumber() {
#ifndef REDUCED
  skip
#else
  if
  :: seen < fence && isBelow(seen, lateWrite) && isBelow(seen, got[1]) && isBelow(seen, got[2]) && isBelow(seen, got[3]) -> seen = 0
  :: else
  fi;
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
#endif
}
#define fenceOf(n) got[n]
#else
#define fenceOf(n) 0
#endif

#define keyOf(n) ((((((((phase[n] * 2 + isReasked[n]) * 8 + call[n]) * 16 + answer[n]) * 4 + age[n]) * 4 + offer[n]) * 4) + trust[n]) * 8 + fenceOf(n))
#define isNamed(a, b) (token == b || (token != a && (spentToken == b || (spentToken != a && strayToken == b))))

inline order(a, b) {
  key1 = keyOf(a);
  key2 = keyOf(b);
  if
  :: key1 > key2 || (key1 == key2 && isNamed(a, b)) ->
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

/* The nodes are alike: which of them is which makes no difference. */
inline tidy() {
#ifdef REDUCED
  order(1, 2);
  order(2, 3);
  order(1, 2)
#else
  skip
#endif
}
