/* algorithms.c: which of cuBLASLt's algorithms a product runs with, on a library and a device that this program plays.
 *
 *   cuda_algorithms FASTEST [exact] [unaligned] [stale] [full] [failing | refusing]
 *
 * There are four algorithms, the likely best first, and one that cannot be run; FASTEST, from 0 on, takes half the time of the others.
 * exact: an exact product; unaligned: operands begin anywhere; stale: the library cannot run what was kept; full: the device has no
 * memory; failing, refusing: the first that the library says of the product is that it has an error inside, or no algorithm; it is asked
 * twice. Prints the algorithm that runs, how many were asked for, how many runs there were on trial, and how often one that was kept was
 * looked at. FLOW_CACHE says where they are kept. Status 2: an operand was outside of its memory, or something was left open. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cuda/library/cublas_plan.h"
#include "cuda/library/library_plans.h"

enum { ALGORITHMS = 5, BROKEN = 3, M = 5, N = 7, K = 9, BATCH = 3 };

static cublasStatus_t first_word = CUBLAS_STATUS_SUCCESS;
static int fastest, stale, full, named, checked, trials, last, wrong, open_things, unaligned;
static char *memory;
static size_t memory_bytes;

/* ---- the device ------------------------------------------------------------------------------------------------------------------ */

int flow_cuda_device_index(const flow_call *call)
{
  (void)call;
  return 0;
}
cudaStream_t flow_cuda_stream(const flow_call *call)
{
  (void)call;
  return NULL;
}

static enum cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal;

cudaError_t cudaMalloc(void **out, size_t bytes)
{
  if (mode != cudaStreamCaptureModeRelaxed) wrong = 1; /* the thread may be recording */
  if (full) return cudaErrorMemoryAllocation;
  *out = memory = malloc(memory_bytes = bytes);
  open_things++;
  return cudaSuccess;
}
cudaError_t cudaFree(void *p)
{
  free(p);
  memory = NULL;
  open_things--;
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t s)
{
  (void)s;
  memset(p, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags)
{
  (void)flags;
  *s = (cudaStream_t)&trials;
  open_things++;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t s)
{
  (void)s;
  open_things--;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
  (void)s;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *e)
{
  *e = (cudaEvent_t)&trials;
  open_things++;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t e)
{
  (void)e;
  open_things--;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
  (void)e, (void)s;
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
  (void)e;
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float *out, cudaEvent_t a, cudaEvent_t b)
{
  (void)a, (void)b;
  *out = last == fastest ? 1 : 2;
  return cudaSuccess;
}
cudaError_t cudaGetLastError(void)
{
  return cudaSuccess;
}
const char *cudaGetErrorString(cudaError_t e)
{
  (void)e;
  return "played";
}
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *m)
{
  enum cudaStreamCaptureMode before = mode;
  mode = *m;
  *m = before;
  return cudaSuccess;
}
#undef cudaGetDeviceProperties
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
  (void)device;
  memset(p, 0, sizeof *p);
  strcpy(p->name, "a GPU that is played");
  p->major = 9;
  p->multiProcessorCount = 132;
  return cudaSuccess;
}

/* ---- the library ----------------------------------------------------------------------------------------------------------------- */

