/* pace.h: whether an instance's runs go by one thread or by the team, whichever has been faster lately. Results do not depend on it.
 *
 * A team is not always worth it: a small run lasts less long than waking a thread does, and where another program has one of the cores, a
 * member that is put aside in the middle of its part keeps all others waiting for milliseconds. So runs are timed, and now and then, for
 * some percent of the time, some go the other way: several in a row where runs are short, since the first of them wakes threads and finds
 * weights in the caches of another core. */
#ifndef FLOW_RUN_PACE_H
#define FLOW_RUN_PACE_H

typedef struct flow_pace {
  int    alone;              /* runs by one thread before there was a choice, up to 2: the second finds caches and pages warm */
  int started;               /* runs by the team so far, up to `to_start`: the first one starts threads and sets `to_start` */
  int to_start;
  int    team;               /* how runs go now: 0 or 1 */
  int    last;               /* how the last one went */
  double seconds[2];         /* [team] of a row, lately; 0: not known */
  int    trial;              /* runs of the other way that are still to be tried in a row */
  double best;               /* seconds of a row in the fastest of those that were */
  double spent;              /* seconds this way since the other one was last tried */
  double lost;               /* seconds that runs this way took more than the other one would have, less what they took less, not below 0 */
  double patience[2];        /* [team] try this way again when `spent` is that many times what a trial takes; 0: not set */
} flow_pace;

/* How the next run of this many rows is to go: 0: by one thread, 1: by the team. */
int  flow_pace_choose(flow_pace *pace, double rows);
/* A run went that way. */
void flow_pace_note(flow_pace *pace, int team, double rows, double seconds);

#endif
