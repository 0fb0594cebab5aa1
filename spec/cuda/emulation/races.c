/* races.c: whether threads of one launch touch the same bytes without an order between them, one of them writing: in the memory of a block,
 * or in that of the device. A GPU orders threads of a block by barriers alone, those of a warp also by waits for the warp, and blocks by
 * the counters of arrival.h. Here the threads take turns, so that a result may be right without a barrier that a GPU needs.
 *
 * With FLOW_EMULATED_BOUNDS=1 each access of a kernel (raced_bodies.c) is compared with the last ones to the same byte: who wrote it, and
 * who read it. Bodies that are whole say who they are, and where their barriers are, by warps.h. */
#include "cuda/emulation/emulation.h"

#include <string.h>
#include "base/memory.h"
#include "cuda/runtime/device_table.h"

/* Of a byte, or of two neighbouring ones that are touched together: the last access of a kind. thread: one, or ALL. Several that read
 * between two barriers are OF_WARP less the warp's number where they have one warp, else SOME. */
enum { ALL = EMULATED_ALL_THREADS, SOME = -2, OF_WARP = -16, WARP = 32, PAGE = 1024, RECENT = 256, MOST_SHARED = 49152 };

typedef struct visit {
  uint32_t launch;
  int32_t block;
  uint16_t barrier;
  int16_t round, thread;
} visit;
typedef struct visits {
  visit write, read;
} visits;
typedef struct page {
  uintptr_t number;
  visits *bytes;
} page;

emulated_place emulated_here;

static struct {
  page *list;
  size_t capacity, count;
} pages; /* a table of hashes; a number of 0 is none */
static visits in_common[MOST_SHARED];

/* At which counter a block has arrived, the last time, and which thread between which barriers; NULL: at none. */
typedef struct arrival {
  const void *counter;
  int barrier, thread;
} arrival;
static struct {
  arrival *list; /* [block] */
  int capacity;
  int64_t count;
} arrivals;
static arrival observed; /* the one by which the block has found itself the last */

/* ---- where things are -------------------------------------------------------------------------------------------------------------- */

static page *slot_of(page *list, size_t capacity, uintptr_t number)
{
  size_t at = (number * 0x9e3779b97f4a7c15u) >> 20;
  while (list[at % capacity].number && list[at % capacity].number != number) at++;
  return &list[at % capacity];
}

static int grow(void)
{
  void *made;
  size_t larger = pages.capacity ? 2 * pages.capacity : 4096;
  if (flow_alloc_zero(larger * sizeof(page), &made) != FLOW_OK) return 0;
  for (size_t i = 0; i < pages.capacity; i++)
    if (pages.list[i].number) *slot_of(made, larger, pages.list[i].number) = pages.list[i];
  flow_free(pages.list);
  pages.list = made;
  pages.capacity = larger;
  return 1;
}

/* The visits of a byte; NULL where memory is short, so that races on the byte are not found. */
static visits *visits_of(const char *at)
{
  static page recent[RECENT];
  const uintptr_t number = (uintptr_t)at / PAGE;
  page *known = &recent[number % RECENT];
  void *made;
  if (known->number == number) return &known->bytes[(uintptr_t)at % PAGE];
  if (2 * pages.count >= pages.capacity && !grow()) return NULL;
  page *found = slot_of(pages.list, pages.capacity, number);
  if (!found->number) {
    if (flow_alloc_zero(PAGE * sizeof(visits), &made) != FLOW_OK) return NULL;
    *found = (page){ number, made };
    pages.count++;
  }
  *known = *found;
  return &known->bytes[(uintptr_t)at % PAGE];
}

/* ---- order ------------------------------------------------------------------------------------------------------------------------- */

/* One thread arrives for its block: what the others wrote before a barrier that it waited at has come with it, and those of the last block
 * may read it after the next one. */
static int has_come(const visit *earlier)
{
  const emulated_place *here = &emulated_here;
  if (!observed.counter || earlier->block >= arrivals.count) return 0;
  const arrival *came = &arrivals.list[earlier->block];
  if (came->counter != observed.counter) return 0;
  if (here->barrier == observed.barrier && here->thread != observed.thread) return 0;
  return earlier->thread == came->thread ? (int16_t)(came->barrier - earlier->barrier) >= 0
                                         : (int16_t)(came->barrier - earlier->barrier) > 0;
}

/* Whether the access is before those that are made here: one of another launch is, and one to the memory of another block. */
static int is_before(const visit *earlier, int is_shared)
{
  const emulated_place *here = &emulated_here;
  if (earlier->launch != here->launch) return 1;
  if (earlier->block != (int32_t)here->block) return is_shared || has_come(earlier);
  if (earlier->barrier != (uint16_t)here->barrier || earlier->thread == here->thread) return 1;
  if (here->thread < 0 || earlier->round == here->round) return 0;
  return earlier->thread >= 0 ? earlier->thread / WARP == here->thread / WARP : earlier->thread == OF_WARP - here->thread / WARP;
}

