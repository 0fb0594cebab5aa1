/* plugin.c: libflow_control.so: keys of a connection, and frames under them, by libsodium. The construction is described in
 * control_plugin.h. A session is two directions with a key each; it is used by one thread at a time in each direction, and different
 * sessions by any threads. */
#include "cluster/control/control_plugin.h"

#include <sodium.h>
#include <stdatomic.h>
#include <string.h>

#include "base/bytes.h"

enum { KEY = crypto_aead_xchacha20poly1305_ietf_KEYBYTES, NONCE = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
       OVERHEAD = crypto_aead_xchacha20poly1305_ietf_ABYTES };

/* What the library lends the plugin: memory and messages (base/plugin.h). Set before any other function is called; if it is set
 * again, then to the same services. */
static const flow_plugin_services *_Atomic core;

/* One direction. next: the number of the frame that is sealed next; a nonce is used once. Only the sender counts with `next`; the
 * receiver is told the number that it expects. */
typedef struct direction { uint8_t key[KEY]; uint64_t next; } direction;

struct flow_control_session {
  direction out, in;
  flow_seal outgoing, incoming;
};

static void start(const flow_plugin_services *services)
{
  atomic_store_explicit(&core, services, memory_order_release);
}

/* Before every first use of libsodium: its generator of random numbers has to be seeded. */
static flow_status ready(void)
{
  if (sodium_init() >= 0) return FLOW_OK;       /* from any thread, as often as one likes */
  return atomic_load(&core)->fail(FLOW_UNSUPPORTED, "libsodium cannot start: the system gives no random numbers");
}

/* 32 random bytes: two connections with the same ones do not occur. */
static flow_status make_nonce(uint8_t bytes[FLOW_CONTROL_NONCE])
{
  flow_status status = ready();
  if (status == FLOW_OK) randombytes_buf(bytes, FLOW_CONTROL_NONCE);
  return status;
}

/* The frame's number, little-endian, is the nonce: unique under a key, since each direction of each connection has its own key. */
static void nonce_of(uint64_t number, uint8_t nonce[NONCE])
{
  memset(nonce, 0, NONCE);
  flow_put_little_endian(nonce, number, 8);
}

/* Encrypts and adds OVERHEAD bytes of authentication. Numbers are used in order and once: with the same nonce twice the cipher would
 * give both texts away. */
static flow_status seal(void *state, uint64_t number, const uint8_t *contents, size_t count, uint8_t *to)
{
  direction *out = state;
  uint8_t nonce[NONCE];
  if (number != out->next) {
    return atomic_load(&core)->fail(FLOW_INTERNAL, "frame %.0f is sealed where %.0f is next", (double)number, (double)out->next);
  }
  out->next++;
  nonce_of(number, nonce);
  crypto_aead_xchacha20poly1305_ietf_encrypt(to, NULL, contents, count, NULL, 0, NULL, nonce, out->key);
  return FLOW_OK;
}

/* A frame that was changed, repeated, left out or made with another secret does not pass, since its number is not the one that is
 * expected. */
static flow_status unseal(void *state, uint64_t number, const uint8_t *sealed, size_t count, uint8_t *to)
{
  const direction *in = state;
  uint8_t nonce[NONCE];
  nonce_of(number, nonce);
  int wrong = count < OVERHEAD || crypto_aead_xchacha20poly1305_ietf_decrypt(to, NULL, NULL, sealed, count, NULL, 0, nonce, in->key) != 0;
  if (!wrong) return FLOW_OK;
  return atomic_load(&core)->fail(FLOW_CORRUPT_DATA, "frame %.0f is not sealed with this cluster's secret: is FLOW_SECRET the same in "
                                  "all tasks?", (double)number);
}

/* The key of one direction ('d': the dialer sends) from the secret and what both sides have drawn at random: BLAKE2b of the secret as
 * the key, over purpose, direction and both nonces. A connection that is recorded and played again meets other nonces. */
static void derive(const uint8_t *secret, size_t count, char which, const uint8_t *dialer, const uint8_t *accepter, uint8_t key[KEY])
{
  static const uint8_t purpose[] = "flowlua control 1";
  uint8_t root[crypto_generichash_BYTES];
  crypto_generichash_state state;
  crypto_generichash(root, sizeof root, secret, count, NULL, 0);
  crypto_generichash_init(&state, root, sizeof root, KEY);
  crypto_generichash_update(&state, purpose, sizeof purpose - 1);
  crypto_generichash_update(&state, (const uint8_t *)&which, 1);
  crypto_generichash_update(&state, dialer, FLOW_CONTROL_NONCE);
  crypto_generichash_update(&state, accepter, FLOW_CONTROL_NONCE);
  crypto_generichash_final(&state, key, KEY);
  sodium_memzero(root, sizeof root);
  sodium_memzero(&state, sizeof state);
}

/* FLOW_OUT_OF_MEMORY or what ready() says. The secret is not kept. */
static flow_status open_session(const uint8_t *secret, size_t count, int dialed, const uint8_t dialer[FLOW_CONTROL_NONCE],
                                const uint8_t accepter[FLOW_CONTROL_NONCE], flow_control_session **out)
{
  void *block;
  flow_status status = ready();
  *out = NULL;
  if (status == FLOW_OK) status = atomic_load(&core)->alloc(sizeof(flow_control_session), &block);
  if (status != FLOW_OK) return status;
  flow_control_session *session = block;
  memset(session, 0, sizeof *session);
  derive(secret, count, dialed ? 'd' : 'a', dialer, accepter, session->out.key);
  derive(secret, count, dialed ? 'a' : 'd', dialer, accepter, session->in.key);
  session->outgoing = (flow_seal){ OVERHEAD, seal, unseal, &session->out };
  session->incoming = (flow_seal){ OVERHEAD, seal, unseal, &session->in };
  *out = session;
  return FLOW_OK;
}

static const flow_seal *outgoing(const flow_control_session *session) { return &session->outgoing; }
static const flow_seal *incoming(const flow_control_session *session) { return &session->incoming; }

/* The keys are overwritten before their memory is given back. */
static void close_session(flow_control_session *session)
{
  if (!session) return;
  sodium_memzero(session, sizeof *session);
  atomic_load(&core)->free(session);
}

static const flow_control_functions functions = { make_nonce, open_session, outgoing, incoming, close_session };

__attribute__((visibility("default"))) extern const flow_plugin flow_plugin_table;
const flow_plugin flow_plugin_table = {
  .abi = FLOW_PLUGIN_ABI, .name = "control", .libraries = "libsodium " SODIUM_VERSION_STRING, .start = start, .functions = &functions,
};
