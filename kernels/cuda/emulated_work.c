/* emulated_work.c: work that was noted down, and how it is carried out later: one piece at a time, of whichever list. */
#include "cuda/emulated.h"

#include <string.h>
#include "base/memory.h"

static void drop(emulated_work *work)
{
  flow_free(work->payload);
  if (work->recording) emulated_recording_release(work->recording);
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

static int can_go_on(const emulated_lane *lanes, int index)
{
  const emulated_lane *lane = &lanes[index];
  if (lane->next == lane->count) return 0;
  const emulated_work *work = &lane->work[lane->next];
  return work->kind != WORK_WAIT || emulated_done(&lanes[work->lane]) >= work->count;
}

/* The lane that comes next, by lot: everybody has the same chance, or, on another day, who is waited for comes as early as he can. */
static int choose(const emulated_lane *lanes, int count, int index, int everybody)
{
  if (!everybody && index >= 0) {
    while (!can_go_on(lanes, index)) index = lanes[index].work[lanes[index].next].lane;      /* it waits for that one */
    return index;
  }
  int ready[EMULATED_LANES], n = 0;
  for (int i = 0; i < count; i++) {
    if (can_go_on(lanes, i)) ready[n++] = i;
  }
  return n > 0 ? ready[emulated_random((uint64_t)n)] : -1;
}

static void replay(const flow_recording *recording)
{
  emulated_lane lanes[EMULATED_LANES];      /* the same work, not done yet */
  memcpy(lanes, recording->lanes, sizeof *lanes * (size_t)recording->count);
  for (int i = 0; i < recording->count; i++) lanes[i].next = 0;
  emulated_carry_out(lanes, recording->count, -1);
}

static void carry_out(const emulated_work *work)
{
  switch (work->kind) {
    case WORK_LAUNCH: emulated_kernel(work->kernel, work->count, work->payload); break;
    case WORK_COPY:   memcpy(work->to, work->from, work->bytes); break;
    case WORK_SET:    memset(work->to, work->byte, work->bytes); break;
    case WORK_REPLAY: replay(work->recording); break;
    case WORK_WAIT:   break;
  }
}

static int is_over(const emulated_lane *lanes, int count, int index)
{
  if (index >= 0) return lanes[index].next == lanes[index].count;
  for (int i = 0; i < count; i++) {
    if (lanes[i].next < lanes[i].count) return 0;
  }
  return 1;
}

void emulated_carry_out(emulated_lane *lanes, int count, int index)
{
  int everybody = (int)emulated_random(2);
  while (!is_over(lanes, count, index)) {
    emulated_lane *lane = &lanes[choose(lanes, count, index, everybody)];
    carry_out(&lane->work[lane->next]);
    lane->next++;
  }
}
