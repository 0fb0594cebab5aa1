/* cublas_trial.c: see cublas_trial.h. */
#include "cuda/library/cublas_trial.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/memory.h"
#include "cuda/library/plan_stage.h"
#include "cuda/library/plan_store.h"
#include "cuda/library/plan_trial.h"
#include "tensor/tensor.h"

/* ---- trials --------------------------------------------------------------------------------------------------------------------- */

typedef struct trial {
  const flow_cublaslt *blas;
  cublasLtHandle_t handle;
  const flow_cublas_product *described;
  const cublasLtMatmulHeuristicResult_t *algorithms;
  const void *a, *b;
  void *c, *workspace;
  flow_plan_stage stage;
} trial;

/* Bytes of `batch` matrices that begin `stride` elements apart. */
static int64_t matrices(int64_t elements, int64_t batch, int64_t stride, int dtype)
{
  return ((batch - 1) * stride + elements) * (int64_t)flow_dtype_size(dtype);
}

/* A stage with memory for all operands, the bias among them, and the largest workspace. */
static int open_stage(trial *t, const flow_library_product *p, int count)
{
  int64_t workspace = 0;
  for (int i = 0; i < count; i++)
    if ((int64_t)t->algorithms[i].workspaceSize > workspace) workspace = (int64_t)t->algorithms[i].workspaceSize;
  const int64_t bytes[FLOW_PLAN_OPERANDS] = {
    matrices(p->m * p->k, p->batch, p->stride_a, p->dtype), matrices(p->k * p->n, p->batch, p->stride_b, p->dtype),
    matrices(p->m * p->n, p->batch, p->m * p->n, p->result_dtype), p->n * (int64_t)flow_dtype_size(p->dtype), workspace
  };
  void *at[FLOW_PLAN_OPERANDS];
  if (!flow_plan_stage_open(&t->stage, bytes, at)) return 0;
  t->a = at[0];
  t->b = at[1];
  t->c = at[2];
  t->workspace = at[4];
  const void *bias = at[3];
  if (!p->bias || t->blas->cublasLtMatmulDescSetAttribute(t->described->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias) ==
                      CUBLAS_STATUS_SUCCESS)
    return 1;
  flow_plan_stage_close(&t->stage);
  return 0;
}

/* For plan_trial.h. cuBLASLt's a is our b. */
static flow_status run(void *state, int plan, float *milliseconds)
{
  trial *t = state;
  const flow_cublas_product *p = t->described;
  const cublasLtMatmulHeuristicResult_t *tried = &t->algorithms[plan];
  const float one = 1, zero = 0;
  int done = flow_plan_stage_begin(&t->stage);
  for (int i = 0; i < FLOW_PLAN_REPEATS && done; i++)
    done = t->blas->cublasLtMatmul(t->handle, p->product, &one, t->b, p->a, t->a, p->b, &zero, t->c, p->c, t->c, p->c, &tried->algo,
                                   t->workspace, tried->workspaceSize, t->stage.stream) == CUBLAS_STATUS_SUCCESS;
  if (!done || !flow_plan_stage_end(&t->stage)) return flow_fail(FLOW_UNSUPPORTED, "cuBLASLt cannot run an algorithm on trial");
  return flow_plan_stage_time(&t->stage, milliseconds);
}

int flow_cublas_trial(const flow_cublaslt *blas, cublasLtHandle_t handle, const flow_library_product *product,
                      const flow_cublas_product *described, const cublasLtMatmulHeuristicResult_t *algorithms, int count)
{
  trial t = { .blas = blas, .handle = handle, .described = described, .algorithms = algorithms };
  if (count <= 1 || !open_stage(&t, product, count)) return 0;
  int chosen = flow_plan_fastest(count, run, &t);
  flow_plan_stage_close(&t.stage);
  return chosen;
}

/* ---- what is kept --------------------------------------------------------------------------------------------------------------- */

enum { WORDS = sizeof(cublasLtMatmulAlgo_t) / sizeof(uint64_t), WORD_TEXT = 17, KEY_BYTES = FLOW_LIBRARY_TEXT + 512 };

/* What decides which algorithm it is: cuBLASLt's version, the kind of device, and the formula. 0: the device is not known. */
static int store_key(const flow_cublaslt *blas, const flow_library_product *product, int device, char key[KEY_BYTES])
{
  struct cudaDeviceProp known;
  if (cudaGetDeviceProperties(&known, device) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  int length = snprintf(key, KEY_BYTES, "cuBLASLt %zu %.200s sm_%d%d multiprocessors=%d alignment=%lld tuned ", blas->cublasLtGetVersion(),
                        known.name, known.major, known.minor, known.multiProcessorCount, (long long)product->alignment);
  flow_library_product_text(product, key + length, (size_t)(KEY_BYTES - length));
  return 1;
}

/* An algorithm is a struct of words, which the documentation of cublasLtMatmulAlgo_t allows to keep for the same version of the library. */
static int parse(const char *text, cublasLtMatmulAlgo_t *out)
{
  uint64_t words[WORDS];
  if (strlen(text) != (size_t)WORDS * WORD_TEXT) return 0;
  for (int i = 0; i < WORDS; i++)
    if (sscanf(text + i * WORD_TEXT, "%16" SCNx64, &words[i]) != 1) return 0;
  memcpy(out, words, sizeof words);
  return 1;
}

int flow_cublas_algorithm_read(const flow_cublaslt *blas, cublasLtHandle_t handle, const flow_library_product *product,
                               const flow_cublas_product *described, int device, cublasLtMatmulHeuristicResult_t *out)
{
  char key[KEY_BYTES];
  char *text = store_key(blas, product, device, key) ? flow_plan_store_read(key) : NULL;
  cublasLtMatmulAlgo_t algorithm;
  const flow_cublas_product *p = described;
  memset(out, 0, sizeof *out);
  int found = text && parse(text, &algorithm) &&
              blas->cublasLtMatmulAlgoCheck(handle, p->product, p->a, p->b, p->c, p->c, &algorithm, out) == CUBLAS_STATUS_SUCCESS &&
              out->workspaceSize <= flow_cublas_workspace(product);
  if (found) out->algo = algorithm;
  flow_free(text);
  return found;
}

void flow_cublas_algorithm_write(const flow_cublaslt *blas, const flow_library_product *product, int device,
                                 const cublasLtMatmulAlgo_t *algorithm)
{
  char key[KEY_BYTES], text[WORDS * WORD_TEXT + 1];
  uint64_t words[WORDS];
  memcpy(words, algorithm, sizeof words);
  for (int i = 0; i < WORDS; i++) snprintf(text + i * WORD_TEXT, WORD_TEXT + 1, "%016" PRIx64 ";", words[i]);
  if (store_key(blas, product, device, key)) flow_plan_store_write(key, text);
}
