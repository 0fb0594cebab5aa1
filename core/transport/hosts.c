/* hosts.c: ranks of several machines add up within each machine through memory, and between machines over TCP, one rank of each.
 *
 * The order is that of the ranks, as everywhere, so that a sum does not depend on who shares a machine with whom: the ranks of a machine
 * follow each other (hosts_open.c), the first one adds what has come from the machine before to its own elements, and the sum over the
 * machine then goes on to the next one. The last machine has the whole, which goes back the same way. A large sum is cut into pieces, which
 * are under way one after the other: when `lag` pieces have gone forth the first one comes back. All ranks make the same row of steps, so
 * that no two ranks wait for each other. Each machine sends a sum's bytes twice at most, once each way, however many ranks it has.
 *
 * Of small sums every rank gets all elements, and adds up itself: one way through the network. */
#include "transport/hosts.h"

#include <stdio.h>
#include <string.h>
#include "base/memory.h"
#include "transport/group_call.h"
#include "transport/group_sum.h"

/* ---- failures ------------------------------------------------------------------------------------------------------------------ */

static void abort_all(const flow_hosts *self, const char *reason)
{
  flow_communicator *const links[] = { self->near, self->far, self->before, self->after };
  for (int i = 0; i < 4; i++) if (links[i]) flow_communicator_abort(links[i], reason);
}

/* A failure of one connection ends all of them, so that ranks which wait on others see it. where: for the message, among whom the
 * connection is, whose own ranks count from 0. A wrong argument or missing memory breaks nothing (transport.h). The first failure counts:
 * after an abort it is the abort's reason that is raised, not the lost connection that it causes. */
static flow_status keep(flow_hosts *self, flow_status status, const char *where)
{
  char text[FLOW_REASON_SIZE];
  if (status == FLOW_OK || status == FLOW_INVALID_ARGUMENT || status == FLOW_OUT_OF_MEMORY) return status;
  snprintf(text, sizeof text, "%s: %.400s", where, flow_last_error());
  flow_failure_set(&self->failure, status, text, NULL);
  abort_all(self, text);
  return flow_failure_raise(&self->failure);
}

/* keep() with the words for a call within this machine. */
static flow_status keep_near(flow_hosts *self, flow_status status)
{
  char where[96];
  snprintf(where, sizeof where, "among ranks %d to %d, which share a machine", self->firsts[self->host], self->firsts[self->host + 1] - 1);
  return keep(self, status, where);
}

/* keep() with the words for a call between machines. */
static flow_status keep_far(flow_hosts *self, flow_status status)
{
  char where[96];
  snprintf(where, sizeof where, "among the %d machines, of which this is %d", self->hosts, self->host);
  return keep(self, status, where);
}

#define NEAR(call) do { if (self->near) FLOW_TRY(keep_near(self, call)); } while (0)
#define FAR(link, call) do { if (link) FLOW_TRY(keep_far(self, call)); } while (0)

/* A call begins. The time limit may have been changed since the last one, so it is handed on to the links. Fails with the first failure
 * once there is one. */
static flow_status enter(flow_hosts *self, flow_group_operation what)
{
  flow_communicator *const links[] = { self->near, self->far, self->before, self->after };
  for (int i = 0; i < 4; i++) if (links[i]) links[i]->timeout = self->base.timeout;
  if (!flow_failure_is_set(&self->failure)) return FLOW_OK;
  return flow_fail(self->failure.status, "%s: %s", flow_group_operation_name(what), self->failure.message);
}

/* From any thread. The reason is set first, so that calls that end because of it report it. */
static void abort_calls(flow_communicator *communicator, const char *reason)
{
  flow_hosts *self = (flow_hosts *)communicator;
  flow_failure_set(&self->failure, FLOW_ABORTED, reason, NULL);
  abort_all(self, reason);
}

/* ---- gathers ------------------------------------------------------------------------------------------------------------------- */

/* What each machine has goes to all first ranks, which are told as many bytes of each as the largest has. padded: hosts * each bytes,
 * or NULL where all machines have as many ranks, so that the parts are at their places in `all` already. */
