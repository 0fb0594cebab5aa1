/* sum.c: sums of many elements over MPI, made of messages between two ranks: every rank adds up its share of the elements for all and
 * sends the others the result. That is what MPI's own allreduce does, too, but Open MPI's takes two to three times as long for sums of
 * megabytes within a machine (FLOW_SHARED_MEMORY=0 scripts/bench --allreduce), and the order in which it adds is its own.
 *
 * The elements are cut into rounds. In a round a rank sends each other rank that one's share and receives its own from all of them
 * ("parts"), adds them up in the order of the ranks, and sends the sum to all ("results"). Two rounds are under way at once: while one is
 * added up, the parts of the next travel. */
#include "communicator.h"

#include "base/plugin.h"
#include "process.h"

enum {
  ROUND_BYTES = 1 << 21,                /* but at least: */
  LEAST_SHARE = 1 << 16,                /* of one rank */
  LINE = 64,
  TAG_PARTS = 1, TAG_RESULTS = 2,
};

/* A sum under way. */
typedef struct sum {
  mpi_communicator *self;
  /* data: the caller's, in place */
  unsigned char    *data, *received;    /* received: two rounds of shares, in the order of the ranks */
  MPI_Request      *requests[2][2];     /* [round % 2][parts, results]: of each other rank one to receive and one to send */
  MPI_Datatype      type;
  int64_t           bytes, round, share_room;
} sum;

/* The bytes of a round that a rank adds up: whole cache lines, as even as they go. *first counts from the start of the data. */
static int64_t find_share(const sum *of, int64_t round, int rank, int64_t *first)
{
  int64_t start = round * of->round, left = of->bytes - start, bytes = left < of->round ? left : of->round;
  int64_t lines = (bytes + LINE - 1) / LINE, size = of->self->base.size, last = lines * (rank + 1) / size * LINE;
  *first = start + lines * rank / size * LINE;
  if (last > bytes) last = bytes;
  return start + last - *first;
}

static unsigned char *received_from(const sum *of, int64_t round, int rank)
{
  return of->received + (round % 2 * of->self->base.size + rank) * of->share_room;
}

/* Begins to send `bytes` at `out` and to receive `expected` into `in`; either may be nothing. */
static int trade(const sum *of, int rank, int tag, void *in, int64_t expected, const void *out, int64_t bytes, MPI_Request *requests)
{
  requests[0] = requests[1] = MPI_REQUEST_NULL;
  int code = expected > 0 ? MPI_Irecv(in, (int)expected, MPI_BYTE, rank, tag, of->self->comm, &requests[0]) : MPI_SUCCESS;
  if (code != MPI_SUCCESS || bytes == 0) return code;
  return MPI_Isend(out, (int)bytes, MPI_BYTE, rank, tag, of->self->comm, &requests[1]);
}

/* With every other rank, the next one first, so that not all begin with the same. */
static int begin(const sum *of, int64_t round, int results)
{
  int rank = of->self->base.rank, size = of->self->base.size, code = MPI_SUCCESS;
  int64_t mine, theirs, my_bytes = find_share(of, round, rank, &mine);
  MPI_Request *requests = of->requests[round % 2][results];
  for (int i = 1; i < size; i++) requests[2 * i - 2] = requests[2 * i - 1] = MPI_REQUEST_NULL;
  for (int i = 1; i < size && code == MPI_SUCCESS; i++) {
    int other = (rank + i) % size;
    int64_t bytes = find_share(of, round, other, &theirs);
    code = results ? trade(of, other, TAG_RESULTS, of->data + theirs, bytes, of->data + mine, my_bytes, &requests[2 * i - 2])
                   : trade(of, other, TAG_PARTS, received_from(of, round, other), my_bytes, of->data + theirs, bytes, &requests[2 * i - 2]);
  }
  return code;
}