static size_t version(void)
{
  return 130100;
}
static const char *text_of(cublasStatus_t status)
{
  (void)status;
  return "played";
}
static cublasStatus_t create(cublasLtHandle_t *out)
{
  *out = (cublasLtHandle_t)&trials;
  return CUBLAS_STATUS_SUCCESS;
}
static cublasStatus_t desc_create(cublasLtMatmulDesc_t *out, cublasComputeType_t compute, cudaDataType_t type)
{
  (void)compute, (void)type;
  *out = (cublasLtMatmulDesc_t)&trials;
  return CUBLAS_STATUS_SUCCESS;
}
static const void *bias;
static cublasStatus_t desc_set(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t name, const void *value, size_t bytes)
{
  (void)d;
  if (name == CUBLASLT_MATMUL_DESC_BIAS_POINTER) memcpy(&bias, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
static cublasStatus_t layout_create(cublasLtMatrixLayout_t *out, cudaDataType type, uint64_t rows, uint64_t columns, int64_t ld)
{
  (void)type, (void)rows, (void)columns, (void)ld;
  *out = (cublasLtMatrixLayout_t)&trials;
  return CUBLAS_STATUS_SUCCESS;
}
static cublasStatus_t layout_set(cublasLtMatrixLayout_t d, cublasLtMatrixLayoutAttribute_t name, const void *value, size_t bytes)
{
  (void)d, (void)name, (void)value, (void)bytes;
  return CUBLAS_STATUS_SUCCESS;
}
static cublasStatus_t preference_create(cublasLtMatmulPreference_t *out)
{
  *out = (cublasLtMatmulPreference_t)&trials;
  return CUBLAS_STATUS_SUCCESS;
}
static cublasStatus_t preference_set(cublasLtMatmulPreference_t d, cublasLtMatmulPreferenceAttributes_t name, const void *value,
                                     size_t bytes)
{
  (void)d, (void)name, (void)value, (void)bytes;
  return CUBLAS_STATUS_SUCCESS;
}

/* The workspace of algorithm i. */
static size_t workspace_of(int i)
{
  return unaligned ? 0 : (size_t)(100 * i);
}

static cublasStatus_t heuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int most,
                                cublasLtMatmulHeuristicResult_t *out, int *count)
{
  (void)handle, (void)product, (void)a, (void)b, (void)c, (void)d, (void)preference;
  cublasStatus_t word = first_word;
  first_word = CUBLAS_STATUS_SUCCESS;
  if (word != CUBLAS_STATUS_SUCCESS) return word;
  named = *count = most < ALGORITHMS ? most : ALGORITHMS;
  for (int i = 0; i < *count; i++) {
    memset(&out[i], 0, sizeof out[i]);
    out[i].algo.data[0] = (uint64_t)i;
    out[i].algo.data[7] = UINT64_C(0xfedcba9876543210);
    out[i].workspaceSize = workspace_of(i);
    out[i].state = i == BROKEN ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t algorithm_check(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
                                      cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                      const cublasLtMatmulAlgo_t *algorithm, cublasLtMatmulHeuristicResult_t *out)
{
  (void)handle, (void)product, (void)a, (void)b, (void)c, (void)d;
  checked++;
  if (algorithm->data[7] != UINT64_C(0xfedcba9876543210)) wrong = 1;
  out->workspaceSize = workspace_of((int)algorithm->data[0]);
  return stale ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
}

/* `bytes` of an operand on trial, in the memory of the trial; beside it other operands follow at multiples of 256. */
static void need(const void *p, size_t bytes)
{
  if ((const char *)p < memory || (const char *)p + bytes > memory + memory_bytes || (uintptr_t)((const char *)p - memory) % 256) wrong = 1;
}

static cublasStatus_t multiply(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void *alpha, const void *a,
                               cublasLtMatrixLayout_t of_a, const void *b, cublasLtMatrixLayout_t of_b, const void *beta, const void *c,
                               cublasLtMatrixLayout_t of_c, void *d, cublasLtMatrixLayout_t of_d, const cublasLtMatmulAlgo_t *algorithm,
                               void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
  (void)handle, (void)product, (void)alpha, (void)of_a, (void)of_b, (void)beta, (void)of_c, (void)of_d;
  last = (int)algorithm->data[0];
  if (last == BROKEN || workspace_bytes != workspace_of(last) || c != d) wrong = 1;
  if (!stream) return CUBLAS_STATUS_SUCCESS;
  trials++;
  need(b, sizeof(float) * M * K); /* the same one for all of the batch */
  need(a, sizeof(float) * BATCH * K * N);
  need(d, sizeof(float) * BATCH * M * N);
  need(bias, sizeof(float) * N);
  need(workspace, workspace_bytes);
  memset(d, 0, sizeof(float) * BATCH * M * N);
  return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t desc_destroy(cublasLtMatmulDesc_t d)
{
  (void)d;
  return CUBLAS_STATUS_SUCCESS;
}
static cublasStatus_t layout_destroy(cublasLtMatrixLayout_t d)
{
  (void)d;
  return CUBLAS_STATUS_SUCCESS;
}
static cublasStatus_t preference_destroy(cublasLtMatmulPreference_t d)
{
  (void)d;
  return CUBLAS_STATUS_SUCCESS;
}

const flow_cublaslt *flow_cuda_cublaslt(void)
{
  static const flow_cublaslt played = {
    .cublasLtGetVersion = version,
    .cublasLtGetStatusString = text_of,
    .cublasLtCreate = create,
    .cublasLtMatmulDescCreate = desc_create,
    .cublasLtMatmulDescDestroy = desc_destroy,
    .cublasLtMatmulDescSetAttribute = desc_set,
    .cublasLtMatrixLayoutCreate = layout_create,
    .cublasLtMatrixLayoutDestroy = layout_destroy,
    .cublasLtMatrixLayoutSetAttribute = layout_set,
    .cublasLtMatmulPreferenceCreate = preference_create,
    .cublasLtMatmulPreferenceDestroy = preference_destroy,
    .cublasLtMatmulPreferenceSetAttribute = preference_set,
    .cublasLtMatmulAlgoGetHeuristic = heuristic,
    .cublasLtMatmulAlgoCheck = algorithm_check,
    .cublasLtMatmul = multiply
  };
  return &played;
}

int main(int count, char **arguments)
{
  flow_library_product p;
  flow_call call;
  float room[16];
  memset(&p, 0, sizeof p);
  memset(&call, 0, sizeof call);
  p.dtype = p.result_dtype = FLOW_FLOAT32;
  p.bias = 1;
  p.m = M;
  p.n = N;
  p.k = K;
  p.batch = BATCH;
  p.stride_b = K * N;
  fastest = count > 1 ? atoi(arguments[1]) : 0;
  for (int i = 2; i < count; i++) {
    if (strcmp(arguments[i], "exact") == 0) p.exact = 1;
    if (strcmp(arguments[i], "unaligned") == 0) unaligned = 1;
    if (strcmp(arguments[i], "stale") == 0) stale = 1;
    if (strcmp(arguments[i], "full") == 0) full = 1;
    if (strcmp(arguments[i], "failing") == 0) first_word = CUBLAS_STATUS_INTERNAL_ERROR;
    if (strcmp(arguments[i], "refusing") == 0) first_word = CUBLAS_STATUS_NOT_SUPPORTED;
  }
  p.alignment = unaligned ? 4 : FLOW_LIBRARY_ALIGNMENT;
  const int twice = first_word != CUBLAS_STATUS_SUCCESS;
  const flow_library_plan *plan = flow_product_plan(&call, &p);
  if (twice && plan) wrong = 1;
  if (twice) plan = flow_product_plan(&call, &p);
  if (!plan || flow_product_run(&call, plan, room, room, room, room, room) != FLOW_OK) {
    fprintf(stderr, "%s\n", flow_last_error());
    return 1;
  }
  if (mode != cudaStreamCaptureModeThreadLocal || bias != room) wrong = 1;
  printf("algorithm %d of %d, %d runs, %d checked\n", last, named, trials, checked);
  return wrong || open_things ? 2 : 0;
}
