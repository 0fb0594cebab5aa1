/* pace.c: see pace.h. */
#include "run/pace.h"

/* Runs shorter than `worth_a_team` gain less from other threads than handing out parts costs. In those shorter than `short_run` waking
 * threads and filling caches counts. A trial that takes `too_long` more than was thought has found a busy machine, and ends. */
static const double worth_a_team = 15e-6, short_run = 500e-6, too_long = 300e-6, longest_wait = 0.15;

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

/* A run of a trial of the way that is not taken now; the other one has done well since it was taken. */
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

/* One slow run is an accident, several in a row are how it is. What the last one took is what going this way again may cost. The first one
 * after a trial says nothing. */
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

/* Both ways are known. One that is clearly slower has time. */
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
