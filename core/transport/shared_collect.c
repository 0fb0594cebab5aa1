/* shared_collect.c: ranks that each have made a part of some arrays fetch each other's.
 *
 * Where the system lets them, they read large parts straight from each other's memory (process_vm_readv): all say where their arrays are,
 * each copies what it lacks, and none goes on before all have. Else, and for little, the parts go through the slots of shared.c. An
 * address that a rank says is only ever used to read from that rank. */
#define _GNU_SOURCE                      /* process_vm_readv */
#include "transport/shared.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

enum { READ_BYTES = 1 << 17, MOST_AT_ONCE = 1 << 30 };      /* from READ_BYTES on parts are read; by one call of the system */

/* ---- through the slots --------------------------------------------------------------------------------------------------------- */

/* The step's units of a rank's part: where they begin and how many they are. None after the last step of a part that is shorter than
 * others. */
static int64_t find_units(const flow_shared_work *of, int rank, int64_t step, int64_t *begin)
{
  int64_t left = of->first[rank + 1] - of->first[rank] - step * of->per_step;
  *begin = of->first[rank] + step * of->per_step;
  return left < 0 ? 0 : left < of->per_step ? left : of->per_step;
}

/* What of the arrays fits into a slot is one array's bytes after the other's. They fit: per_step * unit * arrays is at most
 * FLOW_SHARED_BYTES. */
static void show_units(flow_shared *self, const flow_shared_work *of, int64_t step)
{
  int64_t begin, bytes = find_units(of, self->base.rank, step, &begin) * of->unit;
  unsigned char *to = flow_shared_slot_of(self, self->base.rank, self->step + (unsigned)step)->data;
  for (int i = 0; i < of->array_count && bytes > 0; i++)
    memcpy(to + i * bytes, (const unsigned char *)of->arrays[i] + begin * of->unit, (size_t)bytes);
}

/* What the other ranks have put into their slots of this step, copied to where it belongs. The caller has waited for the slots; its own
 * units are in place. */
static void take_units(flow_shared *self, const flow_shared_work *of, int64_t step)
{
  for (int rank = 0; rank < self->base.size; rank++) {
    int64_t begin, bytes = find_units(of, rank, step, &begin) * of->unit;
    const unsigned char *from = flow_shared_slot_of(self, rank, self->step + (unsigned)step)->data;
    for (int i = 0; i < of->array_count && bytes > 0 && rank != self->base.rank; i++)
      memcpy((unsigned char *)of->arrays[i] + begin * of->unit, from + i * bytes, (size_t)bytes);
  }
}

/* As many steps as the largest part takes. After a failure `received` says how many units of each rank are there: all that were looked
 * at. */
static flow_status collect_by_slots(flow_shared *self, flow_shared_work *todo, int64_t *received)
{
  todo->show = show_units;
  todo->look = take_units;
  todo->steps = 1;
  for (int rank = 0; rank < self->base.size; rank++) {
    int64_t steps = (todo->first[rank + 1] - todo->first[rank] + todo->per_step - 1) / todo->per_step;
    if (steps > todo->steps) todo->steps = steps;
  }
  flow_status status = flow_shared_run(self, todo);
  for (int rank = 0; rank < self->base.size; rank++) {
    int64_t units = todo->first[rank + 1] - todo->first[rank], there = todo->looked * todo->per_step;
    received[rank] = there < units ? there : units;
  }
  return status;
}

/* ---- from the others' memory --------------------------------------------------------------------------------------------------- */

/* Whether this process may read the other one's memory: it reads a word whose value it knows. Yama's ptrace_scope and seccomp profiles of
 * containers may forbid it. */
int flow_shared_can_read(int64_t process, uint64_t address, uint64_t expected)
{
  uint64_t found = ~expected;
  struct iovec to = { &found, sizeof found }, from = { (void *)(uintptr_t)address, sizeof found };
  return process_vm_readv((pid_t)process, &to, 1, &from, 1, 0) == (ssize_t)sizeof found && found == expected;
}

