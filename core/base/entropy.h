/* entropy.h: random bytes of the system, which nobody can guess. What a seed determines is drawn with philox.h. */
#ifndef FLOW_BASE_ENTROPY_H
#define FLOW_BASE_ENTROPY_H

#include <stddef.h>

#include "flow_types.h"

/* Fills `count` bytes: by getrandom, or where a sandbox forbids it, from /dev/urandom. Returns 0, with errno, if neither can be had. */
int flow_entropy(void *bytes, size_t count);
/* The same with a status and a sentence. */
flow_status flow_entropy_take(void *bytes, size_t count);

#endif