/* A second reader joins the first. */
static void add_reader(visit *read, int is_shared)
{
  const emulated_place *here = &emulated_here;
  int same = read->launch == here->launch && read->block == (int32_t)here->block && read->barrier == (uint16_t)here->barrier;
  int thread = here->thread;
  if (same && read->thread != thread) {
    int warp = thread >= 0 ? OF_WARP - thread / WARP : SOME, before = read->thread >= 0 ? OF_WARP - read->thread / WARP : read->thread;
    thread = warp == before && warp <= OF_WARP ? warp : SOME;
  }
  /* Of readers in several blocks the first stays: who writes is in another one than one of them in any case. */
  if (!is_shared && read->launch == here->launch && read->block != (int32_t)here->block) return;
  *read = (visit){ here->launch, (int32_t)here->block, (uint16_t)here->barrier, (int16_t)here->round, (int16_t)thread };
}

static int tell(const visit *other, int other_writes, const char *at, int write, int is_shared)
{
  emulated_refuse("race: %s: thread %d of block %lld %s byte %p of %s memory, which thread %d of block %d %s, and nothing orders them "
                  "(-1 and below: several)",
                  flow_cuda_op_name(emulated_here.op), emulated_here.thread, (long long)emulated_here.block, write ? "writes" : "reads",
                  (const void *)at, is_shared ? "the block's" : "the device's", other->thread, (int)other->block,
                  other_writes ? "wrote" : "read");
  return 0;
}

static int visit_byte(visits *byte, const char *at, int write, int is_shared)
{
  const emulated_place *here = &emulated_here;
  if (!is_before(&byte->write, is_shared)) return tell(&byte->write, 1, at, write, is_shared);
  if (!write) {
    add_reader(&byte->read, is_shared);
    return 1;
  }
  if (!is_before(&byte->read, is_shared)) return tell(&byte->read, 0, at, write, is_shared);
  byte->write = (visit){ here->launch, (int32_t)here->block, (uint16_t)here->barrier, (int16_t)here->round, (int16_t)here->thread };
  return 1;
}

int emulated_race_visit(const char *from, size_t bytes, int write)
{
  for (size_t i = 0; i < bytes; i += 2) {
    visits *byte = visits_of(from + i);
    if (byte && !visit_byte(byte, from + i, write, 0)) return 0;
  }
  return 1;
}

int emulated_race_visit_shared(const char *from, size_t bytes, int write)
{
  const char *begin = emulated_here.shared, *end = begin + emulated_here.shared_bytes;
  if (from < begin || from + bytes > end) {
    emulated_refuse("out of bounds: %s %s %d bytes, of which the last is %lld bytes beside the %d bytes of the block's memory",
                    flow_cuda_op_name(emulated_here.op), write ? "writes" : "reads", (int)bytes,
                    (long long)(from < begin ? begin - from : from + bytes - end), (int)emulated_here.shared_bytes);
    return 0;
  }
  const size_t first = (size_t)(from - emulated_here.shared);
  for (size_t i = first; i < first + bytes && i < MOST_SHARED; i += 2)
    if (!visit_byte(&in_common[i], (const char *)i, write, 1)) return 0;
  return 1;
}

/* ---- where it is ------------------------------------------------------------------------------------------------------------------- */

void emulated_races_begin(int op)
{
  static uint32_t launches;
  emulated_here = (emulated_place){ .launch = ++launches, .op = op, .thread = ALL };
  if (arrivals.count > 0) memset(arrivals.list, 0, (size_t)arrivals.count * sizeof *arrivals.list);
  arrivals.count = 0;
  observed = (arrival){ 0 };
}

void emulated_races_block(int64_t block, const void *shared, size_t bytes)
{
  emulated_here.block = block;
  emulated_here.shared = shared;
  emulated_here.shared_bytes = bytes;
  emulated_here.barrier = emulated_here.round = 0;
  emulated_here.thread = ALL;
  observed = (arrival){ 0 };
}

void emulated_arrive(const void *counter, int is_last)
{
  const int64_t block = emulated_here.block;
  if (block >= arrivals.count) {
    if (flow_grow(&arrivals.list, sizeof *arrivals.list, (int)block + 1, &arrivals.capacity) != FLOW_OK) return;
    memset(arrivals.list + arrivals.count, 0, (size_t)(block + 1 - arrivals.count) * sizeof *arrivals.list);
    arrivals.count = block + 1;
  }
  arrivals.list[block] = (arrival){ counter, emulated_here.barrier, emulated_here.thread };
  if (is_last) observed = arrivals.list[block];
}

void emulated_together(void)
{
  if (emulated_here.thread == ALL) return;
  emulated_refuse(
      "divergence: %s: thread %d of block %lld comes alone to where all threads of a warp or of the block have to come together",
      flow_cuda_op_name(emulated_here.op), emulated_here.thread, (long long)emulated_here.block);
  emulated_here.thread = ALL;
  emulated_bounds_break();
}
