/* function.c: life of element functions. See function.h. */
#include "data/function.h"

flow_status flow_function_new(const flow_function_class *class, flow_function **out)
{
  void *block;
  *out = NULL;
  FLOW_TRY(flow_alloc_zero(class->function_bytes, &block));
  *out = block;
  (*out)->class = class;
  (*out)->random = class->random;
  atomic_init(&(*out)->references, 1);
  for (const char *letter = class->name; *letter; letter++) (*out)->identity = flow_mix((*out)->identity, (unsigned char)*letter);
  return FLOW_OK;
}

int flow_function_random(const flow_function *function) { return function && function->random; }

flow_function *flow_function_retain(flow_function *function)
{
  if (function) atomic_fetch_add_explicit(&function->references, 1, memory_order_relaxed);
  return function;
}

void flow_function_release(flow_function *function)
{
  if (!function || atomic_fetch_sub_explicit(&function->references, 1, memory_order_acq_rel) > 1) return;
  if (function->class->release) function->class->release(function);
  flow_free(function);
}
