/* matmul.c: the ops matmul (NumPy's rules: the last two axes are matrices, leading axes broadcast) and dense
 * (act(x w + b)). Variants: tiled (float32, gemm.h), bfloat16 (the same, rounded: gemm_bfloat16.h), doubles (float64, matmul_doubles.c),
 * plain (every dtype, loops); all but doubles each for a whole batch and for a chunk of its rows. */
#include "cpu/matrix_product/dots.h"
#include "cpu/matrix_product/gemm_bfloat16.h"
#include "ops/matrix_product.h"
#include "tensor/tensor.h"

/* ---- tiled ------------------------------------------------------------------------------------------------------ */

/* Whether all operands are float32, which the tiles are written for. */
static int is_float32(const flow_call *call)
{
  for (int i = 0; i < call->input_count; i++)
    if (call->inputs[i].dtype != FLOW_FLOAT32) return 0;
  return 1;
}

/* Which of the two names a call gets; gemm.c does what differs. */
static int is_rounded(const flow_call *call) { return call->bfloat16 && !call->exact && bfloat16_available(); }

static int supports_tiled(const flow_call *call)    { return is_float32(call) && !call->partial && !is_rounded(call); }
static int supports_bfloat16(const flow_call *call) { return is_float32(call) && !call->partial && is_rounded(call); }

/* Matrix number `matrix` of the batch as a product for gemm.h. Sizes are those of all matrices; only the pointers differ. The bias and the
 * relu of the op dense become the epilogue of the product; matmul has neither. */
static gemm gemm_of(const flow_call *call, const product *p, int64_t matrix)
{
  return (gemm){
    .exact = call->exact,
    .unsplit = call->partial && call->op == FLOW_OP_dense, /* of a chunk, which may have any number of rows */
    .bfloat16 = is_rounded(call),
    .members = call->members,
    .m = p->m,
    .n = p->n,
    .k = p->k,
    .transpose_a = p->transpose_a,
    .transpose_b = p->transpose_b,
    .lda = p->lda,
    .ldb = p->ldb,
    .ldc = p->ldc,
    .relu = p->relu,
    .bias = p->bias,
    .a = (const float *)p->a + a_offset(p, matrix),
    .b = (const float *)p->b + b_offset(p, matrix),
    .c = (float *)p->c + c_offset(p, matrix)
  };
}

/* How many small matrices one part does: a part should be worth more than its ticket. */
static int64_t matrices_together(const product *p)
{
  enum { WORK = 1 << 18 };
  double work = (double)p->m * (double)p->n * (double)p->k + 1;
  return work >= WORK ? 1 : (int64_t)(WORK / work);
}

/* Of all matrices on one thread, as every kernel's cost is (cost.h). */
static double tiled_cost(const flow_call *call)
{
  product p = describe(call);
  gemm g = gemm_of(call, &p, 0);
  return gemm_cost(&g) * (double)p.matrices;
}

/* Each matrix has room for its partial sums: all matrices of the batch are worked on at the same time. */
static size_t tiled_shared_bytes(const flow_call *call)
{
  product p = describe(call);
  gemm g = gemm_of(call, &p, 0);
  return gemm_shared_bytes(&g) * (size_t)p.matrices;
}

/* One block for all parts that a member does, one after the other. */
static size_t tiled_scratch_bytes(const flow_call *call)
{
  (void)call;
  return gemm_scratch_bytes();
}

/* Either every matrix has gemm_parts parts, or one part does several small matrices. */
static int64_t tiled_parts(const flow_call *call, int phase)
{
  product p = describe(call);
  gemm g = gemm_of(call, &p, 0);
  int64_t parts = gemm_parts(&g, phase), together = matrices_together(&p);
  return parts == 1 && together > 1 ? (p.matrices + together - 1) / together : parts * p.matrices;
}

/* Parts of all matrices, one matrix after the other; small matrices are several to a part. */
static flow_status tiled_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  product p = describe(call);
  if (!p.c) return FLOW_OK;
  gemm first = gemm_of(call, &p, 0);
  int64_t parts = gemm_parts(&first, phase), together = matrices_together(&p);
  size_t shared = gemm_shared_bytes(&first);
  if (parts == 1 && together > 1) {
    begin *= together;
    end = end * together < p.matrices ? end * together : p.matrices;
  }
  for (int64_t part = begin; part < end; part++) {
    int64_t matrix = part / parts;
    gemm g = gemm_of(call, &p, matrix);
    gemm_run(&g, phase, part % parts, shared ? (char *)call->shared + (size_t)matrix * shared : NULL, call->scratch);
  }
  return FLOW_OK;
}

/* Chunks of rows, where each row of the batch has its own matrices (flow_kind_matmul): one matrix after the other, while what is done
 * to them before and after is in the cache. A matrix gets the bits that it gets alone. */
