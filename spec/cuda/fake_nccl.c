/* fake_nccl.c: a libnccl.so.2 for test_cuda_nccl.c: the ranks are threads of one process and the data are in its memory. As the real one's
 * non-blocking communicators, calls return at once and are in progress until every rank has made them. A sum of 12,345 elements fails; one
 * of 54,321 is held by a graph, until fake_nccl_release_graphs: abort waits for that. */
#define _DEFAULT_SOURCE                  /* usleep */
#include <nccl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 8, BAD_COUNT = 12345, HELD_COUNT = 54321 };

typedef struct group {
  struct group *next;
  ncclUniqueId id;
  int size, arrived, submitted, rounds;
  const void *from[MOST];
  void *to[MOST];
} group;

struct ncclComm { group *group; int rank, waits_for; };      /* waits_for: the round that has to be over; 0: that all are there */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static group *groups;
static int ids, held;

ncclResult_t ncclGetVersion(int *version) { *version = 22809; return ncclSuccess; }
const char *ncclGetErrorString(ncclResult_t code) { return code == ncclSystemError ? "system error" : "some error"; }
const char *ncclGetLastError(ncclComm_t comm) { (void)comm; return "the fake one"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
  memset(id, 0, sizeof *id);
  pthread_mutex_lock(&lock);
  snprintf(id->internal, sizeof id->internal, "fake %d", ++ids);
  pthread_mutex_unlock(&lock);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int size, ncclUniqueId id, int rank, ncclConfig_t *config)
{
  if (config->blocking != 0 || size > MOST) return ncclInvalidArgument;
  pthread_mutex_lock(&lock);
  group *g = groups;
  while (g && memcmp(&g->id, &id, sizeof id) != 0) g = g->next;
  if (!g) {
    g = calloc(1, sizeof *g);
    g->next = groups;
    groups = g;
    g->id = id;
    g->size = size;
  }
  g->arrived++;
  pthread_mutex_unlock(&lock);
  *comm = malloc(sizeof **comm);
  **comm = (struct ncclComm){ g, rank, 0 };
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
  pthread_mutex_lock(&lock);
  const group *g = comm->group;
  *state = g->arrived == g->size && g->rounds >= comm->waits_for ? ncclSuccess : ncclInProgress;
  pthread_mutex_unlock(&lock);
  return ncclSuccess;
}

void fake_nccl_release_graphs(void) { __atomic_store_n(&held, 0, __ATOMIC_RELEASE); }

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
  while (__atomic_load_n(&held, __ATOMIC_ACQUIRE)) usleep(1000);
  free(comm);
  return ncclSuccess;
}

static void sum(const group *g, size_t count, ncclDataType_t type)
{
  for (size_t i = 0; i < count; i++) {
    double total = 0;
    for (int r = 0; r < g->size; r++) total += type == ncclFloat32 ? ((const float *)g->from[r])[i] : ((const double *)g->from[r])[i];
    for (int r = 0; r < g->size; r++) {
      if (type == ncclFloat32) ((float *)g->to[r])[i] = (float)total;
      else ((double *)g->to[r])[i] = total;
    }
  }
}

/* The last of the ranks does the work of all: root -1: a sum, -2: gathers, else a broadcast. */
static ncclResult_t submit(ncclComm_t comm, const void *from, void *to, size_t count, ncclDataType_t type, int root)
{
  pthread_mutex_lock(&lock);
  group *g = comm->group;
  comm->waits_for = g->rounds + 1;
  g->from[comm->rank] = from;
  g->to[comm->rank] = to;
  if (++g->submitted == g->size) {
    if (root == -1) sum(g, count, type);
    for (int r = 0; r < g->size && root >= 0; r++) memmove(g->to[r], g->from[root], count);
    for (int r = 0; r < g->size * g->size && root == -2; r++)
      memcpy((char *)g->to[r / g->size] + (size_t)(r % g->size) * count, g->from[r % g->size], count);
    g->submitted = 0;
    g->rounds++;
  }
  pthread_mutex_unlock(&lock);
  return ncclInProgress;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream)
{
  (void)stream;
  if (count == BAD_COUNT) return ncclSystemError;
  if (count == HELD_COUNT) __atomic_store_n(&held, 1, __ATOMIC_RELEASE);
  return op == ncclSum ? submit(comm, from, to, count, type, -1) : ncclInvalidArgument;
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)
{
  (void)stream;
  return submit(comm, from, to, count, type, root);
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)
{
  (void)stream;
  return submit(comm, from, to, count, type, -2);
}
