/* pace.h: whether an instance's runs go by one thread or by the team, whichever has been faster lately. Results do not depend on it.
 *
 * A team is not always worth it: a small run lasts less long than waking a thread does, and where another program has one of the cores, a
 * member that is put aside in the middle of its part keeps all others waiting for milliseconds. So runs are timed, and now and then, for
 * some percent of the time, one goes the other way. */
#ifndef FLOW_RUN_PACE_H
#define FLOW_RUN_PACE_H

typedef struct flow_pace {
  int    alone;              /* runs by one thread before there was a choice, up to 2: the second finds caches and pages warm */
  int    started;            /* runs by the team so far, up to 2: the first one starts threads */
  int    team;               /* how runs go now: 0 or 1 */
  double seconds[2];         /* [team] of a row, lately; 0: not known */
  double spent;              /* seconds this way since the other one was last tried */
  double patience[2];        /* [team] try this way again when `spent` is that many times what it takes; 0: not set */
} flow_pace;

/* How the next run of this many rows is to go: 0: by one thread, 1: by the team. */
int  flow_pace_choose(flow_pace *pace, double rows);
/* A run went that way. */
void flow_pace_note(flow_pace *pace, int team, double rows, double seconds);

#endif