static int is_chunk(const flow_call *call) { return call->partial; }
static int supports_tiled_chunk(const flow_call *call)    { return is_float32(call) && is_chunk(call) && !is_rounded(call); }
static int supports_bfloat16_chunk(const flow_call *call) { return is_float32(call) && is_chunk(call) && is_rounded(call); }

/* Of a chunk the partial sums are in scratch, before what gemm_run needs; rounded up so that that is aligned. */
static size_t chunk_sums_bytes(const flow_call *call)
{
  product p = describe(call);
  gemm g = gemm_of(call, &p, 0);
  return (gemm_shared_bytes(&g) + 63) & ~(size_t)63;
}

/* Of one member: its partial sums, then what gemm_run packs. */
static size_t chunk_scratch_bytes(const flow_call *call) { return chunk_sums_bytes(call) + gemm_scratch_bytes(); }

/* Whole matrices, each with its partial sums in the member's scratch block. */
static void run_matrices(const flow_call *call, const product *p, int64_t first, int64_t end)
{
  char *scratch = (char *)call->scratch + chunk_sums_bytes(call);
  for (int64_t matrix = first; matrix < end && p->c; matrix++) {
    gemm g = gemm_of(call, p, matrix);
    for (int each = 0; each < GEMM_PHASES; each++) {
      int64_t parts = gemm_parts(&g, each);
      for (int64_t part = 0; part < parts; part++) gemm_run(&g, each, part, call->scratch, scratch);
    }
  }
}

/* All matrices of a chunk of rows on one thread: the engine spreads the chunks. */
static flow_status chunk_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase;
  (void)begin;
  (void)end;
  product p = describe(call);
  run_matrices(call, &p, 0, p.matrices);
  return FLOW_OK;
}

/* Pieces of a chunk: the parts that tiled_run has, or, where k is split and a second phase adds partial sums, several matrices each. */
static int64_t chunk_pieces(const flow_call *call)
{
  product p = describe(call);
  gemm g = gemm_of(call, &p, 0);
  int64_t together = matrices_together(&p);
  return gemm_parts(&g, 1) > 0 ? (p.matrices + together - 1) / together : tiled_parts(call, 0);
}

/* A piece of a chunk that is spread over threads: a block of a single product, or, where products are split along k and have a second
 * phase, some whole matrices. */
static flow_status chunk_run_piece(const flow_call *call, int64_t piece)
{
  product p = describe(call);
  gemm g = gemm_of(call, &p, 0);
  if (gemm_parts(&g, 1) == 0) return tiled_run(call, 0, piece, piece + 1);
  int64_t together = matrices_together(&p), end = (piece + 1) * together;
  run_matrices(call, &p, piece * together, end < p.matrices ? end : p.matrices);
  return FLOW_OK;
}

/* ---- plain ------------------------------------------------------------------------------------------------------ */

/* Integers wrap around as in C; bool is "some pair of both". Floats of up to 32 bits are summed in double. */
#define AS_DOUBLE(x) ((double)(x))
#define AS_WORD(x)   ((uint64_t)(int64_t)(x))

#define NAME rows_float32
#define ELEMENT float
#define SUM double
#define LOAD AS_DOUBLE
#define STORE(s) ((float)(s))
#include "cpu/matrix_product/matmul_plain.h"

#define NAME rows_float16
#define ELEMENT uint16_t
#define SUM double
#define LOAD(x) AS_DOUBLE(flow_half_to_float(x))
#define STORE(s) flow_float_to_half((float)(s))
#include "cpu/matrix_product/matmul_plain.h"

#define NAME rows_bfloat16
#define ELEMENT uint16_t
#define SUM double
#define LOAD(x) AS_DOUBLE(flow_bfloat16_to_float(x))
#define STORE(s) flow_float_to_bfloat16((float)(s))
#include "cpu/matrix_product/matmul_plain.h"

#define NAME rows_float64
#define ELEMENT double
#define SUM double
#define LOAD AS_DOUBLE
#define STORE(s) (s)
#include "cpu/matrix_product/matmul_plain.h"

#define NAME rows_int8
#define ELEMENT int8_t
#define SUM uint64_t
#define LOAD AS_WORD
#define STORE(s) ((int8_t)(s))
#include "cpu/matrix_product/matmul_plain.h"

#define NAME rows_uint8
#define ELEMENT uint8_t
#define SUM uint64_t
#define LOAD AS_WORD
#define STORE(s) ((uint8_t)(s))
#include "cpu/matrix_product/matmul_plain.h"

#define NAME rows_int32
#define ELEMENT int32_t
#define SUM uint64_t
#define LOAD AS_WORD
#define STORE(s) ((int32_t)(s))
#include "cpu/matrix_product/matmul_plain.h"

