/* host_copies.h: copies within the host's memory, into pinned memory and out of it. */
#ifndef FLOW_CUDA_RUNTIME_HOST_COPIES_H
#define FLOW_CUDA_RUNTIME_HOST_COPIES_H

#include <stddef.h>

/* As memcpy, much of it by several threads: one reads and writes some 10 GB/s, a bus to a GPU takes 25 to 60. Any thread may call it. */
void flow_cuda_copy_host(void *to, const void *from, size_t bytes);

#endif
