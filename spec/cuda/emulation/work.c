/* work.c: work that was noted down, and how it is carried out later: one piece at a time, of whichever stream. A graph that was launched
 * is one piece of work of its stream, whose nodes take turns with all others. */
#include "cuda/emulation/emulation.h"

#include <string.h>
#include <time.h>
#include "base/memory.h"

emulated_lane emulated_lanes[EMULATED_LANES];
int64_t emulated_host_clock[EMULATED_LANES];

void emulated_merge(int64_t *clock, const int64_t *other)
{
  for (int i = 0; i < EMULATED_LANES; i++) {
    if (other[i] > clock[i]) clock[i] = other[i];
  }
}

void emulated_drop_work(emulated_work *work)
{
  flow_free(work->payload);
  flow_free(work->expected);
  flow_free(work->bounds);
  if (work->nodes) emulated_nodes_release(work->nodes);
  if (work->comm) emulated_comm_release(work->comm);
}

/* ---- lanes ------------------------------------------------------------------------------------------------------------------- */

static cudaError_t make_room(emulated_lane *lane)
{
  if (lane->count < lane->capacity) return cudaSuccess;
  int larger = lane->capacity ? 2 * lane->capacity : 64;
  void *grown;
  if (flow_alloc(sizeof *lane->work * (size_t)larger, &grown) != FLOW_OK) return cudaErrorMemoryAllocation;
  if (lane->count > 0) memcpy(grown, lane->work, sizeof *lane->work * (size_t)lane->count);
  flow_free(lane->work);
  lane->work = grown;
  lane->capacity = larger;
  return cudaSuccess;
}

cudaError_t emulated_add(emulated_lane *lane, const emulated_work *work)
{
  emulated_work kept = *work;
  cudaError_t error = make_room(lane);
  if (error == cudaSuccess) lane->work[lane->count++] = kept;
  else emulated_drop_work(&kept);
  return error;
}

static void forget_done(emulated_lane *lane)
{
  for (int i = 0; i < lane->next; i++) emulated_drop_work(&lane->work[i]);
  lane->base += lane->next;
  lane->count -= lane->next;
  if (lane->next > 0 && lane->count > 0) memmove(lane->work, lane->work + lane->next, sizeof *lane->work * (size_t)lane->count);
  lane->next = 0;
}

void emulated_fail_lane(emulated_lane *lane, cudaError_t failure)
{
  if (lane->failure != cudaSuccess) return;
  lane->failure = failure;
  memcpy(lane->failure_text, emulated_refusal(), sizeof lane->failure_text);
}

/* ---- the nodes of a graph ------------------------------------------------------------------------------------------------------ */

cudaError_t emulated_nodes_add(emulated_nodes *self, const emulated_work *work, const int *behind, int count)
{
  emulated_work kept = *work;
  if (flow_grow(&self->list, sizeof *self->list, self->count + 2, &self->capacity) != FLOW_OK ||
      flow_grow(&self->edges, 2 * sizeof *self->edges, self->edge_count + count + 1, &self->edge_capacity) != FLOW_OK) {
    emulated_drop_work(&kept);
    return cudaErrorMemoryAllocation;
  }
  self->list[self->count] = (emulated_node){ .work = kept, .waits = count };
  for (int i = 0; i < count; i++) {
    self->edges[2 * self->edge_count] = behind[i];
    self->edges[2 * self->edge_count++ + 1] = self->count;
  }
  self->count++;
  if (kept.comm) emulated_comm_recorded(kept.comm, 1);
  return cudaSuccess;
}

/* Lists the edges by the nodes that they come from. */
cudaError_t emulated_nodes_close(emulated_nodes *self)
{
  void *made;
  if (self->count == 0) return cudaSuccess;
  if (flow_alloc(sizeof *self->nexts * (size_t)(self->edge_count + 1), &made) != FLOW_OK) return cudaErrorMemoryAllocation;
  self->nexts = made;
  for (int i = 0; i <= self->count; i++) self->list[i].first_next = 0;
  for (int i = 0; i < self->edge_count; i++) self->list[self->edges[2 * i] + 1].first_next++;
  for (int i = 0; i < self->count; i++) self->list[i + 1].first_next += self->list[i].first_next;
  for (int i = 0; i < self->edge_count; i++) self->nexts[self->list[self->edges[2 * i]].first_next++] = self->edges[2 * i + 1];
  for (int i = self->count; i > 0; i--) self->list[i].first_next = self->list[i - 1].first_next;
  self->list[0].first_next = 0;
  return cudaSuccess;
}

void emulated_nodes_release(emulated_nodes *self)
{
  if (--self->references > 0) return;
  for (int i = 0; i < self->count; i++) {
    if (self->list[i].work.comm) emulated_comm_recorded(self->list[i].work.comm, -1);
    emulated_drop_work(&self->list[i].work);
  }
  flow_free(self->list);
  flow_free(self->edges);
  flow_free(self->nexts);
  flow_free(self->accesses.list);
  flow_free(self);
}

/* ---- replays ----------------------------------------------------------------------------------------------------------------- */

typedef struct replay_node { int waits, stage; } replay_node;
typedef struct replay { int done, ready_count, *ready; replay_node nodes[]; } replay;      /* ready: whose turn it may be */

