/* restart.c: see restart.h. */
#include "restart.h"

#include <stdlib.h>
#include <string.h>

static const double FIRST_PAUSE = 0.1, LONGEST_PAUSE = 60, LONG_LIFE = 5;      /* seconds */

double restart_pause(double lived, int *failures)
{
  double pause = FIRST_PAUSE;
  *failures = lived < LONG_LIFE ? *failures + 1 : 1;
  for (int i = 1; i < *failures && pause < LONGEST_PAUSE; i++) pause *= 2;
  if (pause > LONGEST_PAUSE) pause = LONGEST_PAUSE;
  return pause * (0.75 + 0.5 * (double)rand() / RAND_MAX);
}

void restart_prepare(char **environment)
{
  static const char name[] = "FLOW_LISTEN_DESCRIPTOR=";
  char **to = environment;
  for (char **from = environment; *from; from++) {
    if (strncmp(*from, name, sizeof name - 1) != 0) *to++ = *from;
  }
  *to = NULL;
}
