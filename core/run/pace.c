/* pace.c: see pace.h. An instance goes through these stages, each of which flow_pace_choose and flow_pace_note both recognize by the
 * counters:
 *
 *   1. `alone` < 2: by one thread, twice, since the first run takes page faults and cold caches.
 *   2. starts(): by the team, a few times, whose number the first one sets; it starts or wakes its threads.
 *   3. Both times are known: the faster way goes on (choose_first, note_usual). The other way has a trial once `spent`, the seconds
 *      since its last one, exceeds `patience` times what one takes. So trials take about 1/patience of the time: from a quarter,
 *      when the two are about as fast, down to 1/1024.
 *   4. `trial` > 0: the rest of a trial; then the better way goes on (note_trial).
 *
 * Runs shorter than `worth_a_team` stay at stage 2 for good. Times are kept for each row, as batches of several sizes come in turns.
 * Nothing here locks: runs of an instance do not overlap. */
#include "run/pace.h"

/* Runs shorter than `worth_a_team` gain less from other threads than handing out parts costs. A thread that sleeps takes up to some 100
 * microseconds to wake on a virtual machine, it may wake on the core of the one that woke it, from where the scheduler takes it some
 * milliseconds later, and its first run finds nothing in its caches: so a trial has runs of `of_trial` together, or until one is clearly
 * faster. A run that takes `too_long` more than was thought, the first of a trial `cold` more, has found a busy machine, and ends the
 * trial. The team is tried again after `longest_wait` at the latest, or after LEAST_PATIENCE of its trials if they are longer: what made it
 * slow was perhaps another program, which ends at some time. All in seconds. */
static const double worth_a_team = 5e-6, of_trial = 4e-3, too_long = 300e-6, cold = 900e-6, longest_wait = 0.15;

/* By the usual way a run counts at most as `most_growth` of the mean, so that a single accident does not turn the choice where the two ways
 * are about as fast. What accidents cost counts in `lost`: more than `most_lost` seconds, a slice or two of the scheduler, or than a run
 * the other way takes, do turn it. */
static const double most_growth = 1.5, most_lost = 6e-3;

/* The best run of a trial is compared with the mean of the usual way, so that it has to be clearly better. */
static const double clearly = 0.95;

/* Patience is between LEAST and MOST. A run by one thread counts at most as MOST_TIMES the mean while the team starts. A trial has up to
 * MOST_TRIED runs, and at least LEAST_TRIED if they are not long. */
enum { LEAST_PATIENCE = 4, MOST_PATIENCE = 1024, MOST_TIMES = 4, LEAST_TRIED = 4, MOST_TRIED = 256 };

/* Runs that tell how fast a way is, after runs of the other way, which takes `seconds` for one. */
static int runs_that_tell(double seconds)
{
  if (seconds > of_trial) return 1;
  double runs = of_trial / seconds;
  return runs > MOST_TRIED ? MOST_TRIED : runs < LEAST_TRIED ? LEAST_TRIED : (int)runs;
}

/* Runs of a trial. One thread needs nobody: what it reads is in its cache after a few. */
static int runs_of_trial(const flow_pace *pace, double rows)
{
  int runs = runs_that_tell(pace->seconds[pace->team] * rows);
  return pace->team && runs > LEAST_TRIED ? LEAST_TRIED : runs;
}

/* Whether the team has still to show how fast it is, by runs whose number its first one sets. */
static int starts(const flow_pace *pace)
{
  return pace->started == 0 || pace->started < pace->to_start;
}

/* Seconds until the way that is not taken now is tried again. The team may only have been late because another program had its core,
 * which is looked at again before long: a trial ends with a run that takes too long. */
static double wait_for_trial(const flow_pace *pace, double rows)
{
  int other = !pace->team;
  double each = pace->seconds[other] * rows, more = each - pace->seconds[pace->team] * rows;
  double cost = each * (more > cold ? 1 : runs_of_trial(pace, rows)), wait = pace->patience[other] * cost, most = LEAST_PATIENCE * cost;
  if (most < longest_wait) most = longest_wait;
  return other && wait > most ? most : wait;
}

int flow_pace_choose(flow_pace *pace, double rows)
{
  int other = !pace->team;
  if (pace->alone < 2 || pace->seconds[0] * rows < worth_a_team) return 0;
  if (starts(pace)) return 1;
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
  pace->spent = pace->lost = 0;
}

/* A run of a trial, by the way that is not usual now, which took `each` seconds a row. The best run of the trial counts. That the usual
 * way was not changed since its own last trial speaks for it, so that its patience is halved: if it loses now it is soon tried again. If
 * the trial fails, the next one waits twice as long. */
static void note_trial(flow_pace *pace, int team, double rows, double each)
{
  int first = pace->trial == 0;
  if (first) {
    pace->trial = runs_of_trial(pace, rows);
    pace->best = each;
  }
  if (each < pace->best) pace->best = each;
  if ((each - pace->seconds[pace->team]) * rows > (first ? cold : too_long)) pace->trial = 1;
  if (--pace->trial > 0 && pace->best >= clearly * pace->seconds[pace->team]) return;
  pace->trial = 0;
  be_patient(pace, pace->team, 0.5);
  pace->seconds[team] = pace->best;
  pace->spent = 0;
  if (pace->best < clearly * pace->seconds[pace->team]) change_to(pace, team);
  else be_patient(pace, team, 2);
}

/* A run by the usual way. One slow run is an accident, several in a row are how it is: the mean follows by a quarter of each difference.
 * When the mean is worse than the other way, or accidents have cost too much, the other way is taken, and what the last run took is what
 * this one may cost when it is tried again. The first run after a trial says nothing (`first`): its caches were filled by other cores. */
static void note_usual(flow_pace *pace, int first, double rows, double each, double seconds)
{
  double *mean = &pace->seconds[pace->team], other = pace->seconds[!pace->team];
  double counted = each < most_growth * *mean ? each : most_growth * *mean;
  pace->spent += seconds;
  if (first) return;
  *mean += (counted - *mean) / 4;
  pace->lost += (each - other) * rows;
  if (pace->lost < 0) pace->lost = 0;
  if (*mean <= other && pace->lost <= (other * rows > most_lost ? other * rows : most_lost)) return;
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
  } else if (team && starts(pace)) {
    if (pace->started == 0) {
      int runs = runs_that_tell(pace->seconds[0] * rows);
      pace->to_start = runs > 2 ? runs : 2;
    }
    if (pace->started++ == 0 || each < pace->seconds[1]) pace->seconds[1] = each;
    pace->patience[0] = pace->patience[1] = LEAST_PATIENCE;
    if (pace->started > 1 && pace->seconds[1] < clearly * pace->seconds[0]) pace->to_start = pace->started;
    if (!starts(pace)) choose_first(pace);
  } else if (starts(pace)) {
    pace->seconds[0] += (each < MOST_TIMES * pace->seconds[0] ? each - pace->seconds[0] : (MOST_TIMES - 1) * pace->seconds[0]) / 4;
  } else if (team == pace->team) {
    note_usual(pace, turned, rows, each, seconds);
  } else {
    note_trial(pace, team, rows, each);
  }
}
