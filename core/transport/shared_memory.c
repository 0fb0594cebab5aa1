/* shared_memory.c: memory that processes of one machine share: one makes a file without a name (memfd) and tells the others its process and
 * descriptor; they open /proc/PROCESS/fd/DESCRIPTOR, which Linux allows to the same user in the same namespace of processes. A random
 * number at its start says that it is the right one, its seals keep it from being truncated. The descriptors are closed when all have
 * it: with the last process the memory is gone. */
#define _GNU_SOURCE                      /* memfd_create, seals */
#include "transport/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/entropy.h"
#include "base/memory.h"

#if !defined(MFD_NOEXEC_SEAL)
#define MFD_NOEXEC_SEAL 8u               /* Linux 6.3 */
#endif

#if !defined(MADV_COLLAPSE)
#define MADV_COLLAPSE 25                 /* Linux 6.1 */
#endif

#define HUGE_PAGE_BYTES ((size_t)2 << 20)
#define MOST_BYTES ((int64_t)1 << 30) /* larger buffers are not shared: MAP_POPULATE takes all pages at once */

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

/* An address from which `bytes` are free and where a huge page may begin; NULL, which leaves the choice to the system, for less than one
 * or where there is no room. The address is a hint to mmap and is not mapped yet. */
static void *address_for_huge_pages(size_t bytes)
{
  if (bytes < HUGE_PAGE_BYTES) return NULL;
  void *room = mmap(NULL, bytes + HUGE_PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return NULL;
  munmap(room, bytes + HUGE_PAGE_BYTES);
  return (void *)(((uintptr_t)room + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES);
}

/* All pages are taken now (MAP_POPULATE), so that the first sum does not wait for page faults, and put together to huge pages, as private
 * memory has them (memory.c). Shared memory gets huge pages by a setting of the system that is off by default, or by this call, which
 * may fail: then pages stay small. */
static void *map(int descriptor, size_t bytes)
{
  void *at = mmap(address_for_huge_pages(bytes), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, 0);
  if (at == MAP_FAILED) return NULL;
  if (bytes >= HUGE_PAGE_BYTES) madvise(at, bytes / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES, MADV_COLLAPSE);
  return at;
}

/* A system may want it said that the file is not a program; an older one does not know the word. */
static int make_file(void)
{
  int descriptor = memfd_create("flow_shared", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
  if (descriptor >= 0 || errno != EINVAL) return descriptor;
  return memfd_create("flow_shared", MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

/* All of the memory is taken now: a failure later could not be reported. */
void *flow_shared_memory_make(size_t bytes, flow_shared_file *file)
{
  int descriptor = make_file();
  void *memory = NULL;
  file->process = getpid();
  file->descriptor = descriptor;
  if (descriptor < 0) return NULL;
  if (fallocate(descriptor, 0, 0, (off_t)bytes) == 0 && fcntl(descriptor, F_ADD_SEALS, SEALS) == 0 &&
      flow_entropy(file->secret, sizeof file->secret) && (memory = map(descriptor, bytes))) {
    memcpy(memory, file->secret, sizeof file->secret);
    return memory;
  }
  close(descriptor);
  file->descriptor = -1;
  return NULL;
}

/* NULL where the system forbids it (another user, another namespace, no /proc), or the file is not the one that was meant: the number of a
 * process that has ended may belong to another one. The seals and the size are checked before the file is mapped, so that no later
 * truncation can end this process by SIGBUS. */
void *flow_shared_memory_open(size_t bytes, const flow_shared_file *file)
{
  char path[64];
  struct stat found;
  void *memory = NULL;
  snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)file->process, (long long)file->descriptor);
  int descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0) return NULL;
  int seals = fcntl(descriptor, F_GET_SEALS);
  if (seals >= 0 && (seals & SEALS) == SEALS && fstat(descriptor, &found) == 0 && found.st_size == (off_t)bytes)
    memory = map(descriptor, bytes);
  close(descriptor);
  if (!memory || memcmp(memory, file->secret, sizeof file->secret) == 0) return memory;
  munmap(memory, bytes);
  return NULL;
}

/* ---- more of it, for the ranks of a group ------------------------------------------------------------------------------------------ */

/* has_it[rank]: it has the memory. */
static flow_status make_for_all(flow_shared *self, int64_t bytes, flow_shared_file *file, int32_t *has_it, void **memory)
{
  if (self->base.rank == 0 && bytes <= MOST_BYTES) *memory = flow_shared_memory_make((size_t)bytes, file);
  FLOW_TRY(flow_communicator_broadcast(&self->base, 0, file, sizeof *file));
  if (self->base.rank != 0 && file->descriptor >= 0) *memory = flow_shared_memory_open((size_t)bytes, file);
  has_it[self->base.size] = *memory != NULL;
  return flow_communicator_all_gather(&self->base, &has_it[self->base.size], sizeof *has_it, has_it);
}

/* Every rank calls this. All of them get the region or none does, which is not a failure: then out->memory is NULL and the callers copy.
 * The maker's descriptor is closed once all have mapped the file; the memory lives as long as a mapping. */
flow_status flow_shared_share_region(flow_communicator *communicator, int64_t bytes, flow_shared_region *out)
{
  flow_shared *self = (flow_shared *)communicator;
  flow_shared_file file = { .descriptor = -1 };
  void *block, *memory = NULL;
  FLOW_TRY(flow_alloc_zero(sizeof(int32_t) * ((size_t)self->base.size + 1), &block));
  int32_t *has_it = block;
  flow_status status = make_for_all(self, bytes, &file, has_it, &memory);
  int all = status == FLOW_OK;
  for (int rank = 0; rank < self->base.size; rank++) all &= has_it[rank] != 0;
  if (self->base.rank == 0 && file.descriptor >= 0) close((int)file.descriptor);
  if (memory && !all) munmap(memory, (size_t)bytes);
  flow_free(block);
  if (all) *out = (flow_shared_region){ memory, bytes, ++self->shares };
  return status;
}