/* code: of the beginning of the newest messages; with a failure they are not waited for. */
static flow_status finish(const sum *of, int code, int64_t round, int results)
{
  return flow_mpi_complete(of->self, "all_reduce", code, 2 * (of->self->base.size - 1), of->requests[round % 2][results]);
}

/* The first sum goes to the data's place only when the own part has been read. */
#define ADD(type)                                                                                                       \
  static void add_##type(const sum *of, int64_t round)                                                                  \
  {                                                                                                                     \
    enum { BLOCK = 2048 };                                                                                              \
    type block[BLOCK];                                                                                                  \
    int64_t at;                                                                                                         \
    int64_t all = find_share(of, round, of->self->base.rank, &at) / (int64_t)sizeof(type);                              \
    for (int64_t first = 0; first < all; first += BLOCK) {                                                              \
      int64_t count = all - first < BLOCK ? all - first : BLOCK;                                                        \
      type *mine = (type *)(of->data + at) + first;                                                                     \
      for (int rank = 0; rank < of->self->base.size; rank++) {                                                          \
        const type *next = rank == of->self->base.rank ? mine : (const type *)received_from(of, round, rank) + first;   \
        for (int64_t i = 0; i < count; i++) block[i] = rank == 0 ? next[i] : block[i] + next[i];                        \
      }                                                                                                                 \
      for (int64_t i = 0; i < count; i++) mine[i] = block[i];                                                           \
    }                                                                                                                   \
  }
ADD(float)
ADD(double)

/* The next round's parts are sent before this round's are added up; this round's results travel while the next parts are waited for. */
static flow_status run(const sum *of)
{
  int64_t rounds = (of->bytes + of->round - 1) / of->round;
  int code = begin(of, 0, 0);
  for (int64_t round = 0; round < rounds; round++) {
    if (code == MPI_SUCCESS && round + 1 < rounds) code = begin(of, round + 1, 0);
    FLOW_TRY(finish(of, code, round, 0));
    if (of->type == MPI_FLOAT) add_float(of, round);
    else add_double(of, round);
    code = begin(of, round, 1);
    if (round > 0) FLOW_TRY(finish(of, code, round - 1, 1));
  }
  return finish(of, code, rounds - 1, 1);
}

/* The memory of large sums, taken at the first and kept. share_room follows from the number of ranks alone, so that it is the same for
 * every sum of a communicator. */
static flow_status take_memory(mpi_communicator *self, int64_t share_room)
{
  if (self->requests) return FLOW_OK;
  size_t size = (size_t)self->base.size, requests = 8 * size * sizeof(MPI_Request);
  void *block;
  FLOW_TRY(flow_mpi_services()->alloc((requests + LINE - 1) / LINE * LINE + 2 * size * (size_t)share_room, &block));
  self->requests = block;
  return FLOW_OK;
}

/* `data` is overwritten in place. The memory is sized for the largest round, so that later sums of any length find it. A message has a
 * share's bytes at most, which fit into the int that MPI counts with. */
flow_status flow_mpi_sum(mpi_communicator *self, flow_dtype dtype, void *data, int64_t count)
{
  int64_t size = self->base.size, round = ROUND_BYTES > LEAST_SHARE * size ? ROUND_BYTES : LEAST_SHARE * size;
  int64_t share_room = (round / size / LINE + 2) * LINE;
  FLOW_TRY(take_memory(self, share_room));
  size_t requests = 8 * (size_t)size * sizeof(MPI_Request);
  sum todo = { .self = self, .data = data, .received = (unsigned char *)self->requests + (requests + LINE - 1) / LINE * LINE,
               .type = dtype == FLOW_FLOAT32 ? MPI_FLOAT : MPI_DOUBLE, .bytes = count * (dtype == FLOW_FLOAT32 ? 4 : 8), .round = round,
               .share_room = share_room };
  for (int i = 0; i < 4; i++) todo.requests[i / 2][i % 2] = self->requests + 2 * size * i;
  return run(&todo);
}
