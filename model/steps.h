/*
 * Included into the verifier that Spin makes: counts how often each message of the model would have been printed, and
 * tells at the end. Every step of the model has a message, so that one that no state allows is noticed.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define SLOTS_OF_STEPS 256

static const char *steps[SLOTS_OF_STEPS];

static void tell_steps(void) {
  for (int i = 0; i < SLOTS_OF_STEPS; i++)
    if (steps[i]) printf("took: %s", steps[i]);
}

static int count_step(const char *message, va_list values) {
  static int told;
  unsigned at = ((unsigned long)message >> 3) % SLOTS_OF_STEPS;
  (void)values;
  while (steps[at] && steps[at] != message) at = (at + 1) % SLOTS_OF_STEPS;
  if (!steps[at]) {
    steps[at] = message;
    if (!told++) atexit(tell_steps);
  }
  return 0;
}

#define vprintf count_step
