/* simulated_cluster.h: a whole cluster of protocols in one process and in made-up time. Connections deliver in order, after delays; they
 * break, fall silent, and processes crash, freeze and come again, all by one seed. What the protocol promises is checked at every event:
 * a broken promise is a sentence in `broken`, and the run ends.
 *
 * Each process runs the same little program: join; in each step meet the others at a barrier (every fifth step the chief sets a value
 * that the others get); after an abort join again; after the last step say goodbye. The chief pauses before a step for who has come. */
#ifndef FLOW_SPEC_SIMULATED_CLUSTER_H
#define FLOW_SPEC_SIMULATED_CLUSTER_H

#include <stdio.h>

#include "cluster/control/frame.h"
#include "cluster/control/protocol.h"

enum { SIM_MOST_NODES = 6, SIM_MOST_CONNECTIONS = 20000, SIM_TEXT = 1100 };

typedef enum sim_kind {
  SIM_BOOT, SIM_CRASH, SIM_FREEZE, SIM_CUT, SIM_MUTE,                  /* faults; node, seconds */
  SIM_TIMER, SIM_WORK, SIM_ARRIVE, SIM_CONNECTED, SIM_CLOSED, SIM_REFUSED
} sim_kind;

typedef struct sim_event {
  struct sim_event *next;
  double   at;
  unsigned order;
  int      kind, node, process, connection;      /* process: of the node it is meant for; an older one's events are void */
  double   seconds;
  size_t   count;
  uint8_t  bytes[];
} sim_event;

/* One direction of a connection: numbers and readers are those of frame.h. */
typedef struct sim_direction { double last; uint64_t number; flow_frame_reader reader; } sim_direction;

/* ends: 0 is the member's, 1 the chief's. */
typedef struct sim_connection {
  int node[2], process[2], open[2], muted;
  sim_direction to[2];                           /* what arrives at that end */
} sim_connection;

typedef struct sim_node {
  flow_cluster  *cluster;
  const char    *job, *version, *signature;
  flow_protocol *protocol;                       /* NULL: the process is not running */
  int            process, restarts, finished, failed, running, awaiting, reports, starved;
  double         frozen_until, wakeup, step;
  uint64_t       generation;                     /* the last that this process saw, and the chief's process it had it from */
  int            chief_process;
  uint64_t       entered_generation;             /* the last barrier */
  int            entered_step;
  uint32_t       request;
  unsigned       work;                           /* the event that goes on with the program */
  int            aborts;
  char           verdict[SIM_TEXT], last_words[SIM_TEXT];
  int            culprit;
} sim_node;

typedef struct simulation {
  unsigned long long random;
  double         now, slowest;                    /* slowest: seconds a message takes at most */
  unsigned       order;
  int            min_workers, shards;             /* of all processes' options; set after sim_begin */
  double         shrink_after;
  int            starves;                         /* memory is out at some time, which is then the end of a process */
  int            nodes, steps, verbose, connection_count;
  sim_event     *events;
  sim_node       node[SIM_MOST_NODES];
  sim_connection *connections;
  uint64_t       verdict_generation;              /* of the newest verdict of a chief */
  int            verdict_process, verdict_culprit;
  char           verdict[SIM_TEXT], broken[4 * SIM_TEXT];
  double         base_bytes, most_bytes, last_event;
  int            notices;
} simulation;

#define SIM_BREAK(sim, ...) do { if (!(sim)->broken[0]) snprintf((sim)->broken, sizeof (sim)->broken, __VA_ARGS__); } while (0)
#define SIM_SAY(sim, ...) do { if ((sim)->verbose) { printf("%9.3f ", (sim)->now); printf(__VA_ARGS__); printf("\n"); } } while (0)

/* ---- a run (simulated_cluster.c) ----------------------------------------------------------------------------------------------------- */

/* A cluster that nobody has booted; chief: whether there is a job "chief"; ps: of the nodes, this many are parameter servers. sim_end must
 * follow, which breaks the promise that nothing is left over. */
void sim_begin(simulation *sim, unsigned long long seed, int nodes, int chief, int ps);
void sim_end(simulation *sim);

/* Boots everybody at once. */
void sim_boot_all(simulation *sim);

/* A fault to come: `kind` from SIM_BOOT to SIM_MUTE; seconds: how long it lasts, for a crash until the process comes again, -1: never. */
void sim_plan(simulation *sim, double at, int kind, int node, double seconds);

/* Until nothing happens any more, a promise is broken, or `until`. */
void sim_run(simulation *sim, double until);

/* ---- time, chance and connections (simulated_network.c) ------------------------------------------------------------------------------ */

/* A number from 0 to below - 1; one from `from` to `to`. */
unsigned sim_random(simulation *sim, unsigned below);
double   sim_real(simulation *sim, double from, double to);

/* An event after all that are planned until then; the caller may set its other fields. */
sim_event *sim_schedule(simulation *sim, double at, int kind, int node, const void *bytes, size_t count);

/* Which end of the connection the node's present process has; -1: neither. */
int sim_end_of(const simulation *sim, const sim_connection *connection, int node);

/* To that end, in order after all that was sent there before. */
void sim_deliver(simulation *sim, int number, int end, int kind, const void *bytes, size_t count);
void sim_send(simulation *sim, int node, int number, const uint8_t *bytes, size_t count);
void sim_dial(simulation *sim, int node);

/* This end is gone; the other learns of it in time, unless nothing gets through any more. */
void sim_close(simulation *sim, int number, int end);
void sim_close_all(simulation *sim, int node);

#endif
