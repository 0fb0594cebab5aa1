/* core/ops: what an op is, and how one call of a kernel is spread over threads (launch.h). Uses base and tensor; knows no graph.
 *
 * An op is one record of ops.def: name, arity, batch kind, shape rule, gradient rule, doc line. The enum, the table of
 * records, those of rules and the kernel tables of the devices are made from it; no host code has a switch over ops. */
#ifndef FLOW_OPS_OP_H
#define FLOW_OPS_OP_H

#include "tensor/tensor.h"

enum {
#define FLOW_OP(name, ...) FLOW_OP_##name,
#include "ops/ops.def"
#undef FLOW_OP
  FLOW_OP_COUNT
};

enum { FLOW_MAX_PRODUCTS = 4, FLOW_MAX_COPIES = 256 }; /* of an optimizer: attributes.optimizer.products, copies */

/* How an op treats the rows (axis 0) of a batch; see kernels/kernels.h. */
typedef enum flow_batch_kind { FLOW_MAP, FLOW_REDUCE, FLOW_WHOLE } flow_batch_kind;

/* Row inputs of an op as a bit mask; FLOW_ROWS_BY_SHAPE: every input whose rank and first dimension are the output's. */
enum { FLOW_ROWS_BY_SHAPE = 0xffff };

enum flow_op_flags {
  FLOW_OP_STRIDED = 1,         /* the kernel reads any strides; otherwise inputs are made contiguous */
  FLOW_OP_PROMOTE = 2,         /* inputs are cast to their common dtype first: promotion.c */
  FLOW_OP_FLOAT_ONLY = 4,      /* integer inputs are an error that names the op */
  FLOW_OP_VIA_FLOAT = 8,       /* 16-bit floats are computed in float32 and cast back: by the kernel where the device has it (kernels.h) */
  FLOW_OP_EFFECT = 16,         /* writes through its inputs: runs in a plan's commit tail */
  FLOW_OP_RANDOM = 32,         /* never folded or run at trace time */
  FLOW_OP_ALIAS = 64,          /* output is the first input's memory under another shape */
  FLOW_OP_TO_FLOAT = 128,      /* where the common dtype is not a float, float32 takes its place (exp, div) */
  FLOW_OP_CHECKS = 256,        /* the kernel may refuse data: a label, an empty axis */
  FLOW_OP_COLLECTIVE = 512,    /* all replicas run it together (run/executor.c); the kernel is what one alone does */
  FLOW_OP_WIDE = 1024,         /* REDUCE: sums over rows are kept as wide partial sums (wide_sum.h) until they are complete */
  FLOW_OP_CONDITION = 2048,    /* the first input takes no part in the promotion (where) */
  FLOW_OP_COUNTS_BOOLS = 4096, /* bool inputs are cast to int32 (mod) */
  FLOW_OP_NO_BOOLS = 1 << 16,  /* inputs that are all bool are an error that names the op (sub): their result would not be bool */
  FLOW_OP_ELEMENTWISE = 1 << 14, /* a short line of ops.def: element i of the result follows from element i of the inputs */
  FLOW_OP_CHAINS = 1 << 15,      /* float32 in, float32 out: plans join neighbours into one pass (fuse_elementwise.c) */
  FLOW_OP_WIDENS_INT8 = 8192     /* inputs that are all int8 are cast to int32, which holds their sums of products (matmul) */
};

/* Shapes (negative: multiples of rows) and dtypes going into and out of a shape rule. */
typedef struct flow_signature { int dtype, rank; int64_t dims[FLOW_MAX_RANK]; } flow_signature;

/* A signature's shape for a batch of `rows` rows, 0 or more: shape has room for FLOW_MAX_RANK sizes, of which `rank` are written. Its bytes
 * then, FLOW_NOT_PLACED: more than can be addressed. signature.c */
#define FLOW_NOT_PLACED ((size_t)-1)
void   flow_resolve_shape(const flow_signature *signature, int64_t rows, int64_t *shape);
size_t flow_value_bytes(const flow_signature *signature, int64_t rows);

/* Fills outputs from inputs or fails with a message that names the op, what was found and what was expected. `outputs` has as many entries
 * as the op has outputs; the caller has zeroed them, and does not read them after a failure. */
typedef flow_status (*flow_shape_rule)(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                       flow_signature *outputs);

/* Batch kind for these attributes and the shapes of the first inputs, where the record's own kind is not the whole truth. Plans ask with
 * symbolic shapes, flow_cut_call with the concrete shape of the first input alone. Of an op whose kernels have parts(), the engine asks in
 * plans only. Attributes and shapes have passed the shape rule. */
typedef flow_batch_kind (*flow_kind_rule)(const flow_attributes *attributes, const flow_signature *inputs, int input_count);

typedef struct flow_op_record {
  const char        *name;
  int                min_inputs, max_inputs, outputs;
  flow_batch_kind    kind;
  int                row_inputs;      /* mask, see FLOW_ROWS_BY_SHAPE */
  int                row_outputs;     /* mask: REDUCE ops sum the outputs that are not in it; MAP ops have all */
  int                flags;
  const char        *doc;
} flow_op_record;

const flow_op_record *flow_op(int op);   /* the record; op must be in range */

/* Whether an elementwise op results in bool: 1 of numbers, 2 of conditions; else 0. */
int flow_op_gives_condition(int op);

/* Runs the op's shape rule. rules.c */
flow_status flow_op_infer(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                          flow_signature *outputs);

/* The batch kind of a call: what the op's kind rule says, else the record's, also for a call without inputs. rules.c */
flow_batch_kind flow_op_batch_kind(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count);

/* The dtype that flow_apply casts the inputs to before it runs the op; -1: it leaves them. Of an op with FLOW_OP_CONDITION the first input
 * does not count. promotion.c */
int flow_op_dtype(int op, flow_tensor *const *inputs, int count);

#endif