cudaError_t emulated_replay_start(emulated_nodes *nodes, emulated_work *work)
{
  void *made;
  size_t count = (size_t)nodes->count;
  if (flow_alloc_zero(sizeof(replay) + count * (sizeof(replay_node) + sizeof(int)), &made) != FLOW_OK) return cudaErrorMemoryAllocation;
  replay *self = made;
  self->ready = (int *)(self->nodes + count);
  for (int i = 0; i < nodes->count; i++) {
    self->nodes[i].waits = nodes->list[i].waits;
    if (self->nodes[i].waits == 0) self->ready[self->ready_count++] = i;
  }
  nodes->references++;
  *work = (emulated_work){ .kind = WORK_REPLAY, .nodes = nodes, .payload = self };
  return cudaSuccess;
}

static int can_go_on(const emulated_work *work, int stage);

/* One of those that are ready and can go on, by lot: its place in the list; -1: none can. */
static int draw_ready(const emulated_work *work)
{
  const replay *self = work->payload;
  if (self->ready_count == 0) return -1;
  int first = (int)emulated_random((uint64_t)self->ready_count);
  for (int i = 0; i < self->ready_count; i++) {
    int place = (first + i) % self->ready_count, node = self->ready[place];
    if (can_go_on(&work->nodes->list[node].work, self->nodes[node].stage)) return place;
  }
  return -1;
}

static int carry_out(emulated_lane *lane, const emulated_work *work, int *stage);

/* A turn of one node. Returns whether all are done. */
static int go_on(emulated_lane *lane, const emulated_work *work)
{
  replay *self = work->payload;
  const emulated_nodes *nodes = work->nodes;
  int place = draw_ready(work);
  if (place < 0) return self->done == nodes->count;
  int node = self->ready[place];
  if (!carry_out(lane, &nodes->list[node].work, &self->nodes[node].stage)) return 0;
  self->ready[place] = self->ready[--self->ready_count];
  for (int i = nodes->list[node].first_next; i < nodes->list[node + 1].first_next; i++)
    if (--self->nodes[nodes->nexts[i]].waits == 0) self->ready[self->ready_count++] = nodes->nexts[i];
  return ++self->done == nodes->count;
}

/* ---- carrying out ------------------------------------------------------------------------------------------------------------ */

static int is_done(const emulated_lane *lane) { return lane->next == lane->count; }

static int are_done(void)
{
  for (int i = 0; i < EMULATED_LANES; i++) {
    if (!is_done(&emulated_lanes[i])) return 0;
  }
  return 1;
}

static int can_go_on(const emulated_work *work, int stage)
{
  switch (work->kind) {
    case WORK_WAIT:       return emulated_done(&emulated_lanes[work->lane]) >= work->count;
    case WORK_COLLECTIVE: return emulated_collective_can(work, stage);
    case WORK_REPLAY:     return work->nodes->count == 0 || draw_ready(work) >= 0;
    default:              return 1;
  }
}

static int lane_can_go_on(const emulated_lane *lane)
{
  return !is_done(lane) && can_go_on(&lane->work[lane->next], lane->stage);
}

/* Who is waited for comes as early as he can; -1: that does not say who. */
static int find_needed(int index)
{
  while (index >= 0 && !is_done(&emulated_lanes[index])) {
    const emulated_lane *lane = &emulated_lanes[index];
    if (lane_can_go_on(lane)) return index;
    index = lane->work[lane->next].kind == WORK_WAIT ? lane->work[lane->next].lane : -1;
  }
  return -1;
}

/* By lot, each with the same chance; -1: nobody can. */
static int draw(void)
{
  int ready[EMULATED_LANES], n = 0;
  for (int i = 0; i < EMULATED_LANES; i++) {
    if (lane_can_go_on(&emulated_lanes[i])) ready[n++] = i;
  }
  return n > 0 ? ready[emulated_random((uint64_t)n)] : -1;
}

static void copy(emulated_lane *lane, const emulated_work *work)
{
  if (!emulated_is_as_expected(work))
    emulated_fail_lane(lane, emulated_refuse("hazard: the host writes to pinned memory that an upload still has to read"));
  memcpy(work->to, work->from, work->bytes);
}

/* Returns whether it is over. */
static int carry_out(emulated_lane *lane, const emulated_work *work, int *stage)
{
  switch (work->kind) {
    case WORK_KERNEL:
      emulated_kernel(work);
      if (emulated_bounds_leave()) emulated_fail_lane(lane, cudaErrorUnknown);
      return 1;
    case WORK_COPY:       copy(lane, work); return 1;
    case WORK_SET:        memset(work->to, work->byte, work->bytes); return 1;
    case WORK_COLLECTIVE: return emulated_collective_step(work, (*stage)++);
    case WORK_REPLAY:     return go_on(lane, work);
    case WORK_WAIT:       return 1;
  }
  return 1;
}

static int take_turn(int chosen)
{
  if (chosen < 0) chosen = draw();
  if (chosen < 0) return 0;
  emulated_lane *lane = &emulated_lanes[chosen];
  if (!carry_out(lane, &lane->work[lane->next], &lane->stage)) return 1;
  lane->next++;
  lane->stage = 0;
  return 1;
}

static int is_over(int lane, int64_t position) { return lane >= 0 ? emulated_done(&emulated_lanes[lane]) >= position : are_done(); }

int emulated_carry_out(int lane, int64_t position)
{
  if (is_over(lane, position)) return 1;
  int everybody = (int)emulated_random(2), can = 1;
  emulated_memory_open();
  while (can && !is_over(lane, position)) can = take_turn(everybody ? -1 : find_needed(lane));
  for (int i = 0; i < EMULATED_LANES; i++) forget_done(&emulated_lanes[i]);
  emulated_memory_close();
  return can;
}

void emulated_finish(int lane, int64_t position)
{
  while (!emulated_carry_out(lane, position)) {
    emulated_unlock();
    nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
    emulated_lock();
  }
}
