/* device_group.c: see device_group.h. The threads wait for a round: flow_device_group_run posts a function under a number that they have
 * not seen yet, does member 0's part itself, and waits until `busy` is 0. Rounds do not overlap, since one caller at a time has the
 * group's plan. The threads leave the CPU's team (flow_team_leave): what they enqueue is small, and the team may belong to another
 * caller meanwhile. */
#define _GNU_SOURCE                      /* barriers */
#include "run/device/device_group.h"

#include <string.h>
#include "base/memory.h"
#include "base/need.h"
#include "base/team.h"
#include "base/thread.h"
#include "graph/context.h"
#include "run/device/device_exchange.h"

/* A thread of the crew, with its member's number. */
typedef struct hand { struct flow_crew *crew; int member; flow_thread thread; } hand;

typedef struct flow_crew {
  pthread_mutex_t       lock;
  pthread_cond_t        changed;
  pthread_barrier_t     meeting;
  int                   count, started;
  int64_t               round;           /* changes when there is something to do */
  int                   busy;            /* members but the caller that are at it */
  flow_member_function *function;        /* NULL: the threads end */
  void                 *argument;
  hand                  hands[];
} flow_crew;

/* ---- threads ----------------------------------------------------------------------------------------------------------------- */

/* One member's thread: does each round's function, and ends when there is none. It is not of the team, whose threads compute. */
static void *work(void *argument)
{
  hand *self = argument;
  flow_crew *crew = self->crew;
  int64_t seen = 0;
  flow_team_leave();
  for (;;) {
    pthread_mutex_lock(&crew->lock);
    while (crew->round == seen) pthread_cond_wait(&crew->changed, &crew->lock);
    seen = crew->round;
    flow_member_function *function = crew->function;
    void *given = crew->argument;
    pthread_mutex_unlock(&crew->lock);
    if (!function) return NULL;
    function(self->member, given);
    pthread_mutex_lock(&crew->lock);
    if (--crew->busy == 0) pthread_cond_broadcast(&crew->changed);
    pthread_mutex_unlock(&crew->lock);
  }
}

/* Begins a round. function NULL: the threads end. */
static void post(flow_crew *crew, flow_member_function *function, void *argument)
{
  pthread_mutex_lock(&crew->lock);
  crew->function = function;
  crew->argument = argument;
  crew->busy = crew->started;
  crew->round++;
  pthread_cond_broadcast(&crew->changed);
  pthread_mutex_unlock(&crew->lock);
}

/* Ends the threads and frees the crew, also one whose threads were not all started. NULL is fine. */
static void end(flow_crew *crew)
{
  if (!crew) return;
  post(crew, NULL, NULL);
  for (int i = 0; i < crew->started; i++) flow_thread_join(&crew->hands[i].thread);
  pthread_barrier_destroy(&crew->meeting);
  pthread_cond_destroy(&crew->changed);
  pthread_mutex_destroy(&crew->lock);
  flow_free(crew);
}

/* Returns an errno, 0 if all were started. crew->started says how many were. */
static int start_threads(flow_crew *crew)
{
  int error = 0;
  for (int i = 0; i < crew->count - 1 && !error; i++) {
    crew->hands[i] = (hand){ .crew = crew, .member = i + 1 };
    error = flow_thread_start(&crew->hands[i].thread, "flow-device", work, &crew->hands[i]);
    if (!error) crew->started++;
  }
  return error;
}

/* Once for a group; the caller's thread is member 0, so one thread fewer than members is started. */
flow_status flow_device_group_start(flow_device_group *group)
{
  void *block;
  if (!group || group->crew || group->count == 1) return FLOW_OK;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_crew) + sizeof(hand) * (size_t)group->count, &block));
  flow_crew *crew = block;
  crew->count = group->count;
  pthread_mutex_init(&crew->lock, NULL);
  pthread_cond_init(&crew->changed, NULL);
  pthread_barrier_init(&crew->meeting, NULL, (unsigned)group->count);
  int error = start_threads(crew);
  if (error) {
    end(crew);
    return flow_fail(FLOW_IO_ERROR, "the thread of a replica cannot start: %s", strerror(error));
  }
  group->crew = crew;
  return FLOW_OK;
}

/* Without a crew, of one device, the caller does all of it. */
void flow_device_group_run(flow_device_group *group, flow_member_function *function, void *argument)
{
  flow_crew *crew = group ? group->crew : NULL;
  if (crew) post(crew, function, argument);
  function(0, argument);
  if (!crew) return;
  pthread_mutex_lock(&crew->lock);
  while (crew->busy > 0) pthread_cond_wait(&crew->changed, &crew->lock);
  pthread_mutex_unlock(&crew->lock);
}

void flow_device_group_meet(flow_device_group *group)
{
  if (group && group->crew) pthread_barrier_wait(&group->crew->meeting);
}

/* ---- life -------------------------------------------------------------------------------------------------------------------- */

/* Two replicas on one device would wait for each other's sums on one queue, so each has its own device. */
static flow_status find_places(flow_context *context, const int *devices, flow_device_group *group)
{
  for (int i = 0; i < group->count; i++) {
    flow_place *place;
    FLOW_TRY(flow_context_place_of(context, devices[i], &place));
    if (!place) return flow_fail(FLOW_INVALID_ARGUMENT, "replica %d of a group of GPUs is to be on the host", i);
    for (int k = 0; k < i; k++)
      if (group->places[k] == place)
        return flow_fail(FLOW_INVALID_ARGUMENT, "replicas %d and %d are both to be on %s", k, i, flow_place_name(place));
    group->places[i] = flow_place_retain(place);
  }
  return FLOW_OK;
}

/* Threads start later, with flow_device_group_start: a group may be made before a plan needs it. */
flow_status flow_device_group_new(flow_context *context, const int *devices, int count, flow_device_group **out)
{
  FLOW_NEED(out);
  void *block;
  *out = NULL;
  FLOW_NEED(context);
  if (count > 0) FLOW_NEED(devices);
  if (count < 1 || count > FLOW_MOST_DEVICES)
    return flow_fail(FLOW_INVALID_ARGUMENT, "a process trains on 1 to %d GPUs, got %d", FLOW_MOST_DEVICES, count);
  FLOW_TRY(flow_alloc_zero(sizeof(flow_device_group) + sizeof(flow_place *) * (size_t)count, &block));
  flow_device_group *group = block;
  atomic_init(&group->references, 1);
  group->count = count;
  group->places = (flow_place **)(group + 1);
  flow_status status = find_places(context, devices, group);
  if (status == FLOW_OK) *out = group;
  else flow_device_group_release(group);
  return status;
}

flow_device_group *flow_device_group_retain(flow_device_group *group)
{
  if (group) atomic_fetch_add_explicit(&group->references, 1, memory_order_relaxed);
  return group;
}

/* The exchange goes before the threads that its ends were opened on, and the places last. */
void flow_device_group_release(flow_device_group *group)
{
  if (!group || atomic_fetch_sub_explicit(&group->references, 1, memory_order_acq_rel) > 1) return;
  flow_device_exchange_close(group->exchange);
  end(group->crew);
  for (int i = 0; i < group->count; i++) flow_place_release(group->places[i]);
  flow_free(group);
}
