/* shared_open.c: how ranks on one machine find the memory that they share: the first makes a file without a name (memfd) and tells the
 * others its process and descriptor over the communicator that they have; they open /proc/PROCESS/fd/DESCRIPTOR, which Linux allows to
 * the same user in the same namespace of processes. A random number in the file says that it is the right one, its seals that nobody can
 * cut it. When all have it, all use it, and the descriptors are closed: with the last process the memory is gone. */
#define _GNU_SOURCE                      /* memfd_create, seals */
#include "dist/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/memory.h"

#if !defined(MFD_NOEXEC_SEAL)
#define MFD_NOEXEC_SEAL 8u               /* Linux 6.3 */
#endif

enum { MACHINE = 64, MOST_MEMORY = 1 << 28, SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

/* What a rank tells the others. */
typedef struct card {
  char     machine[MACHINE];             /* the start of the machine and the namespace of processes; "": this rank cannot or may not */
  int64_t  process, descriptor;          /* rank 0's: of the memory */
  uint64_t secret[2];                    /* rank 0's */
  uint64_t probe_address, probe;         /* where this rank's own number lies, and which it is */
} card;

static int read_boot(char *text, size_t size)
{
  FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
  int found = file && fgets(text, (int)size, file) != NULL;
  if (file) fclose(file);
  text[found ? strcspn(text, "\n") : 0] = 0;
  return found;
}

static void describe_machine(char machine[MACHINE])
{
  char boot[MACHINE / 2 + 8];
  struct stat namespace;
  if (!read_boot(boot, sizeof boot) || stat("/proc/self/ns/pid", &namespace) != 0) return;
  snprintf(machine, MACHINE, "%s %llx", boot, (unsigned long long)namespace.st_ino);
}

static int is_allowed(void)
{
  const char *setting = getenv("FLOW_SHARED_MEMORY");
  return !setting || strcmp(setting, "0") != 0;
}

/* ---- the memory ---------------------------------------------------------------------------------------------------------------- */

static flow_shared_group *map(int descriptor, size_t bytes)
{
  void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, 0);
  return at == MAP_FAILED ? NULL : at;
}

/* A system may want it said that the file is not a program; an older one does not know the word. */
static int make_file(void)
{
  int descriptor = memfd_create("flow_shared", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
  if (descriptor >= 0 || errno != EINVAL) return descriptor;
  return memfd_create("flow_shared", MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

/* Rank 0: a descriptor, or -1. All of the memory is taken now: later there would be nobody to report to. */
static int make_memory(flow_shared *self, uint64_t secret[2])
{
  int descriptor = make_file();
  if (descriptor < 0) return -1;
  if (fallocate(descriptor, 0, 0, (off_t)self->bytes) == 0 && fcntl(descriptor, F_ADD_SEALS, SEALS) == 0
      && getrandom(secret, 2 * sizeof *secret, 0) == 2 * sizeof *secret && (self->group = map(descriptor, self->bytes))) {
    memcpy(self->group->secret, secret, sizeof self->group->secret);
    return descriptor;
  }
  close(descriptor);
  return -1;
}

/* The others. */
static void open_memory(flow_shared *self, const card *first)
{
  char path[64];
  struct stat found;
  snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)first->process, (long long)first->descriptor);
  int descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0) return;
  int seals = fcntl(descriptor, F_GET_SEALS);
  if (seals >= 0 && (seals & SEALS) == SEALS && fstat(descriptor, &found) == 0 && found.st_size == (off_t)self->bytes) {
    self->group = map(descriptor, self->bytes);
  }
  close(descriptor);
  if (!self->group || memcmp(self->group->secret, first->secret, sizeof first->secret) == 0) return;
  munmap(self->group, self->bytes);
  self->group = NULL;
}