#define NAME rows_int64
#define ELEMENT int64_t
#define SUM uint64_t
#define LOAD AS_WORD
#define STORE(s) ((int64_t)(s))
#include "cpu/matrix_product/matmul_plain.h"

#define NAME rows_bool
#define ELEMENT uint8_t
#define SUM uint64_t
#define LOAD AS_WORD
#define STORE(s) ((s) != 0)
#include "cpu/matrix_product/matmul_plain.h"

/* By dtype. Every dtype has its line: the plain variant is the one that takes every call. */
static void (*const plain_rows[FLOW_DTYPE_COUNT])(const product *p, int64_t begin, int64_t end) = {
  [FLOW_FLOAT32] = rows_float32, [FLOW_FLOAT16] = rows_float16, [FLOW_BFLOAT16] = rows_bfloat16, [FLOW_FLOAT64] = rows_float64,
  [FLOW_INT8] = rows_int8, [FLOW_UINT8] = rows_uint8, [FLOW_INT32] = rows_int32, [FLOW_INT64] = rows_int64, [FLOW_BOOL] = rows_bool
};

enum { PLAIN_ROWS = 8 };   /* rows of C that a part does */

/* Parts run over the rows of all matrices, and may begin in one matrix and end in the next. */
static int64_t plain_parts(const flow_call *call, int phase)
{
  (void)phase;
  product p = describe(call);
  return (p.matrices * p.m + PLAIN_ROWS - 1) / PLAIN_ROWS;
}

/* Every dtype; what the other variants are compared with in tests. */
static flow_status plain_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase;
  product p = describe(call);
  if (!p.c) return FLOW_OK;
  int64_t rows = p.matrices * p.m, last = end * PLAIN_ROWS < rows ? end * PLAIN_ROWS : rows;
  if (call->inputs[0].dtype == FLOW_FLOAT64 && is_dots(&p)) run_dots(&p, begin * PLAIN_ROWS, last);
  else plain_rows[call->inputs[0].dtype](&p, begin * PLAIN_ROWS, last);
  return FLOW_OK;
}

/* A chunk has no parts: its rows are done by the one thread that has the chunk. */
static flow_status plain_chunk_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)begin; (void)end;
  return plain_run(call, phase, 0, plain_parts(call, phase));
}

/* matmul_doubles.c */
int         FLOW_ISA_NAME(matmul_doubles_supports)(const flow_call *call);
double      FLOW_ISA_NAME(matmul_doubles_cost)(const flow_call *call);
size_t      FLOW_ISA_NAME(matmul_doubles_scratch_bytes)(const flow_call *call);
flow_status FLOW_ISA_NAME(matmul_doubles_run)(const flow_call *call, int phase, int64_t begin, int64_t end);
int64_t     FLOW_ISA_NAME(matmul_doubles_parts)(const flow_call *call, int phase);

static int supports_doubles(const flow_call *call) { return !is_chunk(call) && FLOW_ISA_NAME(matmul_doubles_supports)(call); }

#define TILED(name)                                                                                                  \
  { .variant = #name, .supports = supports_##name, .cost = tiled_cost, .shared_bytes = tiled_shared_bytes,           \
    .scratch_bytes = tiled_scratch_bytes, .phases = GEMM_PHASES, .parts = tiled_parts, .run = tiled_run }
#define TILED_CHUNK(name)                                                                                            \
  { .variant = #name, .supports = supports_##name##_chunk, .cost = tiled_cost, .scratch_bytes = chunk_scratch_bytes, \
    .run = chunk_run, .pieces = chunk_pieces, .run_piece = chunk_run_piece }
#define DOUBLES                                                                                                      \
  { .variant = "doubles", .supports = supports_doubles, .cost = FLOW_ISA_NAME(matmul_doubles_cost),                  \
    .scratch_bytes = FLOW_ISA_NAME(matmul_doubles_scratch_bytes), .parts = FLOW_ISA_NAME(matmul_doubles_parts),      \
    .run = FLOW_ISA_NAME(matmul_doubles_run) }
#define PLAIN { .variant = "plain", .parts = plain_parts, .run = plain_run }

/* A call is a whole batch or a chunk of its rows, and its products are rounded or not: each of the first four takes one of these cases. */
#define CHUNK_PLAIN                                                  \
  {                                                                  \
    .variant = "plain", .supports = is_chunk, .run = plain_chunk_run \
  }
#define VARIANTS TILED(tiled), TILED(bfloat16), TILED_CHUNK(tiled), TILED_CHUNK(bfloat16), DOUBLES, CHUNK_PLAIN, PLAIN
const flow_kernel FLOW_KERNELS(matmul)[] = { VARIANTS, { 0 } };
const flow_kernel FLOW_KERNELS(dense)[] = { VARIANTS, { 0 } };
