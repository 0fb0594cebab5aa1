/* context.h: one caller of the engine (one Lua state): its random seed, its devices, and what it has open. */
#ifndef FLOW_GRAPH_CONTEXT_H
#define FLOW_GRAPH_CONTEXT_H

#include "graph/graph.h"

enum { FLOW_MAX_TRACES = 16, FLOW_MAX_TAPES = 16, FLOW_MOST_DEVICES = 64 };

typedef struct flow_profile flow_profile;

/* What a variable is read as in one trace, or in eager calls (lent.c). */
typedef struct flow_lent {
  flow_variable *variable; /* a reference */
  flow_tensor *value;      /* a reference */
  const flow_graph *graph; /* only compared; NULL: of eager calls */
} flow_lent;

/* What is open. A caller whose coroutines take turns has one of these for each of them, besides the context's own. */
struct flow_scopes {
  flow_context *context;                   /* of which it may be the current one */
  flow_graph   *traces[FLOW_MAX_TRACES];   /* innermost last; references */
  int           trace_count;
  flow_tape    *tapes[FLOW_MAX_TAPES];     /* recording tapes, in order of their start; references */
  int           tape_count;
  flow_lent *lent; /* values that variables have for a while, the newest last */
  int lent_count, lent_room;
  int           autocast;                  /* what float32 variables are read as; FLOW_FLOAT32: as they are */
  int           on_device;                 /* number from 1 of the device for what is made and traced from now on; 0: the host */
};

struct flow_context {
  flow_scopes *scopes;                   /* the current ones: `own`, or those that flow_scopes_enter was given */
  flow_scopes  own;
  int         exact;                     /* precision of what is computed or traced from now on */
  int         replicas;                  /* of traces that begin from now on; 0 and 1: alone */
  int         gathers;                   /* of these traces, see graph.h */
  flow_network network;                  /* of these traces */
  double      bucket_bytes;              /* gradients that are summed over replicas at once; 0: as the library thinks best */
  int         blank;                     /* layers leave their variables at zero */
  uint64_t    seed, draws;               /* flow_context_next_seed: mix(seed, draws++) */
  flow_place *places[FLOW_MOST_DEVICES]; /* this context's, made when first needed; references */
  flow_profile *profile;                 /* made at the first flow_profile_begin (profile.h) */
  /* The only members that other threads and signal handlers may touch. */
  _Atomic int interrupted, preempted;
};

/* The place of a device (-1: NULL, the host), borrowed. devices.c */
flow_status flow_context_place_of(flow_context *context, int device, flow_place **out);
/* The place of what is made from now on; borrowed, NULL: the host. */
flow_place *flow_context_place(const flow_context *context);

void flow_profile_release(flow_profile *profile);   /* NULL is fine */

/* The innermost open trace, or NULL. */
static inline flow_graph *flow_context_trace(const flow_context *context)
{
  const flow_scopes *scopes = context->scopes;
  return scopes->trace_count ? scopes->traces[scopes->trace_count - 1] : NULL;
}

/* The same, or FLOW_INVALID_STATE: `who` names the call that needs one. */
flow_status flow_innermost_trace(flow_context *context, const char *who, flow_graph **out);

/* Tells the eager tapes that record about an op that ran (tape.c). */
flow_status flow_tapes_record(flow_context *context, int op, flow_tensor *const *inputs, int input_count,
                              const flow_attributes *attributes, flow_tensor *const *outputs, int output_count);
/* The graph of the newest tape that knows the tensor; NULL if none does. */
flow_graph *flow_tapes_find(flow_context *context, const flow_tensor *tensor, int *value);
/* Tells them that `tensor` is a reading of a trainable variable. */
flow_status flow_tapes_watch_variable(flow_context *context, flow_variable *variable, flow_tensor *tensor);

/* Input 0 of the op that produced `tensor`, if that op is `op` and a trace or a recording tape knows it; a new reference,
 * or NULL. Losses use it to find the logits that went into a softmax. *attributes are those of the op, if there is one. */
flow_tensor *flow_producer_input(flow_context *context, flow_tensor *tensor, int op, flow_attributes *attributes);

#endif
