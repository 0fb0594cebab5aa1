/* worker_encrypt.c: FLOW_ENCRYPT=1: what workers send each other between machines is sealed, as the control plane's frames are, by the
 * same functions (cluster/control/control_plugin.h). Each connection has its own keys, made of random bytes that both ends have left in
 * the store, which the control plane seals with the cluster's secret. begin, seal, open and end are the functions of a flow_link_seal
 * (transport/transport.h); a session belongs to one connection, and is used by one thread at a time in each direction. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cluster/control/control_plugin.h"
#include "cluster/worker/worker_state.h"

typedef struct session {
  const flow_control_functions *functions;
  flow_control_session         *keys;
} session;

static void end(void *state)
{
  session *self = state;
  self->functions->close(self->keys);
  flow_free(self);
}

/* *out: a session with keys that follow from `key`. dialed: whether this end dialed, which tells the two directions apart. */
static flow_status begin(const void *functions, const uint8_t key[FLOW_LINK_KEY], int dialed, void **out)
{
  static const uint8_t nonce[FLOW_CONTROL_NONCE];      /* the key is new for each connection */
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(session), &block));
  session *self = block;
  self->functions = functions;
  flow_status status = self->functions->open(key, FLOW_LINK_KEY, dialed, nonce, nonce, &self->keys);
  if (status == FLOW_OK) *out = self;
  else flow_free(self);
  return status;
}

static flow_status seal(void *state, uint64_t number, const uint8_t *contents, size_t count, uint8_t *to)
{
  const session *self = state;
  const flow_seal *way = self->functions->outgoing(self->keys);
  return way->seal(way->state, number, contents, count, to);
}

static flow_status open(void *state, uint64_t number, const uint8_t *sealed, size_t count, uint8_t *to)
{
  const session *self = state;
  const flow_seal *way = self->functions->incoming(self->keys);
  return way->open(way->state, number, sealed, count, to);
}

/* How many bytes a seal adds. */
static flow_status find_overhead(const flow_control_functions *functions, size_t *overhead)
{
  static const uint8_t key[FLOW_LINK_KEY];
  void *state;
  FLOW_TRY(begin(functions, key, 1, &state));
  const session *self = state;
  *overhead = self->functions->outgoing(self->keys)->overhead;
  end(state);
  return FLOW_OK;
}

flow_status flow_worker_prepare_seal(flow_worker *worker)
{
  const char *setting = getenv("FLOW_ENCRYPT");
  if (!setting || !*setting || strcmp(setting, "0") == 0) return FLOW_OK;
  if (strcmp(setting, "1") != 0) return flow_fail(FLOW_INVALID_ARGUMENT, "FLOW_ENCRYPT is 0 or 1, got \"%.40s\"", setting);
  if (strcmp(worker->transport, "mpi") == 0) {
    return flow_fail(FLOW_UNSUPPORTED, "FLOW_ENCRYPT=1: MPI does not encrypt what it sends: use RING, or a network that encrypts");
  }
  const flow_control_functions *functions = flow_control_sealing(worker->control);
  if (!functions) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "FLOW_ENCRYPT=1 needs a secret that all workers have, by which they agree on keys: set "
                     "FLOW_SECRET or FLOW_SECRET_FILE");
  }
  worker->seal = (flow_link_seal){ .state = functions, .begin = begin, .seal = seal, .open = open, .close = end };
  FLOW_TRY(find_overhead(functions, &worker->seal.overhead));
  worker->encrypts = 1;
  return FLOW_OK;
}
