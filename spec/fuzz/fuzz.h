/* spec/fuzz: one file a parser. A file defines LLVMFuzzerTestOneInput, which feeds the parser these bytes; whatever they are, it must
 * come back without a crash, a leak or memory beyond reason. scripts/fuzz drives it with libFuzzer; spec/c/test_corpus.c replays
 * corpus/<target>/, where inputs go that once found something. "sources:" lines in a file's first comment name what the target is
 * linked with besides core/base, core/io and core/tensor, a "plugins:" line the plugins that it opens.
 *
 * fuzz.h: what targets share: most readers take a path, so the bytes become a file in memory. */
#ifndef FLOW_SPEC_FUZZ_H
#define FLOW_SPEC_FUZZ_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "flow.h"

/* Opens the bytes as a file; its path in `path`. The caller closes the descriptor. */
static inline int fuzz_file(const uint8_t *bytes, size_t count, char path[64])
{
  int descriptor = memfd_create("fuzz", MFD_CLOEXEC);
  if (descriptor < 0 || write(descriptor, bytes, count) != (ssize_t)count) abort();
  snprintf(path, 64, "/proc/self/fd/%d", descriptor);
  return descriptor;
}

/* Every target ends with FUZZ_TARGET(name). test_corpus.c, which includes them all, renames the function. */
#define FUZZ_TARGET(name)                                                                                       \
  int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);                                               \
  int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)                                                \
  {                                                                                                             \
    double before = flow_live_bytes();                                                                          \
    name(bytes, count);                                                                                         \
    if (flow_live_bytes() != before) abort();                                                                   \
    return 0;                                                                                                   \
  }

#endif