/* So that a rank that ends is noticed. An old kernel has no such descriptors: then it is the time limit that notices. */
static void watch_peers(flow_shared *self, const card *cards)
{
  for (int rank = 0; rank < self->base.size; rank++) {
    self->peers[rank].process = cards[rank].process;
#if defined(SYS_pidfd_open)
    if (rank != self->base.rank) self->peers[rank].watch = (int)syscall(SYS_pidfd_open, (pid_t)cards[rank].process, 0);
#endif
  }
}

/* ---- agreeing ------------------------------------------------------------------------------------------------------------------ */

static flow_status new_shared(flow_communicator *inner, flow_shared **out)
{
  size_t ranks = (size_t)inner->size, members;
  void *block;
  FLOW_TRY(flow_multiply(ranks, sizeof(flow_shared_member), &members));
  FLOW_TRY(flow_alloc_zero(sizeof(flow_shared) + ranks * (sizeof(flow_shared_peer) + FLOW_MOST_ARRAYS * sizeof(uint64_t)), &block));
  flow_shared *self = block;
  self->addresses = (uint64_t *)(self->peers + ranks);
  self->base = (flow_communicator){ &flow_transport_shared, inner->rank, inner->size, inner->timeout };
  self->inner = inner;
  self->bytes = sizeof(flow_shared_group) + members;
  for (size_t rank = 0; rank < ranks; rank++) self->peers[rank].watch = -1;
  flow_breakage_start(&self->breakage);
  *out = self;
  return FLOW_OK;
}

static void drop(flow_shared *self)
{
  for (int rank = 0; rank < self->base.size; rank++) {
    if (self->peers[rank].watch >= 0) close(self->peers[rank].watch);
  }
  if (self->group) munmap(self->group, self->bytes);
  flow_breakage_end(&self->breakage);
  flow_free(self);
}

/* Every rank finds the same. */
static int are_together(const card *cards, int size)
{
  for (int rank = 0; rank < size; rank++) {
    if (!cards[rank].machine[0] || memcmp(cards[rank].machine, cards[0].machine, MACHINE) != 0) return 0;
  }
  return 1;
}

/* Whether this rank can read the memory of all others: systems may keep processes of the same user from it. */
static int reads_all(const flow_shared *self, const card *cards)
{
  for (int rank = 0; rank < self->base.size; rank++)
    if (rank != self->base.rank && !flow_shared_can_read(cards[rank].process, cards[rank].probe_address, cards[rank].probe)) return 0;
  return 1;
}

/* *all: do all ranks have the memory? `cards` has room for one of each rank and one more. */
static flow_status meet(flow_shared *self, card *cards, int *descriptor, int *all)
{
  enum { HAS_IT = 1, READS = 2 };
  card *mine = &cards[self->base.size];
  mine->process = getpid();
  mine->probe_address = (uint64_t)(uintptr_t)&self->probe;
  if (getrandom(&self->probe, sizeof self->probe, 0) == sizeof self->probe) mine->probe = self->probe;
  if (is_allowed() && self->bytes <= MOST_MEMORY) describe_machine(mine->machine);
  if (self->base.rank == 0 && mine->machine[0]) {
    *descriptor = make_memory(self, mine->secret);
    mine->descriptor = *descriptor;
    if (*descriptor < 0) mine->machine[0] = 0;
  }
  FLOW_TRY(flow_communicator_all_gather(self->inner, mine, sizeof *mine, cards));
  if (!are_together(cards, self->base.size)) return FLOW_OK;
  if (self->base.rank != 0) open_memory(self, &cards[0]);
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

flow_status flow_communicator_share(flow_communicator **communicator)
{
  flow_communicator *inner = *communicator;
  flow_shared *self = NULL;
  void *cards = NULL;
  int descriptor = -1, all = 0;
  if (inner->size == 1 || flow_communicator_is_shared(inner)) return FLOW_OK;
  FLOW_TRY(new_shared(inner, &self));
  flow_status status = flow_alloc_zero(((size_t)inner->size + 1) * sizeof(card), &cards);
  if (status == FLOW_OK) status = meet(self, cards, &descriptor, &all);
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
