/* control_plugin.h: libflow_control.so: seals for the control plane's frames (cluster/control/frame.h), by libsodium.
 *
 * Both ends of a connection send 32 random bytes, then only sealed frames. A direction's key is
 *   BLAKE2b-256(key = BLAKE2b-256(secret), "flowlua control 1" | direction | the dialer's bytes | the accepter's bytes)
 * and a frame XChaCha20-Poly1305 under that key, with the frame's number as nonce. So only a process that knows the secret makes a frame
 * that opens, and none of another connection, direction or place does. Who learns the secret later can read what was recorded: there is no
 * forward secrecy. */
#ifndef FLOW_CONTROL_PLUGIN_H
#define FLOW_CONTROL_PLUGIN_H

#include "base/plugin.h"
#include "cluster/control/frame.h"

enum { FLOW_CONTROL_NONCE = 32 };

typedef struct flow_control_session flow_control_session;

typedef struct flow_control_functions {
  flow_status (*nonce)(uint8_t bytes[FLOW_CONTROL_NONCE]);   /* random bytes */
  /* dialed: whether this end dialed; the nonces are those of the two ends. The caller ends it with close. */
  flow_status (*open)(const uint8_t *secret, size_t count, int dialed, const uint8_t dialer[FLOW_CONTROL_NONCE],
                      const uint8_t accepter[FLOW_CONTROL_NONCE], flow_control_session **out);
  const flow_seal *(*outgoing)(const flow_control_session *session);        /* borrowed; frames from number 0 on, without a gap */
  const flow_seal *(*incoming)(const flow_control_session *session);
  void (*close)(flow_control_session *session);              /* forgets the keys; NULL is fine */
} flow_control_functions;

#endif
