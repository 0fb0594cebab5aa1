/* transport.c: finds the table of a transport by its name, and checks what all of them would have to check. Every flow_communicator_*
 * function is a check of its arguments and a call through the table, so that the transports can trust ranks, dtypes and sizes: after
 * these checks bytes * ranks fits into an int64_t. None of these functions takes a lock: the contract (transport.h) lets one thread at
 * a time use a communicator. */
#include "transport/transport.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "accelerator.h"
#include "base/futex.h"
#include "base/plugin.h"

static const flow_transport *of_transport(const void *functions)
{
  return functions;
}

static const flow_transport *of_accelerators(const void *functions)
{
  return ((const flow_accelerator_table *)functions)->transport;
}

/* Those that are part of the core. */
static const flow_transport *const own[] = { &flow_transport_local, &flow_transport_tcp };

/* Where another transport comes from: a plugin, and what of its functions. */
static const struct { const char *name, *plugin; const flow_transport *(*table)(const void *functions); } plugged[] = {
  { "mpi", "mpi", of_transport }, { "nccl", "cuda", of_accelerators },
};

/* Plugins are opened when a transport of theirs is asked for, not before. */
static flow_status find_transport(const char *name, const flow_transport **out)
{
  for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
    *out = own[i];
    if (strcmp(name, own[i]->name) == 0) return FLOW_OK;
  }
  for (size_t i = 0; i < sizeof plugged / sizeof *plugged; i++) {
    if (strcmp(name, plugged[i].name) != 0) continue;
    const flow_plugin *plugin;
    FLOW_TRY(flow_plugin_open(plugged[i].plugin, &plugin));
    *out = plugged[i].table(plugin->functions);
    return *out ? FLOW_OK : flow_fail(FLOW_UNSUPPORTED, "the emulated device has no transport \"%s\"", name);
  }
  return flow_fail(FLOW_INVALID_ARGUMENT, "there is no transport \"%s\": they are local, tcp, mpi and nccl", name);
}

/* "5000-5015", or one port. FLOW_DATA_PORTS is read for each open, so that a program may set it between two. strtoul takes signs and
 * spaces, which the look at the first characters refuses; a number that it cannot hold becomes ULONG_MAX, which is above MOST_PORT. */
static flow_status parse_ports(const char *text, int *first, int *last)
{
  enum { MOST_PORT = 65535 };
  char *end, *start = NULL;
  unsigned long from = strtoul(text, &end, 10), to = from;
  if (*end == '-') to = strtoul(start = end + 1, &end, 10);
  int digits = isdigit((unsigned char)*text) && (!start || isdigit((unsigned char)*start));
  if (!digits || *end || from < 1 || to < from || to > MOST_PORT) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "FLOW_DATA_PORTS is \"%.100s\"; write FROM-TO, two numbers from 1 to %d, such as 5000-5015",
                     text, MOST_PORT);
  }
  *first = (int)from;
  *last = (int)to;
  return FLOW_OK;
}

/* Checks what no transport has to check again: rank and size, the time limit, FLOW_DATA_PORTS. rank and size -1: a launcher such as
 * mpirun says them. *out is NULL after a failure. The ports of the options go before those of the environment. */
flow_status flow_communicator_open(const char *transport, int rank, int size, const flow_transport_options *options,
                                   flow_communicator **out)
{
  *out = NULL;
  const flow_transport *table;
  FLOW_TRY(find_transport(transport, &table));
  /* A transport that no launcher starts refuses -1 itself (tcp.c, local.c: the size is not the group's). */
  int from_launcher = rank == -1 && size == -1;
  if (!from_launcher && (size < 1 || size > FLOW_MOST_RANKS || rank < 0 || rank >= size)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "rank %d of %d: there are 1 to %d ranks, the first is 0", rank, size, FLOW_MOST_RANKS);
  }
  if (!(options->timeout > 0 && options->timeout <= 1e6)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "a transport's timeout is %g seconds; it must be more than 0 and at most a million",
                     options->timeout);
  }
  flow_transport_options chosen = *options;
  const char *ports = getenv("FLOW_DATA_PORTS");
  if (chosen.first_port == 0 && ports && *ports) FLOW_TRY(parse_ports(ports, &chosen.first_port, &chosen.last_port));
  return table->open(rank, size, &chosen, out);
}

void flow_communicator_close(flow_communicator *self)
{
  if (self) self->transport->close(self);
}

/* That the bytes of all ranks together can be counted, so that transports may multiply them. A negative number is a product that
 * overflowed before (all_reduce). */
static flow_status check_bytes(const flow_communicator *self, const char *operation, const void *data, int64_t bytes)
{
  int64_t all;
  if (bytes < 0 || __builtin_mul_overflow(bytes, (int64_t)self->size, &all) || (bytes > 0 && !data)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %lld bytes at %p on each of %d ranks cannot be", operation, (long long)bytes, data,
                     self->size);
  }
  return FLOW_OK;
}

