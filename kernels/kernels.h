/* kernels.h: the whole contract between the engine and a device's kernels. An author of a back end reads this file.
 *
 * A device is a table that maps every op to a list of kernel variants. Of those whose supports() agrees the one with the
 * lowest cost() runs an op, or the first, where none has a cost. The last variant of a list supports every call of its op
 * ("plain": the oracle of the others).
 *
 * How a kernel is run depends on the op's batch kind (core/ops/op.h):
 *   MAP     output row i needs only row i of the row inputs. The engine hands the kernel a chunk of rows: operands that
 *           carry rows are already moved to the first row of the chunk and shortened, others come whole.
 *           The kernel does the whole call: phase 0, begin 0, end 1. Where there are fewer rows than threads, a kernel that has
 *           pieces() is asked for pieces of the call instead, which run at the same time, each with a scratch block of its member.
 *   REDUCE  the same for the inputs; outputs are sums over rows. The kernel overwrites its outputs, or adds to them when
 *           call->accumulate is set. The engine adds the partial sums of the slots in a fixed order. Where call->partial is
 *           set, the outputs of an op marked WIDE are partial sums of core/ops/wide_sum.h instead; else it sees all rows.
 *   WHOLE   sees whole operands. It splits its own work: phase p has parts(call, p) independent parts; run(call, p,
 *           begin, end) does parts [begin, end). All parts of a phase are finished before the next phase starts. Where the last phase
 *           has fewer parts than there are members, a kernel that has rounds() is asked for its rounds instead.
 * The same kernels serve eager ops: there a MAP call is split into chunks of rows by the engine as well.
 *
 * Results must not depend on the number of threads: neither on how parts are handed out, nor on which rows a member gets.
 * The engine cuts rows into slots and chunks by shapes, rows and instruction set alone, so that the sums of a REDUCE kernel may
 * depend on the rows of one call. Rows of a MAP kernel's outputs must not. */
#ifndef FLOW_KERNELS_H
#define FLOW_KERNELS_H

#include "flow_types.h"

typedef struct flow_operand {
  void    *data;                      /* first element; NULL for an output that nothing reads: the kernel skips it */
  /* An output that nothing reads. supports(), cost() and the sizes of memory are asked before there is data, so that they look at this. */
  int unused;
  int passed_on;                      /* an output that other cores read where it is: convolutions fetch its lines before they write */
  int dtype, rank;                    /* rank 0: one element */
  int64_t  shape[FLOW_MAX_RANK];      /* concrete; the row axis is already cut to the chunk */
  int64_t  strides[FLOW_MAX_RANK];    /* elements; contiguous unless the op's record says STRIDED */
} flow_operand;

/* The same for all ops of one run. seed and step are in the keys of random kernels; first_sample is the number of the replica's first
 * row in the batch of all replicas, so that a row draws the same numbers wherever it is. rows: of the batch of this replica;
 * global_rows: of all replicas that train together. */
typedef struct flow_scalars { uint64_t seed; int64_t step, first_sample, rows, global_rows; } flow_scalars;

/* The part of an optimizer's update that is done here, where several workers divide it: rows [rows[i][0], rows[i][1]) of its i-th product's
 * matrix (FLOW_MAX_PRODUCTS of core/ops/op.h are possible), and, if `rest`, the elements outside of products. moved: parameters and slots
 * stay as they are, and the new ones go this many bytes further, which is a multiple of a float's; 0: in place. */
typedef struct flow_shard {
  int64_t rows[4][2];
  int rest;
  int64_t moved;
} flow_shard;

typedef struct flow_queue flow_queue;     /* of an accelerator: accelerator.h */

/* One op with its operands, as a kernel sees it. The engine owns all that it points to; a kernel keeps none of it beyond the function that
 * was given the call. Every member of a team has its own copy, in which `scratch` is its own and all else is the same. */
typedef struct flow_call {
  int                    op;
  const flow_attributes *attributes;      /* never NULL */
  int                    input_count, output_count;
  flow_operand          *inputs, *outputs; /* effects (optimizers) write through inputs; optional inputs may be absent */
  int64_t                first_row;       /* of this chunk in the batch (0 unless MAP or REDUCE) */
  int                    accumulate;      /* REDUCE: add to the outputs */
  int                    partial;         /* MAP and REDUCE: the rows are a chunk of a slot, in a plan that goes by rows */
  int                    exact;           /* only algorithms that round no worse than the direct one */
  /* Products may round the float32 numbers that they multiply to bfloat16; not with `exact`. Optimizers: bit i is for the i-th product. */
  int                    bfloat16;
  int                    kept;            /* what prepare() makes stays from run to run: cost() leaves it out */
  /* WHOLE: among how many members parts are shared out, to each some that follow one another; up to 1: not known. No bit depends on it. */
  int members;
  void                  *shared;          /* shared_bytes(): one block for all members, lives from prepare to the last part */
  void                  *scratch;         /* scratch_bytes(): the member's own, contents undefined; 64-byte aligned, as shared is */
  const flow_scalars    *scalars;
  const flow_shard      *shard;           /* optimizers with products; NULL: all is done here */
  flow_queue            *queue;           /* where an accelerator enqueues it; NULL on the CPU */
} flow_call;

