/* transport_calls.c: one process of a group: a folder as key-value store, and the operations compared with plain loops. */
#include "transport_calls.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "tensor/tensor.h"

void nap(double seconds)
{
  nanosleep(&(struct timespec){ .tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - floor(seconds)) * 1e9) }, NULL);
}

/* ---- a folder as key-value store --------------------------------------------------------------------------------------------- */

static void path_of(const setting *self, const char *key, const char *suffix, char path[PATH_BYTES])
{
  snprintf(path, PATH_BYTES, "%s/", self->folder);
  size_t at = strlen(path);
  for (; *key && at < PATH_BYTES - 8; key++) path[at++] = *key == '/' ? '_' : *key;
  snprintf(path + at, PATH_BYTES - at, "%s", suffix);
}

static flow_status set_key(void *state, const char *key, const void *bytes, size_t count)
{
  char path[PATH_BYTES], partial[PATH_BYTES];
  path_of(state, key, "", path);
  path_of(state, key, ".new", partial);
  FILE *file = fopen(partial, "wb");
  if (!file) return flow_fail(FLOW_IO_ERROR, "%s: %s", partial, strerror(errno));
  int written = fwrite(bytes, 1, count, file) == count;
  if (fclose(file) != 0 || !written || rename(partial, path) != 0) return flow_fail(FLOW_IO_ERROR, "%s: %s", path, strerror(errno));
  return FLOW_OK;
}

static flow_status get_key(void *state, const char *key, double seconds, void **bytes, size_t *count)
{
  char path[PATH_BYTES];
  path_of(state, key, "", path);
  FILE *file;
  for (double end = flow_clock() + seconds; !(file = fopen(path, "rb"));) {
    if (flow_clock() > end) return flow_fail(FLOW_TIMED_OUT, "nobody set %s within %g s", key, seconds);
    nap(0.001);
  }
  flow_status status = flow_alloc(1 << 20, bytes);
  if (status == FLOW_OK) *count = fread(*bytes, 1, 1 << 20, file);
  fclose(file);
  return status;
}

flow_store folder_store(setting *self) { return (flow_store){ set_key, get_key, self }; }

void say_ended(const setting *self)
{
  char key[32];
  snprintf(key, sizeof key, "ended%d", self->rank);
  if (self->folder) set_key((void *)(uintptr_t)self, key, "", 0);
}

void wait_for_others(const setting *self, double seconds)
{
  for (int rank = 0; rank < self->size && self->folder; rank++) {
    char key[32];
    void *bytes = NULL;
    size_t count;
    snprintf(key, sizeof key, "ended%d", rank);
    if (rank != self->rank && get_key((void *)(uintptr_t)self, key, 30, &bytes, &count) == FLOW_OK) flow_free(bytes);
  }
  if (!self->folder) nap(seconds);
}

flow_status open_link(const setting *self, const char *group, double timeout, flow_communicator **link)
{
  flow_transport_options options = { .timeout = timeout, .group = group, .address = "127.0.0.1", .store = &self->store };
  if (strcmp(self->transport, "hosts") == 0) return flow_communicator_meet_hosts(self->rank, self->size, &options, 1, link);
  FLOW_TRY(flow_communicator_open(self->transport, self->rank, self->size, &options, link));
  return flow_communicator_share(link);            /* FLOW_SHARED_MEMORY=0 keeps the engine to itself */
}

/* ---- calls that go well ------------------------------------------------------------------------------------------------------ */

static double number(int rank, int64_t i)
{
  uint32_t bits = ((uint32_t)rank * 97u + (uint32_t)i + 1u) * 2654435761u;
  bits ^= bits >> 15;
  return ldexp((double)(int32_t)bits, (int)(bits % 20u) - 40);
}

/* The bits on every rank are those on rank 0. */
static int check_same_bits(flow_communicator *link, const void *data, int64_t bytes)
{
  void *first = malloc((size_t)bytes + 1);
  if (bytes > 0) memcpy(first, data, (size_t)bytes);
  EXPECT(flow_communicator_broadcast(link, 0, first, bytes) == FLOW_OK);
  EXPECT(bytes == 0 || memcmp(first, data, (size_t)bytes) == 0);
  free(first);
  return 0;
}