static flow_status gather_far(flow_hosts *self, int64_t bytes, char *all, char *padded)
{
  int64_t each = self->most * bytes;
  char *own = all + self->firsts[self->host] * bytes;
  int64_t own_bytes = (self->firsts[self->host + 1] - self->firsts[self->host]) * bytes;
  if (!padded) {
    FAR(self->far, flow_communicator_all_gather(self->far, own, each, all));
    return FLOW_OK;
  }
  char *place = padded + self->host * each;
  if (own_bytes > 0) memcpy(place, own, (size_t)own_bytes);
  if (each > own_bytes) memset(place + own_bytes, 0, (size_t)(each - own_bytes));      /* else others would see what lay there before */
  FAR(self->far, flow_communicator_all_gather(self->far, place, each, padded));
  for (int h = 0; h < self->hosts && bytes > 0; h++) {
    size_t taken = (size_t)((self->firsts[h + 1] - self->firsts[h]) * bytes);
    if (h != self->host) memcpy(all + self->firsts[h] * bytes, padded + h * each, taken);
  }
  return FLOW_OK;
}

/* Within the machine, between the first ranks, then what came from before and after to the others of the machine. */
static flow_status gather_padded(flow_hosts *self, const char *mine, int64_t bytes, char *all, char *padded)
{
  int first = self->firsts[self->host], end = self->firsts[self->host + 1];
  char *own = all + first * bytes;
  if (!self->near && bytes > 0 && mine != own) memcpy(own, mine, (size_t)bytes);
  NEAR(flow_communicator_all_gather(self->near, mine, bytes, own));
  if (self->far) FLOW_TRY(gather_far(self, bytes, all, padded));
  if (first > 0) NEAR(flow_communicator_broadcast(self->near, 0, all, first * bytes));
  if (end < self->base.size) NEAR(flow_communicator_broadcast(self->near, 0, all + end * bytes, (self->base.size - end) * bytes));
  return FLOW_OK;
}

/* Machines may have different numbers of ranks, while the gather between machines needs equal sizes: only then each machine's part is
 * padded to the largest, in memory of its own. */
static flow_status all_gather(flow_communicator *communicator, const void *mine, int64_t bytes, void *all)
{
  flow_hosts *self = (flow_hosts *)communicator;
  void *padded = NULL;
  size_t each, total;
  FLOW_TRY(enter(self, FLOW_GROUP_ALL_GATHER));
  if (self->far && self->most * self->hosts != self->base.size) {
    FLOW_TRY(flow_multiply((size_t)bytes, (size_t)self->most, &each));
    FLOW_TRY(flow_multiply(each, (size_t)self->hosts, &total));
    FLOW_TRY(flow_alloc(total + 1, &padded));
  }
  flow_status status = gather_padded(self, mine, bytes, all, padded);
  flow_free(padded);
  return status;
}

/* Three legs: within the root's machine (whose first rank then has the data, too), between machines, within the other machines. */
static flow_status broadcast(flow_communicator *communicator, int from, void *data, int64_t bytes)
{
  flow_hosts *self = (flow_hosts *)communicator;
  int root = 0;
  while (self->firsts[root + 1] <= from) root++;
  FLOW_TRY(enter(self, FLOW_GROUP_BROADCAST));
  if (root == self->host) NEAR(flow_communicator_broadcast(self->near, from - self->firsts[root], data, bytes));
  FAR(self->far, flow_communicator_broadcast(self->far, root, data, bytes));
  if (root != self->host) NEAR(flow_communicator_broadcast(self->near, 0, data, bytes));
  return FLOW_OK;
}

/* Near, far, near: a first rank goes to the far barrier when its whole machine has come, and lets the machine go on when all machines
 * have. */
static flow_status barrier(flow_communicator *communicator)
{
  flow_hosts *self = (flow_hosts *)communicator;
  FLOW_TRY(enter(self, FLOW_GROUP_BARRIER));
  NEAR(flow_communicator_barrier(self->near));
  FAR(self->far, flow_communicator_barrier(self->far));
  NEAR(flow_communicator_barrier(self->near));
  return FLOW_OK;
}

/* ---- sums ---------------------------------------------------------------------------------------------------------------------- */

