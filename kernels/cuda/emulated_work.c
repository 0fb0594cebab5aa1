/* emulated_work.c: work that was noted down, and how it is carried out later: one piece at a time, of whichever list. A replay is a list
 * of lists, which take turns with all others. */
#include "cuda/emulated.h"

#include <string.h>
#include "base/memory.h"

static void drop(emulated_work *work)
{
  flow_free(work->payload);
  if (work->recording) emulated_recording_release(work->recording);
  if (work->rank) emulated_rank_release(work->rank);
}

static flow_status make_room(emulated_lane *lane)
{
  if (lane->count < lane->capacity) return FLOW_OK;
  int larger = lane->capacity ? 2 * lane->capacity : 64;
  void *grown;
  FLOW_TRY(flow_alloc(sizeof *lane->work * (size_t)larger, &grown));
  if (lane->count > 0) memcpy(grown, lane->work, sizeof *lane->work * (size_t)lane->count);
  flow_free(lane->work);
  lane->work = grown;
  lane->capacity = larger;
  return FLOW_OK;
}

flow_status emulated_add(emulated_lane *lane, const emulated_work *work)
{
  emulated_work kept = *work;
  flow_status status = make_room(lane);
  if (status != FLOW_OK) {
    drop(&kept);
    return status;
  }
  lane->work[lane->count++] = kept;
  return FLOW_OK;
}

void emulated_forget_done(emulated_lane *lane)
{
  for (int i = 0; i < lane->next; i++) drop(&lane->work[i]);
  lane->base += lane->next;
  lane->count -= lane->next;
  if (lane->next > 0 && lane->count > 0) memmove(lane->work, lane->work + lane->next, sizeof *lane->work * (size_t)lane->count);
  lane->next = 0;
}

void emulated_drop_work(emulated_lane *lane)
{
  for (int i = 0; i < lane->count; i++) drop(&lane->work[i]);
  flow_free(lane->work);
  lane->base += lane->count;
  lane->work = NULL;
  lane->count = lane->capacity = lane->next = 0;
}

flow_status emulated_start_replay(const flow_recording *recording, void **out)
{
  FLOW_TRY(flow_alloc(sizeof *recording->lanes * (size_t)recording->count, out));
  emulated_lane *lanes = *out;      /* the same work, not done yet */
  memcpy(lanes, recording->lanes, sizeof *lanes * (size_t)recording->count);
  for (int i = 0; i < recording->count; i++) lanes[i].next = 0;
  return FLOW_OK;
}

/* ---- carrying out ------------------------------------------------------------------------------------------------------------ */

static int is_done(const emulated_lane *lane) { return lane->next == lane->count; }

static int are_done(const emulated_lane *lanes, int count)
{
  for (int i = 0; i < count; i++) {
    if (!is_done(&lanes[i])) return 0;
  }
  return 1;
}

static int can_go_on(const emulated_lane *lanes, int index);

static int can_replay(const emulated_work *work)
{
  for (int i = 0; i < work->recording->count; i++) {
    if (can_go_on(work->payload, i)) return 1;
  }
  return are_done(work->payload, work->recording->count);
}

static int can_go_on(const emulated_lane *lanes, int index)
{
  const emulated_lane *lane = &lanes[index];
  if (is_done(lane)) return 0;
  const emulated_work *work = &lane->work[lane->next];
  switch (work->kind) {
    case WORK_WAIT:    return emulated_done(&lanes[work->lane]) >= work->count;
    case WORK_SEND:    return emulated_may_send(work->rank);
    case WORK_RECEIVE: return emulated_may_receive(work->rank);
    case WORK_REPLAY:  return can_replay(work);
    default:           return 1;
  }
}

/* Who is waited for comes as early as he can; -1: that does not say who. */
static int find_needed(const emulated_lane *lanes, int index)
{
  while (index >= 0 && !is_done(&lanes[index])) {
    if (can_go_on(lanes, index)) return index;
    const emulated_work *work = &lanes[index].work[lanes[index].next];
    index = work->kind == WORK_WAIT ? work->lane : -1;
  }
  return -1;
}

/* By lot, each with the same chance; -1: nobody can. */
static int draw(const emulated_lane *lanes, int count)
{
  int ready[EMULATED_LANES], n = 0;
  for (int i = 0; i < count; i++) {
    if (can_go_on(lanes, i)) ready[n++] = i;
  }
  return n > 0 ? ready[emulated_random((uint64_t)n)] : -1;
}

static int take_turn(emulated_lane *lanes, int count, int chosen);

/* Returns whether it is over. */
static int carry_out(const emulated_work *work)
{
  switch (work->kind) {
    case WORK_LAUNCH:  emulated_kernel(work->kernel, work->count, work->payload); return 1;
    case WORK_COPY:    memcpy(work->to, work->from, work->bytes); return 1;
    case WORK_SET:     memset(work->to, work->byte, work->bytes); return 1;
    case WORK_SEND:    emulated_send(work->rank, work->to, work->bytes); return 1;
    case WORK_RECEIVE: emulated_receive(work->rank, work->dtype, work->to, work->count); return 1;
    case WORK_REPLAY:
      take_turn(work->payload, work->recording->count, draw(work->payload, work->recording->count));
      return are_done(work->payload, work->recording->count);
    case WORK_WAIT: break;
  }
  return 1;
}

static int take_turn(emulated_lane *lanes, int count, int chosen)
{
  if (chosen < 0) chosen = draw(lanes, count);
  if (chosen < 0) return 0;
  if (carry_out(&lanes[chosen].work[lanes[chosen].next])) lanes[chosen].next++;
  return 1;
}

int emulated_carry_out(emulated_lane *lanes, int count, int index)
{
  int everybody = (int)emulated_random(2);
  while (index >= 0 ? !is_done(&lanes[index]) : !are_done(lanes, count)) {
    if (!take_turn(lanes, count, everybody ? -1 : find_needed(lanes, index))) return 0;
  }
  return 1;
}