#define CHECK_SUM(type, dtype, tolerance)                                                                            \
  int check_sum_##type(flow_communicator *link, int64_t count)                                                       \
  {                                                                                                                  \
    type *data = malloc((size_t)count * sizeof(type) + 1);                                                           \
    for (int64_t i = 0; i < count; i++) data[i] = (type)number(link->rank, i);                                       \
    EXPECT(flow_communicator_all_reduce(link, dtype, data, count) == FLOW_OK);                                       \
    for (int64_t i = 0; i < count; i++) {                                                                            \
      double sum = 0, size = 0;                                                                                      \
      type in_order = (type)number(0, i);                                                                            \
      for (int rank = 0; rank < link->size; rank++) {                                                                \
        sum += (double)(type)number(rank, i);                                                                        \
        size += fabs(number(rank, i));                                                                               \
        if (rank > 0) in_order += (type)number(rank, i);                                                             \
      }                                                                                                              \
      EXPECT(fabs((double)data[i] - sum) <= (tolerance) * size);                                                     \
      EXPECT(data[i] == in_order || strcmp(link->transport->name, "mpi") == 0);                                      \
    }                                                                                                                \
    int wrong = check_same_bits(link, data, count * (int64_t)sizeof(type));                                          \
    free(data);                                                                                                      \
    return wrong;                                                                                                    \
  }
CHECK_SUM(float, FLOW_FLOAT32, 4e-7)
CHECK_SUM(double, FLOW_FLOAT64, 1e-15)

/* bfloat16 is added as float32, in the order of the ranks, and rounded once; float16 does not become infinite. */
static int check_short_sums(flow_communicator *link, int64_t count)
{
  uint16_t *data = malloc((size_t)count * sizeof *data + 1), large = flow_float_to_half(60000), most = flow_float_to_half(65504);
  for (int64_t i = 0; i < count; i++) data[i] = flow_float_to_bfloat16((float)number(link->rank, i));
  int adds = strcmp(link->transport->name, "tcp") == 0;
  EXPECT(flow_communicator_all_reduce(link, FLOW_BFLOAT16, data, count) == (adds ? FLOW_OK : FLOW_INVALID_ARGUMENT));
  for (int64_t i = 0; i < count && adds; i++) {
    float sum = flow_bfloat16_to_float(flow_float_to_bfloat16((float)number(0, i)));
    for (int rank = 1; rank < link->size; rank++) sum += flow_bfloat16_to_float(flow_float_to_bfloat16((float)number(rank, i)));
    EXPECT(data[i] == flow_float_to_bfloat16(sum));
  }
  free(data);
  if (!adds) return 0;
  EXPECT(flow_communicator_all_reduce(link, FLOW_FLOAT16, &large, 1) == FLOW_OK);
  EXPECT(large == (link->size == 1 ? flow_float_to_half(60000) : most));
  return 0;
}

static int check_broadcasts(flow_communicator *link, int64_t bytes)
{
  unsigned char *data = malloc((size_t)bytes + 1);
  for (int from = 0; from < link->size; from++) {
    for (int64_t i = 0; i < bytes; i++) data[i] = (unsigned char)(i * 7 + link->rank);
    EXPECT(flow_communicator_broadcast(link, from, data, bytes) == FLOW_OK);
    for (int64_t i = 0; i < bytes; i++) EXPECT(data[i] == (unsigned char)(i * 7 + from));
  }
  free(data);
  return 0;
}

static int check_gather(flow_communicator *link, int64_t bytes)
{
  unsigned char *mine = malloc((size_t)bytes + 1), *all = malloc((size_t)(bytes * link->size) + 1);
  for (int64_t i = 0; i < bytes; i++) mine[i] = (unsigned char)(i * 5 + link->rank);
  EXPECT(flow_communicator_all_gather(link, mine, bytes, all) == FLOW_OK);
  for (int64_t i = 0; i < bytes * link->size; i++) EXPECT(all[i] == (unsigned char)(i % bytes * 5 + i / bytes));
  free(mine);
  free(all);
  return 0;
}

