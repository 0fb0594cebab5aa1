/* launch.h: how one kernel call is spread over a thread team. Eager ops and the WHOLE entries of plans share it. */
#ifndef FLOW_OPS_LAUNCH_H
#define FLOW_OPS_LAUNCH_H

#include "base/failure.h"
#include "base/team.h"
#include "kernels.h"
#include "ops/op.h"

enum { FLOW_MAX_PHASES = 4 }; /* flow_kernel.phases of any kernel */

/* The rows that a batch of `rows` counts as where variants of a kernel are compared: the next power of two, since what it costs to prepare
 * a variant weighs more for few rows, and no more than 32, where it no longer matters. If `exact`, the same for every batch, so that the
 * variant, and with it the bits of a row, does not depend on how many other rows there are. */
enum { FLOW_MOST_NOMINAL_ROWS = 32, FLOW_EXACT_ROWS = 4 };
int64_t flow_nominal_rows(int64_t rows, int exact);

/* The variant that runs `call`, which has the shapes of the whole batch: the cheapest for the nominal rows among the variants that support
 * it. Never NULL for an op that has kernels (on the CPU all have), since the last variant of a list supports every call. Data may be NULL:
 * only shapes, dtypes and attributes are read. */
const flow_kernel *flow_select_kernel(const flow_device *device, const flow_call *call);

/* A MAP call whose rows are too few for all threads, in pieces: how many there are, and one of them. The pieces depend on shapes alone, and
 * all together do bit by bit what one run does. */
static inline int64_t flow_count_pieces(const flow_kernel *kernel, const flow_call *call)
{
  return kernel->pieces ? kernel->pieces(call) : 1;
}
static inline flow_status flow_run_piece(const flow_kernel *kernel, const flow_call *call, int64_t piece)
{
  return kernel->pieces ? kernel->run_piece(call, piece) : kernel->run(call, 0, 0, 1);
}

/* How a call is cut: parts per phase; a MAP call into `chunk` rows each, or into pieces; a REDUCE call into slots of `chunk` rows, whose
 * partial sums the second phase adds up in their order. by_rows and by_pieces exclude each other; with either a MAP call has one phase.
 * With neither, parts are those of the kernel, or the call is one part. */
typedef struct flow_cut {
  int phases;                     /* 1 to FLOW_MAX_PHASES */
  int by_rows;                    /* parts are chunks of rows of the row operands */
  int sums;                       /* by_rows: of a REDUCE call */
  int by_pieces;                  /* parts are the kernel's pieces */
  int64_t parts[FLOW_MAX_PHASES]; /* of each phase */
  int64_t rows, chunk;            /* by_rows: rows of the call and of a part; the last part may have fewer */
  int row_inputs;                 /* by_rows: which inputs carry rows, bit i for input i */
  size_t partials, slot_bytes;    /* sums: where in `shared` the partial sums begin; of those of a slot */
} flow_cut;
/* The most slots, a power of two of at most FLOW_SUM_SLOTS, whose partial sums of `bytes` each take no more than `usual` bytes, or, for the
 * first FEW of them, `most`. */
int flow_slots_for_sums(size_t bytes, size_t usual, size_t most);
/* Bytes of `shared` of a call that is not cut by a plan: what the kernel asks for, and partial sums. */
size_t flow_shared_bytes(const flow_op_record *record, const flow_kernel *kernel, const flow_call *call);
/* Rows of a MAP call are cut into parts of at least about 64 KB of operands each, up to eight parts a thread; a single row into pieces. The
 * slots of a REDUCE call follow from its shapes alone. A call of less than 128 KB is one part. */
void flow_cut_call(const flow_op_record *record, const flow_kernel *kernel, const flow_call *call, flow_cut *cut);

/* When one member was in one kernel, for profiles: seconds in it, and when it first began and last ended by flow_clock; all 0 before. */
typedef struct flow_watch { double seconds, begin, end; } flow_watch;
/* Adds a stay that began at `begin` and ends now. */
static inline void flow_watch_add(flow_watch *watch, double begin)
{
  watch->end = flow_clock();
  watch->seconds += watch->end - begin;
  if (watch->begin == 0) watch->begin = begin;
}

/* Does one part of a phase, part from 0 to cut->parts[phase] - 1. `call` is the member's own copy (its scratch); cut is that of
 * flow_cut_call for the same shapes. All parts of a phase must be done before the next phase. Fails as the kernel does: on bad data only,
 * and then the outputs are undefined. */
flow_status flow_do_part(const flow_kernel *kernel, const flow_call *call, const flow_cut *cut, int phase, int64_t part);

#endif
