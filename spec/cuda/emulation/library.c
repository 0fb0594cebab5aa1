/* library.c: library_plans.h for emulated devices. Plans exist where cuDNN 9.19 has them; each wants a workspace, which it overwrites: a
 * larger one for fewer images or rows, since libraries choose as they like.
 *
 * The environment variable FLOW_EMULATED_FORMULAS names a file that gets a line for each formula that is planned: what a model asks of the
 * libraries (scripts/cuda-plans). With FLOW_EMULATED_TOGETHER=N no convolution has a plan before N of them are being made at once: that of
 * who waits ten seconds for the others has none. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cuda/emulation/emulation.h"
#include "cuda/library/library_plans.h"
#include "cuda/library/plan_cache.h"

enum { WORKSPACE = 1000, MORE_FOR_FEW = 1 << 16, PATIENCE = 10 };

static size_t workspace_for(int64_t rows) { return WORKSPACE + (size_t)(MORE_FOR_FEW / (rows > 0 ? rows : 1)); }

typedef struct emulated_plan {
  flow_library_plan general;                /* first */
  union { flow_library_convolution convolution; flow_library_product product; } formula;
} emulated_plan;

static flow_plan_cache convolutions = FLOW_PLAN_CACHE, products = FLOW_PLAN_CACHE;

/* The caches' locks are not one: a line is written at once. */
static void note(const char *text)
{
  const char *path = getenv("FLOW_EMULATED_FORMULAS");
  FILE *file = path && *path ? fopen(path, "a") : NULL;
  if (!file) return;
  fprintf(file, "%s\n", text);
  fclose(file);
}

/* As cuDNN 9.19 for sm_80 and sm_90: after a convolution in groups it does no sums, and a relu in float32 only; sums only where tensor
 * cores may be used. */
static int exists(const flow_library_convolution *c)
{
  if (c->direction != FLOW_LIBRARY_DATA || !c->relu) return 1;
  if (c->bias) return c->groups == 1 && (c->dtype != FLOW_FLOAT32 || !c->exact);
  return c->groups == 1 || c->dtype == FLOW_FLOAT32;
}

static flow_status meet(void)
{
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static pthread_cond_t came = PTHREAD_COND_INITIALIZER;
  static int here;
  const char *text = getenv("FLOW_EMULATED_TOGETHER");
  int wanted = text ? atoi(text) : 0, late = 0;
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += PATIENCE;
  pthread_mutex_lock(&lock);
  here++;
  pthread_cond_broadcast(&came);
  while (here < wanted && !late) late = pthread_cond_timedwait(&came, &lock, &end) != 0;
  if (late) here--;                                       /* who has met, stays for those who come later */
  pthread_mutex_unlock(&lock);
  return late ? flow_fail(FLOW_UNSUPPORTED, "fewer than %d plans are made at once", wanted) : FLOW_OK;
}

static flow_status make_convolution(const void *key, void *plan)
{
  emulated_plan *made = plan;
  FLOW_TRY(emulated_may_plan());
  FLOW_TRY(meet());
  if (!exists(key)) return flow_fail(FLOW_UNSUPPORTED, "no engine can compute a graph");
  char text[FLOW_LIBRARY_TEXT];
  memcpy(&made->formula.convolution, key, sizeof made->formula.convolution);
  made->general.workspace = workspace_for(made->formula.convolution.images);
  flow_library_convolution_text(key, text, sizeof text);
  note(text);
  return FLOW_OK;
}

static flow_status make_product(const void *key, void *plan)
{
  emulated_plan *made = plan;
  char text[FLOW_LIBRARY_TEXT];
  FLOW_TRY(emulated_may_plan());
  memcpy(&made->formula.product, key, sizeof made->formula.product);
  if (made->formula.product.alignment < FLOW_LIBRARY_ALIGNMENT) return FLOW_OK;      /* any address, no workspace; not in lists */
  made->general.workspace = workspace_for(made->formula.product.m);
  flow_library_product_text(key, text, sizeof text);
  note(text);
  return FLOW_OK;
}

const flow_library_plan *flow_convolution_plan(const flow_call *call, const flow_library_convolution *convolution)
{
  (void)call;
  return flow_plan_cache_find(&convolutions, convolution, sizeof *convolution, sizeof(emulated_plan), make_convolution);
}

const flow_library_plan *flow_product_plan(const flow_call *call, const flow_library_product *product)
{
  (void)call;
  return flow_plan_cache_find(&products, product, sizeof *product, sizeof(emulated_plan), make_product);
}

/* Sums are a separate launch here. */
flow_status flow_convolution_run(const flow_call *call, const flow_library_plan *plan, const flow_library_operands *operands)
{
  const flow_library_convolution *c = &((const emulated_plan *)plan)->formula.convolution;
  emulated_convolution_arguments a = { .c = *c, .first = operands->first, .second = operands->second, .bias = operands->bias,
                                       .addend = operands->addend, .relu = operands->relu, .result = operands->result,
                                       .sums = operands->sums, .workspace = operands->workspace, .workspace_bytes = plan->workspace };
  FLOW_TRY(flow_cuda_launch(call, CUDA_emulated_convolution, emulated_elements(c), &a, sizeof a));
  return operands->sums ? flow_cuda_launch(call, CUDA_emulated_sums, c->channels_in, &a, sizeof a) : FLOW_OK;
}

flow_status flow_product_run(const flow_call *call, const flow_library_plan *plan, const void *a, const void *b, const void *bias, void *c,
                             void *workspace)
{
  const flow_library_product *p = &((const emulated_plan *)plan)->formula.product;
  uintptr_t addresses = (uintptr_t)a | (uintptr_t)b | (uintptr_t)bias | (uintptr_t)c;
  if (addresses % (uintptr_t)p->alignment != 0)
    return flow_fail(FLOW_INTERNAL, "an operand of a product begins at no multiple of %lld bytes", (long long)p->alignment);
  emulated_product_arguments arguments = { .p = *p, .a = a, .b = b, .bias = bias, .c = c, .workspace = workspace,
                                           .workspace_bytes = plan->workspace };
  int64_t tiles = p->batch * p->m * parts_of(p->n, EMULATED_TILE);
  return flow_cuda_launch(call, CUDA_emulated_product, tiles, &arguments, sizeof arguments);
}