/* More arrays at once than a message has stretches, of which every rank has its part in its place already. */
static int check_gathers(flow_communicator *link, int64_t bytes)
{
  enum { ARRAYS = 19 };
  flow_gathering arrays[ARRAYS];
  for (int k = 0; k < ARRAYS; k++) {
    int64_t part = k % 3 == 1 ? 0 : bytes / (k + 1);
    unsigned char *all = calloc((size_t)(part * link->size) + 1, 1), *mine = all + part * link->rank;
    for (int64_t i = 0; i < part; i++) mine[i] = (unsigned char)(i * 5 + k + link->rank);
    arrays[k] = (flow_gathering){ mine, all, part };
  }
  if ((bytes + link->rank) % 2) EXPECT(flow_communicator_start_gather(link, &arrays[0]) == FLOW_OK); /* by some of the ranks */
  EXPECT(flow_communicator_gather(link, arrays, ARRAYS) == FLOW_OK);
  for (int k = 0; k < ARRAYS; k++) {
    const unsigned char *all = arrays[k].all;
    int64_t part = arrays[k].bytes;
    for (int64_t i = 0; i < part * link->size; i++) EXPECT(all[i] == (unsigned char)(i % part * 5 + k + i / part));
    free(arrays[k].all);
  }
  return 0;
}

/* Only where the ranks share memory. */
static int check_collect(flow_communicator *link, int64_t units)
{
  int32_t *data = malloc((size_t)(units * link->size) * sizeof *data + 1);
  int64_t *first = malloc(2 * (size_t)(link->size + 1) * sizeof *first), *received = first + link->size + 1;
  for (int rank = 0; rank <= link->size; rank++) first[rank] = rank * units;
  for (int64_t i = 0; i < units * link->size; i++) data[i] = link->rank * 1000 + (int32_t)(i % 1000);
  flow_status status = flow_communicator_collect(link, (void *[]){ data }, 1, sizeof *data, first, received);
  EXPECT(status == (flow_communicator_is_shared(link) ? FLOW_OK : FLOW_UNSUPPORTED));
  for (int64_t i = 0; i < units * link->size && status == FLOW_OK; i++) EXPECT(data[i] == (int32_t)(i / units * 1000 + i % 1000));
  free(first);
  free(data);
  return 0;
}

/* One rank's sums are what it has, however many there are: more than an int counts, of which nothing is touched. */
static int check_alone(flow_communicator *link)
{
  float data = 7;
  if (link->size > 1 || strcmp(link->transport->name, "mpi") != 0) return 0;
  EXPECT(flow_communicator_all_reduce(link, FLOW_FLOAT32, &data, (int64_t)INT_MAX + 2) == FLOW_OK && data == 7);
  return 0;
}

int check_calls(flow_communicator *link)
{
  static const int64_t counts[] = { 0, 1, 2, 3, 17, 1000, 16385, LONG };
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    if (check_sum_float(link, counts[i]) || check_sum_double(link, counts[i]) || check_short_sums(link, counts[i])) return 1;
    if (check_broadcasts(link, counts[i]) || check_gather(link, counts[i]) || check_gathers(link, counts[i])) return 1;
    if (check_collect(link, counts[i])) return 1;
    EXPECT(flow_communicator_barrier(link) == FLOW_OK);
  }
  if (check_alone(link)) return 1;
  for (int call = 0; call < 12; call++) {              /* a rank that comes late is waited for, spinning and asleep */
    if (call % link->size == link->rank) nap(call < 6 ? 0.01 : 0.0001);
    if (check_sum_float(link, call % 3 * 1000)) return 1;
  }
  for (int call = 0; call < 200; call++) {             /* without anything in between that would keep the ranks together */
    if (check_sum_float(link, call % 9)) return 1;
  }
  return 0;
}
