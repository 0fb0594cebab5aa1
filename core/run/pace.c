/* pace.c: see pace.h. */
#include "run/pace.h"

/* Runs shorter than this gain less from other threads than waking them costs. */
static const double worth_a_team = 60e-6;

enum { LEAST_PATIENCE = 4, MOST_PATIENCE = 64, MOST_GROWTH = 4 };

int flow_pace_choose(flow_pace *pace, double rows)
{
  int other = !pace->team;
  if (pace->alone < 2 || pace->seconds[0] * rows < worth_a_team) return 0;
  if (pace->started < 2) return 1;
  if (pace->spent < pace->patience[other] * pace->seconds[other] * rows) return pace->team;
  return other;
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

/* The way that is not taken now was tried, and the other one has done well since it was taken. */
static void note_trial(flow_pace *pace, int team, double each)
{
  be_patient(pace, pace->team, 0.5);
  pace->seconds[team] = each;
  pace->spent = 0;
  if (each < pace->seconds[pace->team]) change_to(pace, team);
  else be_patient(pace, team, 2);
}

/* One slow run is an accident, several in a row are how it is. What the last one took is what going this way again may cost. */
static void note_usual(flow_pace *pace, double each, double seconds)
{
  double *mean = &pace->seconds[pace->team], counted = each < MOST_GROWTH * *mean ? each : MOST_GROWTH * *mean;
  *mean += (counted - *mean) / 4;
  pace->spent += seconds;
  if (*mean <= pace->seconds[!pace->team]) return;
  if (*mean < each) *mean = each;
  be_patient(pace, pace->team, 2);
  change_to(pace, !pace->team);
}

void flow_pace_note(flow_pace *pace, int team, double rows, double seconds)
{
  double each = seconds / rows;
  if (!team && pace->alone < 2) {
    if (pace->alone++ == 0 || each < pace->seconds[0]) pace->seconds[0] = each;
  } else if (team && pace->started < 2) {
    if (pace->started++ == 0 || each < pace->seconds[1]) pace->seconds[1] = each;
    pace->patience[0] = pace->patience[1] = LEAST_PATIENCE;
    change_to(pace, pace->seconds[1] < pace->seconds[0]);
  } else if (pace->started < 2) {
    pace->seconds[0] += (each < MOST_GROWTH * pace->seconds[0] ? each - pace->seconds[0] : (MOST_GROWTH - 1) * pace->seconds[0]) / 4;
  } else if (team == pace->team) {
    note_usual(pace, each, seconds);
  } else {
    note_trial(pace, team, each);
  }
}
