/* cublas_plan.c: the products of library.h by cuBLASLt. It counts columns first: a row-major matrix is its transpose there, so that
 * c = a b is computed as c' = b' a', the bias running along the rows of c'. */
#include "cuda/library/cublas_plan.h"

#include <string.h>
#include "cuda/library/cublas_trial.h"
#include "cuda/library/library_plans.h"
#include "cuda/library/plan_cache.h"
#include "cuda/library/plan_trial.h"

enum { MOST_DEVICES = 64 };
/* What NVIDIA recommends for Hopper; without room there is no splitting of k, which narrow products live on. */
static const size_t most_workspace = (size_t)32 << 20;

size_t flow_cublas_workspace(const flow_library_product *p)
{
  return p->alignment < FLOW_LIBRARY_ALIGNMENT ? 0 : most_workspace;
}

typedef struct plan_key { int64_t device; flow_library_product product; } plan_key;

typedef struct product_plan {
  flow_library_plan     general;                /* first */
  flow_cublas_product   product;
  cublasLtMatmulAlgo_t  algorithm;
} product_plan;

/* Plans by key, for all devices; a handle per device, made at its first plan and kept. cuBLASLt lets threads share a handle, so that the
 * lock covers its making, and calls with a bias, whose address is written into a descriptor that other threads use, too. */
static flow_plan_cache plans = FLOW_PLAN_CACHE;
static struct { pthread_mutex_t lock; cublasLtHandle_t handle; } devices[MOST_DEVICES] = {
  [0 ... MOST_DEVICES - 1] = { .lock = PTHREAD_MUTEX_INITIALIZER } };

/* FLOW_UNSUPPORTED is what the library says of a product, and is kept; what may pass, as the device's state does, is asked for again. */
static flow_status kind_of(cublasStatus_t status)
{
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:      return FLOW_OK;
    case CUBLAS_STATUS_ALLOC_FAILED: return FLOW_OUT_OF_MEMORY;
    case CUBLAS_STATUS_NOT_INITIALIZED:
    case CUBLAS_STATUS_MAPPING_ERROR:
    case CUBLAS_STATUS_EXECUTION_FAILED:
    case CUBLAS_STATUS_INTERNAL_ERROR: return FLOW_INTERNAL;
    default:                           return FLOW_UNSUPPORTED;
  }
}

static flow_status check(const flow_cublaslt *blas, cublasStatus_t status, const char *what)
{
  flow_status kind = kind_of(status);
  return kind == FLOW_OK ? FLOW_OK : flow_fail(kind, "cuBLASLt: %s: %s", what, blas->cublasLtGetStatusString(status));
}

/* ---- descriptors ---------------------------------------------------------------------------------------------------------------- */

static flow_status set(const flow_cublaslt *blas, cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t name, const void *value,
                       size_t bytes)
{
  return check(blas, blas->cublasLtMatmulDescSetAttribute(d, name, value, bytes), "an attribute is refused");
}

/* One operand: `rows` of the first dimension, which is the one whose elements are neighbours. stride: elements from one matrix of the
 * batch to the next; 0 repeats the matrix. */
static flow_status make_layout(const flow_cublaslt *blas, cudaDataType_t type, int64_t rows, int64_t columns, int64_t batch, int64_t stride,
                               cublasLtMatrixLayout_t *out)
{
  int32_t count = (int32_t)batch;
  FLOW_TRY(check(blas, blas->cublasLtMatrixLayoutCreate(out, type, (uint64_t)rows, (uint64_t)columns, rows), "a matrix is refused"));
  if (batch == 1) return FLOW_OK;
  FLOW_TRY(check(blas, blas->cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
                 "a batch is refused"));
  return check(blas, blas->cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
               "a batch is refused");
}

static flow_status prefer(const flow_cublaslt *blas, flow_cublas_product *out, cublasLtMatmulPreferenceAttributes_t name, const void *value,
                          size_t bytes)
{
  return check(blas, blas->cublasLtMatmulPreferenceSetAttribute(out->preference, name, value, bytes), "a preference is refused");
}

static cudaDataType_t type_of(int dtype)
{
  return dtype == FLOW_BFLOAT16 ? CUDA_R_16BF : dtype == FLOW_FLOAT16 ? CUDA_R_16F : CUDA_R_32F;
}