/* The dtypes that a transport adds. 16-bit floats are for TCP alone: run/replicas/short_sums.c rounds gradients for it. */
flow_status flow_communicator_all_reduce(flow_communicator *self, flow_dtype dtype, void *data, int64_t count)
{
  int adds = dtype == FLOW_FLOAT32 || dtype == FLOW_FLOAT64;
  if (self->transport == &flow_transport_tcp) adds |= dtype == FLOW_BFLOAT16 || dtype == FLOW_FLOAT16;
  if (!adds) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "all_reduce adds float32 and float64, and over TCP bfloat16 and float16, got %s",
                     flow_dtype_name(dtype));
  }
  int64_t bytes;
  if (__builtin_mul_overflow(count, (int64_t)flow_dtype_size(dtype), &bytes)) bytes = -1;
  FLOW_TRY(check_bytes(self, "all_reduce", data, bytes));
  return self->transport->all_reduce(self, dtype, data, count);
}

flow_status flow_communicator_broadcast(flow_communicator *self, int from, void *data, int64_t bytes)
{
  FLOW_TRY(check_bytes(self, "broadcast", data, bytes));
  if (from < 0 || from >= self->size) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "broadcast from rank %d: there are ranks 0 to %d", from, self->size - 1);
  }
  return self->transport->broadcast(self, from, data, bytes);
}

flow_status flow_communicator_all_gather(flow_communicator *self, const void *mine, int64_t bytes, void *all)
{
  FLOW_TRY(check_bytes(self, "all_gather", mine, bytes));
  FLOW_TRY(check_bytes(self, "all_gather", all, bytes));
  return self->transport->all_gather(self, mine, bytes, all);
}

/* A transport that can sends all arrays in one message; with the others it is a gather for each array. After a failure some of the
 * arrays may have been gathered; the communicator is broken then, unless an argument was wrong. */
flow_status flow_communicator_gather(flow_communicator *self, const flow_gathering *arrays, int count)
{
  if (count < 1) return flow_fail(FLOW_INVALID_ARGUMENT, "all_gather of %d arrays", count);
  for (int i = 0; i < count; i++) {
    FLOW_TRY(check_bytes(self, "all_gather", arrays[i].mine, arrays[i].bytes));
    FLOW_TRY(check_bytes(self, "all_gather", arrays[i].all, arrays[i].bytes));
  }
  if (self->transport->gather) return self->transport->gather(self, arrays, count);
  for (int i = 0; i < count; i++) FLOW_TRY(self->transport->all_gather(self, arrays[i].mine, arrays[i].bytes, arrays[i].all));
  return FLOW_OK;
}

flow_status flow_communicator_start_gather(flow_communicator *self, const flow_gathering *first)
{
  FLOW_TRY(check_bytes(self, "all_gather", first->mine, first->bytes));
  FLOW_TRY(check_bytes(self, "all_gather", first->all, first->bytes));
  return self->transport->start_gather ? self->transport->start_gather(self, first) : FLOW_OK;
}

/* `received` is set before anything can fail, since the caller makes the units that did not arrive itself (exchange.h). */
flow_status flow_communicator_collect(flow_communicator *self, void *const *arrays, int count, int64_t unit, const int64_t *first,
                                      int64_t *received)
{
  for (int rank = 0; rank < self->size; rank++) received[rank] = 0;
  if (!self->transport->collect) return flow_fail(FLOW_UNSUPPORTED, "%s: collect needs ranks that share memory", self->transport->name);
  int fits = count >= 1 && count <= FLOW_MOST_ARRAYS && unit >= 1 && unit <= FLOW_MOST_COLLECTED / count && first[0] >= 0;
  for (int rank = 0; rank < self->size; rank++) fits &= first[rank] <= first[rank + 1];
  if (!fits) return flow_fail(FLOW_INVALID_ARGUMENT, "collect: %d arrays with units of %lld bytes cannot be", count, (long long)unit);
  return self->transport->collect(self, arrays, count, unit, first, received);
}

flow_status flow_communicator_share_region(flow_communicator *self, int64_t bytes, flow_shared_region *out)
{
  *out = (flow_shared_region){ .number = 0 };
  if (!self->transport->share_region) return flow_fail(FLOW_UNSUPPORTED, "%s: the ranks share no memory", self->transport->name);
  if (bytes < 1) return flow_fail(FLOW_INVALID_ARGUMENT, "%lld bytes cannot be shared", (long long)bytes);
  return self->transport->share_region(self, bytes, out);
}

flow_status flow_communicator_barrier(flow_communicator *self)
{
  return self->transport->barrier(self);
}

void flow_communicator_abort(flow_communicator *self, const char *reason)
{
  self->transport->abort(self, reason);
}

/* The clock is read after the engine's time was: a call that ends in between still counts as under way, for this one look. */
double flow_communicator_inside(const flow_communicator *self)
{
  int64_t since = self->transport->inside ? self->transport->inside(self) : 0;
  return since ? 1e-9 * (double)(flow_now_nanoseconds() - since) : 0;
}
