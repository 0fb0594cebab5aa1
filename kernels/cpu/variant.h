/* variant.h: a kernel variant in a separate file. The file defines the six functions that FLOW_VARIANT(name) declares;
 * the op's table takes them as FLOW_VARIANT_ENTRY(name, "text"). Their contracts are those of flow_kernel's members (kernels.h). The names
 * have the instruction set in front, since every file is compiled once for each. */
#ifndef FLOW_CPU_VARIANT_H
#define FLOW_CPU_VARIANT_H

#include "cpu/vector.h"

#define FLOW_VARIANT(name)                                                                              \
  int         FLOW_ISA_NAME(name##_supports)(const flow_call *call);                                    \
  double      FLOW_ISA_NAME(name##_cost)(const flow_call *call);                                        \
  size_t      FLOW_ISA_NAME(name##_shared_bytes)(const flow_call *call);                                \
  size_t      FLOW_ISA_NAME(name##_scratch_bytes)(const flow_call *call);                               \
  flow_status FLOW_ISA_NAME(name##_prepare)(const flow_call *call);                                     \
  flow_status FLOW_ISA_NAME(name##_run)(const flow_call *call, int phase, int64_t begin, int64_t end)

/* The same for a variant whose calls can be cut into pieces. */
#define FLOW_PIECES(name)                                                                               \
  FLOW_VARIANT(name);                                                                                   \
  int64_t     FLOW_ISA_NAME(name##_pieces)(const flow_call *call);                                      \
  flow_status FLOW_ISA_NAME(name##_run_piece)(const flow_call *call, int64_t piece)

#define FLOW_VARIANT_ENTRY(name, text)                                                                  \
  { .variant = text, .supports = FLOW_ISA_NAME(name##_supports), .cost = FLOW_ISA_NAME(name##_cost),    \
    .shared_bytes = FLOW_ISA_NAME(name##_shared_bytes), .scratch_bytes = FLOW_ISA_NAME(name##_scratch_bytes), \
    .prepare = FLOW_ISA_NAME(name##_prepare), .run = FLOW_ISA_NAME(name##_run) }

#define FLOW_PIECES_ENTRY(name, text)                                                                   \
  { .variant = text, .supports = FLOW_ISA_NAME(name##_supports), .cost = FLOW_ISA_NAME(name##_cost),    \
    .shared_bytes = FLOW_ISA_NAME(name##_shared_bytes), .scratch_bytes = FLOW_ISA_NAME(name##_scratch_bytes), \
    .prepare = FLOW_ISA_NAME(name##_prepare), .run = FLOW_ISA_NAME(name##_run),                         \
    .pieces = FLOW_ISA_NAME(name##_pieces), .run_piece = FLOW_ISA_NAME(name##_run_piece) }

#endif
