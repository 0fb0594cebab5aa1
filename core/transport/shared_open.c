/* shared_open.c: how ranks find out that they are on one machine, and get the memory that they share (shared_memory.c). When all have it,
 * all use it. */
#include "transport/shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/entropy.h"
#include "base/memory.h"

enum { BOOT = 40, SETTING = 48, MOST_MEMORY = 1 << 28 };

/* What a rank tells the others. */
typedef struct card {
  char     machine[FLOW_MACHINE];        /* "": this rank cannot or may not */
  flow_shared_file file;                 /* rank 0's; the process: everybody's own */
  uint64_t probe_address, probe;         /* where this rank's own number is, and its value */
} card;

/* Linux draws this number at each start: it is the same in all containers of a machine, and no other machine has it. */
static int read_boot(char *text, size_t size)
{
  FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
  int found = file && fgets(text, (int)size, file) != NULL;
  if (file) fclose(file);
  text[found ? strcspn(text, "\n") : 0] = 0;
  return found;
}

/* The start of the machine and the namespace of processes, and what the environment says. */
void flow_shared_describe_machine(char machine[FLOW_MACHINE])
{
  char boot[BOOT];
  struct stat namespace;
  const char *setting = getenv("FLOW_SHARED_MEMORY");
  memset(machine, 0, FLOW_MACHINE);
  if (setting && strcmp(setting, "0") == 0) return;
  if (!read_boot(boot, sizeof boot) || stat("/proc/self/ns/pid", &namespace) != 0) return;
  snprintf(machine, FLOW_MACHINE, "%s %llx %.*s", boot, (unsigned long long)namespace.st_ino, SETTING, setting ? setting : "");
}

/* Lets this rank notice the end of another process. Old kernels lack such descriptors; then only the time limit ends a wait. */
static void watch_peers(flow_shared *self, const card *cards)
{
  for (int rank = 0; rank < self->base.size; rank++) {
    self->peers[rank].process = cards[rank].file.process;
#if defined(SYS_pidfd_open)
    if (rank != self->base.rank) self->peers[rank].watch = (int)syscall(SYS_pidfd_open, (pid_t)cards[rank].file.process, 0);
#endif
  }
}

/* ---- agreeing ------------------------------------------------------------------------------------------------------------------ */

/* One block: peers, addresses and parts for all ranks. The memory that is shared comes later. */
static flow_status new_shared(flow_communicator *inner, flow_shared **out)
{
  size_t ranks = (size_t)inner->size, members;
  void *block;
  FLOW_TRY(flow_multiply(ranks, sizeof(flow_shared_member), &members));
  size_t each = sizeof(flow_shared_peer) + FLOW_MOST_ARRAYS * sizeof(uint64_t) + sizeof(void *);
  FLOW_TRY(flow_alloc_zero(sizeof(flow_shared) + ranks * each, &block));
  flow_shared *self = block;
  self->addresses = (uint64_t *)(self->peers + ranks);
  self->parts = (const void **)(self->addresses + FLOW_MOST_ARRAYS * ranks);
  self->base = (flow_communicator){ &flow_transport_shared, inner->rank, inner->size, inner->timeout };
  self->inner = inner;
  self->bytes = sizeof(flow_shared_group) + members;
  for (size_t rank = 0; rank < ranks; rank++) self->peers[rank].watch = -1;
  flow_failure_clear(&self->failure);
  *out = self;
  return FLOW_OK;
}

/* Of a group that was not opened: releases all but the inner communicator, which stays the caller's. */
static void drop(flow_shared *self)
{
  for (int rank = 0; rank < self->base.size; rank++) {
    if (self->peers[rank].watch >= 0) close(self->peers[rank].watch);
  }
  if (self->group) munmap(self->group, self->bytes);
  flow_free(self);
}

/* Every rank finds the same. */
static int are_together(const card *cards, int size)
{
  for (int rank = 0; rank < size; rank++) {
    if (!cards[rank].machine[0] || memcmp(cards[rank].machine, cards[0].machine, FLOW_MACHINE) != 0) return 0;
  }
  return 1;
}

/* Whether this rank can read the memory of all others: systems may keep processes of the same user from it. */
static int reads_all(const flow_shared *self, const card *cards)
{
  for (int rank = 0; rank < self->base.size; rank++)
    if (rank != self->base.rank && !flow_shared_can_read(cards[rank].file.process, cards[rank].probe_address, cards[rank].probe)) return 0;
  return 1;
}

/* *all: do all ranks have the memory? `cards` has room for one of each rank and one more. */
static flow_status meet(flow_shared *self, card *cards, int *descriptor, int *all)
{
  enum { HAS_IT = 1, READS = 2 };
  card *mine = &cards[self->base.size];
  mine->file = (flow_shared_file){ .process = getpid(), .descriptor = -1 };
  mine->probe_address = (uint64_t)(uintptr_t)&self->probe;
  if (flow_entropy(&self->probe, sizeof self->probe)) mine->probe = self->probe;
  flow_shared_describe_machine(mine->machine);
  if (self->base.rank == 0 && mine->machine[0]) {
    self->group = flow_shared_memory_make(self->bytes, &mine->file);
    *descriptor = (int)mine->file.descriptor;
    if (!self->group) mine->machine[0] = 0;
  }
  FLOW_TRY(flow_communicator_all_gather(self->inner, mine, sizeof *mine, cards));
  if (!are_together(cards, self->base.size)) return FLOW_OK;
  if (self->base.rank != 0) self->group = flow_shared_memory_open(self->bytes, &cards[0].file);
  watch_peers(self, cards);
  int32_t has_it = self->group ? HAS_IT : 0, *have_it = (int32_t *)cards;
  if (reads_all(self, cards)) has_it |= READS;
  FLOW_TRY(flow_communicator_all_gather(self->inner, &has_it, sizeof has_it, have_it));
  *all = 1;
  self->reads = 1;
  for (int rank = 0; rank < self->base.size; rank++) {
    *all &= have_it[rank] & HAS_IT;
    self->reads &= (have_it[rank] & READS) != 0;
  }
  return FLOW_OK;
}

/* Replaces *communicator by one over shared memory, which owns the old one and closes it at its end; leaves it as it is where any rank is
 * on another machine or cannot map the memory. That is not a failure. Every rank of the group calls this, since it gathers. */
flow_status flow_communicator_share(flow_communicator **communicator)
{
  flow_communicator *inner = *communicator;
  flow_shared *self = NULL;
  void *cards = NULL;
  int descriptor = -1, all = 0;
  if (inner->size == 1 || flow_communicator_is_shared(inner)) return FLOW_OK;
  FLOW_TRY(new_shared(inner, &self));
  flow_status status = FLOW_OK;                /* all ranks know when a group of this size needs too much memory: then none asks */
  if (self->bytes <= MOST_MEMORY) status = flow_alloc_zero(((size_t)inner->size + 1) * sizeof(card), &cards);
  if (cards) status = meet(self, cards, &descriptor, &all);
  if (descriptor >= 0) close(descriptor);
  flow_free(cards);
  if (status == FLOW_OK && all) *communicator = &self->base;
  else drop(self);
  return status;
}

int flow_communicator_is_shared(const flow_communicator *self)
{
  return self->transport == &flow_transport_shared;
}
