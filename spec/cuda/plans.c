/* plans.c: asks the real cuDNN for a plan of each formula on standard input, for a device that is only described, and cuBLASLt for the
 * descriptors of each product: whether the graphs that we build are ones that the library has an engine for can be told without a GPU.
 *
 *   LD_LIBRARY_PATH=FOLDER_OF_THE_STAND_IN cuda_plans DEVICE.json < formulas
 *   cuda_plans --describe        on a machine with a GPU: its description, as it belongs into spec/cuda/devices
 *
 * The first line is "# cuDNN 9.19.0, cuBLASLt 13.1.0"; then, for each line that came in, a line: the workspace in bytes, a tab, the
 * formula; or "none", a tab, the formula, a tab, the reason; or "described" for a product. The last line counts the plans that FLOW_CACHE
 * had kept (plan_store.h). A plan counts if it comes back from its text with the same workspace. Status 1: some formula has none; 2: there
 * is nothing to ask, and the reason on standard error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "cuda/library/cublas_plan.h"
#include "cuda/runtime/libraries.h"
#include "cuda/library/cudnn_plan.h"

/* Nothing is enqueued here. */
int flow_cuda_device_index(const flow_call *call) { (void)call; return 0; }
cudaStream_t flow_cuda_stream(const flow_call *call) { (void)call; return NULL; }

enum { DESCRIPTION = 4096 };

static int read_file(const char *path, char text[DESCRIPTION])
{
  FILE *file = fopen(path, "r");
  if (!file) return 0;
  size_t size = fread(text, 1, DESCRIPTION - 1, file);
  fclose(file);
  text[size] = '\0';
  return size > 0;
}

/* The plan of a formula, to text and back. */
static flow_status plan_convolution(const flow_cudnn_device *device, const flow_library_convolution *convolution, flow_cudnn_plan *plan)
{
  flow_cudnn_names names;
  flow_cudnn_plan again = { 0 };
  char *text = NULL;
  flow_status status = flow_cudnn_plan_of(device, convolution, &names, plan);
  if (status == FLOW_OK) status = flow_cudnn_plan_json(device->cudnn, plan, &text);
  if (status == FLOW_OK) status = flow_cudnn_plan_read(device, text, &again);
  if (status == FLOW_OK && again.workspace != plan->workspace)
    status = flow_fail(FLOW_INTERNAL, "a plan of %lld bytes comes back with %lld", (long long)plan->workspace, (long long)again.workspace);
  flow_cudnn_plan_release(device->cudnn, plan);
  flow_cudnn_plan_release(device->cudnn, &again);
  flow_free(text);
  return status;
}

static flow_status describe_product(const flow_cublaslt *blas, const flow_library_product *product)
{
  flow_cublas_product described;
  flow_status status = flow_cublas_describe(blas, product, &described);
  if (status == FLOW_OK) flow_cublas_release(blas, &described);
  return status;
}

static int describe_device(void)
{
  flow_cudnn_device device;
  char *text = NULL;
  if (!flow_cuda_cudnn() || flow_cudnn_device_open(flow_cuda_cudnn(), 0, NULL, &device) != FLOW_OK ||
      flow_cudnn_device_json(&device, &text) != FLOW_OK) {
    fprintf(stderr, "the GPU cannot be described: %s\n", flow_last_error());
    return 2;
  }
  printf("%s\n", text);
  flow_free(text);
  flow_cudnn_device_close(&device);
  return 0;
}

int main(int count, char **arguments)
{
  static char description[DESCRIPTION];
  char names[2][200], line[FLOW_LIBRARY_TEXT + 2];
  flow_cudnn_device device;
  int missing = 0, searched = 0, kept = 0;
  if (count == 2 && strcmp(arguments[1], "--describe") == 0) return describe_device();
  if (count != 2 || !read_file(arguments[1], description)) {
    fprintf(stderr, "use: cuda_plans DEVICE.json < formulas\n");
    return 2;
  }
  if (!flow_cuda_library_text(FLOW_CUDA_CUDNN, names[0], sizeof names[0])) { fprintf(stderr, "%s\n", names[0]); return 2; }
  if (!flow_cuda_library_text(FLOW_CUDA_CUBLASLT, names[1], sizeof names[1])) { fprintf(stderr, "%s\n", names[1]); return 2; }
  if (flow_cudnn_device_open(flow_cuda_cudnn(), 0, description, &device) != FLOW_OK) {
    fprintf(stderr, "%s\n", flow_last_error());
    return 2;
  }
  printf("# %s, %s\n", names[0], names[1]);
  while (fgets(line, sizeof line, stdin)) {
    flow_library_convolution convolution;
    flow_library_product product;
    flow_cudnn_plan plan = { 0 };
    flow_status status;
    line[strcspn(line, "\n")] = '\0';
    if (flow_library_convolution_parse(line, &convolution)) {
      status = plan_convolution(&device, &convolution, &plan);
      *(plan.tried ? &searched : &kept) += status == FLOW_OK;
      if (status == FLOW_OK) printf("%lld\t%s\n", (long long)plan.workspace, line);
    } else if (flow_library_product_parse(line, &product)) {
      status = describe_product(flow_cuda_cublaslt(), &product);
      if (status == FLOW_OK) printf("described\t%s\n", line);
    } else {
      status = flow_fail(FLOW_INVALID_ARGUMENT, "this is not a formula");
    }
    if (status == FLOW_OK) continue;
    printf("none\t%s\t%.150s\n", line, flow_last_error());
    missing++;
  }
  printf("# %d searched for, %d kept\n", searched, kept);
  flow_cudnn_device_close(&device);
  return missing > 0;
}