/* One variant. On the CPU its functions are called on any thread of the team, for different parts at the same time: they keep no state
 * besides `shared` and `scratch`. shared_bytes and scratch_bytes may be asked before there is `shared` or data; what they answer for a call
 * must be enough for every call that has fewer rows. */
typedef struct flow_kernel {
  const char *variant;                                              /* "direct", "plain": shown by describe and profile */
  int         (*supports)(const flow_call *call);                   /* (optional, default: every call) sees shapes, no data */
  /* (optional, default: the last choice) predicted time of the whole batch and of prepare(), see below */
  double      (*cost)(const flow_call *call);
  size_t      (*shared_bytes)(const flow_call *call);               /* (optional, default: 0) */
  size_t      (*scratch_bytes)(const flow_call *call);              /* (optional, default: 0) */
  /* (optional, default: nothing) MAP and REDUCE: once a run, before the first chunk, inputs that carry no rows are whole */
  flow_status (*prepare)(const flow_call *call);
  int         phases;                                               /* WHOLE: number of phases, 0 means 1 */
  int64_t     (*parts)(const flow_call *call, int phase);           /* (optional, default: 1) WHOLE */
  int moves;                                                        /* of an optimizer: takes a shard with `moved` */
  /* WHOLE, not 0: phase 0 does nothing but fill `shared`, from these inputs (bits); it is left out while they are what they were */
  unsigned first_phase_reads;
  flow_status (*run)(const flow_call *call, int phase, int64_t begin, int64_t end); /* fails only on bad data (a label out of range) */
  /* (optional, default: 0) WHOLE: in how many rounds members may do the last phase together where it has fewer parts than there are
   * members; by shapes alone. All parts of a round are done before the next begins; all together do what the phase does, bit by bit. */
  int64_t (*rounds)(const flow_call *call);
  int64_t (*round_parts)(const flow_call *call);
  flow_status (*run_round)(const flow_call *call, int64_t round, int64_t part);
  /* (optional, default: 1) MAP: into how many a call of few rows is cut, by shapes alone */
  int64_t     (*pieces)(const flow_call *call);
  /* with pieces: does one of them; all together do what `run` does, bit by bit */
  flow_status (*run_piece)(const flow_call *call, int64_t piece);
} flow_kernel;

/* What of an op's float operands may be of 16 bits while others are float32; those of 16 bits are of one dtype. */
typedef enum flow_half_floats {
  FLOW_HALF_FLOATS_READ    = 1,      /* inputs */
  FLOW_HALF_FLOATS_WRITTEN = 2,      /* outputs */
  FLOW_HALF_FLOATS_WIDENED = 4       /* << output: that output may be float32 while all inputs are of 16 bits */
} flow_half_floats;

/* Variants of one op, ended by one whose run is NULL. shared_bytes and scratch_bytes are asked with the largest chunk,
 * supports and cost with the whole batch.
 *
 * The unit of cost is one multiply-add of one core at its peak: a kernel that does n of them at the share s of the peak
 * costs n / s. Work on memory counts as the multiply-adds that the core could have done meanwhile (kernels/cpu/cost.h).
 * So a cost depends on shapes only, predicts a time when it is divided by a measured peak, and is checked that way. */
typedef struct flow_device {
  const char               *name;        /* "cpu" */
  const char               *isa;         /* "avx2" */
  const flow_kernel *const *kernels;     /* [op] */
  /* of a core's second-level cache in the smaller ones of its machines: chunks of sums are cut for it */
  size_t                    cache_bytes;
  double                  (*peak)(double count);   /* does about `count` multiply-adds in registers on this thread; how many it were */
  /* Kernels of ops marked VIA_FLOAT take 16-bit floats as they are, compute in float32 or better, and round what they write once. Without
   * it the engine casts around them. */
  int                       half_floats;
  /* Convolutions are faster with kernels {out, height, width, in} (flow_transposed), which plans turn, all of a step at once: those in
   * groups, and those whose channels in fill multiples of this many bytes. 0: they are not. They take both in any case. */
  int                       transposed_bytes;
  /* [op]: flow_half_floats, which casts beside an op its kernels do on their own; NULL: none */
  const unsigned char      *mixes_half_floats;
} flow_device;

/* The CPU device for this machine: widest instruction set that it has, or the one that FLOW_ISA names
 * ("avx512", "avx2", "plain"). Chosen once per process. */
const flow_device *flow_cpu_device(void);
/* What, besides shapes, decides how results are rounded: "avx2", "avx512 and bfloat16". */
const char        *flow_cpu_arithmetic(void);
/* A particular build; NULL if this machine cannot run it. For tests. */
const flow_device *flow_cpu_device_for(const char *isa);

#endif