/* Operands of 16 bits may have a result of 32: cuBLASLt's documentation of cublasLtMatmul lists both, summed in float32. */
static flow_status describe(const flow_cublaslt *blas, const flow_library_product *p, flow_cublas_product *out)
{
  cudaDataType_t type = type_of(p->dtype), result = type_of(p->result_dtype);
  cublasComputeType_t compute = p->dtype == FLOW_FLOAT32 && !p->exact ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  cublasOperation_t of_a = p->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, of_b = p->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = p->bias ? p->relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS
                                        : p->relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT;
  uint32_t alignment = (uint32_t)p->alignment;
  size_t workspace = flow_cublas_workspace(p);
  /* Partial sums in float32, added in their own order: no sums in 16 bits. */
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  FLOW_TRY(check(blas, blas->cublasLtMatmulDescCreate(&out->product, compute, CUDA_R_32F), "a product is refused"));
  FLOW_TRY(set(blas, out->product, CUBLASLT_MATMUL_DESC_TRANSA, &of_a, sizeof of_a));
  FLOW_TRY(set(blas, out->product, CUBLASLT_MATMUL_DESC_TRANSB, &of_b, sizeof of_b));
  FLOW_TRY(set(blas, out->product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
  if (p->bias) FLOW_TRY(set(blas, out->product, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type));
  FLOW_TRY(make_layout(blas, type, p->transpose_b ? p->k : p->n, p->transpose_b ? p->n : p->k, p->batch, p->stride_b, &out->a));
  FLOW_TRY(make_layout(blas, type, p->transpose_a ? p->m : p->k, p->transpose_a ? p->k : p->m, p->batch, p->stride_a, &out->b));
  FLOW_TRY(make_layout(blas, result, p->n, p->m, p->batch, p->m * p->n, &out->c));
  FLOW_TRY(check(blas, blas->cublasLtMatmulPreferenceCreate(&out->preference), "preferences are refused"));
  FLOW_TRY(prefer(blas, out, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace));
  FLOW_TRY(prefer(blas, out, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, sizeof reductions));
  FLOW_TRY(prefer(blas, out, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &alignment, sizeof alignment));
  FLOW_TRY(prefer(blas, out, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &alignment, sizeof alignment));
  FLOW_TRY(prefer(blas, out, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &alignment, sizeof alignment));
  return prefer(blas, out, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &alignment, sizeof alignment);
}

/* On failure nothing is left to release. */
flow_status flow_cublas_describe(const flow_cublaslt *blas, const flow_library_product *product, flow_cublas_product *out)
{
  memset(out, 0, sizeof *out);
  flow_status status = describe(blas, product, out);
  if (status != FLOW_OK) flow_cublas_release(blas, out);
  return status;
}

void flow_cublas_release(const flow_cublaslt *blas, flow_cublas_product *p)
{
  if (p->preference) blas->cublasLtMatmulPreferenceDestroy(p->preference);
  if (p->a) blas->cublasLtMatrixLayoutDestroy(p->a);
  if (p->b) blas->cublasLtMatrixLayoutDestroy(p->b);
  if (p->c) blas->cublasLtMatrixLayoutDestroy(p->c);
  if (p->product) blas->cublasLtMatmulDescDestroy(p->product);
  memset(p, 0, sizeof *p);
}

/* ---- plans ---------------------------------------------------------------------------------------------------------------------- */

static flow_status open_device(const flow_cublaslt *blas, int device, cublasLtHandle_t *out)
{
  flow_status status = FLOW_OK;
  pthread_mutex_lock(&devices[device].lock);
  if (!devices[device].handle) status = check(blas, blas->cublasLtCreate(&devices[device].handle), "no handle for a device");
  *out = devices[device].handle;
  pthread_mutex_unlock(&devices[device].lock);
  return status;
}

/* Asks for the algorithms that the library expects to be the fastest, from the best on, and takes the first one that it can run; it is the
 * same for the same key in every process with the same library and device, so that results repeat. Where several are asked for, they are
 * timed, once, and the fastest is kept (plan_trial.h). */
static flow_status choose(const flow_cublaslt *blas, cublasLtHandle_t handle, const plan_key *wanted, const flow_cublas_product *p,
                          cublasLtMatmulHeuristicResult_t *out)
{
  cublasLtMatmulHeuristicResult_t found[FLOW_PLAN_TRIALS];
  const int most = flow_plan_trials(wanted->product.exact), device = (int)wanted->device;
  int named = 0, count = 0;
  if (most > 1 && flow_cublas_algorithm_read(blas, handle, &wanted->product, p, device, out)) return FLOW_OK;
  memset(found, 0, sizeof found);
  FLOW_TRY(check(blas, blas->cublasLtMatmulAlgoGetHeuristic(handle, p->product, p->a, p->b, p->c, p->c, p->preference, most, found, &named),
                 "no algorithm for a product"));
  for (int i = 0; i < named; i++)
    if (found[i].state == CUBLAS_STATUS_SUCCESS) found[count++] = found[i];
  if (count == 0) return flow_fail(FLOW_UNSUPPORTED, "cuBLASLt has no algorithm for a product");
  *out = found[flow_cublas_trial(blas, handle, &wanted->product, p, found, count)];
  if (most > 1) flow_cublas_algorithm_write(blas, &wanted->product, device, &out->algo);
  return FLOW_OK;
}

static flow_status make_plan(const void *key, void *plan)
{
  const plan_key *wanted = key;
  product_plan *made = plan;
  const flow_cublaslt *blas = flow_cuda_cublaslt();
  cublasLtHandle_t handle;
  cublasLtMatmulHeuristicResult_t best;
  if (!blas) return flow_fail(FLOW_UNSUPPORTED, "cuBLASLt is not installed");
  FLOW_TRY(open_device(blas, (int)wanted->device, &handle));
  FLOW_TRY(flow_cublas_describe(blas, &wanted->product, &made->product));
  /* How far a bias is aligned is taken from its pointer. */
  const void *bias = (const void *)(uintptr_t)wanted->product.alignment;
  flow_status status = FLOW_OK;
  if (wanted->product.bias) status = set(blas, made->product.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
  if (status == FLOW_OK) status = choose(blas, handle, wanted, &made->product, &best);
  if (status != FLOW_OK) {
    flow_cublas_release(blas, &made->product);
    return status;
  }
  made->algorithm = best.algo;
  made->general.workspace = best.workspaceSize;
  return FLOW_OK;
}

const flow_library_plan *flow_product_plan(const flow_call *call, const flow_library_product *product)
{
  plan_key key;
  memset(&key, 0, sizeof key);
  key.device = flow_cuda_device_index(call);
  memcpy(&key.product, product, sizeof *product);
  if (key.device < 0 || key.device >= MOST_DEVICES) return NULL;
  return flow_plan_cache_find(&plans, &key, sizeof key, sizeof(product_plan), make_plan);
}

/* ---- running -------------------------------------------------------------------------------------------------------------------- */

static flow_status multiply(const flow_call *call, const product_plan *made, cublasLtHandle_t handle, const void *a, const void *b,
                            const void *bias, void *c, void *workspace)
{
  const flow_cublaslt *blas = flow_cuda_cublaslt();
  const float one = 1, zero = 0;
  if (bias) FLOW_TRY(set(blas, made->product.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
  return check(blas, blas->cublasLtMatmul(handle, made->product.product, &one, b, made->product.a, a, made->product.b, &zero, c,
                                          made->product.c, c, made->product.c, &made->algorithm, workspace, made->general.workspace,
                                          flow_cuda_stream(call)),
               "a product cannot be run");
}

/* Enqueues c = a b (+ bias) on the call's queue. The beginnings of all operands must be multiples of the alignment that the plan was
 * made for. The descriptor may be changed again when cublasLtMatmul has returned: it takes parameters of the host by value. */
flow_status flow_product_run(const flow_call *call, const flow_library_plan *plan, const void *a, const void *b, const void *bias, void *c,
                             void *workspace)
{
  const product_plan *made = (const product_plan *)plan;
  int device = flow_cuda_device_index(call);
  cublasLtHandle_t handle;
  FLOW_TRY(open_device(flow_cuda_cublaslt(), device, &handle));
  if (!bias) return multiply(call, made, handle, a, b, bias, c, workspace);
  pthread_mutex_lock(&devices[device].lock);
  flow_status status = multiply(call, made, handle, a, b, bias, c, workspace);
  pthread_mutex_unlock(&devices[device].lock);
  return status;
}