/* The addresses in this process, by which the others read; they are used for reading only, and a wrong one fails there. */
static void show_addresses(flow_shared *self, const flow_shared_work *of, int64_t step)
{
  unsigned char *to = flow_shared_slot_of(self, self->base.rank, self->step + (unsigned)step)->data;
  for (int i = 0; i < of->array_count; i++) {
    uint64_t address = (uintptr_t)of->arrays[i];
    memcpy(to + i * (int)sizeof address, &address, sizeof address);
  }
}

/* Where the arrays of each rank are, as its slot of this step says. */
static void take_addresses(flow_shared *self, const flow_shared_work *of, int64_t step)
{
  for (int rank = 0; rank < self->base.size; rank++) {
    const void *from = flow_shared_slot_of(self, rank, self->step + (unsigned)step)->data;
    memcpy(self->addresses + rank * FLOW_MOST_ARRAYS, from, sizeof(uint64_t) * (size_t)of->array_count);
  }
}

/* Breaks the group, so that the others do not wait at the barrier for this rank. */
static flow_status fail_to_read(flow_shared *self, int rank, int error)
{
  char reason[FLOW_REASON_SIZE];
  snprintf(reason, sizeof reason, "rank %d (process %lld) %s", rank, (long long)self->peers[rank].process,
           error == ESRCH ? "has ended" : "cannot be read from any more");
  flow_shared_break(self, FLOW_IO_ERROR, reason);
  return flow_fail(FLOW_IO_ERROR, "collect: %s", reason);
}

/* One rank's part. A call of the system copies all that it is asked for, or, if the process is gone, nothing. *received counts the
 * units as they come, so that it is right after a failure, too. */
static flow_status read_part(flow_shared *self, const flow_shared_work *of, int rank, int64_t *received)
{
  int64_t units = of->first[rank + 1] - of->first[rank], at_once = MOST_AT_ONCE / (of->unit * of->array_count);
  while (*received < units) {
    struct iovec to[FLOW_MOST_ARRAYS], from[FLOW_MOST_ARRAYS];
    int64_t count = units - *received < at_once ? units - *received : at_once, begin = (of->first[rank] + *received) * of->unit;
    size_t bytes = (size_t)(count * of->unit);
    for (int i = 0; i < of->array_count; i++) {
      to[i] = (struct iovec){ (unsigned char *)of->arrays[i] + begin, bytes };
      from[i] = (struct iovec){ (void *)(uintptr_t)(self->addresses[rank * FLOW_MOST_ARRAYS + i] + (uint64_t)begin), bytes };
    }
    ssize_t copied = process_vm_readv((pid_t)self->peers[rank].process, to, (unsigned long)of->array_count, from,
                                      (unsigned long)of->array_count, 0);
    if (copied != (ssize_t)(bytes * (size_t)of->array_count)) return fail_to_read(self, rank, copied < 0 ? errno : EFAULT);
    *received += count;
  }
  return FLOW_OK;
}

/* The barrier at the end keeps the arrays where they are until everybody has read. */
static flow_status collect_by_reading(flow_shared *self, flow_shared_work *todo, int64_t *received)
{
  todo->show = show_addresses;
  todo->look = take_addresses;
  todo->steps = 1;
  FLOW_TRY(flow_shared_run(self, todo));
  received[self->base.rank] = todo->first[self->base.rank + 1] - todo->first[self->base.rank];
  for (int i = 1; i < self->base.size; i++) {            /* each begins with another one */
    int rank = (self->base.rank + i) % self->base.size;
    FLOW_TRY(read_part(self, todo, rank, &received[rank]));
  }
  return flow_communicator_barrier(&self->base);
}

/* All ranks choose the same way, since `reads` was agreed on when the group was opened and the sizes are compared by check_agreement. */
flow_status flow_shared_collect(flow_communicator *communicator, void *const *arrays, int count, int64_t unit, const int64_t *first,
                                int64_t *received)
{
  flow_shared *self = (flow_shared *)communicator;
  int64_t all = first[communicator->size] - first[0];
  flow_shared_work todo = { .call = { FLOW_GROUP_COLLECT, (int32_t)(unit * count), all }, .arrays = arrays, .array_count = count,
                            .unit = unit, .per_step = FLOW_SHARED_BYTES / (unit * count), .first = first };
  int much = all > READ_BYTES / (unit * count);
  return self->reads && much ? collect_by_reading(self, &todo, received) : collect_by_slots(self, &todo, received);
}