/* Few bytes: every rank gathers those of all ranks and adds them up in the order of ranks. */
static flow_status add_small(flow_hosts *self, flow_dtype dtype, void *data, int64_t bytes)
{
  FLOW_TRY(all_gather(&self->base, data, bytes, self->small));
  for (int rank = 0; rank < self->base.size; rank++) self->parts[rank] = self->small + rank * bytes;
  flow_sum_ranks((int)dtype, data, self->parts, self->base.size, bytes);
  return FLOW_OK;
}

/* This machine's part is added to that of those before it. Only a machine's first rank has `before` and `after`. It adds what came to
 * its own elements, so that the sum over the machine, which begins with this rank, goes on in the order of all ranks. Then `data` of
 * every rank of the machine is the sum so far. */
static flow_status go_forth(flow_hosts *self, flow_dtype dtype, char *data, int64_t bytes)
{
  FAR(self->before, flow_communicator_broadcast(self->before, 0, self->piece, bytes));
  if (self->before) flow_sum_ranks((int)dtype, data, (const void *[]){ self->piece, data }, 2, bytes);
  NEAR(flow_communicator_all_reduce(self->near, dtype, data, bytes / (int64_t)flow_dtype_size(dtype)));
  FAR(self->after, flow_communicator_broadcast(self->after, 0, data, bytes));
  return FLOW_OK;
}

/* The whole comes from the machine after this one; the last one has it. A broadcast from rank 1 of a pair: its second rank is the later
 * machine. On the last machine every rank has the whole since go_forth. */
static flow_status come_back(flow_hosts *self, char *data, int64_t bytes)
{
  FAR(self->after, flow_communicator_broadcast(self->after, 1, data, bytes));
  FAR(self->before, flow_communicator_broadcast(self->before, 1, data, bytes));
  if (self->host < self->hosts - 1) NEAR(flow_communicator_broadcast(self->near, 0, data, bytes));
  return FLOW_OK;
}

/* Of a sum of `bytes`, which has more than `piece` pieces: the last one is shorter. */
static int64_t piece_bytes(int64_t bytes, int64_t piece)
{
  int64_t left = bytes - piece * FLOW_HOSTS_PIECE;
  return left < FLOW_HOSTS_PIECE ? left : FLOW_HOSTS_PIECE;
}

/* The calls on each link come in the same order at both ends: in every step the piece that goes forth, then the one that comes back. */
static flow_status all_reduce(flow_communicator *communicator, flow_dtype dtype, void *data, int64_t count)
{
  flow_hosts *self = (flow_hosts *)communicator;
  int64_t bytes = count * flow_dtype_size(dtype), pieces = (bytes + FLOW_HOSTS_PIECE - 1) / FLOW_HOSTS_PIECE;
  int64_t lag = 2 * (self->hosts - 1);      /* as long as a piece takes to the last machine and back */
  FLOW_TRY(enter(self, FLOW_GROUP_ALL_REDUCE));
  if (bytes <= FLOW_HOSTS_SMALL) return add_small(self, dtype, data, bytes);
  for (int64_t step = 0; step < pieces + lag; step++) {
    int64_t back = step - lag;
    if (step < pieces) FLOW_TRY(go_forth(self, dtype, (char *)data + step * FLOW_HOSTS_PIECE, piece_bytes(bytes, step)));
    if (back >= 0) FLOW_TRY(come_back(self, (char *)data + back * FLOW_HOSTS_PIECE, piece_bytes(bytes, back)));
  }
  return FLOW_OK;
}

/* Also of a group that was not opened to its end (hosts_open.c): each link may be NULL. */
static void close_rank(flow_communicator *communicator)
{
  flow_hosts *self = (flow_hosts *)communicator;
  flow_communicator_close(self->before);
  flow_communicator_close(self->after);
  flow_communicator_close(self->far);
  flow_communicator_close(self->near);
  flow_free(self->small);
  flow_free(self->piece);
  flow_free(self);
}

const flow_transport flow_transport_hosts = {
  .name = "hosts", .all_reduce = all_reduce, .broadcast = broadcast, .all_gather = all_gather, .barrier = barrier, .abort = abort_calls,
  .close = close_rank,
};
