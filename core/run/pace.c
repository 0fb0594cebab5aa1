/* pace.c: see pace.h. An instance goes through these stages, each of which flow_pace_choose and flow_pace_note both recognize by the
 * counters:
 *
 *   1. `alone` < 2: by one thread, twice, since the first run takes page faults and cold caches.
 *   2. `started` < runs_of_start: by the team, a few times; the first one starts or wakes its threads.
 *   3. Both times are known: the faster way goes on (choose_first, note_usual). The other way has a trial once `spent`, the seconds
 *      since its last one, exceeds `patience` times what a run of it takes. So trials take about 1/patience of the time: from a quarter,
 *      when the two are about as fast, down to 1/256.
 *   4. `trial` > 0: the rest of a trial; then the better way goes on (note_trial).
 *
 * Runs shorter than `worth_a_team` stay at stage 2 for good. Times are kept for each row, as batches of several sizes come in turns.
 * Nothing here locks: runs of an instance do not overlap. */
#include "run/pace.h"

/* Runs shorter than `worth_a_team` gain less from other threads than handing out parts costs. In those shorter than `short_run` waking
 * threads and filling caches counts, so that a trial has several runs. A trial that takes `too_long` more than was thought has found a
 * busy machine, and ends. The team is tried again after `longest_wait` at the latest, or after LEAST_PATIENCE of its runs if they are
 * longer: what made it slow was perhaps another program, which ends at some time. All in seconds. */
static const double worth_a_team = 15e-6, short_run = 500e-6, too_long = 300e-6, longest_wait = 0.15;

/* Patience is between LEAST and MOST. One run counts at most as MOST_GROWTH times the mean, so that a single accident does not turn the
 * choice. SHORT_TRIAL runs in a row are a trial of short runs. */
enum { LEAST_PATIENCE = 4, MOST_PATIENCE = 256, MOST_GROWTH = 4, SHORT_TRIAL = 4 };

/* Runs that tell how fast a way is, after runs of the other way; the first ones by the team are at least two. */
static int runs_of_trial(const flow_pace *pace, double rows)
{
  return pace->seconds[pace->team] * rows < short_run ? SHORT_TRIAL : 1;
}

static int runs_of_start(const flow_pace *pace, double rows) { return pace->seconds[0] * rows < short_run ? SHORT_TRIAL : 2; }

/* Seconds until the way that is not taken now is tried again. The team may only have been late because another program had its core,
 * which is looked at again before long. */
static double wait_for_trial(const flow_pace *pace, double rows)
{
  int other = !pace->team;
  double cost = pace->seconds[other] * rows, wait = pace->patience[other] * cost, most = LEAST_PATIENCE * cost;
  if (most < longest_wait) most = longest_wait;
  return other && wait > most ? most : wait;
}

int flow_pace_choose(flow_pace *pace, double rows)
{
  int other = !pace->team;
  if (pace->alone < 2 || pace->seconds[0] * rows < worth_a_team) return 0;
  if (pace->started < runs_of_start(pace, rows)) return 1;
  if (pace->trial > 0) return other;
  return pace->spent < wait_for_trial(pace, rows) ? pace->team : other;
}

/* The way `team` is to be tried again `factor` times as late as before. */
static void be_patient(flow_pace *pace, int team, double factor)
{
  double patience = pace->patience[team] * factor;
  pace->patience[team] = patience > MOST_PATIENCE ? MOST_PATIENCE : patience < LEAST_PATIENCE ? LEAST_PATIENCE : patience;
}

static void change_to(flow_pace *pace, int team)
{
  pace->team = team;
  pace->spent = 0;
}

/* A run of a trial, by the way that is not usual now, which took `each` seconds a row. The best run of the trial counts. That the usual
 * way was not changed since its own last trial speaks for it, so that its patience is halved: if it loses now it is soon tried again. If
 * the trial fails, the next one waits twice as long. */
static void note_trial(flow_pace *pace, int team, double rows, double each)
{
  if (pace->trial == 0) {
    pace->trial = runs_of_trial(pace, rows);
    pace->best = each;
  }
  if (each < pace->best) pace->best = each;
  if ((each - pace->seconds[pace->team]) * rows > too_long) pace->trial = 1;
  if (--pace->trial > 0) return;
  be_patient(pace, pace->team, 0.5);
  pace->seconds[team] = pace->best;
  pace->spent = 0;
  if (pace->best < pace->seconds[pace->team]) change_to(pace, team);
  else be_patient(pace, team, 2);
}

/* A run by the usual way. One slow run is an accident, several in a row are how it is: the mean follows by a quarter of each difference.
 * When the mean is worse than the other way the other way is taken, and what the last run took is what this one may cost when it is
 * tried again. The first run after a trial says nothing (`first`): its caches were filled by other cores. */
static void note_usual(flow_pace *pace, int first, double each, double seconds)
{
  double *mean = &pace->seconds[pace->team], counted = each < MOST_GROWTH * *mean ? each : MOST_GROWTH * *mean;
  pace->spent += seconds;
  if (first) return;
  *mean += (counted - *mean) / 4;
  if (*mean <= pace->seconds[!pace->team]) return;
  if (*mean < each) *mean = each;
  be_patient(pace, pace->team, 2);
  change_to(pace, !pace->team);
}

/* Stage 3 begins with the faster way. A way that is slower by more than a quarter is first tried again after 8 times the usual patience. */
static void choose_first(flow_pace *pace)
{
  change_to(pace, pace->seconds[1] < pace->seconds[0]);
  int other = !pace->team;
  if (pace->seconds[other] > 1.25 * pace->seconds[pace->team]) be_patient(pace, other, 8);
}

void flow_pace_note(flow_pace *pace, int team, double rows, double seconds)
{
  double each = seconds / rows;
  int turned = pace->last != team;
  pace->last = team;
  if (!team && pace->alone < 2) {
    if (pace->alone++ == 0 || each < pace->seconds[0]) pace->seconds[0] = each;
  } else if (team && pace->started < runs_of_start(pace, rows)) {
    if (pace->started++ == 0 || each < pace->seconds[1]) pace->seconds[1] = each;
    pace->patience[0] = pace->patience[1] = LEAST_PATIENCE;
    if (pace->started == runs_of_start(pace, rows)) choose_first(pace);
  } else if (pace->started < runs_of_start(pace, rows)) {
    pace->seconds[0] += (each < MOST_GROWTH * pace->seconds[0] ? each - pace->seconds[0] : (MOST_GROWTH - 1) * pace->seconds[0]) / 4;
  } else if (team == pace->team) {
    note_usual(pace, turned, each, seconds);
  } else {
    note_trial(pace, team, rows, each);
  }
}
