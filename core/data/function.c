/* function.c: life of element functions. See function.h. A function is counted by any thread and never changes once its constructor has
 * given it away; what a thread needs to run it is its worker's. */
#include "data/function.h"

/* The block has the class's size, zeroed after the head. identity begins with the class's name. */
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

/* NULL is fine, as in flow_function_release. Any thread may release. */
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

/* The text may be strided. *path grows and is reused for the next element. A path may hold any byte; a NUL inside cuts
 * it off for the system. */
flow_status flow_function_path(const flow_tensor *text, char **path, int *capacity)
{
  int64_t length = text->shape[0];
  if (length >= 1 << 16) return flow_fail(FLOW_INVALID_ARGUMENT, "a path of %lld bytes is too long", (long long)length);
  FLOW_TRY(flow_grow(path, 1, (int)length + 1, capacity));
  for (int64_t i = 0; i < length; i++) (*path)[i] = text->data[i * text->strides[0]];
  (*path)[length] = '\0';
  return FLOW_OK;
}
