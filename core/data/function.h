/* function.h: an element function: what `map` applies to each element. A traced plan is one (plan_function.c); loading an image or
 * parsing a record is one, too: a C file with a struct that begins with flow_function, one const flow_function_class, and a
 * constructor that flow.h offers.
 *
 * A map stage opens one worker per thread. A worker is used by one thread at a time, so it may keep buffers; the function itself
 * is shared and never written to. apply() must depend on the element and on key alone, so that a position can be restored and
 * results do not depend on threads. */
#ifndef FLOW_DATA_FUNCTION_H
#define FLOW_DATA_FUNCTION_H

#include "data/dataset.h"

typedef struct flow_function_class flow_function_class;

/* Does not change once map has taken it; threads share it, each with its own worker. */
struct flow_function {
  const flow_function_class *class;
  _Atomic int references;
  uint64_t    identity;          /* of class and parameters, for flow_iterator_restore */
  int         random;            /* apply reads key->pass; the class's, unless the constructor knows better */
};

/* Keys of random numbers: the pass, by its seed and by its number over the data set, and the element's index in it, counted at the
 * function's input from 0. */
typedef struct flow_element_key {
  uint64_t pass;
  int64_t number, index;
} flow_element_key;

struct flow_function_class {
  const char *name;
  size_t      function_bytes, worker_bytes;      /* of the struct that begins with flow_function; of a worker. Zeroed */
  int         drops;             /* apply may leave out->count 0: then nothing comes of this element, and the next one is tried */
  int         random;            /* apply may read key->pass */
  int         fills_slots;      /* apply may write where `place` says */
  /* The signature of what comes of elements of *in; refuses what the function cannot take. */
  flow_status (*spec)(const flow_function *function, const flow_element_spec *in, flow_element_spec *out);
  flow_status (*open)(const flow_function *function, void *worker);      /* NULL: nothing to do; close() follows a failure, too */
  /* Fills `out`, which is empty; its component i may be place->tensors[i] (a new reference to it), if there is one: memory of that
   * component's dtype and shape, where the consumer would have it (batch_slots.h). `in` stays the caller's, but may be taken from with
   * flow_element_move. A failure is met by the consumer at this element's place; the message should name the element (a path). */
  flow_status (*apply)(const flow_function *function, void *worker, const flow_element_key *key, const flow_element *place,
                       flow_element *in, flow_element *out);
  void        (*close)(const flow_function *function, void *worker);
  void        (*release)(flow_function *function);                       /* frees parameters */
};

/* A function made of nothing but the class; the constructor sets parameters and mixes them into identity. New reference. */
flow_status flow_function_new(const flow_function_class *class, flow_function **out);

/* The path in a text of an element, in a block that grows: *path, which the caller frees. */
flow_status flow_function_path(const flow_tensor *text, char **path, int *capacity);
#endif
